//! Sends log lines to the terminal, above the progress bar, and to the run's `log.txt`.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use ebipla_core::system::task;
use indicatif::MultiProgress;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

/// The program's log.
#[derive(Clone)]
pub struct Log {
    file: Arc<Mutex<Sink>>,
    pub bars: MultiProgress,
}

/// What was logged before the run had a folder is kept until it has one.
enum Sink {
    Memory(Vec<u8>),
    File(File),
}

impl Log {
    /// Starts logging; `RUST_LOG` filters as usual, for the terminal and the file alike.
    pub fn start() -> Self {
        let log = Self {
            file: Arc::new(Mutex::new(Sink::Memory(Vec::new()))),
            bars: task::bars(),
        };
        let filter = || EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
        let bars = log.bars.clone();
        let terminal = fmt::layer()
            .with_target(false)
            .with_ansi(io::stderr().is_terminal())
            .with_writer(move || AboveBars(bars.clone()))
            .with_filter(filter());
        let file = log.file.clone();
        let to_file = fmt::layer()
            .with_target(false)
            .with_ansi(false)
            .with_writer(move || ToSink(file.clone()))
            .with_filter(filter());
        // A second runner in one process keeps the first one's subscriber.
        let _ = tracing_subscriber::registry()
            .with(terminal)
            .with(to_file)
            .try_init();
        log
    }

    /// From now on, lines go to `folder/log.txt`, those logged so far first.
    pub fn write_to(&self, folder: &Path) -> anyhow::Result<()> {
        let path = folder.join("log.txt");
        let mut file = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .with_context(|| format!("opening {}", path.display()))?;
        let mut sink = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Sink::Memory(earlier) = &*sink {
            file.write_all(earlier)
                .with_context(|| format!("writing {}", path.display()))?;
        }
        *sink = Sink::File(file);
        Ok(())
    }
}

struct AboveBars(MultiProgress);

impl Write for AboveBars {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.suspend(|| io::stderr().write(line))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

struct ToSink(Arc<Mutex<Sink>>);

impl Write for ToSink {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Sink::Memory(memory) => memory.write(line),
            Sink::File(file) => file.write(line),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
