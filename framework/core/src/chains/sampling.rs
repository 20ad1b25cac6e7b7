//! Runs a sampler's chains with the energy in its fastest form.

use tch::{Device, Tensor};

use super::{Chains, PriorSampler, blocks};
use crate::model::Interruptible;
use crate::{Draws, Energy, Model};

/// Runs one chain per row of `start`, with the same law as [`PriorSampler::sample`].
pub fn run(
    sampler: &dyn PriorSampler,
    energy: &dyn Energy,
    start: Tensor,
    draws: &mut Draws,
) -> anyhow::Result<Chains> {
    match energy.frozen() {
        Some(frozen) => blocks::sample(sampler, frozen.as_ref(), &start, draws),
        None => sampler.sample(&Interruptible(energy), start, draws),
    }
}

/// Runs `count` chains that start from N(0, I), as the paper's short-run chains do.
pub fn run_from_noise(
    sampler: &dyn PriorSampler,
    model: &Model,
    count: i64,
    device: Device,
    draws: &mut Draws,
) -> anyhow::Result<Chains> {
    let start = draws.normal(&[count, model.generator.latent_dim()], device);
    run(sampler, model.energy.as_ref(), start, draws)
}
