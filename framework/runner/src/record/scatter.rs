//! Draws two sets of points in the plane side by side.

use tch::Tensor;

use super::Picture;
use super::figure::{DATA, PANEL, SAMPLES, painted, points, scatter, square};

/// Draws data and something to compare with them, both `[n, 2]`, under their titles and on the axes of the data.
pub fn draw_side_by_side(data: (&str, &Tensor), other: (&str, &Tensor)) -> anyhow::Result<Picture> {
    painted("points", (2 * PANEL, PANEL), |root| {
        let panels = root.split_evenly((1, 2));
        let shown = square(&points(data.1));
        scatter(&panels[0], data.0, &points(data.1), &shown, DATA)?;
        scatter(&panels[1], other.0, &points(other.1), &shown, SAMPLES)
    })
}
