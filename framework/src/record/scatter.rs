//! Draws two sets of points in the plane side by side.

use anyhow::anyhow;
use plotters::prelude::*;
use tch::Tensor;

use super::Picture;
use super::figure::{DATA, PANEL, SAMPLES, points, register_font, scatter, square};

/// Draws data and something to compare with them, both `[n, 2]`, under their titles and on the axes of the data.
pub fn draw_side_by_side(data: (&str, &Tensor), other: (&str, &Tensor)) -> anyhow::Result<Picture> {
    register_font();
    let (width, height) = (2 * PANEL, PANEL);
    let mut pixels = vec![0; (width * height * 3) as usize];
    draw(&mut pixels, data, other).map_err(|problem| anyhow!("drawing points: {problem}"))?;
    Ok(Picture {
        width,
        height,
        pixels,
    })
}

fn draw(
    pixels: &mut [u8],
    data: (&str, &Tensor),
    other: (&str, &Tensor),
) -> Result<(), Box<dyn std::error::Error>> {
    let root = BitMapBackend::with_buffer(pixels, (2 * PANEL, PANEL)).into_drawing_area();
    root.fill(&WHITE)?;
    let panels = root.split_evenly((1, 2));
    let shown = square(&points(data.1));
    scatter(&panels[0], data.0, &points(data.1), &shown, DATA)?;
    scatter(&panels[1], other.0, &points(other.1), &shown, SAMPLES)?;
    root.present()?;
    Ok(())
}
