//! Tests that chains in blocks with a fast energy equal chains without, for any number of threads.
#![allow(clippy::unwrap_used)]

use ebipla_core::prelude::*;
use ebipla_core::{FrozenEnergy, Random};
use serde_json::{Value, json};
use tch::{Device, Kind};

use super::hmc::Hmc;
use super::mala::Mala;
use super::tamed_ula::TamedUla;
use super::testing::{assert_moments, gaussian};
use super::ula::Ula;
use super::underdamped::Underdamped;
use crate::energies::mlp::Mlp;

fn built<P: Plugin>(options: Value) -> Box<P::Builds> {
    let mut random = Random::new(5);
    let mut scope = Scope {
        latent_dim: 3,
        ..Scope::on_cpu(&mut random)
    };
    serde_json::from_value::<P>(options)
        .unwrap()
        .build(&mut scope)
        .unwrap()
}

fn energy(activation: &str) -> Box<dyn Energy> {
    built::<Mlp>(json!({ "hidden": 37, "layers": 3, "activation": activation, "tilt": 1.0 }))
}

fn samplers(steps: u32) -> [(&'static str, Box<dyn PriorSampler>); 5] {
    let langevin = json!({ "steps": steps, "step_size": 0.05 });
    let leaps = json!({ "steps": steps, "leapfrog_steps": 3, "step_size": 0.3 });
    [
        ("ula", built::<Ula>(langevin.clone())),
        ("tamed_ula", built::<TamedUla>(langevin.clone())),
        ("mala", built::<Mala>(langevin)),
        ("hmc", built::<Hmc>(leaps)),
        (
            "underdamped",
            built::<Underdamped>(json!({ "steps": steps, "step_size": 0.3 })),
        ),
    ]
}

/// An energy whose frozen form evaluates autograd point by point.
struct Plain(Box<dyn Energy>, Parameters);

struct PlainFrozen(std::sync::Mutex<Box<dyn Energy + Send>>);

/// Not trained, so it can be used elsewhere.
struct Copy(Vec<(Tensor, Tensor)>, Parameters);

impl Copy {
    fn of(energy: &dyn Energy) -> Self {
        let tensors = energy.parameters().tensors();
        let layers = tensors
            .chunks(2)
            .map(|pair| (pair[0].detach().copy(), pair[1].detach().copy()));
        Self(layers.collect(), Parameters::new())
    }
}

impl Energy for Copy {
    fn parameters(&self) -> &Parameters {
        &self.1
    }

    fn energy(&self, x: &Tensor) -> Tensor {
        let (last, hidden) = self.0.split_last().unwrap();
        let features = hidden.iter().fold(x.shallow_clone(), |x, (weight, bias)| {
            (x.matmul(&weight.tr()) + bias).silu()
        });
        let tilt = x.square().sum_dim_intlist(1, false, x.kind()) / 2.0;
        (features.matmul(&last.0.tr()) + &last.1).squeeze_dim(1) + tilt
    }
}

impl FrozenEnergy for PlainFrozen {
    fn evaluate(&self, points: &[f32], values: &mut [f32], gradients: &mut [f32]) {
        let energy = self.0.lock().unwrap();
        let x = Tensor::from_slice(points).view([values.len() as i64, -1]);
        let (value, gradient) = energy.value_and_gradient(&x);
        value.copy_data(values, values.len());
        gradient.contiguous().copy_data(gradients, points.len());
    }

    fn engine(&self) -> String {
        "for a test".into()
    }
}

impl Energy for Plain {
    fn parameters(&self) -> &Parameters {
        &self.1
    }

    fn energy(&self, x: &Tensor) -> Tensor {
        self.0.energy(x)
    }

    fn frozen(&self) -> Option<Box<dyn FrozenEnergy>> {
        Some(Box::new(PlainFrozen(std::sync::Mutex::new(Box::new(Copy::of(
            self.0.as_ref(),
        ))))))
    }
}

fn run(sampler: &dyn PriorSampler, energy: &dyn Energy, rows: i64) -> Chains {
    let mut random = Random::new(8);
    let mut draws = random.stream("chains", 0);
    let start = draws.normal(&[rows, 3], Device::Cpu);
    ebipla_core::chains::run(sampler, energy, start, &mut draws).unwrap()
}

/// With the same noise, step by step. Each step rounds gradients of size 1 to a relative error of about 1e-6, and the
/// smooth energy amplifies an error at most tenfold in this number of steps. A proposal whose ratio is that close to
/// its uniform number may be decided differently: at most one of 300 chains may differ.
#[test]
fn chains_in_tiles_equal_those_of_autograd() {
    let energy = energy("silu");
    let plain = Plain(self::energy("silu"), Parameters::new());
    for steps in 1..=4 {
        for (name, sampler) in samplers(steps) {
            let [fast, slow] =
                [energy.as_ref(), &plain].map(|energy| run(sampler.as_ref(), energy, 300).last);
            let far = (&fast - &slow)
                .abs()
                .amax([1], false)
                .greater(1e-4)
                .sum(Kind::Int64);
            assert!(far.int64_value(&[]) <= 1, "{name}, {steps} steps: {fast} {slow}");
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let energy = energy("leaky_relu");
    for (name, sampler) in samplers(5) {
        let before = tch::get_num_threads();
        let [one, several] = [1, 3].map(|threads| {
            tch::set_num_threads(threads);
            run(sampler.as_ref(), energy.as_ref(), 1000)
        });
        tch::set_num_threads(before);
        assert!(one.last.equal(&several.last), "{name}");
        // Their means are summed in another order: a few units in the last place of f32.
        for ((statistic, one), (_, several)) in one.statistics.read().iter().zip(several.statistics.read()) {
            assert!(
                (one - several).abs() < 1e-5 * one.abs(),
                "{name}, {statistic}: {one} {several}"
            );
        }
    }
}

/// N(0, 1), frozen.
struct Bowl;

impl FrozenEnergy for Bowl {
    fn evaluate(&self, points: &[f32], values: &mut [f32], gradients: &mut [f32]) {
        for (value, x) in values.iter_mut().zip(points) {
            *value = x * x / 2.0;
        }
        gradients.copy_from_slice(points);
    }

    fn engine(&self) -> String {
        "for a test".into()
    }
}

struct FreezingBowl(Parameters);

impl Energy for FreezingBowl {
    fn parameters(&self) -> &Parameters {
        &self.0
    }

    fn energy(&self, x: &Tensor) -> Tensor {
        gaussian().energy(x)
    }

    fn frozen(&self) -> Option<Box<dyn FrozenEnergy>> {
        Some(Box::new(Bowl))
    }
}

/// The samplers' stationary distributions are tested with libtorch's random numbers; here with the per-row streams.
#[test]
fn the_stationary_law_is_the_same() {
    let gamma = 0.3;
    let langevin = json!({ "steps": 60, "step_size": gamma });
    let leaps = json!({ "steps": 40, "leapfrog_steps": 3, "step_size": 0.4 });
    let kinetic = json!({ "steps": 60, "step_size": 1.0 });
    let laws = [
        (built::<Ula>(langevin.clone()), 1.0 / (1.0 - gamma / 2.0)),
        (built::<Mala>(langevin), 1.0),
        (built::<Hmc>(leaps), 1.0),
        (built::<Underdamped>(kinetic), 1.0 / 0.75),
    ];
    for (sampler, variance) in laws {
        let mut random = Random::new(8);
        let start = Tensor::zeros([100_000, 1], (Kind::Float, Device::Cpu));
        let energy = FreezingBowl(Parameters::new());
        let chains =
            ebipla_core::chains::run(sampler.as_ref(), &energy, start, &mut random.stream("chains", 0));
        assert_moments(&chains.unwrap().last, variance);
    }
}
