//! A Gaussian target shared by the samplers' tests, with tolerances derived once.
#![allow(clippy::unwrap_used)]

use ebipla_core::Random;
use ebipla_core::prelude::*;
use tch::{Device, Kind};

/// Chains in a test of stationary moments.
const CHAINS: i64 = 100_000;

/// U(x) = ½‖x‖².
struct Gaussian(Parameters);

impl Energy for Gaussian {
    fn parameters(&self) -> &Parameters {
        &self.0
    }

    fn energy(&self, x: &Tensor) -> Tensor {
        x.square().sum_dim_intlist(1, false, x.kind()) / 2.0
    }

    fn value_and_gradient(&self, x: &Tensor) -> (Tensor, Tensor) {
        (self.energy(x), x.copy())
    }

    fn gradient(&self, x: &Tensor) -> Tensor {
        x.copy()
    }
}

/// The standard normal target.
pub fn gaussian() -> impl Energy {
    Gaussian(Parameters::new())
}

/// Runs `sampler` on N(0, I) from `start`.
pub fn run(sampler: &dyn PriorSampler, start: Tensor) -> Chains {
    let mut random = Random::new(11);
    let chains = sampler.sample(&gaussian(), start, &mut random.stream("test", 0));
    chains.unwrap()
}

/// The final positions of chains that start at `start`.
pub fn end(sampler: &dyn PriorSampler, start: Tensor) -> Tensor {
    run(sampler, start).last
}

/// The final positions of many one-dimensional chains that start at 0.
pub fn end_of_many(sampler: &dyn PriorSampler) -> Tensor {
    end(sampler, Tensor::zeros([CHAINS, 1], (Kind::Float, Device::Cpu)))
}

/// One of the statistics that a sampler returned.
pub fn statistic(chains: &Chains, name: &str) -> f64 {
    let all = chains.statistics.read();
    all.into_iter().find(|(known, _)| known == name).unwrap().1
}

/// Checks independent chains at stationarity: normal with mean 0 and this variance.
///
/// The sample variance of n = 100,000 independent normals has relative standard error √(2/n) = 0.45 %; five are 2.2 %.
/// The mean may be off by five of its own standard errors. Each test runs its chains so long that the influence of the
/// start is far below that. A noise term that is off by a factor of two, in variance or amplitude, misses by a third or
/// more.
#[track_caller]
pub fn assert_moments(x: &Tensor, variance: f64) {
    let x = x.to_kind(Kind::Double);
    let found = x.var(true).double_value(&[]);
    let mean = x.mean(Kind::Double).double_value(&[]);
    assert!(
        (found / variance - 1.0).abs() < 0.022,
        "variance {found}, expected {variance}"
    );
    assert!(
        mean.abs() < 5.0 * (variance / CHAINS as f64).sqrt(),
        "mean {mean}"
    );
}
