//! Finds runs and sweeps below the folders that a user names; a folder is known by what is in it, not by its name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::sweep::{Manifest, ManifestMember};

/// Folders below the ones named that are looked into.
const DEPTH: usize = 4;

/// What there is.
#[derive(Debug, Default)]
pub struct Found {
    pub runs: Vec<FoundRun>,
    pub sweeps: Vec<Manifest>,
    /// What is not as it should be.
    pub notes: Vec<String>,
    seen: BTreeSet<PathBuf>,
}

#[derive(Debug)]
pub struct FoundRun {
    pub folder: PathBuf,
    /// What its sweep says of it.
    pub member: Option<ManifestMember>,
}

impl Found {
    pub fn below(folders: &[PathBuf]) -> Self {
        let mut found = Self::default();
        for folder in folders {
            found.look(folder, DEPTH, None);
        }
        found
    }

    fn look(&mut self, folder: &Path, depth: usize, sweep: Option<&Manifest>) {
        // Once, however many of the named folders lead to it.
        if !self
            .seen
            .insert(folder.canonicalize().unwrap_or_else(|_| folder.to_owned()))
        {
            return;
        }
        let has = |name: &str| folder.join(name).is_file();
        if has("recipe.yaml") {
            self.runs.push(FoundRun {
                folder: folder.to_owned(),
                member: sweep
                    .and_then(|sweep| sweep.members.get(sweep.place(folder)?))
                    .cloned(),
            });
            return;
        }
        if has("provenance.json") || has("metrics.jsonl") {
            let note = format!("{} has no recipe.yaml: left out", folder.display());
            self.notes.push(note);
            return;
        }
        if Manifest::is_in(folder) {
            match Manifest::read(folder) {
                Ok(sweep) => {
                    self.below_folder(folder, depth, Some(&sweep));
                    self.missing_members(folder, &sweep);
                    self.sweeps.push(sweep);
                }
                Err(error) => {
                    self.notes
                        .push(format!("{error}: its runs are taken as they are"));
                    self.below_folder(folder, depth, None);
                }
            }
            return;
        }
        self.below_folder(folder, depth, None);
    }

    fn below_folder(&mut self, folder: &Path, depth: usize, sweep: Option<&Manifest>) {
        if depth == 0 {
            return;
        }
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => {
                self.notes
                    .push(format!("{} cannot be read: {error}", folder.display()));
                return;
            }
        };
        let mut folders: Vec<_> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.is_dir())
            .collect();
        folders.sort();
        if let Some(sweep) = sweep {
            // In the order of the sweep, which somebody chose; the sort is stable.
            folders.sort_by_key(|folder| sweep.place(folder).unwrap_or(usize::MAX));
        }
        for inside in folders {
            self.look(&inside, depth - 1, sweep);
        }
    }

    fn missing_members(&mut self, folder: &Path, sweep: &Manifest) {
        for member in &sweep.members {
            if !folder.join(&member.name).is_dir() {
                let note = format!(
                    "the sweep in {} lists {}, which has no folder",
                    folder.display(),
                    member.name
                );
                self.notes.push(note);
            }
        }
    }
}
