//! Checks the free disk space first, since a full disk would show only late in the download.

use std::path::Path;
use std::process::Command;

use super::output;
use crate::problem::Problem;

/// Checks for `needed` MiB. Passes if the free space cannot be determined.
pub fn problem(folder: &Path, needed: u64) -> Option<Problem> {
    let free = free(folder)?;
    (free < needed).then(|| {
        let [needed, free] = [needed, free].map(|mebibytes| mebibytes as f64 / 1024.0);
        Problem::new(
            format!(
                "too little disk space for {}: {needed:.1} GiB are needed, {free:.1} GiB are free",
                folder.display()
            ),
            "Free some space, or make this folder a symbolic link to a folder on a larger disk.",
        )
    })
}

/// Free space in MiB on the disk where `folder` is or will be.
fn free(folder: &Path) -> Option<u64> {
    let existing = folder.ancestors().find(|folder| folder.exists())?;
    let table = output::of(Command::new("df").arg("-Pk").arg(existing))?;
    let mut row = table.lines().nth(1)?.split_whitespace().rev();
    // Counted from the percentage, since names on either side may contain spaces.
    row.find(|column| column.ends_with('%'))?;
    let kibibytes: u64 = row.next()?.parse().ok()?;
    Some(kibibytes / 1024)
}
