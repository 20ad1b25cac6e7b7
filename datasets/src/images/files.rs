//! Finds the images in a folder and its subfolders.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

/// Every JPEG and PNG file in `folder` and its subfolders, relative to it, sorted by name.
pub fn below(folder: &Path, advice: &str) -> anyhow::Result<Vec<PathBuf>> {
    ensure!(
        folder.is_dir(),
        "the folder {} is missing: {advice}",
        folder.display()
    );
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(inner) = folders.pop() {
        let path = folder.join(&inner);
        let reading = || format!("reading {}", path.display());
        for entry in fs::read_dir(&path).with_context(reading)? {
            let entry = entry.with_context(reading)?;
            let name = inner.join(entry.file_name());
            // Links to folders are not followed: they may form cycles.
            if entry.file_type().with_context(reading)?.is_dir() {
                folders.push(name);
            } else if is_picture(&name) {
                found.push(name);
            }
        }
    }
    ensure!(
        !found.is_empty(),
        "found no JPEG or PNG files (.jpg, .jpeg, .png) in {}: {advice}",
        folder.display()
    );
    found.sort();
    Ok(found)
}

fn is_picture(path: &Path) -> bool {
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    ["jpg", "jpeg", "png"]
        .iter()
        .any(|known| end.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::testing::error;

    #[test]
    fn finds_images_at_any_depth_sorted_by_name() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("b/deep")).unwrap();
        for name in ["c.PNG", "a.jpg", "b/deep/x.jpeg", "b/notes.txt"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        std::os::unix::fs::symlink(folder.path(), folder.path().join("b/circle")).unwrap();
        let found = below(folder.path(), "").unwrap();
        assert_eq!(found, ["a.jpg", "b/deep/x.jpeg", "c.PNG"].map(PathBuf::from));
    }

    #[test]
    fn a_missing_or_empty_folder_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(error(below(folder.path(), "get some")).ends_with("get some"));
        let missing = error(below(&folder.path().join("no"), "get some"));
        assert!(missing.contains("is missing: get some"), "{missing}");
    }
}
