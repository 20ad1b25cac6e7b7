//! Keeps account in `progress.json` of how far a run is and what it has cost, for whoever looks at its folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use ebipla_core::GradientCount;
use ebipla_core::system::files::UNFINISHED;
use ebipla_core::system::memory;
use serde::{Deserialize, Serialize};

use crate::record::Moment;

/// Its name in the run's folder.
const FILE: &str = "progress.json";

/// How old the file may be while the run goes on.
const INTERVAL: Duration = Duration::from_secs(2);

/// The contents of `progress.json`. Costs are of all parts of a run, also of steps that were repeated after it was killed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Account {
    /// Steps done, of `steps`.
    pub step: u64,
    pub steps: u64,
    /// The epoch of the last step, counted from 0, of `epochs`.
    pub epoch: u64,
    pub epochs: u64,
    /// Steps computed, repeated ones included.
    pub steps_taken: u64,
    /// Time that they took.
    pub seconds: f64,
    /// Time that went into records, checkpoints, dumps, pictures and evaluations.
    pub recording_seconds: f64,
    /// Rows of latents that went through the generator forth and back in training.
    pub generator_gradients: u64,
    /// The same for the energy, prior chains included.
    pub energy_gradients: u64,
    /// Peak of the resident memory, the largest of all parts.
    pub peak_memory_gib: Option<f64>,
}

impl Account {
    /// What a run's folder says; `None` where it says nothing that can be read.
    pub fn of(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(folder.join(FILE)).ok()?).ok()
    }
}

/// The account of a run that is going on.
pub struct Accounting {
    path: PathBuf,
    account: Account,
    written: Instant,
}

impl Accounting {
    /// Goes on with the account in the folder, if there is one.
    pub fn open(folder: &Path, done: u64, steps: u64, epochs: u64) -> anyhow::Result<Self> {
        let accounting = Self {
            path: folder.join(FILE),
            account: Account {
                step: done,
                steps,
                epochs,
                ..Account::of(folder).unwrap_or_default()
            },
            written: Instant::now(),
        };
        accounting.write()?;
        Ok(accounting)
    }

    /// Enters a step that took `whole`, of which `recording` went into records.
    pub fn stepped(
        &mut self,
        moment: Moment,
        gradients: GradientCount,
        whole: Duration,
        recording: Duration,
    ) -> anyhow::Result<()> {
        let account = &mut self.account;
        account.step = moment.step;
        account.epoch = moment.epoch;
        account.steps_taken += 1;
        account.seconds += whole.saturating_sub(recording).as_secs_f64();
        account.recording_seconds += recording.as_secs_f64();
        account.generator_gradients += gradients.generator;
        account.energy_gradients += gradients.energy;
        if self.written.elapsed() < INTERVAL {
            return Ok(());
        }
        self.note()
    }

    /// Enters time that went into records besides steps.
    pub fn recorded(&mut self, recording: Duration) -> anyhow::Result<()> {
        self.account.recording_seconds += recording.as_secs_f64();
        self.note()
    }

    fn note(&mut self) -> anyhow::Result<()> {
        let peaks = self.account.peak_memory_gib.into_iter().chain(memory::peak_gib());
        self.account.peak_memory_gib = peaks.reduce(f64::max);
        self.written = Instant::now();
        self.write()
    }

    /// Replaces the file. Unlike results it is not forced to the disk: it is soon replaced again.
    fn write(&self) -> anyhow::Result<()> {
        let unfinished = self.path.with_file_name(format!("{UNFINISHED}{FILE}"));
        let text = serde_json::to_string_pretty(&self.account)? + "\n";
        fs::write(&unfinished, text)
            .and_then(|()| fs::rename(&unfinished, &self.path))
            .with_context(|| format!("writing {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn costs_of_all_parts_add_up() {
        let folder = tempfile::tempdir().unwrap();
        let gradients = GradientCount {
            energy: 30,
            generator: 10,
            with_parameters: 10,
        };
        let second = Duration::from_secs(1);
        for (done, steps) in [(0, 3), (2, 2)] {
            let mut accounting = Accounting::open(folder.path(), done, 4, 2).unwrap();
            for step in done + 1..=done + steps {
                let moment = Moment {
                    step,
                    epoch: step / 3,
                };
                accounting.stepped(moment, gradients, 3 * second, second).unwrap();
            }
            accounting.recorded(second).unwrap();
        }
        let account = Account::of(folder.path()).unwrap();
        assert!(account.peak_memory_gib.is_some_and(|peak| peak > 0.0));
        let expected = Account {
            step: 4,
            steps: 4,
            epoch: 1,
            epochs: 2,
            steps_taken: 5,
            seconds: 10.0,
            recording_seconds: 7.0,
            generator_gradients: 50,
            energy_gradients: 150,
            peak_memory_gib: account.peak_memory_gib,
        };
        assert_eq!(account, expected);
    }
}
