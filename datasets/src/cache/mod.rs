//! Keeps decoded data in files that are mapped into memory, so that decoding happens once.

mod draft;
mod header;
mod key;
mod map;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::Context;
use ebipla_framework::write_whole;

pub use draft::Draft;
pub use header::{Element, Layout};
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

/// Opens the cache of `source` in `folder`; where there is none, or one that does not fit any more, `build` makes it.
pub fn open(
    folder: &Path,
    source: &Source,
    build: impl FnOnce(&Draft) -> anyhow::Result<()>,
) -> anyhow::Result<Cache> {
    let key = key::of(source)?;
    let path = folder.join(key::file_name(source));
    if let Some(cache) = Cache::open(&path, key) {
        return Ok(cache);
    }
    fs::create_dir_all(folder)
        .with_context(|| format!("making {} (EBIPLA_CACHE is another folder)", folder.display()))?;
    // Of several programs that want the same cache, one builds it.
    let lock = path.with_extension("lock");
    let lock = File::create(&lock)
        .and_then(|file| file.lock().map(|()| file))
        .with_context(|| format!("locking {} (EBIPLA_CACHE is another folder)", lock.display()))?;
    if let Some(cache) = Cache::open(&path, key) {
        return Ok(cache);
    }
    tracing::info!("reading {} into {}", source.folder.display(), path.display());
    write_whole(&path, |unfinished| {
        build(&Draft::new(unfinished, key, &source.name))
    })?;
    drop(lock);
    Cache::open(&path, key).with_context(|| {
        format!(
            "{} was written, but does not fit {} any more: did its files change meanwhile?",
            path.display(),
            source.folder.display()
        )
    })
}

#[cfg(test)]
mod tests;
