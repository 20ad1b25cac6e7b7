//! Numbers over the steps of training, averaged over seeds.

use std::collections::BTreeMap;

use super::chart::{Chart, LineChart, Point, Scale, Series};
use super::groups::Group;
use super::page::{Block, Section};
use super::statistics::Estimate;
use super::study::{Panel, Study};
use super::swept::{logarithmic, reach};

/// Points of a curve; more of them are averaged over stretches of steps.
const POINTS: usize = 160;

pub fn section(study: &Study) -> Option<Section> {
    let mut blocks = study.charts(|panel| {
        let names = names(study, panel);
        let charts = names.iter().filter_map(|name| chart(study, panel, name));
        charts.collect()
    });
    if blocks.is_empty() {
        return None;
    }
    blocks.push(Block::Remark(
        "Lines are means over seeds, bands one standard error to either side. A group without a finished run is shown \
         as far as its runs came."
            .into(),
    ));
    Some(Section {
        id: "curves",
        title: "Over the steps of training",
        blocks,
    })
}

/// Losses, energies, acceptance rates, and what was evaluated along the way.
fn names(study: &Study, panel: &Panel) -> Vec<String> {
    let wanted = |name: &str| {
        let evaluated = name.strip_prefix("evaluate/");
        name.starts_with("loss/")
            || name.starts_with("energy/")
            || name.contains("acceptance")
            || evaluated.is_some_and(|number| study.better(number).is_some() || !number.contains('/'))
    };
    let mut names: Vec<String> = Vec::new();
    let runs = panel.groups.iter().flat_map(|i| study.groups[*i].shown());
    for (name, points) in runs.flat_map(|run| &run.curves) {
        if points.len() > 1 && wanted(name) && !names.contains(name) {
            names.push(name.clone());
        }
    }
    // What says how good a model is comes first.
    names.sort_by_key(|name| !name.starts_with("evaluate/"));
    names
}

fn chart(study: &Study, panel: &Panel, name: &str) -> Option<Chart> {
    let mut series = Vec::new();
    let mut stretch = 0.0f64;
    for (style, i) in panel.groups.iter().enumerate() {
        let group = &study.groups[*i];
        let (points, width) = average(group, name);
        stretch = stretch.max(width);
        if !points.is_empty() {
            let unfinished = group.counted().next().is_none();
            let label = study.label_in(panel, group);
            series.push(Series {
                label: if unfinished {
                    format!("{label} (unfinished)")
                } else {
                    label
                },
                style,
                points,
                is_curve: true,
            });
        }
    }
    if series.iter().all(|series| series.points.len() < 2) {
        return None;
    }
    let points = || series.iter().flat_map(|series| &series.points);
    let last = points().map(|point| point.x).fold(0.0, f64::max);
    let y = Scale::of(points().map(|point| point.y), points().flat_map(reach));
    let mut notes = Vec::new();
    if stretch > 0.0 {
        notes.push(format!("Averages over {stretch:.0} steps."));
    }
    notes.push(logarithmic(&y, "vertical"));
    notes.retain(|note| !note.is_empty());
    Some(Chart::Lines(LineChart {
        title: name.to_owned(),
        x_label: "step".into(),
        y_label: name.strip_prefix("evaluate/").unwrap_or(name).to_owned(),
        x: Scale::from_zero(last),
        y,
        has_legend: panel.groups.len() > 1,
        series,
        note: notes.join(" "),
    }))
}

/// The mean over the group's runs, and over how many steps each point is an average (0: it is none).
fn average(group: &Group, name: &str) -> (Vec<Point>, f64) {
    let runs = group.shown();
    let curves: Vec<_> = runs
        .iter()
        .filter_map(|run| run.curves.iter().find(|(known, _)| known == name))
        .map(|(_, points)| points)
        .collect();
    let longest = curves.iter().map(|points| points.len()).max().unwrap_or(0);
    let last = curves.iter().filter_map(|points| points.last());
    let last = last.map(|(step, _)| *step).fold(0.0, f64::max);
    let width = if longest > POINTS {
        (last / POINTS as f64).ceil()
    } else {
        0.0
    };
    // By stretch, the sums of each run: steps, values, count.
    let mut stretches: BTreeMap<u64, Vec<(f64, f64, f64)>> = BTreeMap::new();
    for (i, points) in curves.iter().enumerate() {
        for (step, value) in points.iter() {
            let place = if width > 0.0 {
                ((step - 1.0) / width).max(0.0)
            } else {
                *step
            };
            let sums = stretches
                .entry(place as u64)
                .or_insert_with(|| vec![(0.0, 0.0, 0.0); curves.len()]);
            sums[i].0 += step;
            sums[i].1 += value;
            sums[i].2 += 1.0;
        }
    }
    let point = |sums: Vec<(f64, f64, f64)>| {
        let there = || sums.iter().filter(|(_, _, count)| *count > 0.0);
        let values: Vec<_> = there().map(|(_, value, count)| value / count).collect();
        let count: f64 = there().map(|(_, _, count)| count).sum();
        let estimate = Estimate::of(&values)?;
        Some(Point {
            x: there().map(|(step, ..)| step).sum::<f64>() / count,
            y: estimate.mean,
            error: estimate.error,
            single: Vec::new(),
        })
    };
    (stretches.into_values().filter_map(point).collect(), width)
}
