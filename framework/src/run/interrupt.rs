//! Hears Ctrl-C and other signals, so that a run can finish its step and write what it has.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR2};
use signal_hook::flag;

/// Exit code of an interrupted run.
pub const INTERRUPTED: u8 = 130;

/// Whether somebody asked the run to stop.
#[derive(Clone)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
    /// The signal that came; 0 before that.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Listens from now on. The first signal sets the flag, a second one ends the program at once.
    pub fn listen() -> std::io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        let which = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM, SIGUSR2] {
            // The order matters: the exit is armed only by a flag that an earlier signal has set.
            flag::register_conditional_shutdown(signal, INTERRUPTED.into(), Arc::clone(&asked))?;
            flag::register_usize(signal, Arc::clone(&which), signal as usize)?;
            flag::register(signal, Arc::clone(&asked))?;
        }
        Ok(Self { asked, signal: which })
    }

    /// Whether a signal has come.
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Whether it was the one that announces a time limit, not one that wants the run to end.
    pub fn time_is_up(&self) -> bool {
        self.signal.load(Ordering::Relaxed) == SIGUSR2 as usize
    }
}
