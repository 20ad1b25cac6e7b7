//! A Gaussian cloud, for checks against closed forms.

use std::f64::consts::PI;

use ebipla_core::prelude::*;
use ebipla_core::{Random, require_memory};
use tch::{Device, Kind};

use crate::in_memory::{InMemory, LogDensity};

/// Points from N(mean·1, std²I) in any dimension.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Gaussian {
    /// Training points M. [points]
    #[schemars(range(min = 1))]
    size: usize,
    /// Held-out points, drawn independently. [points]
    validation: usize,
    /// Dimension of a point. [dimensions]
    #[schemars(range(min = 1))]
    dim: u32,
    /// Every coordinate of the mean. [data units]
    mean: f64,
    /// Standard deviation of each coordinate. [data units]
    #[schemars(range(min = 0.0))]
    std: f64,
    /// Seed of the points, independent of run.seed: all runs see the same data. [any integer]
    seed: u64,
}

impl Default for Gaussian {
    fn default() -> Self {
        Self {
            size: 1000,
            validation: 1000,
            dim: 2,
            mean: 0.0,
            std: 1.0,
            seed: 0,
        }
    }
}

impl Plugin for Gaussian {
    type Builds = dyn Dataset;

    fn build(self, _: &mut Scope) -> anyhow::Result<Box<dyn Dataset>> {
        let points = self.size as u128 + self.validation as u128;
        // The points as drawn, scaled, and kept.
        let bytes = points * u128::from(self.dim) * (3 * size_of::<f32>()) as u128;
        require_memory(&format!("{points} points of {} dimensions", self.dim), bytes)?;
        let mut random = Random::new(self.seed);
        let mut points = |split: &str, count: usize| {
            let shape = [count as i64, self.dim.into()];
            let mut draws = random.stream(&format!("gaussian/{split}"), 0);
            draws.normal(&shape, Device::Cpu) * self.std + self.mean
        };
        let (train, validation) = (points("train", self.size), points("validation", self.validation));
        Ok(Box::new(InMemory::new(train, validation, self.log_density())))
    }
}

impl Gaussian {
    /// −‖y − mean‖²/(2 std²) − dim·log(std √(2π)); `None` where all points coincide.
    fn log_density(&self) -> Option<LogDensity> {
        let (mean, variance) = (self.mean, self.std * self.std);
        let constant = 0.5 * f64::from(self.dim) * (2.0 * PI * variance).ln();
        let log_density = move |y: &Tensor| {
            let squares = (y.to_kind(Kind::Double) - mean).square();
            squares.sum_dim_intlist(1, false, Kind::Double) / (-2.0 * variance) - constant
        };
        (self.std > 0.0).then(|| Box::new(log_density) as LogDensity)
    }
}

inventory::submit! { Registration::of::<Gaussian>("gaussian") }

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// By hand in three dimensions; −log(√(2π)·2) is the logarithm of the height of one factor.
    #[test]
    fn log_density_matches_a_calculation_by_hand() {
        let gaussian = Gaussian {
            dim: 3,
            mean: 1.0,
            std: 2.0,
            ..Gaussian::default()
        };
        let y = Tensor::from_slice(&[1f32, 1.0, 1.0, 3.0, 1.0, -3.0]).view([2, 3]);
        let found: Vec<f64> = gaussian.log_density().unwrap()(&y).try_into().unwrap();
        let height = -3.0 * ((2.0 * PI).sqrt() * 2.0).ln();
        assert!((found[0] - height).abs() < 1e-12, "{found:?}");
        assert!((found[1] - (height - 0.5 - 2.0)).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn a_point_mass_has_no_density() {
        let gaussian = Gaussian {
            std: 0.0,
            ..Gaussian::default()
        };
        assert!(gaussian.log_density().is_none());
    }
}
