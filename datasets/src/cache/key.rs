//! Keys that show whether a cache still fits the files it was made from.

use std::fs;

use blake3::Hasher;

use super::Source;
use super::identity::Identity;

/// Changes when the contents of the files or the preprocessing change.
pub fn of(source: &Source, identity: &Identity) -> [u8; 32] {
    let mut hash = Hasher::new();
    hash.update(identity);
    hash.update(source.preprocessing.as_bytes());
    hash.finalize().into()
}

/// One name per folder and preprocessing: a stale cache is replaced, and takes up no space.
pub fn file_name(source: &Source) -> String {
    let folder = fs::canonicalize(&source.folder)
        .or_else(|_| std::path::absolute(&source.folder))
        .unwrap_or_else(|_| source.folder.clone());
    let mut hash = Hasher::new();
    hash.update(folder.as_os_str().as_encoded_bytes());
    hash.update(&[0]);
    hash.update(source.preprocessing.as_bytes());
    let digits = hash.finalize().to_hex();
    format!("{}-{}.cache", source.name, &digits[..12])
}
