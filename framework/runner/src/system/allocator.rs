//! Keeps memory that libtorch has freed, so that the next step need not ask the system for it again.

/// To be called before anything else: training frees and takes the same hundreds of megabytes in every step.
///
/// glibc gives blocks above 32 MiB back to the system at once, which then clears every page anew: a sixth of the time
/// of a step on images.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
pub fn keep_freed_memory() {
    use std::ffi::c_int;

    const M_TRIM_THRESHOLD: c_int = -1;
    const M_MMAP_MAX: c_int = -4;
    unsafe extern "C" {
        fn mallopt(parameter: c_int, value: c_int) -> c_int;
    }
    // Safety: both parameters are documented, and no other thread runs yet.
    unsafe {
        mallopt(M_MMAP_MAX, 0);
        mallopt(M_TRIM_THRESHOLD, -1);
    }
}

/// Other allocators are left as they are.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn keep_freed_memory() {}
