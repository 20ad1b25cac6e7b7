//! Serialises concurrent set-ups, since they would write to the same folders.

use std::fs::{self, File, TryLockError};
use std::path::Path;

use crate::problem::Problem;

/// Waits for the lock, which is released when the file is closed, hence also when the process is killed.
pub fn take(deps: &Path) -> Result<File, Problem> {
    fs::create_dir_all(deps).map_err(|error| Problem::io("create", deps, &error))?;
    let path = deps.join("lock");
    let problem = |error| Problem::io("lock", &path, &error);
    let file = File::create(&path).map_err(problem)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            eprintln!("Waiting for another set-up to finish ...");
            file.lock().map_err(problem)?;
        }
        Err(TryLockError::Error(error)) => return Err(problem(error)),
    }
    Ok(file)
}
