//! Grids over the latent plane, made of equal squares, so that empty squares can be left out.
//!
//! The midpoint rule on an evenly spaced grid converges faster than any power of the spacing for smooth functions that
//! decay before the grid ends: the error for a Gaussian of standard deviation s is 2 exp(−2π²s²/h²).

use ebipla_core::interruption_point;
use ebipla_core::prelude::*;
use tch::{Device, Kind};

/// Points per row of a square.
pub const ROW: usize = 8;
/// Points per square.
pub const POINTS: usize = ROW * ROW;

/// Initial half-width of an integral's domain; prior chains start from N(0, I).
pub const START: f64 = 8.0;
/// Largest half-width of a domain.
pub const LIMIT: f64 = 256.0;
/// A domain is large enough when its edge holds less than this share of the integral. Where the integrand decays at
/// least exponentially, less than that lies outside.
pub const EDGE_SHARE: f64 = 1e-6;

/// A square of the latent plane, with a grid of midpoints.
#[derive(Clone, Copy, Debug)]
pub struct Square {
    center: [f64; 2],
    side: f64,
}

impl Square {
    /// The domain of this half-width around the origin, cut into `count` × `count` squares.
    pub fn tiles(half_width: f64, count: usize) -> Vec<Self> {
        let side = 2.0 * half_width / count as f64;
        let middle = |i: usize| (i as f64 + 0.5) * side - half_width;
        (0..count * count)
            .map(|i| Self {
                center: [middle(i / count), middle(i % count)],
                side,
            })
            .collect()
    }

    /// Its four quarters, whose points have half the spacing.
    pub fn quarters(self) -> [Self; 4] {
        let offset = self.side / 4.0;
        [(-1.0, -1.0), (-1.0, 1.0), (1.0, -1.0), (1.0, 1.0)].map(|(right, up)| Self {
            center: [self.center[0] + right * offset, self.center[1] + up * offset],
            side: self.side / 2.0,
        })
    }

    /// Whether it reaches into the edge of the domain, its outer eighth.
    pub fn at_edge(self, half_width: f64) -> bool {
        let farthest = self.center[0].abs().max(self.center[1].abs()) + self.side / 2.0;
        farthest > 0.875 * half_width
    }

    /// Logarithm of the area that each point represents.
    pub fn log_area(self) -> f64 {
        2.0 * (self.side / ROW as f64).ln()
    }

    fn points(self) -> impl Iterator<Item = f32> {
        let spacing = self.side / ROW as f64;
        let offset = move |i: usize| (i as f64 + 0.5) * spacing - self.side / 2.0;
        (0..POINTS).flat_map(move |i| {
            let point = [self.center[0] + offset(i / ROW), self.center[1] + offset(i % ROW)];
            point.map(|value| value as f32)
        })
    }
}

/// Squares whose points are evaluated at a time: few enough for a network's features to stay in the cache.
pub const AT_A_TIME: usize = 64;

/// A network's values at every point of at most [`AT_A_TIME`] squares, one square after another.
pub fn evaluate(
    squares: &[Square],
    device: Device,
    network: impl Fn(&Tensor) -> Tensor,
) -> anyhow::Result<Vec<f64>> {
    interruption_point();
    let points: Vec<f32> = squares.iter().flat_map(|square| square.points()).collect();
    let points = Tensor::from_slice(&points).view([-1, 2]).to_device(device);
    let values = network(&points).to_device(Device::Cpu).to_kind(Kind::Double);
    let values: Vec<f64> = Vec::try_from(values.flatten(0, -1))?;
    anyhow::ensure!(
        !values.iter().any(|value| value.is_nan()),
        "the model's output is not a number at some latents, so it has no likelihood"
    );
    Ok(values)
}

/// The error from leaving out this share of an integral, in nats; finite even if that is all of it.
pub fn nats_lost(share: f64) -> f64 {
    -(1.0 - share).max(f64::MIN_POSITIVE).ln()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// ∫exp(−‖x‖²/2) = 2π; h = 1/2 leaves an error of exp(−79) and ±8 leaves out exp(−32).
    #[test]
    fn squares_and_their_quarters_integrate_alike() {
        let tiles = Square::tiles(8.0, 4);
        let quarters: Vec<_> = tiles.iter().flat_map(|tile| tile.quarters()).collect();
        for squares in [tiles, quarters] {
            let values = evaluate(&squares, Device::Cpu, |x| {
                (x.square().sum_dim_intlist(1, false, Kind::Float) / -2.0).exp()
            });
            let sum = values.unwrap().iter().sum::<f64>() * squares[0].log_area().exp();
            // The values are f32.
            assert!((sum / (2.0 * std::f64::consts::PI) - 1.0).abs() < 1e-6, "{sum}");
        }
    }

    #[test]
    fn the_edge_is_the_outer_eighth() {
        let at_edge = |count: usize| {
            let tiles = Square::tiles(3.0, count);
            tiles.iter().filter(|tile| tile.at_edge(3.0)).count()
        };
        assert_eq!(at_edge(8), 64 - 36);
        assert_eq!(at_edge(32), 32 * 32 - 28 * 28);
    }
}
