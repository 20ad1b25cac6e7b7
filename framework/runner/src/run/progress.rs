//! Shows how far a run is: a bar on a terminal, a line now and then elsewhere.

use std::fmt::Write;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, MultiProgress, ProgressBar, ProgressState, ProgressStyle};

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
        let bar = std::io::stderr()
            .is_terminal()
            .then(|| bars.add(bar(done, total)));
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
        rate(done - self.before, self.start.elapsed())
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn rate(steps: u64, took: Duration) -> f64 {
    steps as f64 / took.as_secs_f64()
}

/// A bar of `total` steps whose speed and remaining time do not count the `before` steps made before. Those of the library
/// would, as if they had been made in an instant.
fn bar(before: u64, total: u64) -> ProgressBar {
    let style = "epoch {prefix} {wide_bar:.cyan/dim} {pos}/{len}  {speed} steps/s  ETA {left}  {msg}";
    let speed_of = move |state: &ProgressState| rate(state.pos().saturating_sub(before), state.elapsed());
    let speed = move |state: &ProgressState, text: &mut dyn Write| {
        let _ = write!(text, "{:.1}", speed_of(state));
    };
    let left = move |state: &ProgressState, text: &mut dyn Write| {
        let seconds = total.saturating_sub(state.pos()) as f64 / speed_of(state);
        // Before the first step nothing is known.
        let _ = match Duration::try_from_secs_f64(seconds) {
            Ok(left) => write!(text, "{:#}", HumanDuration(left)),
            Err(_) => text.write_str("-"),
        };
    };
    let style = ProgressStyle::with_template(style)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("speed", speed)
        .with_key("left", left);
    ProgressBar::new(total).with_style(style).with_position(before)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::{ProgressDrawTarget, TermLike};

    use super::*;

    /// A wide terminal that remembers what was written.
    #[derive(Clone, Debug, Default)]
    struct Screen(Arc<Mutex<String>>);

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            500
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// 30 steps in 10 s after a million before: the library would say something like 90,000 steps/s.
    #[test]
    fn steps_before_a_resumption_do_not_count() {
        let screen = Screen::default();
        let bar = bar(1_000_000, 1_000_060).with_elapsed(Duration::from_secs(10));
        bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(screen.clone())));
        bar.set_position(1_000_030);
        bar.force_draw();
        let text = screen.0.lock().unwrap().clone();
        assert!(text.contains("1000030/1000060  3.0 steps/s  ETA 10s"), "{text}");
    }
}
