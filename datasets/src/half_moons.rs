//! The rotated half-moons of the paper's synthetic experiments.

use std::f64::consts::PI;

use ebipla_core::prelude::*;

use crate::curve_density::Arc;
use crate::planar::{Planar, require_points, rotation};

/// Two interleaved half circles, as in scikit-learn's make_moons, with Gaussian noise, rotated by 60°.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HalfMoons {
    /// Training points M, half of them on each moon. [points]
    #[schemars(range(min = 1))]
    size: usize,
    /// Held-out points, with independent noise. [points]
    validation: usize,
    /// Standard deviation of the noise around the moons. [data units]
    #[schemars(range(min = 0.0))]
    noise: f64,
    /// Seed of the points, independent of run.seed: all runs see the same data. [any integer]
    seed: u64,
}

impl Default for HalfMoons {
    fn default() -> Self {
        Self {
            size: 10_000,
            validation: 10_000,
            noise: 0.1,
            seed: 0,
        }
    }
}

impl Plugin for HalfMoons {
    type Builds = dyn Dataset;

    fn build(self, _: &mut Scope) -> anyhow::Result<Box<dyn Dataset>> {
        require_points(self.size, self.validation)?;
        Ok(self.points())
    }
}

impl HalfMoons {
    fn points(&self) -> Box<dyn Dataset> {
        let planar = Planar {
            name: "half_moons",
            size: self.size,
            validation: self.validation,
            noise: self.noise,
            seed: self.seed,
            map: rotation(PI / 3.0),
            arcs: vec![
                Arc {
                    length: PI,
                    at: |share| outer(PI * share),
                },
                Arc {
                    length: PI,
                    at: |share| inner(PI * share),
                },
            ],
        };
        planar.build(|count, draws| shuffled(&moons(count), draws))
    }
}

/// Shuffles the points, so that the first ones are representative.
fn shuffled(points: &[[f64; 2]], draws: &mut Draws) -> Vec<[f64; 2]> {
    let order = Vec::<i64>::try_from(draws.permutation(points.len() as i64))
        .expect("a tensor of one dimension on the CPU");
    order.into_iter().map(|i| points[i as usize]).collect()
}

/// Points evenly spaced in angle, both ends included: first the outer moon, then the inner one.
fn moons(count: usize) -> Vec<[f64; 2]> {
    let half = count / 2;
    let angles = |n: usize| (0..n).map(move |i| PI * i as f64 / (n.max(2) - 1) as f64);
    angles(half)
        .map(outer)
        .chain(angles(count - half).map(inner))
        .collect()
}

fn outer(t: f64) -> [f64; 2] {
    [t.cos(), t.sin()]
}

fn inner(t: f64) -> [f64; 2] {
    [1.0 - t.cos(), 0.5 - t.sin()]
}

inventory::submit! { Registration::of::<HalfMoons>("half_moons") }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planar::{assert_density_fits, rows};

    /// make_moons(6, shuffle=False), by hand: angles 0, π/2 and π on each moon.
    #[test]
    fn moons_match_scikit_learn() {
        let expected = [
            [1.0, 0.0],
            [0.0, 1.0],
            [-1.0, 0.0],
            [0.0, 0.5],
            [1.0, -0.5],
            [2.0, 0.5],
        ];
        for (found, expected) in moons(6).iter().zip(expected) {
            assert!((found[0] - expected[0]).abs() < 1e-12 && (found[1] - expected[1]).abs() < 1e-12);
        }
        assert_eq!(moons(7).len(), 7);
    }

    /// The centre of the moons, (½, ¼), rotated by 60°; the mean of n = 10,000 points has noise 0.1/√n = 0.001, and the
    /// grid itself an error of order 1/n.
    #[test]
    fn moons_are_rotated_by_sixty_degrees() {
        let points = rows(&*HalfMoons::default().points(), Split::Train);
        let mean = |d: usize| points.iter().map(|row| row[d]).sum::<f64>() / points.len() as f64;
        let (sin, cos) = (PI / 3.0).sin_cos();
        assert!((mean(0) - (0.5 * cos - 0.25 * sin)).abs() < 0.005, "{}", mean(0));
        assert!((mean(1) - (0.5 * sin + 0.25 * cos)).abs() < 0.005, "{}", mean(1));
    }

    #[test]
    fn the_density_fits_the_points() {
        assert_density_fits(&*HalfMoons::default().points(), 0.05);
    }
}
