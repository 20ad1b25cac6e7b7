//! Says what a prior sampler is: Markov chains that approach exp(−U).

use tch::Tensor;

use crate::{Draws, Energy, Scalars};

/// Runs Markov chains on the latent space.
///
/// A sampler keeps no state: where the chains start is the caller's choice, and so is where the randomness comes
/// from. Chains must not know of each other, since they may run in blocks and in several threads.
pub trait PriorSampler: Sync {
    /// Runs one chain per row of `start` and returns where they end.
    fn sample(&self, energy: &dyn Energy, start: Tensor, draws: &mut Draws) -> anyhow::Result<Chains>;

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
