//! The core of an experiment framework for latent energy-based models trained with interacting particles.
//!
//! Follow a datum: a [`Recipe`] names plugins, the [`Registry`] builds them, a [`Dataset`] yields data points, an
//! [`Algorithm`] moves particles and parameters with the help of a [`PriorSampler`], an [`Energy`] and a
//! [`Generator`], and what it returns goes to the records. Plugins compute and return numbers; only the runner
//! seeds, logs and writes.
//!
//! A plugin is a config struct that builds something:
//!
//! ```no_run
//! use ebipla_framework::prelude::*;
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
//!
//! fn main() -> std::process::ExitCode {
//!     ebipla_framework::main(ebipla_framework::home!())
//! }
//! ```

mod algorithm;
mod allocator;
mod bench;
mod cache_folder;
mod chain_blocks;
mod cli;
mod curvature;
mod dataset;
mod device;
mod disk;
mod energy;
mod energy_sum;
pub mod fetch;
mod frozen_energy;
#[cfg(test)]
mod fuzzing;
mod generator;
pub mod gradient;
mod gradient_count;
mod home;
mod indices;
mod initial_particles;
mod interrupt;
mod lazy_noise;
mod map_latents;
mod memory;
mod metric;
mod model;
mod optimizer;
mod panics;
mod parameters;
mod particle_summary;
mod particles;
mod philox;
mod posterior_mean;
mod posterior_step;
mod prior_chains;
mod prior_sampler;
mod random;
mod ranking;
mod recipe;
mod record;
mod registry;
mod report;
mod run;
mod scalars;
mod state;
mod storage;
mod sweep;
mod task;
#[cfg(test)]
mod testing;
mod worker_threads;

pub use algorithm::{Algorithm, Clouds, Step};
pub use cache_folder::cache_folder;
pub use cli::main;
pub use dataset::{Dataset, Split};
pub use disk::reserve;
pub use energy::Energy;
pub use frozen_energy::FrozenEnergy;
pub use generator::Generator;
pub use gradient_count::GradientCount;
pub use home::Home;
pub use indices::Indices;
pub use interrupt::interruption_point;
pub use inventory;
pub use lazy_noise::LazyNoise;
pub use map_latents::{Located, MapSearch};
pub use memory::require_memory;
pub use metric::{Better, Facts, Metric, Subject};
pub use model::{Joint, Model, Wanted};
pub use optimizer::{Averages, Method, Optimizer, OptimizerConfig};
pub use parameters::Parameters;
pub use particles::ParticleStore;
pub use posterior_step::PosteriorStep;
pub use prior_chains::{PriorChains, PriorChainsSection, Start};
pub use prior_sampler::{Chains, PriorSampler};
pub use random::{Draws, Random};
pub use recipe::{Origin, Problem, Recipe, RecipeError, ShippedRecipes};
pub use record::write_whole;
pub use registry::{
    Complaint, DataFacts, Kind, OptionSpec, OptionType, Plugin, Product, Purpose, Registration, Registry,
    Scope,
};
pub use scalars::{Scalars, Watched};
pub use state::{Persistent, Slot};
pub use storage::Storage;
pub use task::Task;

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
