//! Runs tasks at once, on the threads that libtorch keeps for itself.
//!
//! Those threads, OpenMP's, wait for libtorch's next operation by spinning for milliseconds, on the very cores that other
//! threads would need. So they are given the tasks. Operations of libtorch within a task then stay in its thread.

use std::ffi::{c_uint, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::system::panics::caught;

/// Runs `task` with each of `inputs` and its number, a thread for each, and returns what they return, in order.
pub fn run<I: Send, T: Send>(
    inputs: Vec<I>,
    task: impl Fn(usize, I) -> anyhow::Result<T> + Sync,
) -> anyhow::Result<Vec<T>> {
    let count = inputs.len();
    let waiting = Mutex::new(inputs.into_iter().enumerate());
    let done = Mutex::new(Vec::with_capacity(count));
    // A function, since a loop would hold the lock as long as the task runs.
    let next = || locked(&waiting).next();
    // There may be fewer threads than tasks.
    let work = || {
        while let Some((i, input)) = next() {
            let outcome = caught(|| task(i, input));
            locked(&done).push((i, outcome));
        }
    };
    match open_mp() {
        _ if count < 2 => work(),
        Some(region) => on_open_mp(region, count, &work),
        None => thread::scope(|scope| {
            for _ in 1..count {
                scope.spawn(work);
            }
            work();
        }),
    }
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(i, _)| *i);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a compiler calls for a parallel region: a function and its data, for so many threads.
type Region = unsafe extern "C" fn(unsafe extern "C" fn(*mut c_void), *mut c_void, c_uint, c_uint);

/// OpenMP as libtorch has loaded it, where it speaks GNU's language.
#[cfg(unix)]
#[allow(unsafe_code)]
fn open_mp() -> Option<Region> {
    use std::sync::OnceLock;

    use libloading::os::unix::Library;

    static REGION: OnceLock<Option<Region>> = OnceLock::new();
    *REGION.get_or_init(|| {
        // Safety: the function has had this type since version 4.9 of GCC.
        unsafe { Library::this().get::<Region>(b"GOMP_parallel") }
            .ok()
            .map(|region| *region)
    })
}

#[cfg(not(unix))]
fn open_mp() -> Option<Region> {
    None
}

#[allow(unsafe_code)]
fn on_open_mp<F: Fn() + Sync>(region: Region, threads: usize, work: &F) {
    unsafe extern "C" fn call<F: Fn() + Sync>(work: *mut c_void) {
        // Safety: `work` is the reference below, and the region ends before it does.
        (unsafe { &*work.cast::<F>() })();
    }
    // Safety: `call` gets what it expects, from several threads, which `F` allows; nothing unwinds out of `work`.
    unsafe {
        region(
            call::<F>,
            std::ptr::from_ref(work).cast_mut().cast(),
            threads as c_uint,
            0,
        )
    };
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Barrier;

    use super::*;

    #[test]
    fn every_task_is_done_once_and_outcomes_are_in_order() {
        for count in [0, 1, 2, 7] {
            let found = run(vec![3; count], |i, input| Ok(i * input)).unwrap();
            assert_eq!(found, (0..count).map(|i| 3 * i).collect::<Vec<_>>());
        }
    }

    #[test]
    fn tasks_run_at_once() {
        // Each waits for the other: one after the other, they would wait for ever.
        let both = Barrier::new(2);
        run(vec![(); 2], |_, ()| {
            both.wait();
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn errors_and_panics_come_back() {
        let fails = |_, fails| if fails { anyhow::bail!("no") } else { Ok(()) };
        assert_eq!(run(vec![false, true], fails).unwrap_err().to_string(), "no");
        let panics = |_, panics| if panics { panic!("oh") } else { Ok(()) };
        let error = run(vec![true, false, true], panics).unwrap_err();
        assert!(error.to_string().contains("oh"));
        run(vec![false, false], panics).unwrap();
    }

    #[test]
    fn libtorch_computes_within_a_task() {
        let sums = run(vec![1.0, 2.0], |_, value| {
            let numbers = tch::Tensor::full([1000, 1000], value, tch::kind::FLOAT_CPU);
            Ok(numbers.matmul(&numbers).sum(tch::Kind::Double).double_value(&[]))
        });
        assert_eq!(sums.unwrap(), [1e9, 4e9]);
    }
}
