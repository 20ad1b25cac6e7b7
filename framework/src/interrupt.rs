//! Hears Ctrl-C and other signals, and ends what need not be finished.
//!
//! The training loop looks at the flag between steps, which are never cut short. Evaluations, searches and figures end at
//! the next [`interruption_point`], by unwinding: on their way they call plugins that return tensors, not results, and what
//! they would have found is found again on resume. [`caught`](crate::panics::caught) makes the error [`Interrupted`] of it.
//! A command with nothing to save ends within a second even if it never comes to such a point.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR2};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

/// Exit code of an interrupted run or command.
pub const INTERRUPTED: u8 = 130;

/// How long a command with nothing to save may take to end by itself.
const GRACE: Duration = Duration::from_millis(700);

/// A signal ended the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// What the signal handlers set.
#[derive(Clone, Default)]
struct Flags {
    asked: Arc<AtomicBool>,
    /// The signal that came; 0 before that.
    signal: Arc<AtomicUsize>,
}

/// Signals come to the whole process. Not set in a program that does not listen.
static FLAGS: OnceLock<Flags> = OnceLock::new();
/// How many guards of each kind there are.
static HELD: AtomicUsize = AtomicUsize::new(0);
static PATIENT: AtomicUsize = AtomicUsize::new(0);

/// Whether somebody asked the program to stop.
#[derive(Clone)]
pub struct Interrupt(Flags);

impl Interrupt {
    /// Listens from now on. The first signal sets the flag, a second one ends the program at once.
    pub fn listen() -> std::io::Result<Self> {
        let flags = FLAGS.get_or_init(Flags::default).clone();
        let all = [SIGINT, SIGTERM, SIGUSR2];
        for signal in all {
            // The order matters: the exit is armed only by a flag that an earlier signal has set.
            flag::register_conditional_shutdown(signal, INTERRUPTED.into(), Arc::clone(&flags.asked))?;
            flag::register_usize(signal, Arc::clone(&flags.signal), signal as usize)?;
            flag::register(signal, Arc::clone(&flags.asked))?;
        }
        let mut signals = Signals::new(all)?;
        thread::Builder::new()
            .name("signals".into())
            .spawn(move || signals.forever().for_each(|_| end_unless_patient()))?;
        Ok(Self(flags))
    }

    /// Whether a signal has come.
    pub fn asked(&self) -> bool {
        self.0.asked.load(Ordering::Relaxed)
    }

    /// Whether it was the one that announces a time limit, not one that wants the run to end.
    pub fn time_is_up(&self) -> bool {
        self.0.signal.load(Ordering::Relaxed) == SIGUSR2 as usize
    }
}

fn end_unless_patient() {
    loop {
        thread::sleep(GRACE);
        if PATIENT.load(Ordering::SeqCst) == 0 {
            eprintln!("interrupted");
            // Not `exit`: other threads compute while its handlers would take libtorch down.
            low_level::exit(INTERRUPTED.into());
        }
    }
}

/// Ends the evaluation, search or figure that calls it if a signal has come. Whatever may take longer than a second
/// calls it from time to time; it does nothing within a training step.
///
/// Chains that the framework runs, searches for latents, and [`Task::advance`](crate::Task::advance) do so already.
pub fn interruption_point() {
    let asked = FLAGS
        .get()
        .is_some_and(|flags| flags.asked.load(Ordering::Relaxed));
    if asked && HELD.load(Ordering::SeqCst) == 0 {
        resume_unwind(Box::new(Interrupted));
    }
}

/// Keeps signals from cutting something short, as long as it lives.
#[must_use]
pub struct Guard(&'static AtomicUsize);

impl Guard {
    fn over(count: &'static AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }

    /// Interruption points do nothing: what goes on has to be finished.
    pub fn whole() -> Self {
        Self::over(&HELD)
    }

    /// The program does not end by itself: there is something to save, or to pass on.
    pub fn patience() -> Self {
        Self::over(&PATIENT)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
