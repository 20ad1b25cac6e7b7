//! Damaged recipes are either read or refused with a reason.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use ebipla_core::{Registry, testing::fuzzing};
use ebipla_datasets as _;
use ebipla_plugins as _;
use ebipla_runner::Recipe;

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

#[test]
fn fuzz_recipes() {
    let registry = Registry::collect().unwrap();
    let folder = tempfile::tempdir().unwrap();
    copy(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("recipes"),
        folder.path(),
    );
    // One that extends others, and one that is complete in itself.
    for name in ["swiss_roll_hmc.yaml", "quickstart.yaml"] {
        let path = folder.path().join(name);
        let whole = fs::read(&path).unwrap();
        let (mut read, mut refused) = (0, 0);
        fuzzing::survives(&whole, &path, |path| {
            match Recipe::load_resolved(path, &registry) {
                Ok(recipe) => {
                    read += 1;
                    assert!(!recipe.to_yaml().is_empty());
                }
                Err(error) => {
                    refused += 1;
                    let text = error.to_string();
                    assert!(text.contains(name), "the file is not named: {text}");
                }
            }
        });
        assert!(
            read > 20 && refused > 50,
            "{name}: {read} read, {refused} refused"
        );
        fs::write(&path, whole).unwrap();
    }
}
