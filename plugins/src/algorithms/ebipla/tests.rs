//! EBIPLA's steps against formulas written out here, and its noise against its law.
#![allow(clippy::unwrap_used)]

use ebipla_framework::{Adam, AdamConfig};

use super::*;

/// U(x) = ½‖x − a‖².
struct Bowl {
    parameters: Parameters,
    a: Tensor,
}

impl Bowl {
    fn new(a: &[f32]) -> Self {
        let mut parameters = Parameters::new();
        let a = parameters.add("a", Tensor::from_slice(a));
        Self { parameters, a }
    }
}

impl Energy for Bowl {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn energy(&self, x: &Tensor) -> Tensor {
        (x - &self.a).square().sum_dim_intlist(1, false, x.kind()) / 2.0
    }
}

/// g(x) = wx.
struct Scale {
    parameters: Parameters,
    w: Tensor,
}

impl Scale {
    fn new(w: f32) -> Self {
        let mut parameters = Parameters::new();
        let w = parameters.add("w", Tensor::from_slice(&[w]));
        Self { parameters, w }
    }
}

impl Generator for Scale {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn latent_dim(&self) -> i64 {
        2
    }

    fn generate(&self, x: &Tensor) -> Tensor {
        x * &self.w
    }
}

/// Prior chains that do not move from where they are told to be.
struct Fixed(Tensor);

impl PriorSampler for Fixed {
    fn sample(&self, _: &dyn Energy, start: Tensor, _: &mut Draws) -> anyhow::Result<Chains> {
        Ok(Chains {
            last: self.0.expand_as(&start).copy(),
            statistics: Scalars::new(),
        })
    }

    fn gradient_evaluations(&self) -> u64 {
        0
    }
}

const A: [f32; 2] = [0.5, -1.0];
const W: f32 = 1.5;
const SIGMA: f64 = 0.5;
const RATE: f64 = 0.01;

/// A problem small enough to work out by hand, with M points and batches of |B|.
struct Bench {
    model: Model,
    sampler: Fixed,
    energy_optimizer: Adam,
    generator_optimizer: Adam,
    random: Random,
    data: Tensor,
    batch: i64,
}

impl Bench {
    fn new(points: i64, batch: i64) -> Self {
        let energy = Bowl::new(&A);
        let generator = Scale::new(W);
        // With both betas 0 and a large eps Adam's step is rate·g/(|g| + eps) ≈ rate/eps·g: plain descent.
        let descent = AdamConfig {
            lr: RATE * 1e6,
            betas: [0.0, 0.0],
            eps: 1e6,
            decay: 1.0,
        };
        Self {
            energy_optimizer: Adam::new(descent.clone(), energy.parameters().tensors()),
            generator_optimizer: Adam::new(descent, generator.parameters().tensors()),
            model: Model {
                energy: Box::new(energy),
                generator: Box::new(generator),
                sigma: SIGMA,
            },
            sampler: Fixed(Tensor::from_slice(&[0.25f32, 0.75])),
            random: Random::new(17),
            data: Random::new(4).stream("data", 0).normal(&[points, 2], Device::Cpu),
            batch,
        }
    }

    fn build(&mut self, config: Ebipla) -> Box<dyn Algorithm> {
        let mut scope = Scope {
            device: Device::Cpu,
            random: &mut self.random,
            data: DataFacts {
                count: self.data.size()[0] as usize,
                shape: vec![2],
            },
            latent_dim: 2,
            sigma: SIGMA,
            batch_size: self.batch as usize,
        };
        config.build(&mut scope).unwrap()
    }

    /// Step k on the data points `indices`.
    fn step(&mut self, algorithm: &mut dyn Algorithm, k: u64, indices: &[i64]) -> Vec<(String, f64)> {
        let indices = Tensor::from_slice(indices);
        let data = self.data.index_select(0, &indices);
        let scalars = algorithm.step(Step {
            number: k,
            indices: &indices,
            data: &data,
            model: &self.model,
            prior_sampler: &self.sampler,
            energy_optimizer: &mut self.energy_optimizer,
            generator_optimizer: &mut self.generator_optimizer,
            random: &mut self.random,
        });
        scalars.unwrap().read()
    }

    fn parameter(&self, of: &Parameters) -> Vec<f64> {
        let (_, tensor) = of.named().next().unwrap();
        Vec::<f64>::try_from(tensor.detach().to_kind(Kind::Double).view(-1)).unwrap()
    }
}

/// The particles of all data points as plain numbers, `[point][particle][dimension]`.
fn clouds(algorithm: &dyn Algorithm, now: u64) -> Vec<Vec<Vec<f64>>> {
    let clouds = algorithm.clouds().unwrap();
    let [points, ..] = clouds.shape();
    let tensor = clouds
        .settled(0, points, now, &mut Random::new(99))
        .to_kind(Kind::Double);
    (0..points as i64)
        .map(|m| Vec::try_from(tensor.get(m)).unwrap())
        .collect()
}

fn close(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() < 2e-5 * expected.abs().max(1.0),
        "{found} for {expected}"
    );
}

/// One iteration at temperature 0, written out from eqs. (subsampled_energy), (subsampled_generator) and Algorithm 2.
///
/// ∇ₓφ = (x − a) + w(wx − y)/σ²; ∇_a L_e = −mean(x − a) + mean(x̂ − a); ∂_w L_d = mean((wx − y)·x)/σ².
#[test]
fn one_iteration_without_noise_is_what_the_formulas_say() {
    for (losses_at, noise) in [
        (LossesAt::Previous, Noise::Lazy),
        (LossesAt::Previous, Noise::Eager),
        (LossesAt::Updated, Noise::Lazy),
        (LossesAt::Updated, Noise::Eager),
    ] {
        let mut bench = Bench::new(5, 2);
        let mut algorithm = bench.build(Ebipla {
            particles: 3,
            step_size: 0.4,
            step_unit: StepUnit::Sigma2,
            temperature: 0.0,
            noise,
            losses_at,
            warmup: None,
        });
        let h = 0.4 * SIGMA * SIGMA;
        let before = clouds(&*algorithm, 0);
        let batch = [3usize, 1];
        let y: Vec<Vec<f64>> = Vec::try_from(bench.data.to_kind(Kind::Double)).unwrap();
        let w = f64::from(W);
        let a = A.map(f64::from);

        let mut expected = before.clone();
        for m in batch {
            for x in &mut expected[m] {
                for d in 0..2 {
                    x[d] -= h * ((x[d] - a[d]) + w * (w * x[d] - y[m][d]) / (SIGMA * SIGMA));
                }
            }
        }
        let at = if losses_at == LossesAt::Previous {
            &before
        } else {
            &expected
        };
        let rows = 6.0;
        let mut gradient_a = [0.25 - a[0], 0.75 - a[1]];
        let (mut gradient_w, mut loss_d, mut posterior) = (0.0, 0.0, 0.0);
        for m in batch {
            for x in &at[m] {
                for d in 0..2 {
                    let residual = w * x[d] - y[m][d];
                    gradient_a[d] -= (x[d] - a[d]) / rows;
                    gradient_w += residual * x[d] / (SIGMA * SIGMA) / rows;
                    loss_d += residual * residual / (2.0 * SIGMA * SIGMA) / rows;
                    posterior += (x[d] - a[d]).powi(2) / 2.0 / rows;
                }
            }
        }
        let prior = ((0.25 - a[0]).powi(2) + (0.75 - a[1]).powi(2)) / 2.0;

        let numbers = bench.step(&mut *algorithm, 0, &[3, 1]);
        let number = |name: &str| numbers.iter().find(|(known, _)| known == name).unwrap().1;
        close(number("loss/energy"), posterior - prior);
        close(number("loss/generator"), loss_d);
        close(number("gradient_norm/energy"), gradient_a[0].hypot(gradient_a[1]));
        close(number("gradient_norm/generator"), gradient_w.abs());
        let after = clouds(&*algorithm, 1);
        for (found, expected) in after
            .iter()
            .flatten()
            .flatten()
            .zip(expected.iter().flatten().flatten())
        {
            close(*found, *expected);
        }
        let found = bench.parameter(bench.model.energy.parameters());
        close(found[0], a[0] - RATE * gradient_a[0]);
        close(found[1], a[1] - RATE * gradient_a[1]);
        close(
            bench.parameter(bench.model.generator.parameters())[0],
            w - RATE * gradient_w,
        );
    }
}

/// The inner steps of the warm-up update the particles in place; afterwards each cloud is replicated and drifts.
#[test]
fn warm_up_without_noise_takes_inner_steps_then_replicates_and_drifts() {
    let mut bench = Bench::new(3, 3);
    let mut algorithm = bench.build(Ebipla {
        particles: 4,
        step_size: 0.02,
        step_unit: StepUnit::Raw,
        temperature: 0.0,
        warmup: Some(WarmUp {
            steps: 1,
            particles: 2,
            step_size: 0.01,
            inner_steps: 3,
        }),
        ..Ebipla::default()
    });
    // Parameters move between the two steps; their values are read off instead of computed again.
    let drift = |x: &mut f64, y: f64, a: f64, w: f64, h: f64| {
        *x -= h * ((*x - a) + w * (w * *x - y) / (SIGMA * SIGMA))
    };
    let y: Vec<Vec<f64>> = Vec::try_from(bench.data.to_kind(Kind::Double)).unwrap();
    let mut expected = clouds(&*algorithm, 0);
    let mut parameters = (A.map(f64::from).to_vec(), f64::from(W));
    for (k, (inner, h)) in [(3, 0.01), (1, 0.02)].into_iter().enumerate() {
        for (m, cloud) in expected.iter_mut().enumerate() {
            for x in cloud.iter_mut() {
                for d in 0..2 {
                    for _ in 0..inner {
                        drift(&mut x[d], y[m][d], parameters.0[d], parameters.1, h);
                    }
                }
            }
            if k == 1 {
                let copy = cloud.clone();
                cloud.extend(copy);
            }
        }
        bench.step(&mut *algorithm, k as u64, &[0, 1, 2]);
        let found = clouds(&*algorithm, k as u64 + 1);
        assert_eq!(found[0].len(), if k == 0 { 2 } else { 4 });
        for (found, expected) in found
            .iter()
            .flatten()
            .flatten()
            .zip(expected.iter().flatten().flatten())
        {
            close(*found, *expected);
        }
        parameters = (
            bench.parameter(bench.model.energy.parameters()),
            bench.parameter(bench.model.generator.parameters())[0],
        );
    }
}

/// Every particle gets noise of variance 2hτ/L in every iteration, whether it is in the batch or not.
///
/// A point that is never in a batch gets k increments: variance 2hτk/L exactly, with L = M/|B| = 2.5 fractional. One
/// that is in the batch once at iteration j is contracted by c = 1 − h(1 + w²/σ²) then: 2hτ(c²j + k − j)/L. The
/// sample variance over n = 40,000 coordinates has relative standard error √(2/n) = 0.7 %, five of those are 3.5 %.
/// Noise that is off by a factor of two, in variance or amplitude, misses by 50 % or more.
#[test]
fn lazy_and_eager_noise_have_the_law_that_the_paper_states() {
    let (h, temperature, particles) = (0.02, 0.7, 20_000);
    for noise in [Noise::Lazy, Noise::Eager] {
        for losses_at in [LossesAt::Previous, LossesAt::Updated] {
            let mut bench = Bench::new(5, 2);
            let mut algorithm = bench.build(Ebipla {
                particles,
                step_size: h,
                step_unit: StepUnit::Raw,
                temperature,
                noise,
                losses_at,
                warmup: None,
            });
            let start = clouds(&*algorithm, 0);
            // Keep the parameters where they are, so that the drift is the same linear map throughout.
            bench.energy_optimizer = Adam::new(frozen(), bench.model.energy.parameters().tensors());
            bench.generator_optimizer = Adam::new(frozen(), bench.model.generator.parameters().tensors());
            for (k, batch) in [[1, 2], [3, 2], [1, 3], [3, 1]].iter().enumerate() {
                bench.step(&mut *algorithm, k as u64, batch);
            }
            bench.step(&mut *algorithm, 4, &[4, 3]);
            let end = clouds(&*algorithm, 5);
            let increment = 2.0 * h * temperature / 2.5;
            let contraction = 1.0 - h * (1.0 + f64::from(W * W) / (SIGMA * SIGMA));
            // Point 0 is never in a batch; point 4 is in the last one, at iteration 4.
            let never = spread(&end[0], &start[0], 1.0);
            close_in_law(never, 5.0 * increment);
            let late = spread(&end[4], &start[4], contraction);
            close_in_law(late, increment * (4.0 * contraction * contraction + 1.0));
        }
    }
}

fn frozen() -> AdamConfig {
    AdamConfig {
        lr: 1e-30,
        ..AdamConfig::default()
    }
}

/// Variance of end − factor·start over the particles, averaged over both coordinates.
fn spread(end: &[Vec<f64>], start: &[Vec<f64>], factor: f64) -> f64 {
    let one = |d: usize| {
        let differences: Vec<_> = end
            .iter()
            .zip(start)
            .map(|(end, start)| end[d] - factor * start[d])
            .collect();
        let mean = differences.iter().sum::<f64>() / differences.len() as f64;
        let squares: f64 = differences.iter().map(|value| (value - mean).powi(2)).sum();
        squares / (differences.len() - 1) as f64
    };
    (one(0) + one(1)) / 2.0
}

fn close_in_law(found: f64, expected: f64) {
    assert!(
        (found / expected - 1.0).abs() < 0.035,
        "variance {found} for {expected}"
    );
}
