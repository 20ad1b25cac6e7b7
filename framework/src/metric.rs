//! Says what a metric is: a number that tells how good a model is.

use crate::{Dataset, Model, PriorSampler, Random, Scalars};

/// Measures a trained model.
pub trait Metric {
    /// Named numbers; the plain result goes by the metric's own name.
    fn measure(&self, subject: Subject) -> anyhow::Result<Scalars>;
}

/// What is measured.
pub struct Subject<'a> {
    pub model: &'a Model,
    pub prior_sampler: &'a dyn PriorSampler,
    pub dataset: &'a dyn Dataset,
    pub device: tch::Device,
    /// Streams of the evaluation, apart from those of the training.
    pub random: &'a mut Random,
}

impl Subject<'_> {
    /// `n` samples of the model: prior chains from N(0, I), decoded, with decoder noise.
    pub fn samples(&mut self, n: i64) -> anyhow::Result<tch::Tensor> {
        let mut draws = self.random.stream("samples", 0);
        let chains = self
            .prior_sampler
            .sample_from_noise(self.model, n, self.device, &mut draws)?;
        Ok(self.model.decode(&chains.last, &mut draws))
    }
}
