//! Looks at trained models: sums of energies, posterior means, rankings, and summaries of dumps.

mod energy_sum;
mod particle_summary;
mod posterior_mean;
mod ranking;

pub use energy_sum::EnergySum;
pub use particle_summary::ParticleSummary;
pub use posterior_mean::PosteriorMean;
pub use ranking::{auprc, auroc};
