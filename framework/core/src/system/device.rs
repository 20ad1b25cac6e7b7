//! Turns the recipe's `run.device` into a device, and never falls back silently.

use anyhow::bail;
use tch::{Cuda, Device};

/// Resolves `auto`, `cpu`, `cuda` or `cuda:i`.
pub fn resolve(wanted: &str) -> anyhow::Result<Device> {
    match wanted {
        "cpu" => Ok(Device::Cpu),
        "auto" => match load_cuda() {
            Ok(()) if Cuda::is_available() => Ok(Device::Cuda(0)),
            Ok(()) => {
                tracing::info!("device auto: the CPU, since no CUDA device answers");
                Ok(Device::Cpu)
            }
            Err(_) => {
                tracing::info!("device auto: the CPU, since this libtorch has no CUDA");
                Ok(Device::Cpu)
            }
        },
        other => {
            let index = cuda_index(other)?;
            if let Err(problem) = load_cuda() {
                bail!(
                    "run.device is `{other}`, but this libtorch has no CUDA ({problem}): \
                     `./runner setup --cuda` installs one that has; `cpu` and `auto` work as it is"
                );
            }
            let count = Cuda::device_count();
            if index as i64 >= count {
                bail!(
                    "run.device is `{other}`, but {count} CUDA devices answer here: \
                     check the driver with nvidia-smi, or use `cpu` or `auto`"
                );
            }
            Ok(Device::Cuda(index))
        }
    }
}

/// The GPUs that this process may use, as `CUDA_VISIBLE_DEVICES` calls them.
pub fn gpus() -> Vec<String> {
    match load_cuda() {
        Ok(()) => gpu_names(
            Cuda::device_count(),
            std::env::var("CUDA_VISIBLE_DEVICES").ok().as_deref(),
        ),
        Err(_) => Vec::new(),
    }
}

/// Where only some are visible, they keep the names that they were given.
fn gpu_names(count: i64, visible: Option<&str>) -> Vec<String> {
    let given = visible.map(|names| names.split(',').map(|name| name.trim().to_owned()).collect());
    let mut names: Vec<_> = given.unwrap_or_else(|| (0..count).map(|i| i.to_string()).collect());
    names.truncate(count.max(0) as usize);
    names
}

/// Whether `wanted` is a device name at all; used when a recipe is checked.
pub fn is_name(wanted: &str) -> bool {
    matches!(wanted, "auto" | "cpu") || cuda_index(wanted).is_ok()
}

fn cuda_index(name: &str) -> anyhow::Result<usize> {
    match name.strip_prefix("cuda") {
        Some("") => Ok(0),
        Some(rest) => match rest.strip_prefix(':').map(str::parse) {
            Some(Ok(index)) => Ok(index),
            _ => bail!("`{name}` is no device: use auto, cpu, cuda or cuda:i"),
        },
        None => bail!("`{name}` is no device: use auto, cpu, cuda or cuda:i"),
    }
}

/// Loads libtorch's CUDA half, whose initialisers register it.
///
/// The linker drops a library that no symbol refers to, and forcing it in would keep the program from starting on
/// a machine without CUDA. So it is opened by hand, before anything asks libtorch for CUDA.
#[allow(unsafe_code)]
fn load_cuda() -> Result<(), String> {
    use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
    // Safety: loading runs the initialisers of libtorch's own library, built for this libtorch.
    let library = unsafe { Library::open(Some("libtorch_cuda.so"), RTLD_NOW | RTLD_GLOBAL) };
    // Leaked on purpose: it must stay for as long as the program runs.
    library
        .map(std::mem::forget)
        .map_err(|problem| problem.to_string())
}

/// `cpu` or `cuda:i`, as recipes spell it.
pub fn name(device: Device) -> String {
    match device {
        Device::Cuda(index) => format!("cuda:{index}"),
        _ => "cpu".into(),
    }
}

/// What the processor calls itself.
pub fn cpu() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_keep_the_names_that_they_were_given() {
        assert_eq!(gpu_names(2, None), ["0", "1"]);
        assert_eq!(gpu_names(2, Some("3, GPU-8a")), ["3", "GPU-8a"]);
        // What follows an unknown one is not visible either.
        assert_eq!(gpu_names(1, Some("3,99")), ["3"]);
        assert!(gpu_names(0, Some("0")).is_empty());
    }

    #[test]
    fn names() {
        for good in ["auto", "cpu", "cuda", "cuda:0", "cuda:12"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["gpu", "cuda0", "cuda:", "cuda:x", "CPU", ""] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
