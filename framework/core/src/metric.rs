//! Says what a metric is: a number that tells how good a model is.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tch::Tensor;

use crate::{Dataset, Draws, Model, PriorSampler, Random, Scalars, Split, Task, chains, interruption_point};

/// Measures a trained model.
pub trait Metric {
    /// Named numbers; the plain result goes by the metric's own name.
    fn measure(&self, subject: Subject) -> anyhow::Result<Scalars>;

    /// Whether it measures on held-out points. A recipe whose data set has none is refused before it is run.
    fn needs_held_out(&self) -> bool {
        false
    }

    /// What has to stand beside the numbers for them to be compared with those of others, such as sample counts. Where
    /// there is anything, the runner adds the sampler and the data set.
    fn facts(&self, _subject: &Subject) -> Facts {
        Facts::new()
    }
}

/// Which values of a number are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Small ones, as of a distance.
    Lower,
    /// Large ones, as of a likelihood.
    Higher,
}

impl fmt::Display for Better {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Better::Lower => "lower",
            Better::Higher => "higher",
        })
    }
}

/// Named facts, in the order in which they are told.
pub type Facts = serde_json::Map<String, serde_json::Value>;

/// What is measured.
///
/// All tensors that its methods return are on `device`, as the model's are.
pub struct Subject<'a> {
    pub model: &'a Model,
    pub prior_sampler: &'a dyn PriorSampler,
    /// Its points come on the CPU.
    pub dataset: &'a dyn Dataset,
    /// The run's device.
    pub device: tch::Device,
    /// Streams of the evaluation, apart from those of the training. They depend on the run's seed alone, and each metric
    /// gets them from the start: see [`crate::Kind::note`].
    pub random: &'a mut Random,
    /// Whether it only matters that everything fits together, not how good the number is.
    pub quick: bool,
}

/// Chains that run at a time.
const CHAINS: i64 = 1 << 16;
/// Numbers of data points that are decoded at a time.
const DECODED_NUMBERS: i64 = 1 << 20;

/// Samples that are enough to see whether everything fits together.
const QUICK_SAMPLES: i64 = 8;

impl Subject<'_> {
    /// Every held-out point.
    pub fn held_out(&self) -> anyhow::Result<Tensor> {
        let count = self.dataset.len(Split::Validation);
        anyhow::ensure!(
            count > 0,
            "there are no held-out data: give the data set a validation split"
        );
        let points = self.dataset.first(Split::Validation, count)?;
        Ok(points.to_device(self.device))
    }

    /// `n` samples of the model at each of `lengths`, which increase: prior chains from N(0, I), so many times as long
    /// as the prior sampler's own, decoded, with decoder noise.
    ///
    /// The same chains are continued from one length to the next. What comes out at one length does not depend on
    /// the others that are asked for.
    pub fn samples(&mut self, n: i64, lengths: &[u32]) -> anyhow::Result<Vec<Tensor>> {
        let n = self.sample_count(n);
        let mut task = Task::start("samples of the model", n as u64);
        let mut samples: Vec<_> = lengths.iter().map(|_| Vec::new()).collect();
        for (block, start) in (0..n).step_by(CHAINS as usize).enumerate() {
            let count = CHAINS.min(n - start);
            for (all, of_block) in samples.iter_mut().zip(self.block(count, lengths, block as u64)?) {
                all.push(of_block);
            }
            task.advance(count as u64);
        }
        Ok(samples.iter().map(|blocks| Tensor::cat(blocks, 0)).collect())
    }

    /// The samples of at most [`CHAINS`] chains; each block has other chains.
    fn block(&mut self, n: i64, lengths: &[u32], block: u64) -> anyhow::Result<Vec<Tensor>> {
        let mut samples = Vec::with_capacity(lengths.len());
        let mut reached = None;
        for length in 1..=lengths.last().copied().unwrap_or(0) {
            let mut draws = self
                .random
                .stream("samples", (block << 32) + u64::from(length - 1));
            let found = match reached.take() {
                None => chains::run_from_noise(self.prior_sampler, self.model, n, self.device, &mut draws)?,
                Some(start) => {
                    let energy = self.model.energy.as_ref();
                    chains::run(self.prior_sampler, energy, start, &mut draws)?
                }
            };
            if lengths.contains(&length) {
                samples.push(decoded(self.model, self.dataset.shape(), &found.last, &mut draws));
            }
            reached = Some(found.last);
        }
        Ok(samples)
    }

    /// Latents of `n` prior chains from N(0, I). A sample that is too large to be drawn at once is drawn in blocks;
    /// each has other chains.
    pub fn latents(&mut self, n: i64, block: u64) -> anyhow::Result<Tensor> {
        let mut draws = self.random.stream("latents", block);
        let found = chains::run_from_noise(self.prior_sampler, self.model, n, self.device, &mut draws)?;
        Ok(found.last)
    }

    /// How many samples to draw where `wanted` were asked for.
    pub fn sample_count(&self, wanted: i64) -> i64 {
        if self.quick {
            wanted.min(QUICK_SAMPLES)
        } else {
            wanted
        }
    }
}

/// Decodes rows, with noise, a few at a time where points are large.
fn decoded(model: &Model, shape: &[i64], latents: &Tensor, draws: &mut Draws) -> Tensor {
    let numbers: i64 = shape.iter().product();
    let rows = latents.split((DECODED_NUMBERS / numbers.max(1)).max(1), 0);
    let decode = |rows: &Tensor| {
        interruption_point();
        model.decode(rows, draws)
    };
    Tensor::cat(&rows.iter().map(decode).collect::<Vec<_>>(), 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{Chains, Energy, testing};
    use tch::Device;

    /// A data set without points.
    struct Nothing;

    impl Dataset for Nothing {
        fn shape(&self) -> &[i64] {
            &[2]
        }

        fn len(&self, _: Split) -> usize {
            0
        }

        fn get(&self, _: Split, indices: &Tensor) -> anyhow::Result<Tensor> {
            Ok(indices.shallow_clone())
        }
    }

    /// Chains that step to the right by one, with a little noise.
    struct Right;

    impl PriorSampler for Right {
        fn sample(&self, _: &dyn Energy, start: Tensor, draws: &mut Draws) -> anyhow::Result<Chains> {
            Ok(Chains {
                last: &start + 1.0 + draws.normal_like(&start) * 1e-3,
                statistics: Scalars::new(),
            })
        }

        fn gradient_evaluations(&self) -> u64 {
            0
        }
    }

    fn subject<T>(ask: impl FnOnce(Subject) -> T) -> T {
        let model = testing::model(1e-3);
        ask(Subject {
            model: &model,
            prior_sampler: &Right,
            dataset: &Nothing,
            device: Device::Cpu,
            random: &mut Random::new(6),
            quick: false,
        })
    }

    /// From length 1 to length 3 the chains take two more steps; the noise adds up to 2e-3 per sample.
    #[test]
    fn longer_chains_continue_shorter_ones() {
        let samples = subject(|mut subject| subject.samples(50, &[1, 3]).unwrap());
        let [short, long] = &samples[..] else {
            panic!("one set of samples for each length");
        };
        let off = (long - short - 2.0).abs().max().double_value(&[]);
        assert!(off > 0.0 && off < 0.02, "{off}");
    }

    #[test]
    fn a_length_does_not_depend_on_the_others() {
        let both = subject(|mut subject| subject.samples(5, &[1, 3]).unwrap());
        for (lengths, expected) in [([1], &both[0]), ([3], &both[1])] {
            assert!(subject(|mut subject| subject.samples(5, &lengths).unwrap())[0].equal(expected));
        }
    }

    #[test]
    fn many_samples_come_in_blocks_of_different_chains() {
        let samples = subject(|mut subject| subject.samples(CHAINS + 5, &[1]).unwrap().remove(0));
        assert_eq!(samples.size(), [CHAINS + 5, 2]);
        assert!(!samples.narrow(0, 0, 5).equal(&samples.narrow(0, CHAINS, 5)));
        let fewer = subject(|mut subject| subject.samples(CHAINS, &[1]).unwrap().remove(0));
        assert!(fewer.equal(&samples.narrow(0, 0, CHAINS)));
    }

    #[test]
    fn every_block_has_chains_of_its_own() {
        let [first, again, second] =
            subject(|mut subject| [0, 0, 1].map(|block| subject.latents(5, block).unwrap()));
        assert!(first.equal(&again) && !first.equal(&second));
    }

    #[test]
    fn without_held_out_data_it_says_what_to_do() {
        let error = subject(|subject| subject.held_out().unwrap_err());
        assert!(error.to_string().contains("validation"), "{error}");
    }
}
