//! Decides where the prior chains of a training run start, and keeps those that persist.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tch::{Kind, Tensor};

use super::{Chains, PriorSampler};
use crate::{Draws, Model, Persistent, Slot};

/// Where the prior chains of each iteration start.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
// A unit in brackets is no link.
#[allow(rustdoc::broken_intra_doc_links)]
pub struct PriorChainsSection {
    /// Where chains start.
    pub start: Start,
    /// Share of the chains that start from N(0, I) all the same, chosen again in each iteration. [1]
    #[schemars(range(min = 0.0, max = 1.0), extend("only_with" = "start=persistent|posterior"))]
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
        let chains = super::run(self.sampler.as_ref(), model.energy.as_ref(), start, draws)?;
        model.count_energy_gradients(count as u64 * self.sampler.gradient_evaluations());
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
            Some(kept) if kept.size()[0] >= count => kept.narrow_copy(0, 0, count),
            Some(kept) => Tensor::cat(
                &[kept, &noise.narrow(0, kept.size()[0], count - kept.size()[0])],
                0,
            ),
            None => noise.copy(),
        }
    }

    /// A ragged batch moves the first chains only; the others stay where they are. What is kept is a copy, since an
    /// algorithm may change its samples in place.
    fn keep(&mut self, last: &Tensor) {
        let moved = last.size()[0];
        self.kept = Some(match &self.kept {
            Some(kept) if kept.size()[0] > moved => {
                Tensor::cat(&[last, &kept.narrow(0, moved, kept.size()[0] - moved)], 0)
            }
            _ => last.detach().to_kind(Kind::Float).copy(),
        });
    }
}

impl Persistent for PriorChains {
    fn slots(&mut self) -> Vec<(&'static str, Slot<'_>)> {
        vec![("kept", Slot::Optional(&mut self.kept))]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{Energy, Random, Scalars, testing};
    use tch::Device;

    /// Moves every chain by 100.
    struct Leap;

    impl PriorSampler for Leap {
        fn sample(&self, _: &dyn Energy, start: Tensor, _: &mut Draws) -> anyhow::Result<Chains> {
            Ok(Chains {
                last: start + 100.0,
                statistics: Scalars::new(),
            })
        }

        fn gradient_evaluations(&self) -> u64 {
            0
        }
    }

    /// Where chains end that start at 1000 + row of the batch, call by call; `counts` are the sizes of the batches.
    fn ends(start: Start, restarts: f64, counts: &[i64]) -> Vec<Vec<f64>> {
        let model = testing::model(1.0);
        let mut chains = PriorChains::new(Box::new(Leap), PriorChainsSection { start, restarts });
        let mut random = Random::new(1);
        let run = |(step, count): (usize, &i64)| {
            let posterior = Tensor::arange(2 * count, (Kind::Float, Device::Cpu)).view([-1, 1]) + 1000.0;
            let mut draws = random.stream("test", step as u64);
            let last = chains.run(&model, &posterior, *count, &mut draws).unwrap().last;
            Vec::try_from(last.view([-1]).to_kind(Kind::Double)).unwrap()
        };
        counts.iter().enumerate().map(run).collect()
    }

    fn leaps(end: f64) -> f64 {
        (end / 100.0).round()
    }

    #[test]
    fn from_noise_every_call_starts_anew() {
        let ends = ends(Start::Noise, 0.5, &[20, 20]);
        assert!(ends.iter().flatten().all(|end| leaps(*end) == 1.0));
    }

    #[test]
    fn persistent_chains_go_on_and_a_ragged_batch_moves_the_first_ones() {
        let ends = ends(Start::Persistent, 0.0, &[4, 3, 4, 6]);
        for (call, expected) in [vec![1.0; 4], vec![2.0; 3], vec![3.0, 3.0, 3.0, 2.0]]
            .iter()
            .enumerate()
        {
            assert_eq!(
                ends[call].iter().copied().map(leaps).collect::<Vec<_>>(),
                *expected
            );
        }
        assert!((ends[2][1] - ends[0][1] - 200.0).abs() < 1e-3, "the same chain");
        assert_eq!(
            ends[3].iter().copied().map(leaps).collect::<Vec<_>>(),
            [4.0, 4.0, 4.0, 3.0, 1.0, 1.0]
        );
    }

    /// Of n = 4000 chains a share r starts anew: five standard errors are 5√(r(1 − r)/n) = 0.036 at r = 0.3.
    #[test]
    fn restarts_are_the_share_that_was_asked_for() {
        for start in [Start::Persistent, Start::Posterior] {
            let ends = ends(start, 0.3, &[4000, 4000]);
            let anew = ends[1].iter().filter(|end| leaps(**end) == 1.0).count() as f64 / 4000.0;
            assert!((anew - 0.3).abs() < 0.036, "{start:?}: {anew}");
        }
    }

    #[test]
    fn posterior_starts_are_different_particles_of_the_batch() {
        let mut ends = ends(Start::Posterior, 0.0, &[50]).remove(0);
        ends.sort_by(f64::total_cmp);
        ends.dedup();
        assert_eq!(ends.len(), 50);
        assert!(
            ends.iter()
                .all(|end| (1100.0..1200.0).contains(end) && end.fract() == 0.0)
        );
        assert!(ends[49] > 1150.0, "not the first fifty alone");
    }
}
