//! Writes files that appear whole or not at all.

use std::fs::{self, File};
use std::path::Path;

use anyhow::Context;

use super::panics::caught;

/// What names begin with until a file is whole.
pub const UNFINISHED: &str = ".unfinished-";

/// Lets `write` fill a file under a temporary name, and gives it its final name when all of it is on the disk.
pub fn write_whole(path: &Path, write: impl FnOnce(&Path) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unfinished = path.with_file_name(format!("{UNFINISHED}{name}"));
    let written = path
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .map_err(anyhow::Error::from)
        .and_then(|()| caught(|| write(&unfinished)))
        .and_then(|()| Ok(File::open(&unfinished)?.sync_all()?))
        .and_then(|()| Ok(fs::rename(&unfinished, path)?));
    if written.is_err() {
        // Gives the space back. The first error is the one to report.
        let _ = fs::remove_file(&unfinished);
    }
    written.with_context(|| format!("writing {}", path.display()))
}

/// The same for contents that are at hand.
pub fn write_bytes(path: &Path, contents: impl AsRef<[u8]>) -> anyhow::Result<()> {
    write_whole(path, |unfinished| Ok(fs::write(unfinished, contents)?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_failed_write_leaves_nothing_and_keeps_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/file");
        write_bytes(&path, "first").unwrap();
        let failed = write_whole(&path, |unfinished| {
            fs::write(unfinished, "half")?;
            anyhow::bail!("no space")
        });
        assert!(format!("{:#}", failed.unwrap_err()).ends_with("file: no space"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
