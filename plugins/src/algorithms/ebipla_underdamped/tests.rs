//! EBIPLA with momentum: its steps against formulas written out here, and its noise against its distribution.

use super::*;
use crate::algorithms::testing::{Bench, PRIOR, RATE, SIGMA, close, clouds, numbers};

/// Position and velocity after one step without noise, for a gradient that depends on the position.
fn moved(
    integrator: Integrator,
    [h, c]: [f64; 2],
    [mut x, mut v]: [f64; 2],
    gradient: impl Fn(f64) -> f64,
) -> [f64; 2] {
    let decay = |time: f64| f64::exp(-c * time);
    match integrator {
        Integrator::Obabo => {
            v = decay(h / 2.0) * v - h / 2.0 * gradient(x);
            x += h * v;
            [x, decay(h / 2.0) * (v - h / 2.0 * gradient(x))]
        }
        Integrator::Baoab => {
            v -= h / 2.0 * gradient(x);
            x += h / 2.0 * v;
            v *= decay(h);
            x += h / 2.0 * v;
            [x, v - h / 2.0 * gradient(x)]
        }
        Integrator::Exponential => {
            let psi1 = (1.0 - decay(h)) / c;
            let psi2 = (h - psi1) / c;
            let slope = gradient(x);
            [x + psi1 * v - psi2 * slope, decay(h) * v - psi1 * slope]
        }
    }
}

/// Two iterations at temperature 0, starting at rest: the second one shows the velocities of the first.
///
/// ∇ₓφ = (x − a) + w(wx − y)/σ²; ∇_a L_e = −mean(x − a) + mean(x̂ − a); ∂_w L_d = mean((wx − y)·x)/σ², at the
/// particles' previous positions. One of the points is in both batches, two are in one, two in none.
#[test]
fn iterations_without_noise_follow_the_formulas() {
    use Integrator::{Baoab, Exponential, Obabo};
    for integrator in [Obabo, Baoab, Exponential] {
        for parameters in [ParameterStep::Optimizer, ParameterStep::Momentum] {
            two_iterations_without_noise(integrator, parameters);
        }
    }
}

fn two_iterations_without_noise(integrator: Integrator, parameters: ParameterStep) {
    let mut bench = Bench::new(5, 2);
    let mut algorithm = bench.build(EbiplaUnderdamped {
        particles: 3,
        step_size: 0.4,
        step_unit: TimeUnit::Sigma,
        friction: 1.5,
        integrator,
        temperature: 0.0,
        parameters,
        init_particles: None,
    });
    let time = [0.4 * SIGMA, 1.5 / SIGMA];
    let y = numbers(&bench.data);
    let mut x = clouds(&*algorithm, 0);
    let mut v = vec![vec![vec![0.0; 2]; 3]; 5];
    let mut theta = bench.parameters().map(|start| [start, 0.0]);
    for (k, batch) in [[3, 1], [1, 4]].into_iter().enumerate() {
        let [a0, a1, w] = theta.map(|[position, _]| position);
        let a = [a0, a1];
        let mut gradients = [PRIOR[0] - a0, PRIOR[1] - a1, 0.0];
        for m in batch {
            for (x, v) in x[m].iter_mut().zip(&mut v[m]) {
                for d in 0..2 {
                    let residual = |x: f64| (w * x - y[m][d]) / (SIGMA * SIGMA);
                    gradients[d] -= (x[d] - a[d]) / 6.0;
                    gradients[2] += residual(x[d]) * x[d] / 6.0;
                    [x[d], v[d]] = moved(integrator, time, [x[d], v[d]], |x| (x - a[d]) + w * residual(x));
                }
            }
        }
        for (theta, gradient) in theta.iter_mut().zip(gradients) {
            *theta = match parameters {
                ParameterStep::Optimizer => [theta[0] - RATE * gradient, 0.0],
                ParameterStep::Momentum => moved(Integrator::Exponential, time, *theta, |_| gradient),
            };
        }

        bench.step(&mut *algorithm, k as u64, &batch.map(|m| m as i64));
        let found = clouds(&*algorithm, k as u64 + 1);
        for (found, expected) in found.iter().flatten().flatten().zip(x.iter().flatten().flatten()) {
            close(*found, *expected);
        }
        for (found, [expected, _]) in bench.parameters().into_iter().zip(theta) {
            close(found, expected);
        }
    }
}

fn parameters_after_one_step(temperature: f64, k: u64) -> [f64; 3] {
    let mut bench = Bench::new(4, 4);
    let mut algorithm = bench.build(EbiplaUnderdamped {
        particles: 2,
        step_size: 0.3,
        step_unit: TimeUnit::Raw,
        friction: 1.5,
        temperature,
        parameters: ParameterStep::Momentum,
        init_particles: None,
        integrator: Integrator::Exponential,
    });
    bench.step(&mut *algorithm, k, &[0, 1, 2, 3]);
    bench.parameters()
}

/// From rest, one step's noise in a parameter has variance τ(2ch + 4ψ₀ − ψ₀² − 3)/c²/(MN), with MN = 8.
///
/// Measured as the difference from a step without noise, 3 parameters over 1500 steps: the sample variance has relative
/// standard error √(2/4500) = 2.1 %; five are 10.5 %.
#[test]
fn noise_of_the_parameters_has_the_right_scale() {
    let (c, h, temperature) = (1.5, 0.3, 0.6);
    let still = parameters_after_one_step(0.0, 0);
    let mut sum = 0.0;
    for k in 0..1500 {
        let moved = parameters_after_one_step(temperature, k);
        sum += moved
            .iter()
            .zip(&still)
            .map(|(a, b)| (a - b).powi(2))
            .sum::<f64>();
    }
    let psi0 = f64::exp(-c * h);
    let expected = temperature * (2.0 * c * h + 4.0 * psi0 - psi0 * psi0 - 3.0) / (c * c) / 8.0;
    let found = sum / 4500.0;
    assert!(
        (found / expected - 1.0).abs() < 0.105,
        "{found}, expected {expected}"
    );
}
