//! Final numbers against the values that were swept.

use std::collections::BTreeSet;

use ebipla_core::Better;

use super::axes::Axis;
use super::chart::{Chart, DotPlot, LineChart, Point, Row, Scale, Series};
use super::groups::Group;
use super::page::{Block, Section};
use super::statistics::Estimate;
use super::study::{Panel, Study};

/// `None` where there is nothing to compare.
pub fn section(study: &Study) -> Option<Section> {
    let mut blocks = study.charts(|panel| {
        let numbers = study.numbers(&panel.groups);
        // Others than those are remarks on a measurement.
        let compared = |name: &&String| study.better(name).is_some() || !name.contains('/');
        let charts = numbers.iter().filter(compared).flat_map(|name| {
            charts_of(study, panel, name, &y_label(study, name), |group| {
                group.finals(name)
            })
        });
        charts.collect()
    });
    if blocks.is_empty() {
        return None;
    }
    blocks.push(Block::Remark(
        "Marks are means, bars one standard error to either side, small dots single runs.".into(),
    ));
    Some(Section {
        id: "compared",
        title: "Numbers compared",
        blocks,
    })
}

fn y_label(study: &Study, name: &str) -> String {
    match study.better(name) {
        Some(Better::Lower) => format!("{name} (lower is better)"),
        Some(Better::Higher) => format!("{name} (higher is better)"),
        None => name.to_owned(),
    }
}

/// A chart of `finals` for each swept number, or a dot plot of all groups where none was swept.
pub fn charts_of(
    study: &Study,
    panel: &Panel,
    title: &str,
    label: &str,
    finals: impl Fn(&Group) -> Vec<f64>,
) -> Vec<Chart> {
    let mut charts = Vec::new();
    for axis in &study.differences.axes {
        charts.extend(line_chart(study, panel, axis, title, label, &finals));
    }
    if charts.is_empty() {
        charts.extend(dot_plot(study, panel, title, label, &finals));
    }
    charts
}

/// One line for each combination of the other values.
fn line_chart(
    study: &Study,
    panel: &Panel,
    axis: &Axis,
    title: &str,
    label: &str,
    finals: impl Fn(&Group) -> Vec<f64>,
) -> Option<Chart> {
    let mut series: Vec<Series> = Vec::new();
    for i in &panel.groups {
        let group = &study.groups[*i];
        // Below an axis there are numbers, or it is none.
        let Some(x) = axis.number(group) else {
            continue;
        };
        let single = finals(group);
        let Some(estimate) = Estimate::of(&single) else {
            continue;
        };
        let others = study.label_in_without(panel, group, Some(axis));
        let point = Point {
            x,
            y: estimate.mean,
            error: estimate.error,
            single: if single.len() > 1 { single } else { Vec::new() },
        };
        match series.iter_mut().find(|series| series.label == others) {
            Some(series) => series.points.push(point),
            None => series.push(Series {
                label: others,
                style: series.len(),
                points: vec![point],
                is_curve: false,
            }),
        }
    }
    if series.iter().all(|series| series.points.len() < 2) {
        return None;
    }
    for series in &mut series {
        series.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    let points = || series.iter().flat_map(|series| &series.points);
    let x: Vec<_> = points().map(|point| point.x).collect();
    let y = Scale::of(points().map(|point| point.y), points().flat_map(reach));
    Some(Chart::Lines(LineChart {
        title: format!("{title} against {}", axis.label),
        x_label: study.axis_label(axis),
        y_label: label.to_owned(),
        x: Scale::swept(&x),
        note: logarithmic(&y, "vertical"),
        y,
        has_legend: series.len() > 1,
        series,
    }))
}

/// How far a point's bar or band reaches, and what its mean is taken over.
pub fn reach(point: &Point) -> impl Iterator<Item = f64> {
    let error = point.error.unwrap_or(0.0);
    let ends = [point.y + error, point.y - error];
    ends.into_iter().chain(point.single.iter().copied())
}

fn dot_plot(
    study: &Study,
    panel: &Panel,
    title: &str,
    label: &str,
    finals: impl Fn(&Group) -> Vec<f64>,
) -> Option<Chart> {
    let mut rows = Vec::new();
    for i in &panel.groups {
        let group = &study.groups[*i];
        let single = finals(group);
        if let Some(estimate) = Estimate::of(&single) {
            rows.push(Row {
                label: study.label_in(panel, group),
                style: rows.len(),
                estimate,
                single: if single.len() > 1 { single } else { Vec::new() },
            });
        }
    }
    let labels: BTreeSet<_> = rows.iter().map(|row| &row.label).collect();
    if labels.len() < 2 {
        return None;
    }
    let ends = rows.iter().flat_map(|row| {
        let Estimate { mean, error, .. } = row.estimate;
        let error = error.unwrap_or(0.0);
        [mean + error, mean - error]
            .into_iter()
            .chain(row.single.iter().copied())
    });
    let x = Scale::of(rows.iter().map(|row| row.estimate.mean), ends);
    Some(Chart::Dots(DotPlot {
        title: title.to_owned(),
        x_label: label.to_owned(),
        note: logarithmic(&x, "horizontal"),
        x,
        rows,
    }))
}

/// A word about a scale that is not what one expects.
pub fn logarithmic(scale: &Scale, which: &str) -> String {
    if scale.is_logarithmic() {
        return format!("Logarithmic {which} scale.");
    }
    if scale.is_signed() {
        return format!("The {which} scale is linear around 0 and logarithmic farther out.");
    }
    String::new()
}
