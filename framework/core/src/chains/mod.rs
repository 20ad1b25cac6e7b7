//! Prior chains: what a sampler is, where chains start, and how they run in blocks.

mod blocks;
mod prior_chains;
mod prior_sampler;
mod sampling;
mod worker_threads;

pub use prior_chains::{PriorChains, PriorChainsSection, Start};
pub use prior_sampler::{Chains, PriorSampler};
pub use sampling::{run, run_from_noise};
