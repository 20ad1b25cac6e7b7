//! The last pictures of runs, side by side by the values that differ.

use std::io::Cursor;
use std::path::Path;

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::ImageFormat;
use image::imageops::FilterType;

use super::axes::Axis;
use super::groups::Group;
use super::page::{Block, Section};
use super::study::Study;

/// Pictures in rows and columns; without columns, one after the other.
pub struct PictureTable {
    pub caption: String,
    pub columns: Vec<String>,
    pub rows: Vec<PictureRow>,
}

pub struct PictureRow {
    pub label: String,
    pub pictures: Vec<Option<Embedded>>,
}

/// A picture that the page carries in itself.
pub struct Embedded {
    pub uri: String,
    pub width: u32,
    pub height: u32,
}

/// Pixels that a picture may have; larger ones are made smaller.
const LARGEST: f64 = 500_000.0;

/// What kinds of pictures are called.
fn title(kind: &str) -> String {
    match kind {
        "model" => "Data, samples and energy landscape exp(−U)".into(),
        "samples" => "Samples".into(),
        "reconstructions" => {
            "Reconstructions: data above, the mean of what their particles make below".into()
        }
        "interpolation" => "Interpolations".into(),
        other => other.to_owned(),
    }
}

/// All pictures; those that cannot be read are noted.
pub fn section(study: &Study, notes: &mut Vec<String>) -> Option<Section> {
    let mut kinds: Vec<&String> = Vec::new();
    for kind in study.runs().flat_map(|run| run.pictures.keys()) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let mut blocks = Vec::new();
    for kind in kinds {
        let table = table(study, kind, notes);
        if table
            .rows
            .iter()
            .any(|row| row.pictures.iter().any(Option::is_some))
        {
            blocks.push(Block::Heading(title(kind)));
            blocks.push(Block::Pictures(table));
        }
    }
    if blocks.is_empty() {
        return None;
    }
    blocks.push(Block::Remark(
        "One run of each group, the one with the smallest seed, after its last step.".into(),
    ));
    Some(Section {
        id: "pictures",
        title: "Pictures",
        blocks,
    })
}

fn table(study: &Study, kind: &str, notes: &mut Vec<String>) -> PictureTable {
    let axis = across(study);
    let mut columns: Vec<String> = Vec::new();
    let mut rows: Vec<PictureRow> = Vec::new();
    let mut sorted: Vec<&Group> = study.groups.iter().collect();
    if let Some(axis) = axis {
        sorted.sort_by(|a, b| f64::total_cmp(&axis.number(a).unwrap_or(0.0), &axis.number(b).unwrap_or(0.0)));
        for group in &sorted {
            let column = format!("{} = {}", axis.label, axis.text(group));
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
    }
    for group in &study.groups {
        let mut picture = embedded(group, kind, notes);
        let (label, column) = match axis {
            Some(axis) => {
                let is_axis = |other: &Axis| other.keys == axis.keys;
                let text = format!("{} = {}", axis.label, axis.text(group));
                (
                    study.differences.label_without(group, is_axis),
                    columns.iter().position(|column| *column == text).unwrap_or(0),
                )
            }
            None => (study.label(group), 0),
        };
        let width = columns.len().max(1);
        let row = match rows.iter_mut().find(|row| row.label == label) {
            Some(row) => row,
            None => {
                let pictures = (0..width).map(|_| None).collect();
                rows.push(PictureRow { label, pictures });
                let last = rows.len() - 1;
                &mut rows[last]
            }
        };
        row.pictures[column] = picture.take().or_else(|| row.pictures[column].take());
    }
    PictureTable {
        caption: title(kind),
        columns,
        rows,
    }
}

/// The numbers that columns are made of: the first that has several within a row.
fn across<'a>(study: &'a Study) -> Option<&'a Axis> {
    study.differences.axes.iter().find(|axis| {
        let numeric: Vec<_> = study
            .groups
            .iter()
            .filter(|group| axis.number(group).is_some())
            .map(|group| {
                study
                    .differences
                    .label_without(group, |other| other.keys == axis.keys)
            })
            .collect();
        let mut rows = numeric.clone();
        rows.sort();
        rows.dedup();
        numeric.len() == study.groups.len() && rows.len() < numeric.len()
    })
}

/// The first picture of the group's runs that can be read.
fn embedded(group: &Group, kind: &str, notes: &mut Vec<String>) -> Option<Embedded> {
    let shown = group.shown();
    let mut paths = shown.iter().filter_map(|run| run.pictures.get(kind));
    paths.find_map(|path| embed(path).map_err(|error| notes.push(format!("{error:#}"))).ok())
}

fn embed(path: &Path) -> anyhow::Result<Embedded> {
    let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let picture = image::load_from_memory_with_format(&bytes, ImageFormat::Png)
        .with_context(|| format!("{} is damaged", path.display()))?;
    let (width, height) = (picture.width(), picture.height());
    let excess = (f64::from(width) * f64::from(height) / LARGEST).sqrt();
    if excess <= 1.0 {
        return Ok(uri(&bytes, width, height));
    }
    let smaller = |side: u32| ((f64::from(side) / excess) as u32).max(1);
    let picture = picture.resize_exact(smaller(width), smaller(height), FilterType::Lanczos3);
    let mut png = Cursor::new(Vec::new());
    picture
        .to_rgb8()
        .write_to(&mut png, ImageFormat::Png)
        .with_context(|| format!("making {} smaller", path.display()))?;
    Ok(uri(png.get_ref(), picture.width(), picture.height()))
}

fn uri(png: &[u8], width: u32, height: u32) -> Embedded {
    Embedded {
        uri: format!("data:image/png;base64,{}", STANDARD.encode(png)),
        width,
        height,
    }
}
