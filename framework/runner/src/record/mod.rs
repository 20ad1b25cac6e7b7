//! Writes what a run yields: numbers, particles, pictures.

mod array;
mod figure;
mod histogram;
mod image_grid;
mod metrics_file;
mod model_pictures;
mod npy;
mod particle_dump;
mod picture;
mod plain_numbers;
mod scatter;
mod tensorboard;

pub use array::{Array, write_hdf5};
pub use figure::draw_model;
pub use histogram::{Histogram, draw_histograms};
pub use image_grid::{image_grid, is_image, square_columns};
pub use metrics_file::{EVALUATE, Kept, MetricsFile};
pub use model_pictures::{cloud_means, pair_grid, reconstruction_grid, sample_grid};
pub use npy::write_npy;
pub use particle_dump::{DumpFacts, ParticleDump, blocks, dump_particles, dumps_in_folder};
pub use picture::Picture;
pub use plain_numbers::plain_numbers;
pub use scatter::draw_side_by_side;
pub use tensorboard::{EndFile, TensorBoard};

/// When numbers were taken.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Steps completed.
    pub step: u64,
    /// Epoch of the last step, counted from 0.
    pub epoch: u64,
}
