//! Tells from the files in a run's folder whether it runs, or how it ended.

use std::fmt;
use std::fs;
use std::path::Path;

use ebipla_core::system::files::write_bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::is_running;
use crate::system::interrupt::INTERRUPTED;

/// What a run is doing, or how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It has not been started.
    Waiting,
    Running,
    /// It was asked to stop, and did so after a checkpoint.
    Interrupted,
    /// It ended without a word.
    Killed,
    Failed,
    Diverged,
    Finished,
}

impl State {
    pub const ALL: [Self; 7] = [
        Self::Finished,
        Self::Running,
        Self::Waiting,
        Self::Interrupted,
        Self::Killed,
        Self::Failed,
        Self::Diverged,
    ];

    pub fn name(self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::Running => "running",
            State::Interrupted => "interrupted",
            State::Killed => "killed",
            State::Failed => "failed",
            State::Diverged => "diverged",
            State::Finished => "finished",
        }
    }

    /// Whether `--resume` goes on with it.
    pub fn is_unfinished(self) -> bool {
        matches!(self, State::Waiting | State::Interrupted | State::Killed)
    }

    /// Whether `--only-failed` repeats it.
    pub fn is_failure(self) -> bool {
        matches!(self, State::Failed | State::Diverged)
    }
}

impl State {
    /// What a folder tells, and why, where there is something to say.
    ///
    /// Members of sweeps have the last word of their process in `outcome.json`; of other runs `provenance.json` has it.
    pub fn of(folder: &Path) -> (Self, Option<String>) {
        let said = |message: String| Some(message).filter(|message| !message.is_empty());
        if let Some(ending) = Ending::of(folder) {
            return (ending.state(), said(ending.message));
        }
        if is_running(folder) {
            return (State::Running, None);
        }
        let begun = ["provenance.json", "metrics.jsonl"]
            .iter()
            .any(|file| folder.join(file).exists());
        match outcome(folder) {
            Some(outcome) => {
                let state = Self::of_outcome(&outcome);
                (state, said(outcome).filter(|_| state.is_failure()))
            }
            None if begun => (State::Killed, None),
            None => (State::Waiting, None),
        }
    }

    /// How the last part of a run ended, as its provenance says; `None` where it does not.
    pub fn noted(folder: &Path) -> Option<Self> {
        outcome(folder).map(|outcome| Self::of_outcome(&outcome))
    }

    fn of_outcome(outcome: &str) -> Self {
        match outcome {
            "finished" => State::Finished,
            "interrupted" => State::Interrupted,
            failed if failed.contains("diverged:") => State::Diverged,
            _ => State::Failed,
        }
    }
}

/// The outcome in a run's provenance.
fn outcome(folder: &Path) -> Option<String> {
    let provenance = fs::read(folder.join("provenance.json")).ok()?;
    let provenance: Value = serde_json::from_slice(&provenance).ok()?;
    provenance["outcome"].as_str().map(str::to_owned)
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How a member's process ended, in its own words: `outcome.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ending {
    /// Its exit code.
    pub code: u8,
    pub message: String,
}

impl Ending {
    const FILE: &str = "outcome.json";

    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        write_bytes(&folder.join(Self::FILE), serde_json::to_string(self)? + "\n")
    }

    /// Before a member starts again.
    pub fn remove(folder: &Path) {
        // Where there is none, there is nothing to remove; a folder that cannot be written to will be noticed.
        let _ = fs::remove_file(folder.join(Self::FILE));
    }

    fn of(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(folder.join(Self::FILE)).ok()?).ok()
    }

    fn state(&self) -> State {
        match self.code {
            0 => State::Finished,
            3 => State::Diverged,
            INTERRUPTED => State::Interrupted,
            _ => State::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_state_is_read_off_the_files() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path();
        let state = || State::of(folder).0;
        assert_eq!(state(), State::Waiting);
        fs::write(folder.join("provenance.json"), "{}").unwrap();
        assert_eq!(state(), State::Killed);
        for (code, expected) in [
            (0, State::Finished),
            (1, State::Failed),
            (2, State::Failed),
            (3, State::Diverged),
            (130, State::Interrupted),
        ] {
            for reason in [None, Some("because".to_owned())] {
                let message = reason.clone().unwrap_or_default();
                Ending { code, message }.write(folder).unwrap();
                assert_eq!(state(), expected);
                assert_eq!(State::of(folder).1, reason);
            }
        }
        fs::write(folder.join("outcome.json"), "{ half").unwrap();
        assert_eq!(state(), State::Killed);
    }

    #[test]
    fn a_run_by_itself_has_its_provenance() {
        let scratch = tempfile::tempdir().unwrap();
        for (outcome, expected) in [
            ("\"finished\"", State::Finished),
            ("\"interrupted\"", State::Interrupted),
            ("\"in step 3: diverged: x\"", State::Diverged),
            ("\"no space left\"", State::Failed),
            ("null", State::Killed),
            ("hal", State::Killed),
        ] {
            let text = format!("{{\"outcome\": {outcome}}}");
            fs::write(scratch.path().join("provenance.json"), text).unwrap();
            assert_eq!(State::of(scratch.path()).0, expected, "{outcome}");
        }
    }
}
