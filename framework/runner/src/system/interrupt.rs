//! Listens for Ctrl-C and other signals.
//!
//! A command with nothing to save ends within a second of a signal, even if it never reaches an interruption point.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use ebipla_core::system::interrupt::flag;
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR2};
use signal_hook::iterator::Signals;
use signal_hook::{flag as handlers, low_level};

/// Exit code of an interrupted run or command.
pub const INTERRUPTED: u8 = 130;

/// How long a command with nothing to save may take to end by itself.
const GRACE: Duration = Duration::from_millis(700);

/// Whether the program ends only by itself.
static PATIENT: AtomicBool = AtomicBool::new(false);

/// Whether a signal has asked the program to stop.
#[derive(Clone)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
    /// The signal that came; 0 before that.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Listens from now on. The first signal sets the flag, a second one ends the program at once.
    pub fn listen() -> std::io::Result<Self> {
        let (asked, which) = (flag(), Arc::new(AtomicUsize::new(0)));
        let all = [SIGINT, SIGTERM, SIGUSR2];
        for signal in all {
            // The order matters: the exit is armed only by a flag that an earlier signal has set.
            handlers::register_conditional_shutdown(signal, INTERRUPTED.into(), Arc::clone(&asked))?;
            handlers::register_usize(signal, Arc::clone(&which), signal as usize)?;
            handlers::register(signal, Arc::clone(&asked))?;
        }
        let mut signals = Signals::new(all)?;
        thread::Builder::new()
            .name("signals".into())
            .spawn(move || signals.forever().for_each(|_| end_unless_patient()))?;
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

fn end_unless_patient() {
    loop {
        thread::sleep(GRACE);
        if !PATIENT.load(Ordering::SeqCst) {
            eprintln!("interrupted");
            // Not `exit`: other threads compute while its handlers would take libtorch down.
            low_level::exit(INTERRUPTED.into());
        }
    }
}

/// From now on a signal does not end the program by itself: it has something to save, or an exit code to pass on. There is
/// no way back, since a program that is about to end would be ended with another code.
pub fn end_only_by_itself() {
    PATIENT.store(true, Ordering::SeqCst);
}
