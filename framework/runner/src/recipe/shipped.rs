//! Recipes that are part of the program, so that they are found wherever it is installed, and the files beside them.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ebipla_core::{ShippedRecipes, inventory};

/// What stands for the folder in which they would be.
pub const SHIPPED: &str = "built-in";

/// All of them, by the path that they go by.
fn shipped() -> impl Iterator<Item = (PathBuf, &'static str)> {
    let all = inventory::iter::<ShippedRecipes>
        .into_iter()
        .flat_map(|crates| crates.0);
    all.map(|(path, text)| (Path::new(SHIPPED).join(path), *text))
}

fn text(path: &Path) -> Option<&'static str> {
    shipped().find(|(known, _)| known == path).map(|(_, text)| text)
}

/// Whether there is a file of this path, on the disk or in the program.
pub fn is_file(path: &Path) -> bool {
    path.is_file() || text(path).is_some()
}

/// The text of a file on the disk or in the program.
pub fn read(path: &Path) -> io::Result<Cow<'static, str>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.into()),
        Err(problem) => text(path).map(Cow::Borrowed).ok_or(problem),
    }
}

/// The files in a folder on the disk or in the program.
pub fn files_in(folder: &Path) -> Vec<PathBuf> {
    let on_disk = fs::read_dir(folder).into_iter().flatten().flatten();
    let on_disk = on_disk.map(|entry| entry.path()).filter(|path| path.is_file());
    let in_program = shipped()
        .map(|(path, _)| path)
        .filter(|path| path.parent() == Some(folder));
    on_disk.chain(in_program).collect()
}
