//! Says what a training algorithm is: something that takes steps.

use tch::Tensor;

use crate::{Indices, Joint, Model, Optimizer, Persistent, PosteriorStep, PriorChains, Random, Scalars};

/// A training algorithm. The runner owns the loop, the data order, the records and the clock.
///
/// What it carries from one step to the next it lists as [`Persistent`], so that a run can be resumed.
pub trait Algorithm: Persistent {
    /// Takes one step and returns the numbers worth recording.
    fn step(&mut self, step: Step) -> anyhow::Result<Scalars>;

    /// The particles as others may read them; `None` for an algorithm without particles.
    fn clouds(&self) -> Option<&dyn Clouds>;

    /// Numbers that are fixed for the run and worth showing at its start, such as raw step sizes.
    fn constants(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// The steps that it takes towards the posterior. The runner compares them with the curvature at the particles, and
    /// reports what bias to expect.
    fn posterior_steps(&self) -> Vec<PosteriorStep> {
        Vec::new()
    }
}

/// Everything one step works on.
pub struct Step<'a> {
    /// The iteration k, counted from 0.
    pub number: u64,
    /// Which data points are in the batch.
    pub indices: &'a Indices,
    /// The data points of the batch, on the run's device.
    pub data: &'a Tensor,
    pub model: &'a Model,
    pub prior_chains: &'a mut PriorChains,
    pub energy_optimizer: &'a mut Optimizer,
    pub generator_optimizer: &'a mut Optimizer,
    pub random: &'a mut Random,
    /// Weight λ of the penalty λ·E U² on the energies of posterior and prior samples.
    pub energy_l2: f64,
}

impl Step<'_> {
    /// Runs one prior chain per data point of the batch and adds their statistics to `scalars`.
    ///
    /// `posterior` is φ at the batch's particles, where chains may start.
    pub fn sample_prior(&mut self, posterior: &Joint, scalars: &mut Scalars) -> anyhow::Result<Tensor> {
        let mut draws = self.random.stream("prior_sampler", self.number);
        let count = self.indices.count();
        let chains = self
            .prior_chains
            .run(self.model, &posterior.x, count, &mut draws)?;
        scalars.extend("prior_sampler/", chains.statistics);
        Ok(chains.last)
    }
}

/// Particles as they are read by others, block by block, so that a dump needs little memory.
pub trait Clouds {
    /// Data points, particles of each, latent dimensions.
    fn shape(&self) -> [usize; 3];

    /// A copy of the clouds of the data points `indices`, with all noise that is due by iteration `now`.
    ///
    /// The algorithm's own state stays as it is: to be looked at must not change a run.
    fn settled(&self, indices: &Indices, now: u64) -> Tensor;

    /// The raw step size of the particles.
    fn raw_step_size(&self) -> f64;
}
