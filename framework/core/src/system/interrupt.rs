//! Ends what need not be finished when a signal has come.
//!
//! The training loop looks at the flag between steps, which are never cut short. Evaluations, searches and figures end at
//! the next [`interruption_point`], by unwinding: on their way they call plugins that return tensors, not results, and what
//! they would have found is found again on resume. [`caught`](super::panics::caught) makes the error [`Interrupted`] of it.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// A signal ended the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// Signals come to the whole process. Not set in a program that does not listen.
static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
/// How many [`Whole`] there are.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// The flag that a signal handler sets.
pub fn flag() -> Arc<AtomicBool> {
    Arc::clone(ASKED.get_or_init(Arc::default))
}

/// Ends the evaluation, search or figure that calls it if a signal has come. Whatever may take longer than a second
/// calls it from time to time; it does nothing within a training step.
///
/// Chains that the framework runs, searches for latents, and [`Task::advance`](crate::Task::advance) do so already.
pub fn interruption_point() {
    let asked = ASKED.get().is_some_and(|asked| asked.load(Ordering::Relaxed));
    if asked && HELD.load(Ordering::SeqCst) == 0 {
        resume_unwind(Box::new(Interrupted));
    }
}

/// While it lives, interruption points do nothing: the work at hand has to be finished.
#[must_use]
pub struct Whole(());

impl Whole {
    /// Holds interruptions off.
    pub fn begin() -> Self {
        HELD.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::SeqCst);
    }
}
