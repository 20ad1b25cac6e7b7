//! The parts of a run folder that must be equal in two runs with the same outcome.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::metrics;

/// Everything in a run folder that must not depend on how often the run was interrupted.
pub fn outcome(folder: &Path) -> (Vec<Value>, Vec<(PathBuf, Vec<u8>)>) {
    let mut files = Vec::new();
    for part in ["checkpoints", "particles"] {
        let mut inside: Vec<_> = walk(&folder.join(part));
        inside.sort();
        for file in inside {
            // The split of the clouds between two files is internal to the checkpoint.
            let name = file.file_name().unwrap().to_str().unwrap().to_owned();
            if !name.contains("particles") && !name.contains("velocities") && name != "state.json" {
                let path = file.strip_prefix(folder).unwrap().to_owned();
                files.push((path, contents(&file)));
            }
        }
    }
    (metrics(folder), files)
}

/// HDF5 records when a file was written: of dumps, only the particles are compared.
fn contents(file: &Path) -> Vec<u8> {
    if file.extension().is_some_and(|ending| ending == "h5") {
        let particles = hdf5::File::open(file).unwrap().dataset("particles").unwrap();
        let numbers = particles.read_raw::<f32>().unwrap();
        return numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    }
    fs::read(file).unwrap()
}

/// All files below a folder.
pub fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let entries = entries.map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] })
        .collect()
}

/// The same, but of the last step only, which does not depend on where the run was interrupted.
pub fn end(folder: &Path) -> (Vec<Value>, Vec<(PathBuf, Vec<u8>)>) {
    let (lines, mut files) = outcome(folder);
    let last = format!("step_{:08}", lines.last().unwrap()["step"].as_u64().unwrap());
    files.retain(|(path, _)| path.display().to_string().contains(&last));
    assert!(files.len() >= 3, "{files:?}");
    (lines, files)
}
