//! Reconstruction error of held-out data.

use ebipla_core::prelude::*;
use ebipla_core::{MapSearch, Task};
use tch::{Device, Kind};

/// Mean square error per coordinate of held-out points reconstructed from their most probable latents.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Mse {
    /// Held-out points to reconstruct, chosen at random; null uses all. [points]
    #[schemars(range(min = 1))]
    points: Option<u32>,
    /// Random starts of the search for each point; the best result counts. [starts]
    #[schemars(range(min = 1))]
    starts: u32,
    /// Adam steps from each start. [steps]
    #[schemars(range(min = 1, max = 1_000_000))]
    steps: u32,
    /// Initial learning rate; it decreases where the search stalls. [latent units]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    lr: f64,
    /// Points searched at a time; does not affect results. [points]
    #[schemars(range(min = 1, max = 4096))]
    batch: u32,
}

impl Default for Mse {
    fn default() -> Self {
        let MapSearch { starts, steps, lr } = MapSearch::default();
        Self {
            points: None,
            starts,
            steps,
            lr,
            batch: 64,
        }
    }
}

impl Plugin for Mse {
    type Builds = dyn Metric;

    fn better(_: &str) -> Option<Better> {
        Some(Better::Lower)
    }

    fn build(self, _: &mut Scope) -> anyhow::Result<Box<dyn Metric>> {
        Ok(Box::new(self))
    }
}

impl Metric for Mse {
    fn needs_held_out(&self) -> bool {
        true
    }

    fn facts(&self, subject: &Subject) -> Facts {
        let held_out = subject.dataset.len(Split::Validation);
        let points = self
            .points
            .map_or(held_out, |points| held_out.min(points as usize));
        let facts = [
            ("points", points.into()),
            ("starts", self.starts.into()),
            ("steps", self.steps.into()),
            ("lr", self.lr.into()),
        ];
        facts
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .collect()
    }

    fn measure(&self, subject: Subject) -> anyhow::Result<Scalars> {
        let _guard = tch::no_grad_guard();
        let chosen = self.chosen(&subject, subject.dataset.len(Split::Validation) as i64)?;
        let search = self.search(subject.quick);
        let mut task = Task::start("mse", chosen.size()[0] as u64);
        let (mut sum, mut first) = (0.0, 0);
        for indices in chosen.split(self.batch.into(), 0) {
            let y = subject.dataset.get(Split::Validation, &indices)?;
            let y = y.to_device(subject.device);
            let latents = search.search(subject.model, &y, first, subject.random).latents;
            let error = subject.model.generator.generate(&latents) - y;
            // A mean over the coordinates of each point, a sum over points: the last batch may be smaller.
            let squares = error.square().flatten(1, -1).mean_dim(1, false, Kind::Double);
            sum += squares.sum(Kind::Double).double_value(&[]);
            first += indices.size()[0] as u64;
            task.advance(indices.size()[0] as u64);
        }
        let mut scalars = Scalars::new();
        scalars.add_number("mse", sum / first as f64);
        Ok(scalars)
    }
}

/// Settings just large enough to show whether everything fits together.
const QUICK_POINTS: i64 = 4;
const QUICK_STEPS: u32 = 2;

impl Mse {
    fn chosen(&self, subject: &Subject, count: i64) -> anyhow::Result<Tensor> {
        anyhow::ensure!(
            count > 0,
            "the data set has no held-out data: give it a validation split"
        );
        let wanted = match (subject.quick, self.points) {
            (true, _) => QUICK_POINTS,
            (false, Some(points)) => points.into(),
            (false, None) => return Ok(Tensor::arange(count, (Kind::Int64, Device::Cpu))),
        };
        Ok(subject
            .random
            .fork("mse")
            .stream("points", 0)
            .subset(count, wanted))
    }

    fn search(&self, quick: bool) -> MapSearch {
        MapSearch {
            starts: self.starts,
            steps: if quick { QUICK_STEPS } else { self.steps },
            lr: self.lr,
        }
    }
}

inventory::submit! { Registration::of::<Mse>("mse") }

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use ebipla_core::{Model, Random};

    const SIGMA: f64 = 0.5;

    /// Points of the plane.
    struct Points(Vec<f32>);

    impl Points {
        fn of(points: &Tensor) -> Self {
            Self(points.flatten(0, -1).try_into().unwrap())
        }
    }

    impl Dataset for Points {
        fn shape(&self) -> &[i64] {
            &[2]
        }

        fn len(&self, _: Split) -> usize {
            self.0.len() / 2
        }

        fn get(&self, _: Split, indices: &Tensor) -> anyhow::Result<Tensor> {
            Ok(Tensor::from_slice(&self.0).view([-1, 2]).index_select(0, indices))
        }
    }

    /// U(x) = ½‖x‖² and g(x) = x.
    struct Plain(Parameters);

    impl Energy for Plain {
        fn parameters(&self) -> &Parameters {
            &self.0
        }

        fn energy(&self, x: &Tensor) -> Tensor {
            x.square().sum_dim_intlist(1, false, x.kind()) / 2.0
        }
    }

    impl Generator for Plain {
        fn parameters(&self) -> &Parameters {
            &self.0
        }

        fn latent_dim(&self) -> i64 {
            2
        }

        fn generate(&self, x: &Tensor) -> Tensor {
            x.shallow_clone()
        }
    }

    struct Nowhere;

    impl PriorSampler for Nowhere {
        fn sample(&self, _: &dyn Energy, start: Tensor, _: &mut Draws) -> anyhow::Result<Chains> {
            Ok(Chains {
                last: start,
                statistics: Scalars::new(),
            })
        }

        fn gradient_evaluations(&self) -> u64 {
            0
        }
    }

    fn measure(metric: &Mse, dataset: &Points) -> f64 {
        let plain = || Plain(Parameters::new());
        let model = Model::new(Box::new(plain()), Box::new(plain()), SIGMA);
        let scalars = metric.measure(Subject {
            model: &model,
            prior_sampler: &Nowhere,
            dataset,
            device: Device::Cpu,
            random: &mut Random::new(1),
            quick: false,
        });
        scalars.unwrap().read()[0].1
    }

    /// The most probable latent is x = y/(1 + σ²), so the error is (σ²/(1 + σ²))²·mean y².
    ///
    /// After 400 steps the latents are accurate to 5e-3 (see the test of the search); the errors are about
    /// 0.2·‖y‖ ≈ 0.3, so their mean square is accurate to about 2·5e-3/0.3, and far better where errors of both signs
    /// cancel.
    #[test]
    fn a_gaussian_model_has_a_known_error() {
        let y = Random::new(2).stream("data", 0).normal(&[20, 2], Device::Cpu) * 1.5;
        let shrunk: f64 = SIGMA * SIGMA / (1.0 + SIGMA * SIGMA);
        let expected = shrunk.powi(2) * y.square().mean(Kind::Double).double_value(&[]);
        let dataset = Points::of(&y);
        let metric = Mse {
            steps: 400,
            batch: 7,
            ..Mse::default()
        };
        let found = measure(&metric, &dataset);
        assert!(
            (found / expected - 1.0).abs() < 0.033,
            "{found}, expected {expected}"
        );
        let other_batch = measure(&Mse { batch: 20, ..metric }, &dataset);
        assert!(
            (other_batch / found - 1.0).abs() < 1e-3,
            "{other_batch}, expected {found}"
        );
    }

    #[test]
    fn uses_some_of_the_points_on_request() {
        let y = Random::new(2).stream("data", 0).normal(&[20, 2], Device::Cpu);
        let dataset = Points::of(&y);
        let all = Mse::default();
        let some = Mse {
            points: Some(5),
            ..Mse::default()
        };
        let more = Mse {
            points: Some(50),
            ..Mse::default()
        };
        assert_ne!(measure(&some, &dataset), measure(&all, &dataset));
        assert_eq!(measure(&more, &dataset), measure(&all, &dataset));
    }
}
