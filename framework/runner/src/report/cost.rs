//! What runs cost: seconds, gradients, memory.

use serde_json::Value;

use super::groups::Group;
use super::page::{Block, Cell, Head, Section, Table};
use super::published;
use super::run_files::Run;
use super::statistics::{Estimate, four_digits, whole};
use super::study::{Panel, Study};
use super::swept::charts_of;
use crate::run::Account;

/// What recipes call it among published numbers.
pub const SECONDS_PER_STEP: &str = "seconds_per_step";

pub fn section(study: &Study) -> Section {
    let seconds = |group: &Group| each(group, seconds_per_step);
    let mut blocks = vec![Block::Table(table(study))];
    let all = Panel {
        title: None,
        groups: (0..study.groups.len()).collect(),
    };
    let charts = charts_of(study, &all, "Seconds per step", "seconds per step", seconds);
    if !charts.is_empty() {
        blocks.insert(0, Block::Charts(charts));
    }
    blocks.push(Block::Text(
        "Seconds are those of training alone, without evaluation, checkpoints and pictures; the time from start to end has \
         everything in it, also that of earlier parts of a resumed run. A gradient is one row through a network, forward \
         and backward. Mean ± standard error over counted runs."
            .into(),
    ));
    if study.runs().any(|run| run.counts() && run.cost.is_none()) {
        blocks.push(Block::Text(
            "Runs without progress.json, which older versions did not write, have only the time from start to end.".into(),
        ));
    }
    if study
        .groups
        .iter()
        .any(|group| published::number(group, SECONDS_PER_STEP).is_some())
    {
        let text = "Published seconds were taken on other hardware than ours: only their ratios compare.";
        blocks.push(Block::Warnings(vec![text.into()]));
    }
    Section {
        id: "cost",
        title: "Runtime and cost",
        blocks,
    }
}

fn seconds_per_step(cost: &Account) -> Option<f64> {
    (cost.steps_taken > 0 && cost.seconds > 0.0).then(|| cost.seconds / cost.steps_taken as f64)
}

/// Some number of every counted run that has it.
fn each(group: &Group, number: impl Fn(&Account) -> Option<f64>) -> Vec<f64> {
    group
        .counted()
        .filter_map(|run| number(run.cost.as_ref()?))
        .collect()
}

fn table(study: &Study) -> Table {
    let published = study
        .groups
        .iter()
        .any(|group| published::number(group, SECONDS_PER_STEP).is_some());
    let mut head = vec![Head::words("group")];
    head.push(Head::numbers("steps", ""));
    head.push(Head::numbers("training", "s"));
    head.push(Head::numbers("per step", "s"));
    if published {
        head.push(Head::numbers("published", "s per step"));
    }
    head.push(Head::numbers("start to end", "min"));
    head.push(Head::numbers("generator gradients", ""));
    head.push(Head::numbers("energy gradients", ""));
    head.push(Head::numbers("peak memory", "GiB"));
    let rows = study.groups.iter().map(|group| {
        let estimate = |values: Vec<f64>| Cell::maybe(Estimate::of(&values).map(|estimate| estimate.text()));
        let count =
            |values: Vec<f64>| Cell::maybe(Estimate::of(&values).map(|estimate| counted(estimate.mean)));
        let mut row = vec![Cell::from(study.label(group)), count(steps(group))];
        row.push(estimate(each(group, |cost| Some(cost.seconds))));
        row.push(estimate(each(group, seconds_per_step)));
        if published {
            row.push(Cell::maybe(published::number(group, SECONDS_PER_STEP)));
        }
        row.push(estimate(group.counted().filter_map(minutes).collect()));
        row.push(count(each(group, |cost| Some(cost.generator_gradients as f64))));
        row.push(count(each(group, |cost| Some(cost.energy_gradients as f64))));
        row.push(estimate(each(group, |cost| cost.peak_memory_gib)));
        row
    });
    Table {
        caption: "What a run cost".into(),
        rows: rows.collect(),
        head,
    }
}

/// Small counts exactly, large ones by their size.
fn counted(value: f64) -> String {
    if value < 1e6 {
        whole(value)
    } else {
        four_digits(value)
    }
}

fn steps(group: &Group) -> Vec<f64> {
    let steps = |run: &Run| match &run.cost {
        Some(cost) => Some(cost.step as f64),
        None => {
            let ends = run.curves.iter().filter_map(|(_, points)| points.last());
            ends.map(|(step, _)| *step).reduce(f64::max)
        }
    };
    group.counted().filter_map(steps).collect()
}

/// From start to end, over all parts of a run.
fn minutes(run: &Run) -> Option<f64> {
    let last = Value::Object(run.provenance.clone());
    let earlier = run.provenance.get("earlier_parts").and_then(Value::as_array);
    let parts = earlier.into_iter().flatten().chain([&last]);
    let minutes = parts.map(|part| {
        let moment = |name: &str| part.get(name)?.as_str()?.parse::<jiff::Timestamp>().ok();
        let (start, end) = (moment("start")?, moment("end")?);
        Some(end.duration_since(start).as_secs_f64() / 60.0)
    });
    minutes.sum()
}
