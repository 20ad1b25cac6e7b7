//! Keeps decoded data in memory-mapped files, so that decoding happens once.

mod draft;
mod header;
mod identity;
mod key;
mod map;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use ebipla_core::write_whole;

pub use draft::Draft;
pub use header::{Element, Layout};
use identity::Files;
pub use map::Cache;

/// The input of a cache.
pub struct Source {
    /// Name of the cache, e.g. `svhn-train`.
    pub name: String,
    /// Folder of the files.
    pub folder: PathBuf,
    /// The files, relative to the folder, in the order of their points.
    pub files: Vec<PathBuf>,
    /// Description of the processing of the points; changing it invalidates the cache.
    pub preprocessing: String,
    /// Advice for a user who lacks a file.
    pub advice: &'static str,
}

/// Folder and name of a file.
pub fn parts(file: &Path) -> (PathBuf, PathBuf) {
    // The parent of a bare name is an empty path, which is not a folder.
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let name = file.file_name().unwrap_or_default();
    (folder.unwrap_or(Path::new(".")).into(), name.into())
}

/// Opens the cache of `source` in `folder`; `build` makes it if it is missing or stale.
pub fn open(
    folder: &Path,
    source: &Source,
    build: impl FnOnce(&Draft) -> anyhow::Result<()>,
) -> anyhow::Result<Cache> {
    let files = Files::look(source)?;
    let path = folder.join(key::file_name(source));
    let memory = path.with_extension("identity");
    if let Some(identity) = files.quick_identity(&memory)?
        && let Some(cache) = Cache::open(&path, key::of(source, &identity), identity)
    {
        return Ok(cache);
    }
    fs::create_dir_all(folder).with_context(|| {
        format!(
            "making {} (set EBIPLA_CACHE to use another folder)",
            folder.display()
        )
    })?;
    // If several programs want the same cache, one of them builds it.
    let lock = path.with_extension("lock");
    let lock = File::create(&lock)
        .and_then(|file| file.lock().map(|()| file))
        .with_context(|| {
            format!(
                "locking {} (set EBIPLA_CACHE to use another folder)",
                lock.display()
            )
        })?;
    let identity = files.identity(&memory)?;
    let key = key::of(source, &identity);
    if let Some(cache) = Cache::open(&path, key, identity) {
        return Ok(cache);
    }
    tracing::info!("reading {} into {}", source.folder.display(), path.display());
    write_whole(&path, |unfinished| {
        build(&Draft::new(unfinished, key, &source.name))?;
        ensure!(
            Files::look(source)? == files,
            "files in {} changed while they were read",
            source.folder.display()
        );
        Ok(())
    })?;
    drop(lock);
    Cache::open(&path, key, identity)
        .with_context(|| format!("{} was written, but is incomplete", path.display()))
}

#[cfg(test)]
mod tests;
