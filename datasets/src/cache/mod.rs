//! Keeps decoded data in files that are mapped into memory, so that decoding happens once.

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

/// What a cache is made from.
pub struct Source {
    /// Names the cache, e.g. `svhn-train`.
    pub name: String,
    /// The folder of the files.
    pub folder: PathBuf,
    /// The files, relative to the folder, in the order of their points.
    pub files: Vec<PathBuf>,
    /// What is done to the points before they are kept; other words, other cache.
    pub preprocessing: String,
    /// Where somebody gets a file that is missing.
    pub advice: &'static str,
}

/// The folder and the name of a file.
pub fn parts(file: &Path) -> (PathBuf, PathBuf) {
    // The parent of a bare name is an empty path, which names no folder.
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let name = file.file_name().unwrap_or_default();
    (folder.unwrap_or(Path::new(".")).into(), name.into())
}

/// Opens the cache of `source` in `folder`; where there is none, or one that does not fit any more, `build` makes it.
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
    fs::create_dir_all(folder)
        .with_context(|| format!("making {} (EBIPLA_CACHE is another folder)", folder.display()))?;
    // Of several programs that want the same cache, one builds it.
    let lock = path.with_extension("lock");
    let lock = File::create(&lock)
        .and_then(|file| file.lock().map(|()| file))
        .with_context(|| format!("locking {} (EBIPLA_CACHE is another folder)", lock.display()))?;
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
        .with_context(|| format!("{} was written, but is not whole", path.display()))
}

#[cfg(test)]
mod tests;
