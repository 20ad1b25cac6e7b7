//! Exact log-likelihood of held-out data under a model that is small enough to integrate over.
//!
//! log p(y) = log ∫exp(−U(x)) exp(−‖y − g(x)‖²/(2σ²)) dx − log(2πσ²) − log ∫exp(−U(x)) dx. The two integrals are
//! computed separately, since they need different grids: the first a fine one, but only where g(x) comes near the data;
//! the second one wherever exp(−U) has mass.

mod evidence;
mod grid;
mod log_sum;
mod normaliser;

use std::f64::consts::PI;

use ebipla_core::prelude::*;
use tch::{Device, Kind};

use evidence::Evidence;
use grid::LIMIT;
use normaliser::Normaliser;

/// Exact mean log-likelihood of held-out data, in nats per data point, for two-dimensional latents and data.
///
/// The integrals over the latent plane are midpoint rules, refined until they stop changing; log_likelihood/error
/// bounds their error. log_likelihood/data is the value under the data's own distribution, where that is known.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogLikelihood {
    /// Refinement stops when the result changes by less than this. [nats]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    tolerance: f64,
    /// Largest number of points in a grid. [points]
    #[schemars(range(min = 300_000, max = 100_000_000))]
    grid_points: usize,
}

impl Default for LogLikelihood {
    fn default() -> Self {
        Self {
            tolerance: 1e-5,
            grid_points: 4_000_000,
        }
    }
}

impl Plugin for LogLikelihood {
    type Builds = dyn Metric;

    /// Neither the quadrature error nor the value under the data's own distribution has a direction.
    fn better(number: &str) -> Option<Better> {
        (number == "log_likelihood").then_some(Better::Higher)
    }

    fn build(self, scope: &mut Scope) -> anyhow::Result<Box<dyn Metric>> {
        anyhow::ensure!(
            scope.latent_dim == 2,
            "integrates over a plane: the generator must have latents of 2 numbers, found {}",
            scope.latent_dim
        );
        anyhow::ensure!(
            scope.data.shape.iter().product::<i64>() == 2,
            "takes data points of 2 numbers, found the shape {:?}",
            scope.data.shape
        );
        Ok(Box::new(self))
    }
}

impl Metric for LogLikelihood {
    fn needs_held_out(&self) -> bool {
        true
    }

    fn measure(&self, subject: Subject) -> anyhow::Result<Scalars> {
        let held_out = subject.held_out()?.to_device(Device::Cpu);
        let options = if subject.quick { &Self::COARSE } else { self };
        let (value, error) = options.of_points(&subject, &held_out)?;
        let mut scalars = Scalars::new();
        scalars.add_number("log_likelihood", value);
        scalars.add_number("log_likelihood/error", error);
        if let Some(log_density) = subject.dataset.log_density(&held_out) {
            scalars.add("log_likelihood/data", &log_density.mean(Kind::Double));
        }
        Ok(scalars)
    }
}

impl LogLikelihood {
    /// Stops as early as possible.
    const COARSE: Self = Self {
        tolerance: f64::INFINITY,
        grid_points: 0,
    };

    /// The mean log-likelihood and a bound on its error.
    fn of_points(&self, subject: &Subject, points: &Tensor) -> anyhow::Result<(f64, f64)> {
        let _guard = tch::no_grad_guard();
        let points: Vec<f64> = Vec::try_from(points.to_kind(Kind::Double).flatten(0, -1))?;
        let (points, _) = points.as_chunks();
        let sigma = subject.model.sigma;
        let normaliser = Normaliser::integrate(subject, self)?;
        let evidence = Evidence::integrate(subject, points, normaliser.half_width, self)?;
        if !subject.quick {
            warn_of_edges(&normaliser, &evidence);
        }
        let mean = evidence.log_values.iter().sum::<f64>() / points.len() as f64;
        let value = mean - (2.0 * PI * sigma * sigma).ln() - normaliser.log_value;
        // The networks compute in f32, so exponents are rounded by half an ε of their size.
        let rounding = 0.5 * f64::from(f32::EPSILON) * (mean.abs() + normaliser.log_value.abs());
        Ok((value, evidence.error + normaliser.error + rounding))
    }
}

fn warn_of_edges(normaliser: &Normaliser, evidence: &Evidence) {
    if normaliser.unbounded {
        tracing::warn!(
            "log_likelihood: exp(−U) has mass out to ±{LIMIT} and may have no finite integral; the part beyond was \
             left out, and log_likelihood/error bounds its effect"
        );
    }
    if evidence.unbounded {
        tracing::warn!(
            "log_likelihood: the latents of some held-out points lie at ±{LIMIT} or beyond and were cut off there; \
             log_likelihood/error bounds the effect"
        );
    }
}

inventory::submit! { Registration::of::<LogLikelihood>("log_likelihood") }

#[cfg(test)]
mod tests;
