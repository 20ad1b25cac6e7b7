//! Computes the checksums that data sets are published with.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Context;
use md5::{Digest, Md5};

/// The MD5 of a file, in hexadecimal.
pub fn md5(path: &Path) -> anyhow::Result<String> {
    let mut digest = Md5::new();
    let mut block = vec![0; 1 << 20];
    let mut file = File::open(path).with_context(|| format!("reading {}", path.display()))?;
    loop {
        let count = file
            .read(&mut block)
            .with_context(|| format!("reading {}", path.display()))?;
        if count == 0 {
            break;
        }
        digest.update(&block[..count]);
    }
    Ok(digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}
