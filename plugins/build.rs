//! Lets this package's binaries and tests find libtorch at run time, and lists the recipes to embed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

fn main() -> io::Result<()> {
    if let Ok(libtorch) = std::env::var("DEP_EBIPLA_LIBTORCH_LIB") {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{libtorch}");
    }
    let folder = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("../recipes");
    let mut recipes = Vec::new();
    list(&folder, Path::new(""), &mut recipes)?;
    recipes.sort();
    let entries: Vec<_> = recipes
        .iter()
        .map(|path| format!("({path:?}, include_str!({:?})),\n", folder.join(path)))
        .collect();
    let list = format!("&[\n{}]\n", entries.concat());
    fs::write(PathBuf::from(variable("OUT_DIR")?).join("recipes.rs"), list)
}

fn variable(name: &str) -> io::Result<String> {
    std::env::var(name).map_err(io::Error::other)
}

/// Adds all recipes in `folder`/`below`.
fn list(folder: &Path, below: &Path, recipes: &mut Vec<PathBuf>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.join(below).display());
    for entry in fs::read_dir(folder.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            list(folder, &path, recipes)?;
        } else if path.extension().is_some_and(|ending| ending == "yaml") {
            recipes.push(path);
        }
    }
    Ok(())
}
