//! Compares the quadrature with closed forms and with a plain sum over a fine grid.
#![allow(clippy::unwrap_used)]

use std::sync::Mutex;

use ebipla_core::{DataFacts, Model, Random};
use serde_json::{Value, json};

use super::*;
use crate::energies::mlp::Mlp;
use crate::energies::quadratic::Quadratic;
use crate::generators::identity::Identity;
use crate::generators::linear::Linear;

/// Held-out points, with a log-density of −1 everywhere.
struct Points(Mutex<Tensor>);

impl Dataset for Points {
    fn shape(&self) -> &[i64] {
        &[2]
    }

    fn len(&self, _: Split) -> usize {
        self.0.lock().unwrap().size()[0] as usize
    }

    fn get(&self, _: Split, indices: &Tensor) -> anyhow::Result<Tensor> {
        Ok(self.0.lock().unwrap().index_select(0, indices))
    }

    fn log_density(&self, y: &Tensor) -> Option<Tensor> {
        Some(-y.select(1, 0).ones_like())
    }
}

/// The likelihood needs no samples.
struct NoChains;

impl PriorSampler for NoChains {
    fn sample(&self, _: &dyn Energy, _: Tensor, _: &mut Draws) -> anyhow::Result<Chains> {
        anyhow::bail!("the metric must not ask for chains")
    }

    fn gradient_evaluations(&self) -> u64 {
        0
    }
}

/// An energy that decreases without bound to the right.
struct Slope(Parameters);

impl Energy for Slope {
    fn parameters(&self) -> &Parameters {
        &self.0
    }

    fn energy(&self, x: &Tensor) -> Tensor {
        -x.select(1, 0)
    }
}

fn build<P: Plugin>(options: Value, latent_dim: i64) -> anyhow::Result<Box<P::Builds>> {
    let mut random = Random::new(12);
    let mut scope = Scope {
        data: DataFacts {
            count: 1,
            shape: vec![2],
        },
        latent_dim,
        ..Scope::on_cpu(&mut random)
    };
    serde_json::from_value::<P>(options).unwrap().build(&mut scope)
}

fn model(energy: Box<dyn Energy>, sigma: f64) -> Model {
    Model::new(energy, build::<Linear>(json!({}), 0).unwrap(), sigma)
}

fn quadratic(start: f64, sigma: f64) -> Model {
    model(build::<Quadratic>(json!({ "start": start }), 2).unwrap(), sigma)
}

fn normal(count: i64, scale: f64) -> Tensor {
    Random::new(3)
        .stream("points", 0)
        .normal(&[count, 2], Device::Cpu)
        * scale
}

/// The value, its error and the value under the data's own distribution.
fn measure(model: &Model, points: &Tensor) -> [f64; 3] {
    let scalars = LogLikelihood::default().measure(Subject {
        model,
        prior_sampler: &NoChains,
        dataset: &Points(Mutex::new(points.copy())),
        device: Device::Cpu,
        random: &mut Random::new(1),
        quick: false,
    });
    let read = scalars.unwrap().read();
    let names: Vec<_> = read.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["log_likelihood", "log_likelihood/error", "log_likelihood/data"]
    );
    [read[0].1, read[1].1, read[2].1]
}

fn numbers(tensor: &Tensor) -> Vec<[f64; 2]> {
    let values: Vec<f64> = Vec::try_from(tensor.to_kind(Kind::Double).flatten(0, -1)).unwrap();
    values.as_chunks().0.to_vec()
}

/// The mean log-density of N(Wa + b, WWᵀ + σ²I), which is the marginal for U(x) = ½‖x − a‖² and g(x) = Wx + b.
fn closed_form(model: &Model, a: f64, points: &Tensor) -> f64 {
    let parameters: Vec<_> = model
        .generator
        .parameters()
        .named()
        .map(|(_, tensor)| numbers(tensor))
        .collect();
    let ([u, v], b) = (
        <[_; 2]>::try_from(parameters[0].clone()).unwrap(),
        parameters[1][0],
    );
    let dot = |p: [f64; 2], q: [f64; 2]| p[0] * q[0] + p[1] * q[1];
    let noise = model.sigma * model.sigma;
    let (uu, uv, vv) = (dot(u, u) + noise, dot(u, v), dot(v, v) + noise);
    let determinant = uu * vv - uv * uv;
    let mean = [a * (u[0] + u[1]) + b[0], a * (v[0] + v[1]) + b[1]];
    let points = numbers(points);
    let sum: f64 = points
        .iter()
        .map(|y| {
            let [p, q] = [y[0] - mean[0], y[1] - mean[1]];
            -0.5 * (vv * p * p - 2.0 * uv * p * q + uu * q * q) / determinant
        })
        .sum();
    sum / points.len() as f64 - (2.0 * PI).ln() - 0.5 * determinant.ln()
}

/// Narrow and wide decoders, and a prior whose mass lies far outside the initial domain.
///
/// The networks compute in f32: U and ‖y − g‖²/(2σ²) have a relative error of 1e-7, independent from point to point.
#[test]
fn a_gaussian_model_matches_the_closed_form() {
    for (start, sigma) in [(0.0, 0.05), (0.0, 0.3), (0.0, 3.0), (15.0, 0.3)] {
        let model = quadratic(start, sigma);
        let points = normal(2000, 1.0);
        let expected = closed_form(&model, start, &points);
        let [found, error, data] = measure(&model, &points);
        assert!(
            (found - expected).abs() <= error,
            "{found} ± {error}, expected {expected}"
        );
        assert!(error < 5e-5, "{error}");
        assert_eq!(data, -1.0);
    }
}

/// A point at distance 65, whose latent lies far outside the initial domain. The prior pulls its posterior so far
/// towards 0 that the images of its latents lie many σ away from it.
#[test]
fn an_outlier_gets_its_exact_likelihood() {
    let model = quadratic(0.0, 0.5);
    let points = Tensor::cat(
        &[normal(50, 0.5), Tensor::from_slice(&[60f32, -25.0]).view([1, 2])],
        0,
    );
    let expected = closed_form(&model, 0.0, &points);
    let [found, error, _] = measure(&model, &points);
    assert!(
        (found - expected).abs() <= error,
        "{found} ± {error}, expected {expected}"
    );
    assert!(error < 1e-6 * expected.abs(), "{error}");
}

/// A rugged energy against a plain sum over ±7 with spacing 0.01; the tilt leaves 2e-11 outside.
#[test]
fn a_network_matches_a_fine_grid() {
    let energy = build::<Mlp>(json!({ "hidden": 32, "activation": "silu", "tilt": 1.0 }), 2).unwrap();
    let _guard = tch::no_grad_guard();
    for mut parameter in energy.parameters().tensors() {
        parameter *= 3.0;
    }
    let model = Model::new(energy, build::<Identity>(json!({}), 0).unwrap(), 0.1);
    let points = normal(25, 0.7);

    let step = 0.01;
    let axis = (Tensor::arange(1400, (Kind::Float, Device::Cpu)) + 0.5) * step - 7.0;
    let x = Tensor::cartesian_prod(&[&axis, &axis]);
    let log_prior = -model.energy.energy(&x).to_kind(Kind::Double);
    let images = model.generator.generate(&x);
    let log_sum = |values: &Tensor| values.logsumexp([0].as_slice(), false).double_value(&[]);
    let normaliser = log_sum(&log_prior);
    let log_evidence = |y: &Tensor| {
        let squares = (&images - y).to_kind(Kind::Double).square();
        log_sum(&(&log_prior - squares.sum_dim_intlist(1, false, Kind::Double) / (2.0 * 0.01)))
    };
    let sum: f64 = points.unbind(0).iter().map(log_evidence).sum();
    let expected = sum / 25.0 - (2.0 * PI * 0.01).ln() - normaliser;

    let [found, error, _] = measure(&model, &points);
    assert!(
        (found - expected).abs() <= error + 1e-6,
        "{found} ± {error}, expected {expected}"
    );
    assert!(error < 5e-5, "{error}");
}

/// exp(−U) = exp(x₀) has no integral. The part cut off at the edge is all of the mass.
#[test]
fn escaping_mass_gives_a_finite_number_with_a_large_error() {
    let model = model(Box::new(Slope(Parameters::new())), 0.3);
    let [value, error, _] = measure(&model, &normal(50, 1.0));
    assert!(value.is_finite() && error.is_finite());
    assert!(error > 10.0, "{error}");
}

#[test]
fn refuses_data_outside_the_plane() {
    let error = build::<LogLikelihood>(json!({}), 3).err().unwrap().to_string();
    assert!(error.contains("latents of 2 numbers, found 3"), "{error}");
}
