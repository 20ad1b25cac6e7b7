//! Runs the recipe `theory` and compares its measurements with the exact distribution.

use crate::gaussian::{Gaussian, Size};
use crate::support::{Scratch, metrics};

/// Steps between two measurements; errors at shorter distances are almost equal.
const EVERY: u64 = 5;

/// M data points with N particles each, and the number of steps.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    pub points: u64,
    pub particles: u64,
    pub steps: u64,
    pub seed: u64,
}

/// The mean of ‖θₖ − θ*‖² over a run, and its relative standard error if the program is correct.
#[derive(Debug)]
pub struct Measured {
    pub size: Size,
    pub error: f64,
    pub relative_standard_error: f64,
}

impl Member {
    pub fn run(self, scratch: &Scratch, model: &Gaussian) -> Measured {
        let mut overrides = vec![
            format!("algorithm.particles={}", self.particles),
            format!("algorithm.step_size={}", model.step),
            format!("run.epochs={}", self.steps),
            format!("evaluate.every={EVERY}"),
            "record={metrics: {every: 0}, tensorboard: {every: 0}}".to_owned(),
        ];
        if let Some(chains) = model.chains {
            overrides.push("algorithm.prior=sampled".to_owned());
            overrides.push(format!("prior_sampler.steps={}", chains.steps));
            overrides.push(format!("prior_sampler.step_size={}", chains.step_size));
        }
        let burn_in = model.burn_in();
        let errors: Vec<_> = errors(scratch, self.points, self.seed, &overrides)
            .into_iter()
            .filter_map(|(step, error)| (step > burn_in).then_some(error))
            .collect();
        let measurements = self.steps / EVERY - burn_in / EVERY;
        assert_eq!(errors.len() as u64, measurements);
        let size = Size {
            points: self.points as f64,
            particles: self.particles as f64,
            squared_mean: squared_mean(scratch, self.points, self.seed),
        };
        Measured {
            size,
            error: errors.iter().sum::<f64>() / errors.len() as f64,
            relative_standard_error: model.relative_standard_error(size, measurements, EVERY),
        }
    }
}

/// ‖ȳ‖² of the data: α starts at 0, so this is the error before the first step.
pub fn squared_mean(scratch: &Scratch, points: u64, seed: u64) -> f64 {
    errors(scratch, points, seed, &["run.max_steps=0".to_owned()])[0].1
}

/// Steps and squared errors of a run.
fn errors(scratch: &Scratch, points: u64, seed: u64, overrides: &[String]) -> Vec<(u64, f64)> {
    let common = [
        format!("dataset.size={points}"),
        format!("run.batch_size={points}"),
        format!("run.seed={seed}"),
    ];
    let mut arguments = vec!["--recipe", "theory"];
    arguments.extend(common.iter().chain(overrides).flat_map(|text| ["--set", text]));
    let outcome = scratch.runner_with_env(&arguments, &[("RUST_LOG", "error")]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let lines = metrics(&outcome.folder(scratch));
    let measured = lines
        .iter()
        .filter_map(|line| Some((line["step"].as_u64()?, line["evaluate/parameter_error"].as_f64()?)));
    measured.collect()
}

impl Measured {
    /// Asserts equality with the exact value within five standard errors.
    #[track_caller]
    pub fn assert_exact(&self, model: &Gaussian) {
        let ratio = self.error / model.error(self.size);
        assert!(
            (ratio - 1.0).abs() < 5.0 * self.relative_standard_error,
            "{self:?}: {ratio} of the exact value"
        );
    }

    /// Asserts that the error is below the theorem's bound.
    #[track_caller]
    pub fn assert_bounded(&self, model: &Gaussian) {
        let bound: f64 = model.bound(self.size).iter().sum();
        assert!(self.error.sqrt() < bound, "{self:?}: the bound is {bound}");
    }
}
