//! Shared by the synthetic data sets: a curve in the plane, Gaussian noise around it, and a linear map.

use ebipla_core::prelude::*;
use ebipla_core::{Random, require_memory};
use tch::{Device, Kind};

use crate::curve_density::{Arc, CurveDensity};
use crate::in_memory::{InMemory, LogDensity};

/// Points y = T(curve + ε), ε ~ N(0, noise²I).
pub struct Planar {
    /// Name of the random streams.
    pub name: &'static str,
    pub size: usize,
    pub validation: usize,
    pub noise: f64,
    pub seed: u64,
    /// The linear map T, row by row.
    pub map: [[f64; 2]; 2],
    /// The same curve as arcs of equal probability, on which its points are uniform.
    pub arcs: Vec<Arc>,
}

impl Planar {
    /// Both splits; `curve` returns the given number of points of the curve.
    pub fn build(&self, curve: impl Fn(usize, &mut Draws) -> Vec<[f64; 2]>) -> Box<dyn Dataset> {
        let mut random = Random::new(self.seed);
        let mut split = |split, count| {
            let mut draws = random.stream(&format!("{}/{split}", self.name), 0);
            let curve = curve(count, &mut draws);
            self.points(&curve, &mut draws)
        };
        Box::new(InMemory::new(
            split("train", self.size),
            split("validation", self.validation),
            self.log_density(),
        ))
    }

    fn log_density(&self) -> Option<LogDensity> {
        let density = CurveDensity::new(&self.arcs, self.noise, self.map)?;
        Some(Box::new(move |y| density.log_density(y)))
    }

    fn points(&self, curve: &[[f64; 2]], draws: &mut Draws) -> Tensor {
        let curve: Vec<f32> = curve.iter().flatten().map(|value| *value as f32).collect();
        let curve = Tensor::from_slice(&curve).view([-1, 2]);
        let noise = draws.normal_like(&curve) * self.noise;
        let map: Vec<f32> = self.map.iter().flatten().map(|value| *value as f32).collect();
        // Points are rows, so the map acts from the right, transposed.
        (curve + noise).matmul(&Tensor::from_slice(&map).view([2, 2]).transpose(0, 1))
    }
}

/// Refuses more points than fit into memory, counting the memory to draw them.
pub fn require_points(size: usize, validation: usize) -> anyhow::Result<()> {
    const BYTES: u128 = 64;
    let count = size as u128 + validation as u128;
    require_memory(&format!("{count} points"), count * BYTES)
}

/// The rotation by an angle.
pub fn rotation(angle: f64) -> [[f64; 2]; 2] {
    let (sin, cos) = angle.sin_cos();
    [[cos, -sin], [sin, cos]]
}

/// `count` numbers uniform on `[low, high)`.
pub fn uniform(low: f64, high: f64, count: usize, draws: &mut Draws) -> Vec<f64> {
    let numbers = draws.uniform(low, high, &[count as i64], Device::Cpu);
    Vec::try_from(numbers.to_kind(Kind::Double)).expect("a tensor of one dimension on the CPU")
}

/// The points of a data set as plain numbers.
#[cfg(test)]
pub fn rows(dataset: &dyn Dataset, split: Split) -> Vec<Vec<f64>> {
    let points = dataset
        .first(split, usize::MAX)
        .map(|points| points.to_kind(Kind::Double));
    points
        .ok()
        .and_then(|points| Vec::try_from(points).ok())
        .unwrap_or_default()
}

/// What every density must satisfy: it integrates to one, and to the fraction of points in the right half of the plane.
///
/// The midpoint rule on ±5 with spacing `step` is exact to far below 1e-6 if the step is at most half the smallest
/// width of the noise. A fraction of n = 10,000 points has standard error at most 1/(2√n) = 0.005.
#[cfg(test)]
#[track_caller]
pub fn assert_density_fits(dataset: &dyn Dataset, step: f64) {
    let count = (10.0 / step) as i64;
    let axis = (Tensor::arange(count, (Kind::Double, Device::Cpu)) + 0.5) * step - 5.0;
    let points = Tensor::cartesian_prod(&[&axis, &axis]);
    let density = dataset
        .log_density(&points)
        .map(|log_density| log_density.exp() * (step * step))
        .unwrap_or_default();
    let total = density.sum(Kind::Double).double_value(&[]);
    assert!((total - 1.0).abs() < 1e-6, "integrates to {total}");

    let right = points.select(1, 0).gt(0.0).to_kind(Kind::Double);
    let expected = (density * right).sum(Kind::Double).double_value(&[]);
    let rows = rows(dataset, Split::Validation);
    let found = rows.iter().filter(|row| row[0] > 0.0).count() as f64 / rows.len() as f64;
    assert!(
        (found - expected).abs() < 0.025,
        "{found} of the points, expected {expected}"
    );
}
