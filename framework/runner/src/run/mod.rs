//! Runs an experiment from a checked recipe to its folder of results.

mod account;
mod batches;
mod building;
mod checkpoint;
mod curvature;
mod due;
mod experiment;
mod findings;
mod folder;
mod guard;
mod initial_particles;
mod logging;
mod pictures;
mod progress;
mod provenance;
mod resume;
mod setup;
mod state;
mod step_sizes;
mod training;
mod trial;

pub use account::Account;
pub use building::{build_of_kind, scope};
pub use checkpoint::{Checkpoint, last_checkpoint};
pub use experiment::Experiment;
pub use folder::{RunFolder, is_running, lock_folder};
pub use guard::Diverged;
pub use logging::Log;
pub use provenance::warn_of_other_data;
pub use resume::{find_run, finished_run};
pub use setup::Setup;
pub use state::{Ending, State};
pub use step_sizes::report as report_step_sizes;
pub use training::{Outcome, train};
pub use trial::{round_trip, untrained};
