//! Finds the pictures below a folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

/// Every JPEG and PNG file below `folder`, relative to it, in the order of their names.
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
            // Folders behind links are left out: they may lead in a circle.
            if entry.file_type().with_context(reading)?.is_dir() {
                folders.push(name);
            } else if is_picture(&name) {
                found.push(name);
            }
        }
    }
    ensure!(
        !found.is_empty(),
        "there are no JPEG or PNG files (.jpg, .jpeg, .png) in {}: {advice}",
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
    fn pictures_at_any_depth_in_the_order_of_names() {
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
    fn no_folder_and_no_pictures_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        assert!(error(below(folder.path(), "get some")).ends_with("get some"));
        let missing = error(below(&folder.path().join("no"), "get some"));
        assert!(missing.contains("is missing: get some"), "{missing}");
    }
}
