//! Says what a prior sampler is: Markov chains that approach exp(−U).

use tch::{Device, Tensor};

use crate::energy::Interruptible;
use crate::{Draws, Energy, Model, Scalars, chain_blocks};

/// Runs Markov chains on the latent space.
///
/// A sampler keeps no state: where the chains start is the caller's choice, and so is where the randomness comes
/// from. Chains must not know of each other, since they may run in blocks and in several threads.
pub trait PriorSampler: Sync {
    /// Runs one chain per row of `start` and returns where they end.
    fn sample(&self, energy: &dyn Energy, start: Tensor, draws: &mut Draws) -> anyhow::Result<Chains>;

    /// Runs `count` chains that start from N(0, I), as the paper's short-run chains do.
    fn sample_from_noise(
        &self,
        model: &Model,
        count: i64,
        device: Device,
        draws: &mut Draws,
    ) -> anyhow::Result<Chains> {
        let start = draws.normal(&[count, model.generator.latent_dim()], device);
        self.sample_frozen(model.energy.as_ref(), start, draws)
    }

    /// The same law as [`sample`](Self::sample), with the energy in its fastest form.
    fn sample_frozen(&self, energy: &dyn Energy, start: Tensor, draws: &mut Draws) -> anyhow::Result<Chains> {
        match energy.frozen() {
            Some(frozen) => chain_blocks::sample(self, frozen.as_ref(), &start, draws),
            None => self.sample(&Interruptible(energy), start, draws),
        }
    }

    /// How many gradients ∇U one call takes per chain.
    fn gradient_evaluations(&self) -> u64;
}

/// What a sampler returns.
pub struct Chains {
    /// Where the chains ended: `[n, latent]`, without a graph.
    pub last: Tensor,
    /// Statistics of the run, for the records.
    pub statistics: Scalars,
}
