//! Draws data, samples and energy landscape of a two-dimensional model side by side.

use std::ops::Range;
use std::sync::Once;

use anyhow::anyhow;
use ebipla_core::Energy;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::colors::colormaps::ViridisRGB;
use tch::{Kind, Tensor};

use super::Picture;

/// Side of a panel in pixels.
pub(super) const PANEL: u32 = 560;
/// Cells of the landscape along each axis.
const CELLS: i64 = 280;

pub(super) const FONT: &str = "dejavu";
pub(super) const DATA: RGBColor = RGBColor(38, 70, 110);
pub(super) const SAMPLES: RGBColor = RGBColor(178, 74, 24);

/// Draws the three panels. `data` and `samples` are `[n, 2]`; the landscape covers `latents`.
pub fn draw_model(
    data: &Tensor,
    samples: &Tensor,
    latents: &Tensor,
    energy: &dyn Energy,
) -> anyhow::Result<Picture> {
    painted("the model", (3 * PANEL, PANEL), |root| {
        let panels = root.split_evenly((1, 3));
        // Data and samples share their axes, so that they can be compared.
        let shown = square(&points(data));
        scatter(&panels[0], "data", &points(data), &shown, DATA)?;
        scatter(&panels[1], "samples", &points(samples), &shown, SAMPLES)?;
        landscape(&panels[2], energy, latents)
    })
}

/// A picture of `what`, `(width, height)` pixels, white where nothing is painted.
pub(super) fn painted(
    what: &str,
    (width, height): (u32, u32),
    paint: impl FnOnce(Area) -> Result<(), Box<dyn std::error::Error>>,
) -> anyhow::Result<Picture> {
    register_font();
    let mut pixels = vec![0; (width * height * 3) as usize];
    let fill = || -> Result<(), Box<dyn std::error::Error>> {
        let root = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
        root.fill(&WHITE)?;
        paint(&root)?;
        Ok(root.present()?)
    };
    fill().map_err(|problem| anyhow!("drawing {what}: {problem}"))?;
    Ok(Picture {
        width,
        height,
        pixels,
    })
}

/// The font is part of the program: what fonts a machine has must not matter.
fn register_font() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = plotters::style::register_font(FONT, FontStyle::Normal, dejavu::sans::regular());
    });
}

pub(super) type Area<'a, 'b> = &'a DrawingArea<BitMapBackend<'b>, Shift>;
pub(super) type Axes = (Range<f64>, Range<f64>);

pub(super) fn scatter(
    area: Area,
    title: &str,
    points: &[(f64, f64)],
    axes: &Axes,
    color: RGBColor,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut chart = panel(area, title, axes)?;
    chart
        .configure_mesh()
        .disable_mesh()
        .label_style((FONT, 13))
        .draw()?;
    let inside = |(x, y): &&(f64, f64)| axes.0.contains(x) && axes.1.contains(y);
    let dots = points
        .iter()
        .filter(inside)
        .map(|&point| Circle::new(point, 1, color.mix(0.45).filled()));
    chart.draw_series(dots)?;
    Ok(())
}

fn landscape(area: Area, energy: &dyn Energy, latents: &Tensor) -> Result<(), Box<dyn std::error::Error>> {
    let axes = square(&points(latents));
    let mut chart = panel(area, "exp(−U), latent space", &axes)?;
    chart
        .configure_mesh()
        .disable_mesh()
        .label_style((FONT, 13))
        .draw()?;
    let options = (Kind::Float, latents.device());
    let centres = |axis: &Range<f64>| {
        let half = (axis.end - axis.start) / (2 * CELLS) as f64;
        Tensor::linspace(axis.start + half, axis.end - half, CELLS, options)
    };
    let grid = Tensor::meshgrid_indexing(&[centres(&axes.0), centres(&axes.1)], "ij");
    let grid = Tensor::stack(&[&grid[0], &grid[1]], -1).view([-1, 2]);
    let _guard = tch::no_grad_guard();
    let energies = energy.energy(&grid);
    let density = (energies.min() - &energies).exp();
    let density = Vec::<f64>::try_from(density.to_kind(Kind::Double))?;
    let width = (axes.0.end - axes.0.start) / CELLS as f64;
    let height = (axes.1.end - axes.1.start) / CELLS as f64;
    let cells = density.iter().enumerate().map(|(i, &value)| {
        let x = axes.0.start + (i as i64 / CELLS) as f64 * width;
        let y = axes.1.start + (i as i64 % CELLS) as f64 * height;
        let color = ViridisRGB.get_color(value.clamp(0.0, 1.0));
        Rectangle::new([(x, y), (x + width, y + height)], color.filled())
    });
    chart.draw_series(cells)?;
    Ok(())
}

pub(super) type Chart<'a, 'b> = ChartContext<
    'a,
    BitMapBackend<'b>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

pub(super) fn panel<'a, 'b>(
    area: Area<'a, 'b>,
    title: &str,
    axes: &Axes,
) -> Result<Chart<'a, 'b>, Box<dyn std::error::Error>> {
    Ok(ChartBuilder::on(area)
        .caption(title, (FONT, 22))
        .margin(12)
        .x_label_area_size(28)
        .y_label_area_size(40)
        .build_cartesian_2d(axes.0.clone(), axes.1.clone())?)
}

pub(super) fn points(tensor: &Tensor) -> Vec<(f64, f64)> {
    let tensor = tensor.to_device(tch::Device::Cpu).to_kind(Kind::Double);
    let column = |i| Vec::<f64>::try_from(tensor.select(1, i)).expect("a tensor of one dimension on the CPU");
    column(0).into_iter().zip(column(1)).collect()
}

/// A square that holds the points with a margin; a few strays (2 in 1000) may stay outside.
pub(super) fn square(points: &[(f64, f64)]) -> Axes {
    let span = |mut values: Vec<f64>| {
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        let at = |share: f64| values.get((share * (values.len().saturating_sub(1)) as f64) as usize);
        (*at(0.001).unwrap_or(&-1.0), *at(0.999).unwrap_or(&1.0))
    };
    let x = span(points.iter().map(|point| point.0).collect());
    let y = span(points.iter().map(|point| point.1).collect());
    let half = 0.575 * (x.1 - x.0).max(y.1 - y.0).max(1e-6);
    let around = |(low, high): (f64, f64)| (low + high) / 2.0 - half..(low + high) / 2.0 + half;
    (around(x), around(y))
}
