//! Writes what a run yields: numbers, particles, pictures.

mod figure;
mod metrics_file;
mod particle_dump;
mod picture;
mod plain_numbers;
mod tensorboard;
mod whole_file;

pub use figure::draw_model;
pub use metrics_file::MetricsFile;
pub use particle_dump::{DumpFacts, ParticleDump, blocks, dump_particles};
pub use picture::Picture;
pub use plain_numbers::plain_numbers;
pub use tensorboard::TensorBoard;
pub use whole_file::{UNFINISHED, write_bytes, write_whole};

/// When numbers were taken.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Steps completed.
    pub step: u64,
    /// Epoch of the last step, counted from 0.
    pub epoch: u64,
}
