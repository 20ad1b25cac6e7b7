//! Shows how far a long piece of work inside a run is: a bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::interruption_point;

/// How often a plain line is printed when there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(30);

/// All bars of the program, since they share one terminal.
pub fn bars() -> MultiProgress {
    static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);
    BARS.clone()
}

/// The display of one piece of work; it goes away with this value.
pub struct Task {
    what: String,
    bar: Option<ProgressBar>,
    done: u64,
    total: u64,
    start: Instant,
    shown: Instant,
}

impl Task {
    /// Starts the display of `what`, e.g. "fid: training images", which has `total` parts.
    pub fn start(what: impl Into<String>, total: u64) -> Self {
        let what = what.into();
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = "{prefix} {wide_bar:.cyan/dim} {pos}/{len}  ETA {eta}";
            let style = ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
            bars().add(
                ProgressBar::new(total)
                    .with_style(style)
                    .with_prefix(what.clone()),
            )
        });
        let now = Instant::now();
        Self {
            what,
            bar,
            done: 0,
            total,
            start: now,
            shown: now,
        }
    }

    /// Moves on by `parts`; an [`interruption_point`].
    pub fn advance(&mut self, parts: u64) {
        interruption_point();
        self.done += parts;
        if let Some(bar) = &self.bar {
            bar.set_position(self.done);
        } else if self.shown.elapsed() >= LINE_INTERVAL {
            self.shown = Instant::now();
            let rate = self.done as f64 / self.start.elapsed().as_secs_f64();
            let left = self.total.saturating_sub(self.done) as f64 / rate;
            tracing::info!("{}: {}/{}  ETA {left:.0} s", self.what, self.done, self.total);
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
