//! Shows how far a run is: a bar on a terminal, a line now and then elsewhere.

use std::fmt::Write;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressState, ProgressStyle};

use crate::record::Moment;

/// How often a plain line is printed when there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// How often the bar wants to know the losses.
const BAR_INTERVAL: Duration = Duration::from_millis(500);

/// The progress display of one run.
pub struct Progress {
    bar: Option<ProgressBar>,
    /// Steps made before the start.
    before: u64,
    total: u64,
    epochs: u64,
    start: Instant,
    shown: Instant,
}

impl Progress {
    /// Starts the display for `total` steps in `epochs` epochs, `done` of which were made before.
    pub fn start(bars: &MultiProgress, done: u64, total: u64, epochs: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = "epoch {prefix} {wide_bar:.cyan/dim} {pos}/{len}  {rate} steps/s  ETA {eta}  {msg}";
            let rate = |state: &ProgressState, text: &mut dyn Write| {
                let _ = write!(text, "{:.1}", state.per_sec());
            };
            let style = ProgressStyle::with_template(style)
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .with_key("rate", rate);
            bars.add(ProgressBar::new(total).with_style(style).with_position(done))
        });
        let now = Instant::now();
        Self {
            bar,
            before: done,
            total,
            epochs,
            start: now,
            shown: now,
        }
    }

    /// Whether it is time to show numbers again.
    pub fn due(&self) -> bool {
        let interval = if self.bar.is_some() {
            BAR_INTERVAL
        } else {
            LINE_INTERVAL
        };
        self.shown.elapsed() >= interval
    }

    /// Moves on by one step.
    pub fn advance(&self, moment: Moment) {
        if let Some(bar) = &self.bar {
            bar.set_prefix(format!("{}/{}", moment.epoch + 1, self.epochs));
            bar.inc(1);
        }
    }

    /// Shows the current losses.
    pub fn show(&mut self, moment: Moment, numbers: &[(String, f64)]) {
        self.shown = Instant::now();
        let losses: Vec<_> = numbers
            .iter()
            .filter_map(|(name, number)| Some(format!("{} {number:.4}", name.strip_prefix("loss/")?)))
            .collect();
        let losses = losses.join("  ");
        match &self.bar {
            Some(bar) => bar.set_message(losses),
            None => {
                let rate = self.rate(moment.step);
                let left = (self.total - moment.step) as f64 / rate;
                tracing::info!(
                    "epoch {}/{}  step {}/{}  {rate:.1} steps/s  ETA {left:.0} s  {losses}",
                    moment.epoch + 1,
                    self.epochs,
                    moment.step,
                    self.total,
                );
            }
        }
    }

    /// Steps per second since the start.
    pub fn rate(&self, done: u64) -> f64 {
        (done - self.before) as f64 / self.start.elapsed().as_secs_f64()
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
