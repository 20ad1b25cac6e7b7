//! The rescaled circle of the paper's synthetic experiments.

use std::f64::consts::PI;

use ebipla_core::prelude::*;

use crate::curve_density::Arc;
use crate::planar::{Planar, require_points, uniform};

/// A unit circle with Gaussian noise, scaled by 3.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Circle {
    /// Training points M. [points]
    #[schemars(range(min = 1))]
    size: usize,
    /// Held-out points, drawn independently. [points]
    validation: usize,
    /// Standard deviation of the noise around the circle of radius 1, before scaling by 3. [1/3 data unit]
    #[schemars(range(min = 0.0))]
    noise: f64,
    /// Seed of the points, independent of run.seed: all runs see the same data. [any integer]
    seed: u64,
}

impl Default for Circle {
    fn default() -> Self {
        Self {
            size: 10_000,
            validation: 10_000,
            noise: 0.05,
            seed: 0,
        }
    }
}

const SCALE: f64 = 3.0;

impl Plugin for Circle {
    type Builds = dyn Dataset;

    fn build(self, _: &mut Scope) -> anyhow::Result<Box<dyn Dataset>> {
        require_points(self.size, self.validation)?;
        Ok(self.points())
    }
}

impl Circle {
    fn points(&self) -> Box<dyn Dataset> {
        let planar = Planar {
            name: "circle",
            size: self.size,
            validation: self.validation,
            noise: self.noise,
            seed: self.seed,
            map: [[SCALE, 0.0], [0.0, SCALE]],
            arcs: vec![Arc {
                length: 2.0 * PI,
                at: |share| point(2.0 * PI * share),
            }],
        };
        planar.build(|count, draws| {
            let angles = uniform(0.0, 2.0 * PI, count, draws);
            angles.into_iter().map(point).collect()
        })
    }
}

fn point(angle: f64) -> [f64; 2] {
    [angle.cos(), angle.sin()]
}

inventory::submit! { Registration::of::<Circle>("circle") }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planar::{assert_density_fits, rows};

    /// E‖y‖² = 9(1 + 2·0.05²) and Var‖y‖² = 81(4·0.05² + 4·0.05⁴): the mean of n = 10,000 has standard error 0.009.
    #[test]
    fn radius_and_noise() {
        let points = rows(&*Circle::default().points(), Split::Validation);
        let square = points
            .iter()
            .map(|row| row[0].powi(2) + row[1].powi(2))
            .sum::<f64>()
            / points.len() as f64;
        assert!((square - 9.045).abs() < 0.045, "{square}");
        let spread = points
            .iter()
            .map(|row| (row[0].hypot(row[1]) - 3.0).powi(2))
            .sum::<f64>();
        // The radius has standard deviation 0.15 to first order; its square has relative standard error √(2/n) = 1.4 %.
        let spread = spread / points.len() as f64;
        assert!((spread / 0.0225 - 1.0).abs() < 0.071, "{spread}");
    }

    #[test]
    fn the_density_fits_the_points() {
        assert_density_fits(&*Circle::default().points(), 0.05);
    }
}
