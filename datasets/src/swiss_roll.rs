//! The rotated Swiss roll of the paper's synthetic experiments.

use std::f64::consts::PI;

use ebipla_core::prelude::*;

use crate::curve_density::Arc;
use crate::planar::{Planar, require_points, rotation, uniform};

/// A spiral in the plane, uniform in arc length, with Gaussian noise, rotated by 45°.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SwissRoll {
    /// Training points M. [points]
    #[schemars(range(min = 1))]
    size: usize,
    /// Held-out points, drawn independently. [points]
    validation: usize,
    /// Standard deviation of the noise around the spiral. [data units]
    #[schemars(range(min = 0.0))]
    noise: f64,
    /// Seed of the points, independent of run.seed: all runs see the same data. [any integer]
    seed: u64,
}

impl Default for SwissRoll {
    fn default() -> Self {
        Self {
            size: 10_000,
            validation: 10_000,
            noise: 0.1,
            seed: 0,
        }
    }
}

/// The paper gives no range; this is one and a half turns, from 1.5π to 4.5π.
const TURNS: (f64, f64) = (1.5 * PI, 4.5 * PI);
const SCALE: f64 = 0.125;
const ROTATION: f64 = PI / 4.0;

impl Plugin for SwissRoll {
    type Builds = dyn Dataset;

    fn build(self, _: &mut Scope) -> anyhow::Result<Box<dyn Dataset>> {
        require_points(self.size, self.validation)?;
        Ok(self.points())
    }
}

impl SwissRoll {
    fn points(&self) -> Box<dyn Dataset> {
        let planar = Planar {
            name: "swiss_roll",
            size: self.size,
            validation: self.validation,
            noise: self.noise,
            seed: self.seed,
            map: rotation(ROTATION),
            arcs: vec![Arc {
                length: SCALE * (arc_length(TURNS.1) - arc_length(TURNS.0)),
                at: |share| {
                    let (start, end) = (arc_length(TURNS.0), arc_length(TURNS.1));
                    spiral(start + share * (end - start))
                },
            }],
        };
        planar.build(|count, draws| {
            let lengths = uniform(arc_length(TURNS.0), arc_length(TURNS.1), count, draws);
            lengths.into_iter().map(spiral).collect()
        })
    }
}

/// The point at an [`arc_length`].
fn spiral(length: f64) -> [f64; 2] {
    let t = angle_at(length);
    [SCALE * t * t.cos(), SCALE * t * t.sin()]
}

/// Length of (t cos t, t sin t) from 0 to t: ½(t√(1 + t²) + asinh t).
fn arc_length(t: f64) -> f64 {
    0.5 * (t * (1.0 + t * t).sqrt() + t.asinh())
}

/// The inverse of [`arc_length`], by Newton's method; its derivative is √(1 + t²).
fn angle_at(length: f64) -> f64 {
    let mut t = (2.0 * length).sqrt();
    for _ in 0..20 {
        let step = (arc_length(t) - length) / (1.0 + t * t).sqrt();
        t -= step;
        if step.abs() < 1e-13 {
            break;
        }
    }
    t
}

inventory::submit! { Registration::of::<SwissRoll>("swiss_roll") }

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::planar::{assert_density_fits, rows};

    #[test]
    fn newton_inverts_the_arc_length() {
        for t in [TURNS.0, 7.0, 10.0, TURNS.1] {
            assert!((angle_at(arc_length(t)) - t).abs() < 1e-10);
        }
    }

    /// Without noise every point lies on the spiral: at angle t its radius is t/8, up to full turns.
    #[test]
    fn points_lie_on_the_spiral_evenly_in_arc_length() {
        let n = 20_000;
        let roll = SwissRoll {
            size: n,
            noise: 0.0,
            ..SwissRoll::default()
        };
        let mut shares = Vec::new();
        for row in rows(&*roll.points(), Split::Train) {
            let t = row[0].hypot(row[1]) / SCALE;
            let angle = row[1].atan2(row[0]) - ROTATION;
            let turns = (t - angle) / (2.0 * PI);
            assert!((turns - turns.round()).abs() < 1e-4, "{row:?}");
            let whole = arc_length(TURNS.1) - arc_length(TURNS.0);
            shares.push((arc_length(t) - arc_length(TURNS.0)) / whole);
        }
        assert_eq!(shares.len(), n);
        // Uniform on [0, 1]: the mean has standard error √(1/12/n) = 0.002, the mean square √(4/45/n) = 0.0021.
        let mean = shares.iter().sum::<f64>() / n as f64;
        let square = shares.iter().map(|share| share * share).sum::<f64>() / n as f64;
        assert!((mean - 0.5).abs() < 0.0102, "{mean}");
        assert!((square - 1.0 / 3.0).abs() < 0.0105, "{square}");
    }

    #[test]
    fn the_density_fits_the_points() {
        assert_density_fits(&*SwissRoll::default().points(), 0.05);
    }

    /// An endless line of length ℓ = 11.17 in noise of width s would have −log ℓ − ½log(2πe s²) = −1.529 nats; the two
    /// ends, where the density decays, reduce it to ∫p log p = −1.5439 (computed by another program). The log-density
    /// has standard deviation 0.72, so its mean over 10,000 points has standard error 0.0072.
    #[test]
    fn the_log_density_of_held_out_points_has_its_known_mean() {
        let roll = SwissRoll::default().points();
        let held_out = roll.first(Split::Validation, usize::MAX).unwrap();
        let log_density = roll.log_density(&held_out).unwrap();
        let mean = log_density.mean(tch::Kind::Double).double_value(&[]);
        let error = log_density.std(true).double_value(&[]) / (log_density.size()[0] as f64).sqrt();
        assert!((error - 0.0072).abs() < 0.001, "{error}");
        assert!((mean - -1.5439).abs() < 5.0 * error, "{mean}");
    }
}
