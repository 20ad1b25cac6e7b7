//! The core of an experiment framework for latent energy-based models trained with interacting particles.
//!
//! Follow a datum: a recipe names plugins, the [`Registry`] builds them, a [`Dataset`] yields data points, an
//! [`Algorithm`] moves particles and parameters with the help of a [`PriorSampler`], an [`Energy`] and a
//! [`Generator`], and what it returns goes to the records. Plugins compute and return numbers; only the runner
//! seeds, logs and writes.
//!
//! A plugin is a config struct that builds something:
//!
//! ```no_run
//! use ebipla_core::prelude::*;
//!
//! /// Plain gradient descent on the energy: no noise at all.
//! #[derive(Serialize, Deserialize, JsonSchema)]
//! #[serde(default, deny_unknown_fields)]
//! pub struct Descent {
//!     /// Length of one step. [latent units²]
//!     #[schemars(extend("exclusiveMinimum" = 0.0))]
//!     step_size: f64,
//! }
//!
//! impl Default for Descent {
//!     fn default() -> Self {
//!         Self { step_size: 0.1 }
//!     }
//! }
//!
//! impl Plugin for Descent {
//!     type Builds = dyn PriorSampler;
//!
//!     fn build(self, _: &mut Scope) -> anyhow::Result<Box<dyn PriorSampler>> {
//!         Ok(Box::new(self))
//!     }
//! }
//!
//! impl PriorSampler for Descent {
//!     fn sample(&self, energy: &dyn Energy, start: Tensor, _: &mut Draws) -> anyhow::Result<Chains> {
//!         let last = &start - energy.gradient(&start) * self.step_size;
//!         Ok(Chains { last, statistics: Scalars::new() })
//!     }
//!
//!     fn gradient_evaluations(&self) -> u64 {
//!         1
//!     }
//! }
//!
//! inventory::submit! { Registration::of::<Descent>("descent") }
//! # fn main() {}
//! ```

mod algorithm;
pub mod chains;
mod dataset;
pub mod fetch;
mod metric;
pub mod model;
pub mod particles;
mod posterior_step;
pub mod random;
pub mod registry;
mod scalars;
mod shipped_recipes;
pub mod state;
pub mod system;
#[doc(hidden)]
pub mod testing;

pub use algorithm::{Algorithm, Clouds, Step};
pub use chains::{Chains, PriorChains, PriorChainsSection, PriorSampler, Start};
pub use dataset::{Dataset, Split};
pub use inventory;
pub use metric::{Better, Facts, Metric, Subject};
pub use model::{
    Averages, Energy, FrozenEnergy, Generator, GradientCount, Joint, Located, MapSearch, Method, Model,
    Optimizer, OptimizerConfig, Parameters, Wanted, gradient,
};
pub use particles::{LazyNoise, ParticleStore, Storage};
pub use posterior_step::PosteriorStep;
pub use random::{Draws, Indices, Random};
pub use registry::{
    Complaint, DataFacts, Kind, OptionSpec, OptionType, ParticleSource, Plugin, Product, Purpose,
    Registration, Registry, Scope,
};
pub use scalars::{Scalars, Watched};
pub use shipped_recipes::ShippedRecipes;
pub use state::{Persistent, Slot};
pub use system::{Task, cache_folder, interruption_point, require_memory, reserve, write_whole};

/// What a file with a plugin usually needs.
pub mod prelude {
    pub use crate::{
        Algorithm, Better, Chains, Complaint, Dataset, Draws, Energy, Facts, Generator, Metric, Parameters,
        Persistent, Plugin, PriorSampler, Registration, Scalars, Scope, Slot, Split, Step, Subject, Watched,
    };
    pub use anyhow;
    pub use inventory;
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
    pub use tch::{self, Tensor};
}
