//! A model small enough to solve by hand, shared by the algorithms' tests.
#![allow(clippy::unwrap_used)]

use ebipla_core::prelude::*;
use ebipla_core::{
    DataFacts, Indices, Method, Model, Optimizer, OptimizerConfig, PriorChains, PriorChainsSection, Random,
};
use tch::{Device, Kind};

/// Where the prior chains always end.
pub const PRIOR: [f64; 2] = [0.25, 0.75];

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

    fn gradient(&self, x: &Tensor) -> Tensor {
        (x - &self.a).detach()
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

/// Prior chains that stay at a given position.
struct Fixed([f32; 2]);

impl PriorSampler for Fixed {
    fn sample(&self, _: &dyn Energy, start: Tensor, _: &mut Draws) -> anyhow::Result<Chains> {
        Ok(Chains {
            last: Tensor::from_slice(&self.0).expand_as(&start).copy(),
            statistics: Scalars::new(),
        })
    }

    fn gradient_evaluations(&self) -> u64 {
        0
    }
}

/// Sixty Langevin steps of 0.1 towards exp(−U).
struct Chain;

impl PriorSampler for Chain {
    fn sample(&self, energy: &dyn Energy, start: Tensor, draws: &mut Draws) -> anyhow::Result<Chains> {
        let mut x = start;
        for _ in 0..60 {
            let noise = draws.normal_like(&x) * 0.2f64.sqrt();
            x = &x - energy.gradient(&x) * 0.1 + noise;
        }
        Ok(Chains {
            last: x,
            statistics: Scalars::new(),
        })
    }

    fn gradient_evaluations(&self) -> u64 {
        60
    }
}

fn from_noise(sampler: impl PriorSampler + 'static) -> PriorChains {
    PriorChains::new(Box::new(sampler), PriorChainsSection::default())
}

pub const A: [f32; 2] = [0.5, -1.0];
pub const W: f32 = 1.5;
pub const SIGMA: f64 = 0.5;
pub const RATE: f64 = 0.01;

/// A problem small enough to solve by hand, with M points and batches of |B|.
pub struct Bench {
    pub model: Model,
    pub prior_chains: PriorChains,
    pub energy_optimizer: Optimizer,
    pub generator_optimizer: Optimizer,
    random: Random,
    pub data: Tensor,
    batch: i64,
}

impl Bench {
    pub const SEED: u64 = 17;

    pub fn new(points: i64, batch: i64) -> Self {
        let energy = Bowl::new(&A);
        let generator = Scale::new(W);
        let descent = OptimizerConfig {
            name: Method::Sgd,
            lr: RATE,
            ..OptimizerConfig::default()
        };
        Self {
            energy_optimizer: Optimizer::new(descent.clone(), energy.parameters().tensors()).unwrap(),
            generator_optimizer: Optimizer::new(descent, generator.parameters().tensors()).unwrap(),
            model: Model::new(Box::new(energy), Box::new(generator), SIGMA),
            prior_chains: from_noise(Fixed(PRIOR.map(|value| value as f32))),
            random: Random::new(Self::SEED),
            data: Random::new(4).stream("data", 0).normal(&[points, 2], Device::Cpu),
            batch,
        }
    }

    /// Uses Langevin chains that reach the prior: 0.9^60 of the start is left.
    pub fn with_chains(mut self) -> Self {
        self.prior_chains = from_noise(Chain);
        self
    }

    /// Keeps the parameters fixed, so that the drift is the same linear map throughout.
    pub fn hold_parameters(&mut self) {
        let config = || OptimizerConfig {
            lr: 1e-30,
            ..OptimizerConfig::default()
        };
        self.energy_optimizer = Optimizer::new(config(), self.model.energy.parameters().tensors()).unwrap();
        self.generator_optimizer =
            Optimizer::new(config(), self.model.generator.parameters().tensors()).unwrap();
    }

    pub fn build(&mut self, config: impl Plugin<Builds = dyn Algorithm>) -> Box<dyn Algorithm> {
        let mut scope = Scope {
            data: DataFacts {
                count: self.data.size()[0] as usize,
                shape: vec![2],
            },
            latent_dim: 2,
            sigma: SIGMA,
            batch_size: self.batch as usize,
            ..Scope::on_cpu(&mut self.random)
        };
        config.build(&mut scope).unwrap()
    }

    /// Takes step k on the data points `indices`; returns the numbers that it reports.
    pub fn step(&mut self, algorithm: &mut dyn Algorithm, k: u64, indices: &[i64]) -> Vec<(String, f64)> {
        let indices: Indices = Tensor::from_slice(indices).into();
        let data = self.data.index_select(0, indices.on_cpu());
        algorithm.step(self.as_step(k, &indices, &data)).unwrap().read()
    }

    /// The input of an algorithm in step k.
    pub fn as_step<'a>(&'a mut self, k: u64, indices: &'a Indices, data: &'a Tensor) -> Step<'a> {
        Step {
            number: k,
            indices,
            data,
            model: &self.model,
            prior_chains: &mut self.prior_chains,
            energy_optimizer: &mut self.energy_optimizer,
            generator_optimizer: &mut self.generator_optimizer,
            random: &mut self.random,
            energy_l2: 0.0,
        }
    }

    /// a₀, a₁ and w.
    pub fn parameters(&self) -> [f64; 3] {
        let all = Tensor::cat(&self.model.parameters(), 0)
            .detach()
            .to_kind(Kind::Double);
        Vec::<f64>::try_from(all).unwrap().try_into().unwrap()
    }
}

/// A matrix as plain numbers.
pub fn numbers(matrix: &Tensor) -> Vec<Vec<f64>> {
    Vec::try_from(matrix.to_kind(Kind::Double)).unwrap()
}

/// The indices of `count` data points.
pub fn all(points: usize) -> Indices {
    Indices::range(0, points)
}

/// The particles of all data points as plain numbers, `[point][particle][dimension]`.
pub fn clouds(algorithm: &dyn Algorithm, now: u64) -> Vec<Vec<Vec<f64>>> {
    let clouds = algorithm.clouds().unwrap();
    let [points, ..] = clouds.shape();
    let tensor = clouds.settled(&all(points), now).to_kind(Kind::Double);
    (0..points as i64)
        .map(|m| Vec::try_from(tensor.get(m)).unwrap())
        .collect()
}

/// Asserts equality up to the rounding of f32.
#[track_caller]
pub fn close(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() < 2e-5 * expected.abs().max(1.0),
        "{found}, expected {expected}"
    );
}

/// Asserts the same of several numbers.
#[track_caller]
pub fn all_close<const N: usize>(found: [f64; N], expected: [f64; N]) {
    for (found, expected) in found.into_iter().zip(expected) {
        close(found, expected);
    }
}
