//! Makes run folders that never collide and are never overwritten.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use ebipla_core::system::files::{UNFINISHED, write_bytes};

use crate::Recipe;

/// The folder of one run, which nobody else may run in meanwhile.
pub struct RunFolder {
    path: PathBuf,
    /// Unlocked when it is closed, also by a killed process.
    _lock: File,
}

impl RunFolder {
    /// Makes `out/NAME-HASH-sSEED`, or the same with `-2`, `-3`, … where it exists already.
    pub fn create(out: &Path, recipe: &Recipe) -> anyhow::Result<Self> {
        fs::create_dir_all(out).with_context(|| format!("creating {}", out.display()))?;
        let name = recipe.folder_name();
        for attempt in 1.. {
            let path = match attempt {
                1 => out.join(&name),
                n => out.join(format!("{name}-{n}")),
            };
            match fs::create_dir(&path) {
                Ok(()) => return Self::open(path),
                // Somebody was first, maybe just now: leave theirs alone.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error).with_context(|| format!("creating {}", path.display())),
            }
        }
        unreachable!("the numbers do not run out")
    }

    /// Goes on with a run that is there.
    pub fn open(path: PathBuf) -> anyhow::Result<Self> {
        let Some(lock) = lock_folder(&path)? else {
            bail!("another process is running in {}", path.display());
        };
        remove_unfinished(&path).with_context(|| format!("cleaning {}", path.display()))?;
        Ok(Self { path, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file in it.
    pub fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        write_bytes(&self.path.join(name), text)
    }
}

/// Removes what a killed process left half written.
fn remove_unfinished(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        match (name.starts_with(UNFINISHED), path.is_dir()) {
            (true, true) => fs::remove_dir_all(&path)?,
            (true, false) => fs::remove_file(&path)?,
            (false, true) => remove_unfinished(&path)?,
            (false, false) => {}
        }
    }
    Ok(())
}

const LOCK: &str = ".lock";

/// Whether a process is running in a folder.
pub fn is_running(folder: &Path) -> bool {
    let lock = File::open(folder.join(LOCK)).map(|file| file.try_lock());
    matches!(lock, Ok(Err(TryLockError::WouldBlock)))
}

/// How often the lock is tried: somebody may just be looking whether it is held.
const TRIES: u32 = 5;

/// Locks a folder as long as the file is open, also against a killed process; `None` where another process has it.
pub fn lock_folder(folder: &Path) -> anyhow::Result<Option<File>> {
    let path = folder.join(LOCK);
    let file = File::create(&path).with_context(|| format!("creating {}", path.display()))?;
    for left in (0..TRIES).rev() {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) if left > 0 => std::thread::sleep(Duration::from_millis(20)),
            Err(TryLockError::WouldBlock) => break,
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("locking {}", path.display()));
            }
        }
    }
    Ok(None)
}
