//! Compares every gradient used in training with central differences of the losses written out here.
//!
//! All in f64 with a step ε = 1e-5: the truncation error is ε²f‴/6 ≈ 1e-10 and the rounding error 1e-16·|f|/ε ≈ 1e-10
//! for losses of order 10. 1e-7 leaves room, while a missing factor or term shows in the first digit.

#![allow(clippy::unwrap_used)]

use ebipla_core::prelude::*;
use ebipla_core::{DataFacts, Model, Random, Wanted};
use serde_json::json;
use tch::{Device, Kind};

use super::parameter_step::{Gradients, PriorTerm};
use super::posterior::joint_of_clouds;
use crate::energies::mlp::Mlp;
use crate::generators::linear::Linear;

const EPSILON: f64 = 1e-5;
const TOLERANCE: f64 = 1e-7;
const SIGMA: f64 = 0.6;
const POINTS: i64 = 4;
const PARTICLES: i64 = 3;
const LATENT: i64 = 2;
const DATA: i64 = 5;

/// An MLP with tilt, a linear generator, and the points at which their losses are computed.
struct Problem {
    model: Model,
    /// X: `[points, particles, latent]`.
    clouds: Tensor,
    /// y: `[points, data]`.
    data: Tensor,
    /// X̂: `[points, latent]`.
    prior: Tensor,
}

impl Problem {
    fn new() -> Self {
        let mut random = Random::new(11);
        let mut normal = |name: &str, shape: &[i64]| {
            let numbers = random.stream(name, 0).normal(shape, Device::Cpu);
            numbers.to_kind(Kind::Double)
        };
        Self {
            clouds: normal("clouds", &[POINTS, PARTICLES, LATENT]),
            data: normal("data", &[POINTS, DATA]),
            prior: normal("prior", &[POINTS, LATENT]),
            model: model(),
        }
    }

    /// Σ U(X).
    fn energies(&self) -> Tensor {
        self.model
            .energy
            .energy(&self.clouds.view([-1, LATENT]))
            .sum(Kind::Double)
    }

    /// Σ ‖y − g(X)‖²/(2σ²), cloud by cloud.
    fn reconstructions(&self) -> Tensor {
        let of_cloud = |m: i64| {
            let difference = self.data.get(m) - self.model.generator.generate(&self.clouds.get(m));
            difference.square().sum(Kind::Double)
        };
        (0..POINTS).map(of_cloud).sum::<Tensor>() / (2.0 * SIGMA * SIGMA)
    }

    /// L_e = mean U(X) − mean U(X̂) + λ·(mean U(X)² + mean U(X̂)²).
    fn energy_loss(&self, energy_l2: f64) -> f64 {
        let means = |x: &Tensor| {
            let energies = self.model.energy.energy(x);
            [&energies, &energies.square()].map(|values| values.mean(Kind::Double).double_value(&[]))
        };
        let [posterior, posterior_square] = means(&self.clouds.view([-1, LATENT]));
        let [prior, prior_square] = means(&self.prior);
        posterior - prior + energy_l2 * (posterior_square + prior_square)
    }

    /// L_d = mean ‖y − g(X)‖²/(2σ²).
    fn generator_loss(&self) -> f64 {
        (self.reconstructions() / (POINTS * PARTICLES) as f64).double_value(&[])
    }

    /// Compares `gradient` with (f(v + ε) − f(v − ε))/2ε in each entry of `variable`, on which f depends.
    #[track_caller]
    fn assert_gradient(&self, f: impl Fn(&Self) -> f64, variable: &Tensor, gradient: &Tensor) {
        let _guard = tch::no_grad_guard();
        assert_eq!(variable.size(), gradient.size());
        let (entries, gradient) = (variable.view([-1]), gradient.reshape([-1]));
        for i in 0..entries.numel() as i64 {
            let mut entry = entries.get(i);
            let mut at = |shift: f64| {
                let _ = entry.g_add_scalar_(shift);
                f(self)
            };
            let (above, below) = (at(EPSILON), at(-2.0 * EPSILON));
            at(EPSILON);
            let (expected, found) = ((above - below) / (2.0 * EPSILON), gradient.double_value(&[i]));
            assert!(
                (found - expected).abs() < TOLERANCE * expected.abs().max(1.0),
                "entry {i}: {found}, expected {expected}"
            );
        }
    }
}

/// The freshly initialised networks, in double precision.
fn model() -> Model {
    let mut random = Random::new(12);
    let mut scope = Scope {
        data: DataFacts {
            count: POINTS as usize,
            shape: vec![DATA],
        },
        latent_dim: LATENT,
        sigma: SIGMA,
        batch_size: POINTS as usize,
        ..Scope::on_cpu(&mut random)
    };
    let energy = json!({ "hidden": 7, "layers": 2, "activation": "silu", "tilt": 0.8 });
    let generator = json!({ "latent_dim": LATENT });
    let model = Model::new(
        built::<Mlp>(energy, &mut scope),
        built::<Linear>(generator, &mut scope),
        SIGMA,
    );
    for mut parameter in model.parameters() {
        parameter.set_data(&parameter.to_kind(Kind::Double));
    }
    model
}

fn built<P: Plugin>(options: serde_json::Value, scope: &mut Scope) -> Box<P::Builds> {
    serde_json::from_value::<P>(options)
        .unwrap()
        .build(scope)
        .unwrap()
}

/// ∇ₓ(U + V), which moves the particles.
#[test]
fn latents() {
    let problem = Problem::new();
    for wanted in [Wanted::Latents, Wanted::LatentsAndParameters] {
        let joint = joint_of_clouds(&problem.model, &problem.clouds, &problem.data, wanted);
        problem.assert_gradient(
            |problem| (problem.energies() + problem.reconstructions()).double_value(&[]),
            &problem.clouds,
            &joint.latent.view_as(&problem.clouds),
        );
    }
}

/// ∇ₓU, which moves the prior chains and is implemented by hand.
#[test]
fn prior_chains() {
    let problem = Problem::new();
    problem.assert_gradient(
        |problem| {
            problem
                .model
                .energy
                .energy(&problem.prior)
                .sum(Kind::Double)
                .double_value(&[])
        },
        &problem.prior,
        &problem.model.energy.gradient(&problem.prior),
    );
}

/// ∇_α L_e and ∇_β L_d, which move the parameters.
#[test]
fn parameters() {
    let problem = Problem::new();
    let model = &problem.model;
    let joint = joint_of_clouds(
        model,
        &problem.clouds,
        &problem.data,
        Wanted::LatentsAndParameters,
    );
    let alpha = model.energy.parameters().tensors();
    let beta = model.generator.parameters().tensors();
    for energy_l2 in [0.0, 0.3] {
        let prior = PriorTerm::sampled(model, &problem.prior);
        let gradients = Gradients::of(model, &joint, &prior, energy_l2);
        assert_eq!(
            (gradients.energy.len(), gradients.generator.len()),
            (alpha.len(), beta.len())
        );
        for (parameter, gradient) in alpha.iter().zip(&gradients.energy) {
            problem.assert_gradient(|problem| problem.energy_loss(energy_l2), parameter, gradient);
        }
        for (parameter, gradient) in beta.iter().zip(&gradients.generator) {
            problem.assert_gradient(Problem::generator_loss, parameter, gradient);
        }
    }
}
