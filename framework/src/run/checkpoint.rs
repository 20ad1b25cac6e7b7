//! Writes weights into a run's folder and finds them there.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::Experiment;

const FOLDER: &str = "checkpoints";

impl Experiment {
    /// Writes `checkpoints/step_NNNNNNNN/`, with the averages of the parameters where they are kept.
    pub fn save_weights(&self, run_dir: &Path, step: u64) -> anyhow::Result<()> {
        let folder = run_dir.join(FOLDER).join(format!("step_{step:08}"));
        self.save_to(&folder, "")?;
        if self.has_averages() {
            let _averages = self.averages();
            self.save_to(&folder, "_average")?;
        }
        Ok(())
    }

    fn save_to(&self, folder: &Path, suffix: &str) -> anyhow::Result<()> {
        let file = |name: &str| folder.join(format!("{name}{suffix}.safetensors"));
        self.model.energy.parameters().save(&file("energy"))?;
        self.model.generator.parameters().save(&file("generator"))
    }

    /// Replaces the weights by those of a checkpoint that a run evaluates with: averages where it has them.
    pub fn load_for_evaluation(&mut self, checkpoint: &Path) -> anyhow::Result<()> {
        let suffix = if self.has_averages() { "_average" } else { "" };
        let file = |name: &str| checkpoint.join(format!("{name}{suffix}.safetensors"));
        self.model.energy.parameters().load(&file("energy"))?;
        self.model.generator.parameters().load(&file("generator"))?;
        self.restart_averages();
        Ok(())
    }
}

/// The last checkpoint of a run.
pub fn last_checkpoint(run_dir: &Path) -> anyhow::Result<PathBuf> {
    let folder = run_dir.join(FOLDER);
    let entries = fs::read_dir(&folder)
        .with_context(|| format!("{} is no run folder: it has no {FOLDER}/", run_dir.display()))?;
    let mut checkpoints: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    // Steps are padded with zeros.
    checkpoints.sort();
    checkpoints
        .pop()
        .with_context(|| format!("{} has no checkpoint yet", folder.display()))
}
