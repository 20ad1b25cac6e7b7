//! Decides where the prior chains of a training run start, and keeps those that persist.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tch::{Kind, Tensor};

use crate::{Chains, Draws, Model, PriorSampler};

/// Where the prior chains of each iteration start.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PriorChainsSection {
    /// Where chains start.
    pub start: Start,
    /// persistent, posterior: share of the chains that start from N(0, I) all the same, chosen anew each time. [1]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub restarts: f64,
}

/// Where chains start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// From N(0, I) in every iteration, as the paper does.
    #[default]
    Noise,
    /// Where the chains of the iteration before ended; at first from N(0, I).
    Persistent,
    /// At particles of the batch, picked at random: at the maximum these follow the prior already.
    Posterior,
}

/// A prior sampler, and the chains that it continues.
pub struct PriorChains {
    sampler: Box<dyn PriorSampler>,
    config: PriorChainsSection,
    /// Where persistent chains are, one row each.
    kept: Option<Tensor>,
}

impl PriorChains {
    /// No chains yet.
    pub fn new(sampler: Box<dyn PriorSampler>, config: PriorChainsSection) -> Self {
        Self {
            sampler,
            config,
            kept: None,
        }
    }

    /// The sampler alone.
    pub fn sampler(&self) -> &dyn PriorSampler {
        self.sampler.as_ref()
    }

    /// Runs `count` chains; `posterior` has particles of the batch in its rows.
    pub fn run(
        &mut self,
        model: &Model,
        posterior: &Tensor,
        count: i64,
        draws: &mut Draws,
    ) -> anyhow::Result<Chains> {
        let noise = draws.normal(&[count, posterior.size()[1]], posterior.device());
        let start = match self.config.start {
            Start::Noise => noise,
            Start::Persistent => self.restarted(self.first_kept(count, &noise), &noise, draws),
            Start::Posterior => {
                let picked = draws.permutation(posterior.size()[0]).narrow(0, 0, count);
                let picked = posterior.index_select(0, &picked.to_device(posterior.device()));
                self.restarted(picked, &noise, draws)
            }
        };
        let chains = self.sampler.sample_frozen(model.energy.as_ref(), start, draws)?;
        if self.config.start == Start::Persistent {
            self.keep(&chains.last);
        }
        Ok(chains)
    }

    fn restarted(&self, start: Tensor, noise: &Tensor, draws: &mut Draws) -> Tensor {
        if self.config.restarts == 0.0 {
            return start;
        }
        let lots = draws.uniform(0.0, 1.0, &[start.size()[0], 1], start.device());
        noise.where_self(&lots.lt(self.config.restarts), &start)
    }

    /// The first `count` chains, new ones among them where there are not as many yet.
    fn first_kept(&self, count: i64, noise: &Tensor) -> Tensor {
        match &self.kept {
            Some(kept) if kept.size()[0] >= count => kept.narrow(0, 0, count),
            Some(kept) => Tensor::cat(
                &[kept, &noise.narrow(0, kept.size()[0], count - kept.size()[0])],
                0,
            ),
            None => noise.shallow_clone(),
        }
    }

    /// A ragged batch moves the first chains only; the others stay where they are.
    fn keep(&mut self, last: &Tensor) {
        let moved = last.size()[0];
        self.kept = Some(match &self.kept {
            Some(kept) if kept.size()[0] > moved => {
                Tensor::cat(&[last, &kept.narrow(0, moved, kept.size()[0] - moved)], 0)
            }
            _ => last.to_kind(Kind::Float),
        });
    }
}
