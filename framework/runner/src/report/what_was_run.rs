//! Which experiments the runs are of, how they ended, and what ran them.

use serde_json::{Map, Value};

use super::page::{Block, Cell, Head, Section, Table};
use super::run_files::Run;
use super::study::Study;
use super::values::shown;
use crate::recipe::to_yaml;
use crate::run::State;

pub fn section(study: &Study) -> Section {
    let mut blocks = vec![Block::Table(experiments(study))];
    let uncounted: Vec<_> = study.runs().filter(|run| !run.counts()).collect();
    if !uncounted.is_empty() {
        blocks.push(Block::Table(not_counted(&uncounted)));
    }
    if !study.differences.others.is_empty() {
        blocks.push(Block::Folded(
            "Values that differ as well, and follow from these".into(),
            vec![Block::Table(other_differences(study))],
        ));
    }
    blocks.push(Block::Folded(
        match study.groups.len() {
            1 => "The recipe".into(),
            _ => "What all recipes share".into(),
        },
        vec![Block::Code(to_yaml(&study.shared()))],
    ));
    blocks.push(Block::Folded(
        "Every run, and where it is".into(),
        vec![Block::Table(every_run(study))],
    ));
    blocks.push(Block::Folded(
        "Provenance".into(),
        vec![Block::Table(provenance(study))],
    ));
    Section {
        id: "runs",
        title: "What was run",
        blocks,
    }
}

/// One row for each group: its recipe, the values that differ, and how its runs ended.
fn experiments(study: &Study) -> Table {
    let axes = &study.differences.axes;
    let mut head = vec![Head::words("recipe")];
    head.extend(axes.iter().filter(|axis| !axis.is("recipe")).map(|axis| Head {
        text: axis.label.clone(),
        aside: String::new(),
        numeric: axis.is_numeric(&study.groups),
    }));
    head.push(Head::words("seeds"));
    head.push(Head::words("runs"));
    let rows = study.groups.iter().map(|group| {
        let mut row: Vec<Cell> = vec![group.recipe_name().into()];
        let values = axes.iter().filter(|axis| !axis.is("recipe"));
        row.extend(values.map(|axis| Cell::from(axis.text(group))));
        let mut seeds: Vec<_> = group.runs.iter().filter_map(|run| run.seed).collect();
        seeds.dedup();
        row.push(list_of(&seeds).into());
        row.push(Cell {
            alarming: group.counted().next().is_none(),
            ..states(group.runs.iter()).into()
        });
        row
    });
    Table {
        caption: match study.groups.len() {
            1 => "The experiment, and how its runs ended".into(),
            _ => "Experiments by the values that tell them apart, and how their runs ended".into(),
        },
        rows: rows.collect(),
        head,
    }
}

/// 0–4 for 0, 1, 2, 3, 4.
fn list_of(seeds: &[u64]) -> String {
    match seeds {
        [first, .., last] if seeds.len() > 2 && last - first + 1 == seeds.len() as u64 => {
            format!("{first}–{last}")
        }
        seeds => {
            let seeds: Vec<_> = seeds.iter().map(u64::to_string).collect();
            seeds.join(", ")
        }
    }
}

/// How many are in which state.
pub fn states<'a>(runs: impl Iterator<Item = &'a Run>) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for run in runs {
        let word = if run.repeat { "repeated" } else { run.state.name() };
        match counts.iter_mut().find(|(known, _)| *known == word) {
            Some((_, count)) => *count += 1,
            None => counts.push((word, 1)),
        }
    }
    let counts: Vec<_> = counts
        .iter()
        .map(|(word, count)| format!("{count} {word}"))
        .collect();
    counts.join(", ")
}

fn not_counted(runs: &[&Run]) -> Table {
    let rows = runs.iter().map(|run| {
        let reached = run
            .cost
            .as_ref()
            .map(|cost| format!("{} of {} steps", cost.step, cost.steps));
        let reached = reached.or_else(|| {
            let steps = run.curves.iter().filter_map(|(_, points)| points.last());
            let last = steps.map(|(step, _)| *step).fold(0.0, f64::max);
            (last > 0.0).then(|| format!("{last} steps"))
        });
        let state = if run.repeat { "repeated" } else { run.state.name() };
        vec![
            Cell::from(run.name()),
            Cell {
                alarming: run.state.is_failure(),
                ..state.into()
            },
            Cell::maybe(reached),
            why(run).into(),
        ]
    });
    Table {
        caption: "Runs that are not part of any mean or error below".into(),
        head: ["run", "state", "reached", "reason"].map(Head::words).into(),
        rows: rows.collect(),
    }
}

/// Letters of a reason that are shown.
const REASON: usize = 400;

/// Why a run does not count.
fn why(run: &Run) -> String {
    let words = match run.state {
        State::Finished => "another run of the same seed is counted",
        State::Running => "not at its end yet",
        State::Waiting => "not begun",
        State::Interrupted => "asked to stop; --resume goes on",
        State::Killed => "began, and says nothing of an end: killed, perhaps; --resume goes on",
        State::Diverged | State::Failed => run.reason.as_deref().unwrap_or("no reason given").trim(),
    };
    match words.char_indices().nth(REASON) {
        Some((end, _)) => format!("{} …", &words[..end]),
        None => words.to_owned(),
    }
}

fn other_differences(study: &Study) -> Table {
    let mut head = vec![Head::words("key")];
    head.extend(study.groups.iter().map(|group| Head::words(study.label(group))));
    let rows = study.differences.others.iter().map(|key| {
        let mut row: Vec<Cell> = vec![key.as_str().into()];
        let values = study.groups.iter().map(|group| group.values.get(key).map(shown));
        row.extend(values.map(Cell::maybe));
        row
    });
    Table {
        caption: "Values by group; – where a recipe has no such value".into(),
        rows: rows.collect(),
        head,
    }
}

fn every_run(study: &Study) -> Table {
    let mut rows = Vec::new();
    for group in &study.groups {
        for run in &group.runs {
            let state = if run.repeat { "repeated" } else { run.state.name() };
            rows.push(vec![
                Cell::from(study.label(group)),
                Cell::maybe(run.seed.map(|seed| seed.to_string())),
                state.into(),
                run.folder.display().to_string().into(),
            ]);
        }
    }
    Table {
        caption: "Runs by group".into(),
        head: vec![
            Head::words("group"),
            Head::numbers("seed", ""),
            Head::words("state"),
            Head::words("folder"),
        ],
        rows,
    }
}

/// What to show of provenance.json, and what it is called.
const PROVENANCE: [(&str, &str); 11] = [
    ("/git/commit", "commit"),
    ("/git/dirty", "sources changed since"),
    ("/versions/runner", "runner"),
    ("/versions/tch", "tch"),
    ("/versions/libtorch", "libtorch"),
    ("/versions/hdf5", "HDF5"),
    ("/host", "host"),
    ("/cpu", "processor"),
    ("/device", "device"),
    ("/threads", "threads"),
    ("/start", "start"),
];
/// These differ as a matter of course.
const MOMENT: &str = "/start";

const UNKNOWN: &str = "unknown";

/// The values of one thing, each with how many runs have it.
fn values_of(study: &Study, pointer: &str) -> Vec<(String, usize)> {
    let mut values: Vec<(String, usize)> = Vec::new();
    for run in study.runs().filter(|run| !run.provenance.is_empty()) {
        let value = at(&run.provenance, pointer).map_or_else(|| UNKNOWN.into(), shown);
        let value = match (pointer, value.as_str()) {
            ("/git/commit", commit) => commit.chars().take(12).collect(),
            ("/git/dirty", "true") => "yes".into(),
            ("/git/dirty", "false") => "no".into(),
            _ => value,
        };
        match values.iter_mut().find(|(known, _)| *known == value) {
            Some((_, count)) => *count += 1,
            None => values.push((value, 1)),
        }
    }
    values
}

fn at<'a>(provenance: &'a Map<String, Value>, pointer: &str) -> Option<&'a Value> {
    let mut parts = pointer.trim_start_matches('/').split('/');
    let first = provenance.get(parts.next()?)?;
    let value = parts.try_fold(first, |value, part| value.get(part))?;
    Some(value).filter(|value| !value.is_null())
}

fn provenance(study: &Study) -> Table {
    let rows = PROVENANCE.iter().map(|(pointer, name)| {
        let mut values = values_of(study, pointer);
        let cell = if *pointer == MOMENT {
            values.retain(|(value, _)| value != UNKNOWN);
            values.sort();
            match &values[..] {
                [] => Cell::maybe(None),
                [(only, _)] => only.as_str().into(),
                [(first, _), .., (last, _)] => format!("{first} to {last}").into(),
            }
        } else if let [(only, _)] = &values[..] {
            only.as_str().into()
        } else {
            let all: usize = values.iter().map(|(_, count)| count).sum();
            let texts: Vec<_> = values
                .iter()
                .map(|(value, count)| format!("{value} ({count} of {all})"))
                .collect();
            Cell {
                alarming: values.len() > 1,
                ..Cell::maybe((!texts.is_empty()).then(|| texts.join(", ")))
            }
        };
        vec![Cell::from(*name), cell]
    });
    Table {
        caption: "What the runs were made with; differences between them stand out".into(),
        head: ["", "value"].map(Head::words).into(),
        rows: rows.collect(),
    }
}

/// What is to be known of the programs and machines before numbers are compared.
pub fn provenance_warnings(study: &Study) -> Vec<String> {
    let mut warnings = Vec::new();
    let dirty = values_of(study, "/git/dirty");
    if let Some((_, count)) = dirty.iter().find(|(value, _)| value == "yes") {
        warnings.push(format!(
            "{count} of {} runs were made by a program whose sources differed from their commit.",
            dirty.iter().map(|(_, count)| count).sum::<usize>()
        ));
    }
    let mut differ = |pointers: &[&str], consequence: &str| {
        let names: Vec<_> = PROVENANCE
            .iter()
            .filter(|(pointer, _)| pointers.contains(pointer) && values_of(study, pointer).len() > 1)
            .map(|(_, name)| *name)
            .collect();
        if !names.is_empty() {
            warnings.push(format!("Runs differ in {}: {consequence}.", names.join(", ")));
        }
    };
    differ(
        &[
            "/git/commit",
            "/versions/runner",
            "/versions/tch",
            "/versions/libtorch",
        ],
        "not all of them were made by the same program",
    );
    differ(
        &["/host", "/cpu", "/device", "/threads"],
        "their seconds do not compare",
    );
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_in_a_row_are_a_range() {
        assert_eq!(list_of(&[0, 1, 2, 3]), "0–3");
        assert_eq!(list_of(&[0, 1]), "0, 1");
        assert_eq!(list_of(&[0, 2, 5]), "0, 2, 5");
        assert_eq!(list_of(&[]), "");
    }
}
