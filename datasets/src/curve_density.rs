//! The exact density of points on a curve with Gaussian noise, by quadrature along the curve.

use std::f64::consts::PI;

use tch::{Kind, Tensor};

/// A smooth piece of a curve.
pub struct Arc {
    pub length: f64,
    /// The point at a fraction of the length, from 0 to 1.
    pub at: fn(f64) -> [f64; 2],
}

/// The density of y = T(c + ε): c uniform in arc length on one of several arcs, ε ~ N(0, s²I).
pub struct CurveDensity {
    panels: Vec<Panel>,
    variance: f64,
    inverse: [[f64; 2]; 2],
    /// log(|det T|·2πs²): normalises the mean of exp(−‖T⁻¹y − c‖²/(2s²)).
    log_volume: f64,
}

/// A short piece of the curve: nodes and weights that integrate over it.
struct Panel {
    nodes: [[f64; 2]; 5],
    weights: [f64; 5],
}

/// Gauss–Legendre nodes on [−1, 1] and their weights.
const GAUSS_LEGENDRE: [(f64, f64); 5] = [
    (-0.906_179_845_938_664, 0.236_926_885_056_189_08),
    (-0.538_469_310_105_683, 0.478_628_670_499_366_47),
    (0.0, 0.568_888_888_888_888_9),
    (0.538_469_310_105_683, 0.478_628_670_499_366_47),
    (0.906_179_845_938_664, 0.236_926_885_056_189_08),
];

/// Panels per standard deviation of the noise. Five nodes on a panel of length h integrate exp(−au) with relative error
/// 4e-13·(ah)¹⁰; h = s/4 and a = 8/s, eight standard deviations beyond an end of the curve, give 4e-10.
const PANELS_PER_DEVIATION: f64 = 4.0;

/// Noise so small that it would need more panels counts as no noise.
const MOST_PANELS: f64 = 1e6;

/// Panels this many standard deviations farther away than the nearest one are ignored: exp(−9²/2) = 3e-18.
const NEGLIGIBLE: f64 = 9.0;

impl CurveDensity {
    /// With noise s and map T; `None` without noise, which has no density.
    pub fn new(arcs: &[Arc], noise: f64, map: [[f64; 2]; 2]) -> Option<Self> {
        let panels_on = |arc: &Arc| (arc.length / noise * PANELS_PER_DEVIATION).ceil();
        if noise <= 0.0 || arcs.iter().map(panels_on).sum::<f64>() > MOST_PANELS {
            return None;
        }
        let mut panels = Vec::new();
        for arc in arcs {
            let count = panels_on(arc);
            let width = 1.0 / count;
            let mass = width / arcs.len() as f64;
            panels.extend((0..count as u32).map(|i| Panel::of(arc, f64::from(i) * width, width, mass)));
        }
        let [[a, b], [c, d]] = map;
        let determinant = a * d - b * c;
        Some(Self {
            panels,
            variance: noise * noise,
            inverse: [[d, -b], [-c, a]].map(|row| row.map(|value| value / determinant)),
            log_volume: (determinant.abs() * 2.0 * PI * noise * noise).ln(),
        })
    }

    /// log p(y) for each row.
    pub fn log_density(&self, y: &Tensor) -> Tensor {
        let points = y.to_kind(Kind::Double).flatten(0, -1);
        let points: Vec<f64> = Vec::try_from(points).expect("a tensor of one dimension on the CPU");
        let (pairs, _) = points.as_chunks();
        let values: Vec<_> = pairs.iter().map(|y| self.at(*y)).collect();
        Tensor::from_slice(&values).to_device(y.device())
    }

    fn at(&self, y: [f64; 2]) -> f64 {
        let z = self.inverse.map(|row| row[0] * y[0] + row[1] * y[1]);
        let distance = |panel: &Panel| square(z, panel.nodes[2]).sqrt();
        let nearest = self.panels.iter().map(distance).fold(f64::INFINITY, f64::min);
        let reach = nearest + NEGLIGIBLE * self.variance.sqrt();
        let near = self.panels.iter().filter(|panel| distance(panel) <= reach);
        // Relative to the nearest panel, so that nothing underflows far from the curve.
        let relative = |panel: &Panel| {
            panel.integrate(|c| ((nearest * nearest - square(z, c)) / (2.0 * self.variance)).exp())
        };
        let sum: f64 = near.map(relative).sum();
        sum.ln() - nearest * nearest / (2.0 * self.variance) - self.log_volume
    }
}

impl Panel {
    /// The piece of `arc` from the fraction `start` on, which holds `mass` of the distribution.
    fn of(arc: &Arc, start: f64, width: f64, mass: f64) -> Self {
        Self {
            nodes: GAUSS_LEGENDRE.map(|(node, _)| (arc.at)(start + width * 0.5 * (1.0 + node))),
            weights: GAUSS_LEGENDRE.map(|(_, weight)| mass * 0.5 * weight),
        }
    }

    fn integrate(&self, f: impl Fn([f64; 2]) -> f64) -> f64 {
        let terms = self.nodes.iter().zip(&self.weights);
        terms.map(|(node, weight)| weight * f(*node)).sum()
    }
}

/// ‖a − b‖².
fn square(a: [f64; 2], b: [f64; 2]) -> f64 {
    (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// A segment from (0, 0) to (2, 0) with s = 1, whose density is (Φ(y₁) − Φ(y₁ − 2))/2 · φ(y₂); then doubled by T,
    /// which divides the density by four. Φ(1) − Φ(−1) = 0.682689492137, and at y₁ = 10 the tail Φ(−8) − Φ(−10)
    /// = 6.22096050e-16.
    #[test]
    fn a_straight_line_matches_a_calculation_by_hand() {
        let line = Arc {
            length: 2.0,
            at: |share| [2.0 * share, 0.0],
        };
        let density = CurveDensity::new(&[line], 1.0, [[2.0, 0.0], [0.0, 2.0]]).unwrap();
        let height = 1.0 / (2.0 * PI).sqrt() / 2.0 / 4.0;
        let y = Tensor::from_slice(&[2.0, 0.0, 20.0, 0.0, 2.0, 6.0]).view([3, 2]);
        let found: Vec<f64> = density.log_density(&y).try_into().unwrap();
        let expected = [
            (0.682_689_492_137_086 * height).ln(),
            (6.220_960_498_073_256e-16_f64 * height).ln(),
            (0.682_689_492_137_086 * height).ln() - 4.5,
        ];
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-8, "{found}, expected {expected}");
        }
    }

    #[test]
    fn there_is_no_density_without_noise() {
        let line = Arc {
            length: 1.0,
            at: |share| [share, 0.0],
        };
        assert!(CurveDensity::new(&[line], 0.0, [[1.0, 0.0], [0.0, 1.0]]).is_none());
    }
}
