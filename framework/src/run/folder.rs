//! Makes run folders that never collide and are never overwritten.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::Recipe;

/// The folder of one run.
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Makes `out/NAME-HASH-sSEED`, or the same with `-2`, `-3`, … where it exists already.
    pub fn create(out: &Path, recipe: &Recipe) -> anyhow::Result<Self> {
        fs::create_dir_all(out).with_context(|| format!("creating {}", out.display()))?;
        let name = format!("{}-{}-s{}", recipe.name, recipe.hash(), recipe.run.seed);
        for attempt in 1.. {
            let path = match attempt {
                1 => out.join(&name),
                n => out.join(format!("{name}-{n}")),
            };
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path }),
                // Somebody was first, maybe just now: leave theirs alone.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error).with_context(|| format!("creating {}", path.display())),
            }
        }
        unreachable!("the numbers do not run out")
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file that appears whole or not at all.
    pub fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let path = self.path.join(name);
        let unfinished = self.path.join(format!("{name}.unfinished"));
        fs::write(&unfinished, text)
            .and_then(|()| fs::rename(&unfinished, &path))
            .with_context(|| format!("writing {}", path.display()))
    }
}
