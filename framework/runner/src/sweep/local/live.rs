//! Shows the members that are running: a line each on a terminal, a summary now and then elsewhere.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ebipla_core::system::task::bars;
use indicatif::{ProgressBar, ProgressStyle};

use super::{Running, counts, progress};
use crate::run::State;
use crate::sweep::Status;

/// How often files are read for a terminal.
const TERMINAL: Duration = Duration::from_millis(500);
/// How often a summary is printed elsewhere.
const SUMMARY: Duration = Duration::from_secs(60);

pub struct Live {
    total: usize,
    /// Lines of a terminal by member, and one for the whole.
    lines: Option<(BTreeMap<PathBuf, ProgressBar>, ProgressBar)>,
    shown: Instant,
}

impl Live {
    pub fn new(total: usize) -> Self {
        let lines = std::io::stderr().is_terminal().then(|| {
            let whole = bars().add(line());
            (BTreeMap::new(), whole)
        });
        Self {
            total,
            lines,
            shown: Instant::now(),
        }
    }

    pub fn show(&mut self, running: &[Running], ended: &[State], waiting: usize) {
        let interval = if self.lines.is_some() { TERMINAL } else { SUMMARY };
        if self.shown.elapsed() < interval {
            return;
        }
        self.shown = Instant::now();
        let states = ended.iter().copied();
        let states = states
            .chain(std::iter::repeat_n(State::Running, running.len()))
            .chain(std::iter::repeat_n(State::Waiting, waiting));
        let summary = format!("{} members: {}", self.total, counts(states));
        let Some((lines, whole)) = &mut self.lines else {
            let far: Vec<_> = running
                .iter()
                .map(|member| format!("{}: {}", member.label, progress(&now(member))))
                .collect();
            tracing::info!("{summary}; {}", far.join("; "));
            return;
        };
        lines.retain(|folder, line| {
            let stays = running.iter().any(|member| member.folder == *folder);
            if !stays {
                line.finish_and_clear();
            }
            stays
        });
        for member in running {
            let line = lines
                .entry(member.folder.clone())
                .or_insert_with(|| bars().insert_before(whole, line()));
            line.set_message(format!("{}  {}", member.label, progress(&now(member))));
        }
        whole.set_message(summary);
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some((lines, whole)) = &self.lines {
            lines
                .values()
                .chain([whole])
                .for_each(ProgressBar::finish_and_clear);
        }
    }
}

/// That it runs is known; asking for its lock might come in the way of its taking it.
fn now(member: &Running) -> Status {
    Status::of_running(&member.folder)
}

fn line() -> ProgressBar {
    let style = ProgressStyle::with_template("  {wide_msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new_spinner().with_style(style)
}
