//! Tells whether a cache still fits the files that it was made from.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, bail};
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::Source;

/// Changes when a file gets another name, size or time, or when the preprocessing changes.
pub fn of(source: &Source) -> anyhow::Result<[u8; 32]> {
    let facts: Vec<_> = source
        .files
        .par_iter()
        .map(|file| facts(source, file))
        .collect::<anyhow::Result<_>>()?;
    let mut hash = Sha256::new();
    hash.update(source.preprocessing.as_bytes());
    for (file, facts) in source.files.iter().zip(facts) {
        hash.update([0]);
        hash.update(file.as_os_str().as_encoded_bytes());
        hash.update([0]);
        for fact in facts {
            hash.update(fact.to_le_bytes());
        }
    }
    Ok(hash.finalize().into())
}

fn facts(source: &Source, file: &Path) -> anyhow::Result<[i64; 3]> {
    let path = source.folder.join(file);
    let metadata = match fs::metadata(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("{} is missing: {}", path.display(), source.advice)
        }
        other => other.with_context(|| format!("reading {}", path.display()))?,
    };
    Ok([metadata.size() as i64, metadata.mtime(), metadata.mtime_nsec()])
}

/// One name for one folder and preprocessing: a cache that does not fit any more is replaced, and takes no space.
pub fn file_name(source: &Source) -> String {
    let folder = std::path::absolute(&source.folder).unwrap_or_else(|_| source.folder.clone());
    let mut hash = Sha256::new();
    hash.update(folder.as_os_str().as_encoded_bytes());
    hash.update([0]);
    hash.update(source.preprocessing.as_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    let digits: String = digest[..6].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{digits}.cache", source.name)
}
