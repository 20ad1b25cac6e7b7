//! Runs many variations of recipes: plans them, starts them, and tells how they are.

mod axes;
mod estimate;
mod file;
mod local;
mod manifest;
mod plan;
mod slurm;
mod status;
mod table;

pub use axes::{Axes, Axis, split_values};
pub use estimate::estimate;
pub use file::SweepFile;
pub use local::Local;
pub use manifest::{Manifest, ManifestMember};
pub use plan::{Part, Plan, Request, Seeds};
pub use slurm::{Slurm, Submitted, requeue_this_task};
pub use status::Status;
pub use table::{duration, status_table};

/// What is wrong with a sweep before anything of it was started.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SweepError(pub String);
