//! The model: energy, generator, their parameters and gradients, and how these are used.

mod energy;
mod frozen_energy;
mod generator;
pub mod gradient;
mod gradient_count;
mod latent_variable_model;
mod map_latents;
mod optimizer;
mod parameters;
mod thawed;

pub use energy::Energy;
pub(crate) use energy::Interruptible;
pub use frozen_energy::FrozenEnergy;
pub use generator::Generator;
pub use gradient_count::GradientCount;
pub use latent_variable_model::{Joint, Model, Wanted};
pub use map_latents::{Located, MapSearch};
pub use optimizer::{Averages, Method, Optimizer, OptimizerConfig};
pub use parameters::Parameters;
pub(crate) use thawed::Thawed;
