//! Identifies files by their content, and remembers the hashes of large ones.

use std::fs::{self, File, Metadata};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use blake3::Hasher;
use ebipla_core::write_whole;
use rayon::prelude::*;

use super::Source;

/// A hash of contents.
pub type Identity = [u8; 32];

/// Files with at most this many bytes in total are hashed each time, which takes a fraction of a second.
const SMALL: u64 = 64 << 20;
/// Resolution of times in file systems: two seconds at most. A file that has changed this recently may change again
/// without a change of its time.
const SETTLED: i64 = 3;

/// The files of a source at one point in time.
#[derive(PartialEq, Eq)]
pub struct Files {
    paths: Vec<PathBuf>,
    stamps: Vec<Stamp>,
}

/// Changes whenever a file does: the change time cannot be set back, unlike the modification time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    path: PathBuf,
    bytes: u64,
    modified: [i64; 2],
    changed: [i64; 2],
    inode: u64,
}

impl Files {
    /// Examines the files without reading them.
    pub fn look(source: &Source) -> anyhow::Result<Self> {
        let paths: Vec<_> = source.files.iter().map(|file| source.folder.join(file)).collect();
        let stamps = paths.par_iter().map(|path| Stamp::of(path, source.advice));
        Ok(Self {
            stamps: stamps.collect::<anyhow::Result<_>>()?,
            paths,
        })
    }

    /// Their identity, if it is available quickly: they are small, or unchanged since it was recorded in `memory`.
    pub fn quick_identity(&self, memory: &Path) -> anyhow::Result<Option<Identity>> {
        if self.are_small() {
            return self.hash().map(Some);
        }
        let known = fs::read(memory).unwrap_or_default();
        let digest = self.digest();
        let known = known.as_chunks::<32>();
        Ok(match known {
            ([stamps, identity], []) if *stamps == digest => Some(*identity),
            _ => None,
        })
    }

    /// Their identity, hashing all files if necessary; records it in `memory`.
    pub fn identity(&self, memory: &Path) -> anyhow::Result<Identity> {
        if let Some(identity) = self.quick_identity(memory)? {
            return Ok(identity);
        }
        let started = seconds();
        let identity = self.hash()?;
        let last_change = self.stamps.iter().map(|stamp| stamp.changed[0]).max();
        if last_change.is_none_or(|last| last + SETTLED <= started) {
            let note = [self.digest(), identity].concat();
            write_whole(memory, |unfinished| Ok(fs::write(unfinished, note)?))?;
        }
        Ok(identity)
    }

    fn are_small(&self) -> bool {
        self.stamps.iter().map(|stamp| stamp.bytes).sum::<u64>() <= SMALL
    }

    /// One hash of the contents of all files, in their order; names do not count.
    fn hash(&self) -> anyhow::Result<Identity> {
        let each = self.paths.par_iter().map(|path| {
            let read = || Ok::<_, std::io::Error>(Hasher::new().update_reader(File::open(path)?)?.finalize());
            read().with_context(|| format!("reading {}", path.display()))
        });
        let mut all = Hasher::new();
        for hash in each.collect::<anyhow::Result<Vec<_>>>()? {
            all.update(hash.as_bytes());
        }
        Ok(all.finalize().into())
    }

    /// A hash of all stamps.
    fn digest(&self) -> Identity {
        let mut hash = Hasher::new();
        for stamp in &self.stamps {
            let path = stamp.path.as_os_str().as_bytes();
            hash.update(&(path.len() as u64).to_le_bytes());
            hash.update(path);
            hash.update(&stamp.bytes.to_le_bytes());
            for number in [stamp.modified, stamp.changed].concat() {
                hash.update(&number.to_le_bytes());
            }
            hash.update(&stamp.inode.to_le_bytes());
        }
        hash.finalize().into()
    }
}

impl Stamp {
    fn of(path: &Path, advice: &str) -> anyhow::Result<Self> {
        let look = || Ok::<_, std::io::Error>((fs::canonicalize(path)?, fs::metadata(path)?));
        match look() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                bail!("{} is missing: {advice}", path.display())
            }
            found => {
                let (path, data) = found.with_context(|| format!("reading {}", path.display()))?;
                Ok(Self::from(path, &data))
            }
        }
    }

    fn from(path: PathBuf, data: &Metadata) -> Self {
        Self {
            path,
            bytes: data.size(),
            modified: [data.mtime(), data.mtime_nsec()],
            changed: [data.ctime(), data.ctime_nsec()],
            inode: data.ino(),
        }
    }
}

fn seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() as i64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use super::*;

    fn files(folder: &Path, name: &str) -> Files {
        let source = Source {
            name: "test".into(),
            folder: folder.into(),
            files: vec![name.into()],
            preprocessing: String::new(),
            advice: "",
        };
        Files::look(&source).unwrap()
    }

    /// Too large to be hashed each time; all bytes are `byte`, and the modification time is always the same.
    fn large(path: &Path, byte: u8) {
        let time = UNIX_EPOCH + Duration::from_secs(1_600_000_000);
        fs::write(path, vec![byte; SMALL as usize + 1]).unwrap();
        File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(time)
            .unwrap();
    }

    /// Even if size and modification time are the same.
    #[test]
    fn a_large_file_that_was_replaced_is_hashed_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        let memory = folder.path().join("memory");
        large(&path, 1);
        let first = files(folder.path(), "large");
        assert_eq!(first.quick_identity(&memory).unwrap(), None);
        let identity = first.identity(&memory).unwrap();
        assert!(!memory.exists(), "it may still change without a new time");

        // As if it had been written some time ago.
        let mut settled = files(folder.path(), "large");
        settled.stamps[0].changed[0] -= SETTLED;
        assert_eq!(settled.identity(&memory).unwrap(), identity);
        assert_eq!(settled.quick_identity(&memory).unwrap(), Some(identity));

        let before = fs::metadata(&path).unwrap();
        large(&path, 2);
        let after = fs::metadata(&path).unwrap();
        assert_eq!(
            (before.len(), before.modified().unwrap()),
            (after.len(), after.modified().unwrap())
        );
        let replaced = files(folder.path(), "large");
        assert_eq!(replaced.quick_identity(&memory).unwrap(), None);
        assert_ne!(replaced.identity(&memory).unwrap(), identity);
        // A damaged record is ignored.
        fs::write(&memory, [0; 63]).unwrap();
        assert_eq!(settled.quick_identity(&memory).unwrap(), None);
    }

    #[test]
    fn only_the_content_determines_the_identity() {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in [("a", "one"), ("b", "one"), ("c", "two")] {
            fs::write(folder.path().join(name), content).unwrap();
        }
        let [a, b, c] = ["a", "b", "c"].map(|name| files(folder.path(), name).hash().unwrap());
        assert!(a == b && a != c);
    }
}
