//! The closest baseline: posterior chains that restart for every batch (Pang et al. 2020).

use ebipla_core::prelude::*;
use ebipla_core::{Clouds, PosteriorStep, Wanted};

use super::parameter_step::update_parameters;
use super::posterior::StepUnit;

/// Latent EBM of Pang et al. 2020: one short posterior chain from N(0, I) for each data point of the batch.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Lebm {
    /// Langevin steps of each posterior chain. [steps]
    #[schemars(range(min = 1, max = 1_000_000))]
    posterior_steps: u32,
    /// Step size h of the posterior chains, in the unit of step_unit. For curvature λ of U + V and raw step h, long
    /// chains reach 1/(1 − hλ/2) times the posterior's variance: 1.05 at hλ = 0.1, 1.25 at 0.4, 2 at 1. They diverge
    /// from hλ = 2 on. `check` and the log of a run report hλ. [step_unit]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    step_size: f64,
    /// Unit of step_size.
    step_unit: StepUnit,
    /// Temperature τ of the posterior chains: 1 samples the posterior, 0 has no noise. [1]
    #[schemars(range(min = 0.0))]
    temperature: f64,
}

impl Default for Lebm {
    fn default() -> Self {
        Self {
            posterior_steps: 20,
            step_size: 0.005,
            step_unit: StepUnit::Raw,
            temperature: 1.0,
        }
    }
}

impl Plugin for Lebm {
    type Builds = dyn Algorithm;

    fn build(self, scope: &mut Scope) -> anyhow::Result<Box<dyn Algorithm>> {
        let raw_step = self.step_unit.raw(self.step_size, scope.sigma);
        Ok(Box::new(ShortRuns {
            config: self,
            raw_step,
        }))
    }
}

struct ShortRuns {
    config: Lebm,
    /// h as a raw Euler–Maruyama step.
    raw_step: f64,
}

impl Algorithm for ShortRuns {
    fn step(&mut self, mut step: Step) -> anyhow::Result<Scalars> {
        let posterior = self.sample_posterior(&mut step);
        let joint = step
            .model
            .joint(&posterior, step.data, Wanted::LatentsAndParameters);
        let mut scalars = Scalars::new();
        let prior = step.sample_prior(&joint, &mut scalars)?;
        update_parameters(&mut step, &joint, &prior, &mut scalars);
        Ok(scalars)
    }

    /// Nothing persists from one batch to the next.
    fn clouds(&self) -> Option<&dyn Clouds> {
        None
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        vec![("raw step size of the posterior chains", self.raw_step)]
    }

    fn posterior_steps(&self) -> Vec<PosteriorStep> {
        let Lebm {
            step_size,
            temperature,
            ..
        } = self.config;
        vec![PosteriorStep::langevin(
            "algorithm.step_size",
            step_size,
            self.raw_step,
            temperature,
        )]
    }
}

impl Persistent for ShortRuns {
    /// Nothing persists from one batch to the next.
    fn slots(&mut self) -> Vec<(&'static str, Slot<'_>)> {
        Vec::new()
    }
}

impl ShortRuns {
    fn sample_posterior(&self, step: &mut Step) -> Tensor {
        let noise_scale = (2.0 * self.raw_step * self.config.temperature).sqrt();
        let mut draws = step
            .random
            .stream_of_points("posterior", step.number, step.indices);
        let shape = [step.indices.count(), step.model.generator.latent_dim()];
        let mut x = draws.normal(&shape, step.data.device());
        for _ in 0..self.config.posterior_steps {
            let joint = step.model.joint(&x, step.data, Wanted::Latents);
            x -= joint.latent * self.raw_step;
            draws.add_normal(&mut x, noise_scale);
        }
        x
    }
}

inventory::submit! { Registration::of::<Lebm>("lebm") }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::testing::{A, Bench, PRIOR, RATE, SIGMA, W, all, all_close, numbers};
    use ebipla_core::Random;
    use tch::{Device, Kind};

    /// One iteration at temperature 0: two gradient descent steps on φ from the start that the stream gives, then both
    /// losses.
    #[test]
    fn one_iteration_without_noise_follows_the_formulas() {
        let mut bench = Bench::new(5, 2);
        let mut algorithm = bench.build(Lebm {
            posterior_steps: 2,
            step_size: 0.01,
            step_unit: StepUnit::Raw,
            temperature: 0.0,
        });
        let y = numbers(&bench.data);
        let (a, w) = (A.map(f64::from), f64::from(W));
        let mut x = numbers(
            &Random::new(Bench::SEED)
                .stream_of_points("posterior", 0, &Tensor::from_slice(&[3i64, 1]).into())
                .normal(&[2, 2], Device::Cpu),
        );
        let batch = [3, 1];
        let mut gradient_a = [PRIOR[0] - a[0], PRIOR[1] - a[1]];
        let mut gradient_w = 0.0;
        for (x, m) in x.iter_mut().zip(batch) {
            for d in 0..2 {
                for _ in 0..2 {
                    x[d] -= 0.01 * ((x[d] - a[d]) + w * (w * x[d] - y[m][d]) / (SIGMA * SIGMA));
                }
                gradient_a[d] -= (x[d] - a[d]) / 2.0;
                gradient_w += (w * x[d] - y[m][d]) * x[d] / (SIGMA * SIGMA) / 2.0;
            }
        }
        bench.step(&mut *algorithm, 0, &[3, 1]);
        let moved = |start: f64, gradient: f64| start - RATE * gradient;
        all_close(
            bench.parameters(),
            [
                moved(a[0], gradient_a[0]),
                moved(a[1], gradient_a[1]),
                moved(w, gradient_w),
            ],
        );
    }

    /// The chains' noise: with U and V quadratic, x' = cx + b + √(2hτ)ξ, so after J steps from N(0, 1) the variance
    /// is c^{2J} + 2hτ(1 − c^{2J})/(1 − c²), with c = 1 − h(1 + w²/σ²). The sample variance of n = 80,000 numbers has
    /// relative standard error √(2/n) = 0.5 %; five are 2.5 %. Noise off by a factor of two misses by far more.
    #[test]
    fn posterior_chains_have_their_known_variance() {
        let n = 40_000;
        let mut bench = Bench::new(n, n);
        bench.data = Tensor::zeros([n, 2], (Kind::Float, Device::Cpu));
        let (h, temperature) = (0.02, 0.7);
        let runs = ShortRuns {
            raw_step: h,
            config: Lebm {
                posterior_steps: 6,
                temperature,
                ..Lebm::default()
            },
        };
        let indices = all(n as usize);
        let data = bench.data.shallow_clone();
        let found = runs.sample_posterior(&mut bench.as_step(0, &indices, &data));
        let kept = (1.0 - h * (1.0 + f64::from(W * W) / (SIGMA * SIGMA))).powi(2);
        let expected = kept.powi(6) + 2.0 * h * temperature * (1.0 - kept.powi(6)) / (1.0 - kept);
        let variance = found
            .to_kind(Kind::Double)
            .var_dim(0, true, false)
            .mean(Kind::Double)
            .double_value(&[]);
        assert!(
            (variance / expected - 1.0).abs() < 0.025,
            "{variance}, expected {expected}"
        );
    }
}
