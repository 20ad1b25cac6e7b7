//! Opens checkpoints: nothing of one is read before all of it has been compared with its checksums.

use std::path::{Path, PathBuf};

use anyhow::ensure;

use super::last_checkpoint;
use super::manifest::Manifest;
use crate::run::due::Due;

/// A checkpoint none of whose files is damaged. Weights, states and particles are loaded only through it.
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    manifest: Manifest,
}

impl Checkpoint {
    /// Verifies every file that the checkpoint lists.
    pub fn open(path: PathBuf) -> anyhow::Result<Self> {
        let manifest = Manifest::verified(&path)?;
        Ok(Self { path, manifest })
    }

    /// Opens the last checkpoint of a run.
    pub fn last_of(run_dir: &Path) -> anyhow::Result<Self> {
        Self::open(last_checkpoint(run_dir)?)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Steps completed.
    pub fn step(&self) -> u64 {
        self.manifest.step
    }

    /// What was still to be recorded when it was written.
    pub fn due(&self) -> &[Due] {
        &self.manifest.due
    }

    /// Whether it has a file of this name.
    pub fn has(&self, name: &str) -> bool {
        self.manifest.lists(name)
    }

    /// A file that was verified.
    pub fn file(&self, name: &str) -> anyhow::Result<PathBuf> {
        ensure!(
            self.has(name),
            "{} lists no {name}",
            Manifest::path(&self.path).display()
        );
        Ok(self.path.join(name))
    }
}
