//! Says what a checkpoint has, with checksums, so that damage is seen before anything is loaded.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use ebipla_core::system::files::write_bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::run::due::Due;

const NAME: &str = "state.json";
const FORMAT: u32 = 1;
/// Bytes that are read at once.
const BLOCK_BYTES: usize = 1 << 20;

/// The contents of a checkpoint's `state.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    format: u32,
    /// Steps completed.
    pub step: u64,
    /// What was still to be recorded after that step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub due: Vec<Due>,
    files: BTreeMap<String, Checksum>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Checksum {
    bytes: u64,
    sha256: String,
}

impl Manifest {
    /// Writes `state.json` for the files that are in `folder`, and waits until all of them are on the disk.
    ///
    /// `before` is the checkpoint before: the checksum of a file that the two share is not taken again.
    pub fn write(folder: &Path, step: u64, due: &[Due], before: Option<&Path>) -> anyhow::Result<()> {
        let known = before.and_then(|before| Some((before, Self::read(before).ok()?)));
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // It may have had another name there.
            let shared = known.as_ref().and_then(|(before, manifest)| {
                let mut files = manifest.files.iter();
                let same = files.find(|(name, _)| same_file(&entry.path(), &before.join(name)));
                same.map(|(_, checksum)| checksum.clone())
            });
            let checksum = match shared {
                Some(checksum) => checksum,
                None => {
                    File::open(entry.path())?.sync_all()?;
                    Checksum::of(&entry.path())?
                }
            };
            files.insert(name, checksum);
        }
        let manifest = Self {
            format: FORMAT,
            step,
            due: due.to_vec(),
            files,
        };
        let path = Self::path(folder);
        fs::write(&path, serde_json::to_string_pretty(&manifest)? + "\n")?;
        File::open(&path)?.sync_all()?;
        Ok(File::open(folder)?.sync_all()?)
    }

    /// Where it is in the folder of a checkpoint.
    pub fn path(folder: &Path) -> PathBuf {
        folder.join(NAME)
    }

    /// Whether it has a checksum of the file `name`.
    pub fn lists(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// Replaces what was still to be recorded, in a checkpoint that is there.
    pub fn set_due(folder: &Path, due: &[Due]) -> anyhow::Result<()> {
        let mut manifest = Self::read(folder)?;
        if manifest.due != due {
            manifest.due = due.to_vec();
            write_bytes(
                &Self::path(folder),
                serde_json::to_string_pretty(&manifest)? + "\n",
            )?;
        }
        Ok(())
    }

    fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = Self::path(folder);
        let text = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let manifest: Self =
            serde_json::from_slice(&text).with_context(|| format!("{} is damaged", path.display()))?;
        ensure!(
            manifest.format == FORMAT,
            "{} has format {}, expected {FORMAT}",
            path.display(),
            manifest.format
        );
        Ok(manifest)
    }

    /// Reads `state.json` and compares all files with it.
    pub fn verified(folder: &Path) -> anyhow::Result<Self> {
        let manifest = Self::read(folder)?;
        for (name, expected) in &manifest.files {
            let path = folder.join(name);
            let found = Checksum::of(&path).with_context(|| format!("reading {}", path.display()))?;
            ensure!(
                found == *expected,
                "{} is damaged: its checksum is not the one in {NAME}",
                path.display()
            );
        }
        Ok(manifest)
    }
}

impl Checksum {
    fn of(path: &Path) -> io::Result<Self> {
        let mut hash = Sha256::new();
        let mut file = File::open(path)?;
        let mut block = vec![0; BLOCK_BYTES];
        let mut bytes = 0;
        loop {
            let count = file.read(&mut block)?;
            if count == 0 {
                break;
            }
            hash.update(&block[..count]);
            bytes += count as u64;
        }
        let digest = hash.finalize();
        Ok(Self {
            bytes,
            sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        })
    }
}

fn same_file(one: &Path, other: &Path) -> bool {
    identity(one).is_some() && identity(one) == identity(other)
}

/// What tells a file or folder from all others, whatever its name; `None` where there is none.
pub fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let data = fs::metadata(path).ok()?;
    Some((data.dev(), data.ino()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use ebipla_core::testing::fuzzing::survives;

    use super::*;

    #[test]
    fn fuzz_manifest() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("weights"), b"some bytes").unwrap();
        Manifest::write(folder.path(), 7, &[], None).unwrap();
        assert_eq!(Manifest::verified(folder.path()).unwrap().step, 7);
        let path = folder.path().join(NAME);
        let whole = fs::read(&path).unwrap();
        let mut refused = 0;
        survives(&whole, &path, |_| {
            refused += u32::from(Manifest::verified(folder.path()).is_err())
        });
        assert!(refused > 50, "{refused}");
    }

    /// Any bit of any file: the checksum sees it.
    #[test]
    fn fuzz_files_of_a_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights");
        let whole: Vec<u8> = (0..2000u32).map(|i| (i * 7) as u8).collect();
        fs::write(&path, &whole).unwrap();
        Manifest::write(folder.path(), 7, &[], None).unwrap();
        survives(&whole, &path, |path| {
            let unchanged = fs::read(path).unwrap() == whole;
            let verified = Manifest::verified(folder.path());
            assert_eq!(verified.is_ok(), unchanged, "{verified:?}");
        });
    }
}
