//! `runner particles`: what the particle dumps of a run hold, and one of them for NumPy.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::json;

use super::arguments::ParticlesArguments;
use super::{Misuse, print};
use crate::record::{Array, ParticleDump, dumps_in_folder, write_npy};
use crate::trained::ParticleSummary;

pub fn particles(arguments: &ParticlesArguments) -> anyhow::Result<()> {
    let mut dumps = dumps_in(&arguments.dir)?;
    if let Some(step) = arguments.step {
        dumps.retain(|path| name_of(path) == format!("step_{step:08}.h5"));
        if dumps.is_empty() {
            return Err(Misuse(format!("{} has no dump of step {step}", arguments.dir.display())).into());
        }
    }
    if let Some(out) = &arguments.export {
        let last = dumps.last().context("there are no dumps")?;
        return export(last, out);
    }
    let mut summaries = Vec::new();
    let mut before: Option<ParticleDump> = None;
    for path in &dumps {
        let dump = ParticleDump::open(path)?;
        summaries.push(ParticleSummary::of(&dump, before.as_ref())?);
        before = Some(dump);
    }
    if arguments.json {
        return print(&format!("{:#}\n", json!(summaries)));
    }
    print(&table(&summaries))
}

/// The dumps below a run's folder, in its folder of dumps, or a single one; by step.
fn dumps_in(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let folder = Some(path.join("particles")).filter(|inside| inside.is_dir());
    let dumps = dumps_in_folder(folder.as_deref().unwrap_or(path));
    if dumps.is_empty() {
        let message = format!("{} has no particle dumps, step_NNNNNNNN.h5", path.display());
        return Err(Misuse(message).into());
    }
    Ok(dumps)
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn export(dump: &Path, out: &Path) -> anyhow::Result<()> {
    if out.extension().is_none_or(|ending| ending != "npy") {
        return Err(Misuse(format!(
            "--export is {}, expected a file that ends in .npy",
            out.display()
        ))
        .into());
    }
    let dump = ParticleDump::open(dump)?;
    let array = Array {
        name: "particles",
        shape: dump.shape().to_vec(),
        blocks: Box::new(dump.blocks().map(|block| Ok(block?.1))),
    };
    write_npy(out, array)?;
    let [points, particles, latent_dim] = dump.shape();
    print(&format!(
        "{}: {points} × {particles} × {latent_dim}, after step {}\n",
        out.display(),
        dump.step()?
    ))
}

fn table(summaries: &[ParticleSummary]) -> String {
    let head = [
        "step",
        "points",
        "particles",
        "latent",
        "mean",
        "std",
        "norm",
        "max norm",
        "spread",
        "min",
        "max",
        "drift",
    ];
    let rows = summaries.iter().map(|summary| {
        let number = |value: f64| format!("{value:.4}");
        let maybe = |value: Option<f64>| value.map_or_else(|| "–".into(), number);
        let [points, particles, latent_dim] = summary.shape;
        let spread = |i: usize| maybe(summary.spread.map(|spread| spread[i]));
        [
            summary.step.to_string(),
            points.to_string(),
            particles.to_string(),
            latent_dim.to_string(),
            number(summary.mean),
            number(summary.standard_deviation),
            number(summary.mean_norm),
            number(summary.largest_norm),
            spread(1),
            spread(0),
            spread(2),
            maybe(summary.drift),
        ]
    });
    let rows: Vec<[String; 12]> = std::iter::once(head.map(str::to_owned)).chain(rows).collect();
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<_> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells: Vec<_> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:>width$}"))
            .collect();
        text += &format!("{}\n", cells.join("  "));
    }
    text
}
