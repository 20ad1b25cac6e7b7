//! Tells from the files in a member's folder how it is.

use std::fs;
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use super::slurm::Task;
use crate::run::{Account, State};

/// How a member is.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    pub state: State,
    /// Why it failed, or what else there is to say.
    pub reason: Option<String>,
    pub progress: Option<Account>,
    /// What was measured last: the first number of its evaluation.
    pub metric: Option<(String, f64)>,
    /// What Slurm says, if the member was submitted to it and it could be asked.
    pub slurm: Option<Task>,
}

impl Status {
    pub fn of(folder: &Path) -> Self {
        let (state, reason) = State::of(folder);
        Self {
            reason,
            ..Self::in_state(state, folder)
        }
    }

    /// How a member is that is known to run.
    pub fn of_running(folder: &Path) -> Self {
        Self::in_state(State::Running, folder)
    }

    fn in_state(state: State, folder: &Path) -> Self {
        Self {
            state,
            reason: None,
            progress: Account::of(folder),
            metric: metric(folder),
            slurm: None,
        }
    }

    /// The same with what Slurm says of its last task: files tell neither of the queue nor, on some file systems, of
    /// processes on other machines.
    pub fn with_slurm(mut self, task: Task) -> Self {
        if task.is_pending() && self.state != State::Finished {
            self.state = State::Waiting;
            // Why it failed before it was submitted again.
            self.reason = None;
        } else if task.is_running() && matches!(self.state, State::Waiting | State::Killed) {
            self.state = State::Running;
        }
        self.slurm = Some(task);
        self
    }

    /// Whether somebody is to run it, or does.
    pub fn is_taken(&self) -> bool {
        let by_slurm = |task: &Task| task.is_pending() || task.is_running();
        self.state == State::Running || self.slurm.as_ref().is_some_and(by_slurm)
    }

    /// Seconds that it still needs, going by those that it took so far.
    pub fn seconds_left(&self) -> Option<f64> {
        let account = self.progress.as_ref()?;
        let spent = account.seconds + account.recording_seconds;
        let left = account.steps.saturating_sub(account.step) as f64;
        (account.steps_taken > 0).then(|| left * spent / account.steps_taken as f64)
    }
}

/// How much of the end of metrics.jsonl is looked at.
const TAIL: usize = 1 << 16;

fn metric(folder: &Path) -> Option<(String, f64)> {
    let final_one = || {
        let all: Map<String, Value> =
            serde_json::from_slice(&fs::read(folder.join("evaluation.json")).ok()?).ok()?;
        let mut numbers = all.iter().filter(|(name, _)| *name != "step");
        numbers.find_map(|(name, value)| Some((name.clone(), value.as_f64()?)))
    };
    let latest_one = || {
        let text = fs::read(folder.join("metrics.jsonl")).ok()?;
        let tail = String::from_utf8_lossy(&text[text.len().saturating_sub(TAIL)..]).into_owned();
        tail.lines().rev().find_map(|line| {
            let line: Map<String, Value> = serde_json::from_str(line).ok()?;
            line.iter()
                .find_map(|(name, value)| Some((name.strip_prefix("evaluate/")?.to_owned(), value.as_f64()?)))
        })
    };
    final_one().or_else(latest_one)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_last_evaluation_is_found_among_other_lines() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path();
        assert_eq!(metric(folder), None);
        let lines = "{\"step\":1,\"evaluate/mmd\":0.5}\n{\"step\":2,\"evaluate/mmd\":0.25}\n{\"step\":3,\"loss\":7}\n{\"st";
        fs::write(folder.join("metrics.jsonl"), lines).unwrap();
        assert_eq!(metric(folder), Some(("mmd".into(), 0.25)));
        fs::write(folder.join("evaluation.json"), "{\"step\":3,\"mmd\":0.125}").unwrap();
        assert_eq!(metric(folder), Some(("mmd".into(), 0.125)));
    }

    #[test]
    fn slurm_knows_of_the_queue_and_files_of_the_end() {
        let status = |state, reason: Option<&str>| Status {
            state,
            reason: reason.map(str::to_owned),
            progress: None,
            metric: None,
            slurm: None,
        };
        let task = |state: Option<&str>| Task {
            id: "1_0".into(),
            state: state.map(str::to_owned),
            reason: None,
            output: String::new(),
        };
        for (state, in_slurm, expected, taken) in [
            (State::Waiting, Some("PENDING"), State::Waiting, true),
            (State::Waiting, Some("RUNNING"), State::Running, true),
            (State::Killed, Some("RUNNING"), State::Running, true),
            (State::Killed, Some("PENDING"), State::Waiting, true),
            (State::Killed, Some("TIMEOUT"), State::Killed, false),
            (State::Killed, None, State::Killed, false),
            (State::Interrupted, Some("PENDING"), State::Waiting, true),
            (State::Interrupted, Some("CANCELLED"), State::Interrupted, false),
            (State::Failed, Some("PENDING"), State::Waiting, true),
            (State::Failed, Some("COMPLETING"), State::Failed, true),
            (State::Finished, Some("COMPLETED"), State::Finished, false),
        ] {
            let found = status(state, None).with_slurm(task(in_slurm));
            assert_eq!(
                (found.state, found.is_taken()),
                (expected, taken),
                "{state} {in_slurm:?}"
            );
        }
        let again = status(State::Failed, Some("it broke")).with_slurm(task(Some("PENDING")));
        assert_eq!(again.reason, None);
    }
}
