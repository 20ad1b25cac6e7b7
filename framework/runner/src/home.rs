//! Knows the crate that a runner is built from: where its recipes are, and what provenance says of it.

use std::path::{Path, PathBuf};

use crate::recipe::{RecipeFolders, SHIPPED};

/// The crate of a runner; [`home!`](crate::home) makes one.
#[derive(Clone, Debug)]
pub struct Home {
    name: &'static str,
    version: &'static str,
    sources: PathBuf,
}

/// The [`Home`] of the crate that calls it.
#[macro_export]
macro_rules! home {
    () => {
        $crate::Home::of(
            env!("CARGO_PKG_NAME"),
            env!("CARGO_PKG_VERSION"),
            env!("CARGO_MANIFEST_DIR"),
        )
    };
}

impl Home {
    /// A crate of this name and version, with its sources in this folder.
    pub fn of(name: &'static str, version: &'static str, sources: impl Into<PathBuf>) -> Self {
        Self {
            name,
            version,
            sources: sources.into(),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn version(&self) -> &'static str {
        self.version
    }

    /// The folder that the program was built from. It may be gone by now.
    pub(crate) fn sources(&self) -> &Path {
        &self.sources
    }

    /// The working folder's recipes come first, then those of the crate, then those that are part of the program.
    pub(crate) fn recipe_folders(&self) -> RecipeFolders {
        RecipeFolders(vec![
            "recipes".into(),
            self.sources.join("recipes"),
            SHIPPED.into(),
        ])
    }

    pub(crate) fn sweep_folders(&self) -> RecipeFolders {
        let folders = self.recipe_folders().0.into_iter();
        RecipeFolders(folders.map(|folder| folder.join("sweeps")).collect())
    }
}
