//! Keeps checkpoints in a run's folder: each appears whole or not at all, and says when it is damaged.

mod best;
mod clouds;
mod manifest;
mod opened;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use tch::Tensor;

pub use self::best::BestBy;
use self::manifest::Manifest;
pub use self::manifest::identity;
pub use self::opened::Checkpoint;
use ebipla_core::state::{self, Tensors};
use ebipla_core::system::files::UNFINISHED;

use super::Experiment;
use super::due::Due;

const STATE: &str = "state.safetensors";

/// The checkpoints of one run, `checkpoints/step_NNNNNNNN/`.
pub struct Checkpoints {
    folder: PathBuf,
    /// How many of the last ones are kept.
    keep: usize,
    /// What makes another one worth keeping.
    best: Option<BestBy>,
    /// The one before.
    last: Option<PathBuf>,
}

impl Checkpoints {
    /// Those of an experiment below `run_dir`.
    pub fn of(experiment: &Experiment, run_dir: &Path) -> Self {
        Self {
            folder: run_dir.join("checkpoints"),
            keep: experiment.recipe.record.checkpoint.keep,
            best: experiment.best(),
            last: None,
        }
    }

    /// All of them, the newest first.
    fn all(&self) -> Vec<PathBuf> {
        finished(&self.folder)
    }

    fn path(&self, step: u64) -> PathBuf {
        self.folder.join(format!("step_{step:08}"))
    }

    /// Whether the checkpoint after `step` steps is the best so far by what was measured; it is noted, and kept.
    pub fn are_best(&self, step: u64, numbers: &[(String, f64)]) -> anyhow::Result<bool> {
        match &self.best {
            Some(wanted) => best::note(&self.folder, wanted, step, numbers),
            None => Ok(false),
        }
    }

    /// Writes a checkpoint after `step` steps, and removes those that are not to be kept. A run that is resumed
    /// from it begins with the records that are `due`.
    pub fn save(&mut self, experiment: &mut Experiment, step: u64, due: &[Due]) -> anyhow::Result<()> {
        let path = self.path(step);
        if path.exists() {
            Manifest::set_due(&path, due)?;
            // What the run that wrote it was killed before.
            return self.prune();
        }
        experiment.ensure_finite(step)?;
        let start = Instant::now();
        let unfinished = path.with_file_name(format!("{UNFINISHED}{}", name(&path)));
        let written = self.write(experiment, step, due, &unfinished, &path);
        if written.is_err() {
            // Gives the space back. The first error is the one to report.
            let _ = fs::remove_dir_all(&unfinished);
        }
        written.with_context(|| format!("writing {}", path.display()))?;
        tracing::debug!(
            "wrote {} in {:.3} s",
            path.display(),
            start.elapsed().as_secs_f64()
        );
        self.last = Some(path);
        self.prune()
    }

    /// Notes which records are still due after `step` steps, if there is a checkpoint of them.
    pub fn set_due(&self, step: u64, due: &[Due]) -> anyhow::Result<()> {
        let path = self.path(step);
        match path.exists() {
            true => Manifest::set_due(&path, due),
            false => Ok(()),
        }
    }

    fn write(
        &self,
        experiment: &mut Experiment,
        step: u64,
        due: &[Due],
        to: &Path,
        path: &Path,
    ) -> anyhow::Result<()> {
        fs::create_dir_all(to)?;
        experiment.save_weights(to)?;
        let mut tensors = Tensors::new();
        for (part, state) in experiment.parts() {
            tensors.extend(state::collect(part, state));
            for (name, store) in state::clouds(state) {
                clouds::save(name, store, to, self.last.as_deref())?;
            }
        }
        Tensor::write_safetensors(&tensors.iter().collect::<Vec<_>>(), to.join(STATE))?;
        Manifest::write(to, step, due, self.last.as_deref())?;
        fs::rename(to, path)?;
        Ok(File::open(&self.folder)?.sync_all()?)
    }

    /// Removes those that are not to be kept.
    pub fn prune(&self) -> anyhow::Result<()> {
        let best = best::step(&self.folder).map(|step| self.path(step));
        let unwanted = self.all().into_iter().skip(self.keep);
        for path in unwanted.filter(|path| Some(path) != best.as_ref()) {
            // Renamed first, so that a checkpoint is never half there.
            let unwanted = path.with_file_name(format!("{UNFINISHED}{}", name(&path)));
            fs::rename(&path, &unwanted)
                .and_then(|()| fs::remove_dir_all(&unwanted))
                .with_context(|| format!("removing {}", path.display()))?;
        }
        Ok(())
    }

    /// Restores the newest checkpoint that is whole, and returns after how many steps it was taken, and what was still to
    /// be recorded then.
    pub fn restore(&mut self, experiment: &mut Experiment) -> anyhow::Result<Option<(u64, Vec<Due>)>> {
        let all = self.all();
        for path in &all {
            let checkpoint = match Checkpoint::open(path.clone()) {
                Ok(checkpoint) => checkpoint,
                Err(error) => {
                    tracing::warn!("{error:#}; it is set aside");
                    // It must not count among those that are kept.
                    let damaged = path.with_file_name(format!("damaged-{}", name(path)));
                    fs::rename(path, &damaged).with_context(|| format!("renaming {}", path.display()))?;
                    continue;
                }
            };
            load(experiment, &checkpoint).with_context(|| format!("restoring {}", path.display()))?;
            self.last = Some(path.clone());
            return Ok(Some((checkpoint.step(), checkpoint.due().to_vec())));
        }
        // It was built to be restored, and so without the particles that it may have to start from.
        anyhow::ensure!(
            all.is_empty(),
            "no checkpoint in {} is whole; the same command again starts from the beginning",
            self.folder.display()
        );
        Ok(None)
    }
}

fn load(experiment: &mut Experiment, checkpoint: &Checkpoint) -> anyhow::Result<()> {
    experiment.load_weights(checkpoint)?;
    let tensors = Tensor::read_safetensors(checkpoint.file(STATE)?)?;
    let mut tensors: Tensors = tensors.into_iter().collect();
    let device = experiment.device;
    for (part, state) in experiment.parts() {
        state::restore(part, state, &mut tensors, device)?;
        for (name, store) in state::clouds(state) {
            clouds::load(name, store, checkpoint)?;
        }
    }
    anyhow::ensure!(
        tensors.is_empty(),
        "it has `{}`, which this run does not know",
        tensors.keys().cloned().collect::<Vec<_>>().join("`, `")
    );
    Ok(())
}

/// The last checkpoint of a run.
pub fn last_checkpoint(run_dir: &Path) -> anyhow::Result<PathBuf> {
    let folder = run_dir.join("checkpoints");
    let last = finished(&folder).into_iter().next();
    last.with_context(|| format!("{} is no run folder with a checkpoint", run_dir.display()))
}

/// Steps are padded with zeros, so that names sort like them.
fn finished(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<_> = entries(folder)
        .filter(|path| name(path).starts_with("step_"))
        .collect();
    all.sort();
    all.reverse();
    all
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path()))
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
