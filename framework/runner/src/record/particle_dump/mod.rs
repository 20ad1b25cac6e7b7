//! Keeps clouds of particles in HDF5 files, which anybody can read.
//!
//! `/particles` is `[data points, particles, latent]`, `/indices` says which data points they belong to. Attributes of
//! `/particles` say where they come from.

mod read;
mod write;

use std::path::{Path, PathBuf};

pub use read::ParticleDump;
pub use write::{DumpFacts, dump_particles};

/// The clouds.
const PARTICLES: &str = "particles";
/// Which data points they belong to.
const INDICES: &str = "indices";

/// Bytes that are read or written at once, about.
const BLOCK_BYTES: usize = 32 << 20;

/// First data point and number of data points of each block.
pub fn blocks([points, particles, latent_dim]: [usize; 3]) -> impl Iterator<Item = (usize, usize)> {
    let block = points_in(BLOCK_BYTES, particles * latent_dim);
    (0..points)
        .step_by(block)
        .map(move |start| (start, block.min(points - start)))
}

/// How many clouds of so many numbers fit into `bytes`; at least one.
fn points_in(bytes: usize, numbers: usize) -> usize {
    (bytes / (numbers * size_of::<f32>()).max(1)).max(1)
}

/// The dumps in a folder, by step.
pub fn dumps_in_folder(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_dump = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("step_") && name.ends_with(".h5")
    };
    let mut dumps: Vec<_> = paths.filter(is_dump).collect();
    // Steps are padded with zeros, so that names sort like them.
    dumps.sort();
    dumps
}
