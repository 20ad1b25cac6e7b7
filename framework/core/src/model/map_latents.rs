//! Finds the most probable latents of data points.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use crate::{Model, Random, Wanted, interruption_point};

/// How the most probable latents, argmin φ(x) with φ(x) = U(x) + ‖y − g(x)‖²/(2σ²), are searched for.
///
/// Adam descends from several random starts, and the lowest point that any of them has seen counts. Learning rates fall
/// where φ does not, by the rule of PyTorch's `ReduceLROnPlateau`, for each start of each data point alone: what is
/// found for a point does not depend on the points that are searched for along with it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
// A unit in brackets is no link.
#[allow(rustdoc::broken_intra_doc_links)]
pub struct MapSearch {
    /// Random starts from N(0, I), of which the best counts. [starts]
    #[schemars(range(min = 1))]
    pub starts: u32,
    /// Adam steps from each start. [steps]
    #[schemars(range(min = 1))]
    pub steps: u32,
    /// Learning rate at first. [latent units]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub lr: f64,
}

/// As in the code of Kuntz et al. 2023, which the paper follows.
impl Default for MapSearch {
    fn default() -> Self {
        Self {
            starts: 4,
            steps: 50,
            lr: 1.0,
        }
    }
}

/// Latents of data points, and the two parts of φ there.
pub struct Located {
    /// `[n, latent]`.
    pub latents: Tensor,
    /// U(x) for each row.
    pub energy: Tensor,
    /// ‖y − g(x)‖²/(2σ²) for each row.
    pub reconstruction: Tensor,
}

impl Located {
    /// Evaluates both parts at given latents.
    pub fn at(model: &Model, latents: Tensor, y: &Tensor) -> Self {
        let _guard = tch::no_grad_guard();
        Self {
            energy: model.energy.energy(&latents),
            reconstruction: model.reconstruction(&latents, y),
            latents,
        }
    }

    /// φ for each row.
    pub fn total(&self) -> Tensor {
        &self.energy + &self.reconstruction
    }

    /// Takes over the rows of `other` that are lower.
    fn improve(&mut self, other: &Located) {
        let lower = other.total().lt_tensor(&self.total());
        self.latents = other.latents.where_self(&lower.unsqueeze(1), &self.latents);
        self.energy = other.energy.where_self(&lower, &self.energy);
        self.reconstruction = other.reconstruction.where_self(&lower, &self.reconstruction);
    }
}

const BETAS: [f64; 2] = [0.9, 0.999];
const EPS: f64 = 1e-8;

impl MapSearch {
    /// The latents of the points `y`, `[n, shape…]` on the model's device, the first of which has the number `first`;
    /// the random starts of a point depend on its number alone.
    pub fn search(&self, model: &Model, y: &Tensor, first: u64, random: &mut Random) -> Located {
        let _guard = tch::no_grad_guard();
        let starts = self.random_starts(model, y, first, random);
        // One start of all points after the other: memory does not grow with the number of starts.
        let mut best = self.descend(model, y, &starts.select(1, 0));
        for start in 1..i64::from(self.starts) {
            best.improve(&self.descend(model, y, &starts.select(1, start)));
        }
        best
    }

    /// `[n, starts, latent]`.
    fn random_starts(&self, model: &Model, y: &Tensor, first: u64, random: &mut Random) -> Tensor {
        let shape = [i64::from(self.starts), model.generator.latent_dim()];
        let of_point = |i| random.stream("map_starts", first + i).normal(&shape, Device::Cpu);
        let all: Vec<_> = (0..y.size()[0] as u64).map(of_point).collect();
        Tensor::stack(&all, 0).to_device(y.device())
    }

    fn descend(&self, model: &Model, y: &Tensor, start: &Tensor) -> Located {
        let mut x = start.copy();
        let (mut first, mut second) = (x.zeros_like(), x.zeros_like());
        let mut rates = Plateau::new(self.lr, &x);
        let mut best = None;
        for step in 1..=self.steps as i32 {
            interruption_point();
            let joint = model.joint(&x, y, Wanted::Latents);
            let here = Located {
                latents: joint.x,
                energy: joint.prior,
                reconstruction: joint.reconstruction,
            };
            let _ = first.lerp_(&joint.latent, 1.0 - BETAS[0]);
            let _ = second.lerp_(&joint.latent.square(), 1.0 - BETAS[1]);
            let corrected = &second / (1.0 - BETAS[1].powi(step));
            let direction = &first / (corrected.sqrt() + EPS) / (1.0 - BETAS[0].powi(step));
            // Not in place: `here` shares the memory.
            x = &x - direction * rates.current.unsqueeze(1);
            rates.observe(&here.total());
            match &mut best {
                None => best = Some(here),
                Some(best) => best.improve(&here),
            }
        }
        let last = Located::at(model, x, y);
        match best {
            None => last,
            Some(mut best) => {
                best.improve(&last);
                best
            }
        }
    }
}

/// PyTorch's `ReduceLROnPlateau(factor=0.5, patience=10, min_lr=1e-5)` with its defaults otherwise, for each row.
struct Plateau {
    /// Learning rates.
    current: Tensor,
    best: Tensor,
    /// Observations since the last that was better.
    bad: Tensor,
}

impl Plateau {
    const FACTOR: f64 = 0.5;
    const PATIENCE: f64 = 10.0;
    const LEAST: f64 = 1e-5;
    /// How much better is better, relative to the best.
    const THRESHOLD: f64 = 1e-4;

    fn new(rate: f64, rows: &Tensor) -> Self {
        let full = |value| Tensor::full([rows.size()[0]], value, (Kind::Float, rows.device()));
        Self {
            current: full(rate),
            best: full(f64::INFINITY),
            bad: full(0.0),
        }
    }

    fn observe(&mut self, values: &Tensor) {
        let better = values.lt_tensor(&(&self.best * (1.0 - Self::THRESHOLD)));
        self.best = values.where_self(&better, &self.best);
        self.bad = (&self.bad + 1.0).masked_fill(&better, 0.0);
        let stuck = self.bad.gt(Self::PATIENCE);
        // A rate that began below the least is left alone.
        let reduced = (&self.current * Self::FACTOR)
            .clamp_min(Self::LEAST)
            .minimum(&self.current);
        self.current = reduced.where_self(&stuck, &self.current);
        self.bad = self.bad.masked_fill(&stuck, 0.0);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{Energy, Generator, Parameters, gradient};

    /// U(x) = ½‖x − m‖² and g(x) = Ax.
    struct LinearGaussian {
        parameters: Parameters,
        mean: Tensor,
        matrix: Tensor,
    }

    impl LinearGaussian {
        fn new() -> Self {
            Self {
                parameters: Parameters::new(),
                mean: Tensor::from_slice(&[1f32, -2.0]),
                matrix: Tensor::from_slice(&[1f32, 0.5, -0.3, 0.8, 0.2, -1.1]).view([3, 2]),
            }
        }
    }

    impl Energy for LinearGaussian {
        fn parameters(&self) -> &Parameters {
            &self.parameters
        }

        fn energy(&self, x: &Tensor) -> Tensor {
            (x - &self.mean).square().sum_dim_intlist(1, false, x.kind()) / 2.0
        }
    }

    impl Generator for LinearGaussian {
        fn parameters(&self) -> &Parameters {
            &self.parameters
        }

        fn latent_dim(&self) -> i64 {
            2
        }

        fn generate(&self, x: &Tensor) -> Tensor {
            x.matmul(&self.matrix.tr())
        }
    }

    fn model(sigma: f64) -> Model {
        Model::new(
            Box::new(LinearGaussian::new()),
            Box::new(LinearGaussian::new()),
            sigma,
        )
    }

    fn data(count: i64) -> Tensor {
        Random::new(3).stream("data", 0).normal(&[count, 3], Device::Cpu) * 2.0
    }

    /// The minimum solves (I + AᵀA/σ²)x = m + Aᵀy/σ².
    ///
    /// Within 50 steps the rate does not fall far, and Adam still swings by a fraction of it: what it has seen by then
    /// is above the minimum, but by less than 1 (φ at a random start is about 15 to 100 above it). With 400 steps, in
    /// which the rate halves some 20 times, the minimum is reached to the precision of φ in f32, ε·φ ≈ 1e-5, which
    /// allows errors of √(2·1e-5) ≈ 5e-3 in x at curvatures of at least 1.
    #[test]
    fn a_linear_gaussian_model_has_a_known_minimum() {
        let (sigma, y) = (0.5, data(20));
        let model = model(sigma);
        let parts = LinearGaussian::new();
        let precision =
            Tensor::eye(2, tch::kind::FLOAT_CPU) + parts.matrix.tr().matmul(&parts.matrix) / (sigma * sigma);
        let right = &parts.mean + y.matmul(&parts.matrix) / (sigma * sigma);
        let expected = right.matmul(&precision.inverse());
        let lowest = Located::at(&model, expected.shallow_clone(), &y);

        let mut search = MapSearch::default();
        let found = search.search(&model, &y, 0, &mut Random::new(1));
        let above = (found.total() - lowest.total()).max().double_value(&[]);
        assert!(above < 1.0, "{above}");
        search.steps = 400;
        let found = search.search(&model, &y, 0, &mut Random::new(1));
        let error = (&found.latents - &expected).abs().max().double_value(&[]);
        assert!(error < 5e-3, "{error}");
        let at = Located::at(&model, found.latents.shallow_clone(), &y);
        assert!(found.energy.allclose(&at.energy, 1e-5, 1e-6, false));
        assert!(
            found
                .reconstruction
                .allclose(&at.reconstruction, 1e-5, 1e-6, false)
        );
    }

    #[test]
    fn a_point_is_found_the_same_whatever_is_searched_with_it() {
        let (model, y) = (model(0.5), data(6));
        let search = MapSearch::default();
        let together = search.search(&model, &y, 10, &mut Random::new(1));
        let alone = search.search(&model, &y.narrow(0, 4, 1), 14, &mut Random::new(1));
        // Not bit for bit: products of matrices of other sizes may add up in another order.
        let together = together.latents.narrow(0, 4, 1);
        assert!(alone.latents.allclose(&together, 1e-4, 1e-4, false));
    }

    /// φ(x) = cos 3x + x²/20 has minima near ±1 and ±3; the lower ones are near ±1.
    #[test]
    fn the_best_start_counts_for_each_point() {
        struct Waves(Parameters);
        impl Energy for Waves {
            fn parameters(&self) -> &Parameters {
                &self.0
            }
            fn energy(&self, x: &Tensor) -> Tensor {
                ((x * 3.0).cos() + x.square() / 20.0).sum_dim_intlist(1, false, x.kind())
            }
        }
        impl Generator for Waves {
            fn parameters(&self) -> &Parameters {
                &self.0
            }
            fn latent_dim(&self) -> i64 {
                1
            }
            fn generate(&self, x: &Tensor) -> Tensor {
                x * 0.0
            }
        }
        let waves = || Waves(Parameters::new());
        let model = Model::new(Box::new(waves()), Box::new(waves()), 1.0);
        let y = Tensor::zeros([50, 1], tch::kind::FLOAT_CPU);
        let lowest_with = |starts| {
            let search = MapSearch {
                starts,
                steps: 100,
                lr: 0.1,
            };
            let found = search.search(&model, &y, 0, &mut Random::new(2));
            let right = found.latents.abs().lt(1.5).sum(Kind::Int64);
            i64::try_from(right).unwrap()
        };
        // A start from N(0, 1) falls beyond the hill at ±2.1 with probability 0.036; eight of them never all do.
        assert_eq!(lowest_with(8), 50);
        let x = gradient::leaf(&Tensor::from_slice(&[1.03f32]));
        let slope = gradient::gradients(&waves().energy(&x.unsqueeze(1)), &[x]).remove(0);
        assert!(slope.abs().double_value(&[0]) < 0.1, "a minimum is near 1");
    }

    /// What torch.optim.lr_scheduler.ReduceLROnPlateau does with the same observations: the first is better than
    /// nothing, ten bad ones are borne, the eleventh halves the rate; 0.99995 is within the threshold, 0.5 is better.
    #[test]
    fn rates_fall_like_those_of_pytorch() {
        let mut plateau = Plateau::new(1.0, &Tensor::zeros([2, 1], tch::kind::FLOAT_CPU));
        let mut observe = |first: f32, second: f32| {
            plateau.observe(&Tensor::from_slice(&[first, second]));
            Vec::<f32>::try_from(&plateau.current).unwrap()
        };
        observe(1.0, 1.0);
        for _ in 0..10 {
            assert_eq!(observe(0.99995, 2.0), [1.0, 1.0]);
        }
        assert_eq!(observe(0.5, f32::NAN), [1.0, 0.5]);
        for _ in 0..10 {
            assert_eq!(observe(0.5, 1.0), [1.0, 0.5]);
        }
        assert_eq!(observe(0.5, 1.0), [0.5, 0.25]);
        for _ in 0..11 * 20 {
            observe(0.5, 1.0);
        }
        assert_eq!(observe(0.5, 1.0), [1e-5, 1e-5]);
    }
}
