//! The rotated Swiss roll of the paper's synthetic experiments.

use std::f64::consts::PI;

use ebipla_framework::Random;
use ebipla_framework::prelude::*;
use tch::{Device, Kind};

use crate::in_memory::InMemory;

/// A spiral in the plane, even along its length, with Gaussian noise, rotated by 45°.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SwissRoll {
    /// Training points M. [points]
    #[schemars(range(min = 1))]
    size: usize,
    /// Held-out points, drawn apart. [points]
    validation: usize,
    /// Standard deviation of the noise around the spiral. [data units]
    #[schemars(range(min = 0.0))]
    noise: f64,
    /// Seed of the points, apart from run.seed: all runs see the same data. [any integer]
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

/// The paper gives no range; one and a half turns, from 1.5π to 4.5π.
const TURNS: (f64, f64) = (1.5 * PI, 4.5 * PI);
const SCALE: f64 = 0.125;
const ROTATION: f64 = PI / 4.0;

impl Plugin for SwissRoll {
    type Builds = dyn Dataset;

    fn build(self, _: &mut Scope) -> anyhow::Result<Box<dyn Dataset>> {
        let mut random = Random::new(self.seed);
        let train = self.points(self.size, &mut random.stream("swiss_roll/train", 0))?;
        let validation = self.points(self.validation, &mut random.stream("swiss_roll/validation", 0))?;
        Ok(Box::new(InMemory::new(train, validation)))
    }
}

impl SwissRoll {
    fn points(&self, count: usize, draws: &mut Draws) -> anyhow::Result<Tensor> {
        let lengths = (arc_length(TURNS.0), arc_length(TURNS.1));
        let along = draws.uniform(lengths.0, lengths.1, &[count as i64], Device::Cpu);
        let noise = draws.normal(&[count as i64, 2], Device::Cpu) * self.noise;
        let angles = Vec::<f64>::try_from(along.to_kind(Kind::Double))?;
        let spiral: Vec<f32> = angles
            .into_iter()
            .map(angle_at)
            .flat_map(|t| [(SCALE * t * t.cos()) as f32, (SCALE * t * t.sin()) as f32])
            .collect();
        let points = Tensor::from_slice(&spiral).view([-1, 2]) + noise;
        let (sin, cos) = (ROTATION.sin() as f32, ROTATION.cos() as f32);
        // Rows are points: multiply by the transpose of the rotation.
        let rotation = Tensor::from_slice(&[cos, sin, -sin, cos]).view([2, 2]);
        Ok(points.matmul(&rotation))
    }
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

    #[test]
    fn newton_inverts_the_arc_length() {
        for t in [TURNS.0, 7.0, 10.0, TURNS.1] {
            assert!((angle_at(arc_length(t)) - t).abs() < 1e-10);
        }
    }

    /// Without noise every point lies on the spiral: its radius is t/8 where t is its angle, up to full turns.
    #[test]
    fn points_lie_on_the_spiral_evenly_in_arc_length() {
        let roll = SwissRoll {
            noise: 0.0,
            ..SwissRoll::default()
        };
        let n = 20_000;
        let points = roll.points(n, &mut Random::new(1).stream("test", 0)).unwrap();
        let mut shares = Vec::new();
        for row in Vec::<Vec<f64>>::try_from(points.to_kind(Kind::Double)).unwrap() {
            let t = row[0].hypot(row[1]) / SCALE;
            let angle = row[1].atan2(row[0]) - ROTATION;
            let turns = (t - angle) / (2.0 * PI);
            assert!((turns - turns.round()).abs() < 1e-4, "{row:?}");
            let whole = arc_length(TURNS.1) - arc_length(TURNS.0);
            shares.push((arc_length(t) - arc_length(TURNS.0)) / whole);
        }
        // Uniform on [0, 1]: the mean has standard error √(1/12/n) = 0.002, the mean square √(4/45/n) = 0.0021.
        let mean = shares.iter().sum::<f64>() / n as f64;
        let square = shares.iter().map(|share| share * share).sum::<f64>() / n as f64;
        assert!((mean - 0.5).abs() < 0.0102, "{mean}");
        assert!((square - 1.0 / 3.0).abs() < 0.0105, "{square}");
    }
}
