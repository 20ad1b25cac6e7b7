//! What the synthetic sets share: a curve in the plane, Gaussian noise around it, and a linear map.

use ebipla_framework::Random;
use ebipla_framework::prelude::*;
use tch::{Device, Kind};

use crate::in_memory::InMemory;

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
}

impl Planar {
    /// Both splits; `curve` gives so many points of the curve.
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
        ))
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

/// The rotation by an angle.
pub fn rotation(angle: f64) -> [[f64; 2]; 2] {
    let (sin, cos) = angle.sin_cos();
    [[cos, -sin], [sin, cos]]
}

/// `count` numbers uniform on `[low, high)`.
pub fn uniform(low: f64, high: f64, count: usize, draws: &mut Draws) -> Vec<f64> {
    let numbers = draws.uniform(low, high, &[count as i64], Device::Cpu);
    Vec::try_from(numbers.to_kind(Kind::Double)).unwrap_or_default()
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
