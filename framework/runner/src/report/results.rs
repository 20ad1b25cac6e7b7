//! Tables of final numbers: means over seeds, the best in bold, published ones beside ours.

use ebipla_core::Better;

use super::axes::DATASET;
use super::groups::Group;
use super::page::{Block, Cell, Head, Section, Table};
use super::published;
use super::study::{Panel, Study};

pub fn section(study: &Study) -> Section {
    let mut blocks = Vec::new();
    for panel in study.panels() {
        if let Some(table) = table(study, &panel) {
            blocks.extend(panel.title.clone().map(Block::Heading));
            blocks.push(Block::Table(table));
        }
    }
    if blocks.is_empty() {
        let text = "No run has come to its final evaluation, or none was asked for one.";
        blocks.push(Block::Text(text.into()));
    } else {
        blocks.push(Block::Text(
            "Mean ± standard error over n runs with different seeds; a single run has no error. Bold: the best mean of \
             its column, where it is known which way is better (↓ lower, ↑ higher)."
                .into(),
        ));
        blocks.extend(sources(study));
    }
    Section {
        id: "results",
        title: "Results",
        blocks,
    }
}

/// A number that is measured or published.
struct Column {
    name: String,
    better: Option<Better>,
    published: bool,
}

fn table(study: &Study, panel: &Panel) -> Option<Table> {
    let groups: Vec<&Group> = panel.groups.iter().map(|i| &study.groups[*i]).collect();
    let columns = columns(study, panel, &groups);
    if columns.is_empty() {
        return None;
    }
    let axes: Vec<_> = study
        .differences
        .axes
        .iter()
        .filter(|axis| panel.title.is_none() || !axis.is(DATASET))
        .collect();
    let mut head: Vec<Head> = match axes.is_empty() {
        true => vec![Head::words("recipe")],
        false => axes
            .iter()
            .map(|axis| Head {
                text: axis.label.clone(),
                aside: String::new(),
                numeric: axis.is_numeric(&study.groups),
            })
            .collect(),
    };
    head.push(Head::numbers("n", ""));
    for column in &columns {
        let arrow = match column.better {
            Some(Better::Lower) => " ↓",
            Some(Better::Higher) => " ↑",
            None => "",
        };
        head.push(Head::numbers(format!("{}{arrow}", column.name), ""));
        if column.published {
            head.push(Head::numbers("published", column.name.clone()));
        }
    }
    let rows = groups.iter().map(|group| {
        let mut row: Vec<Cell> = match axes.is_empty() {
            true => vec![group.recipe_name().into()],
            false => axes.iter().map(|axis| axis.text(group).into()).collect(),
        };
        row.push(group.counted().count().to_string().into());
        for column in &columns {
            row.push(cell(group, column, &groups));
            if column.published {
                row.push(Cell::maybe(published::number(group, &column.name)));
            }
        }
        row
    });
    Some(Table {
        caption: match &panel.title {
            Some(title) => format!("Final numbers on {title}"),
            None => "Final numbers".into(),
        },
        rows: rows.collect(),
        head,
    })
}

fn columns(study: &Study, panel: &Panel, groups: &[&Group]) -> Vec<Column> {
    let mut names = study.numbers(&panel.groups);
    for group in groups {
        let section = published::section(group);
        for name in section.iter().flat_map(|section| section.numbers.keys()) {
            if !names.contains(name) && name != super::cost::SECONDS_PER_STEP {
                names.push(name.clone());
            }
        }
    }
    names
        .into_iter()
        .map(|name| Column {
            better: study.better(&name),
            published: groups
                .iter()
                .any(|group| published::number(group, &name).is_some()),
            name,
        })
        .collect()
}

fn cell(group: &Group, column: &Column, among: &[&Group]) -> Cell {
    let Some(estimate) = group.estimate(&column.name) else {
        let measured = group.counted().any(|run| has(run, &column.name));
        return Cell::maybe(measured.then(|| "not finite".into()));
    };
    let means = || among.iter().filter_map(|group| group.estimate(&column.name));
    let best = match column.better {
        _ if means().count() < 2 => false,
        Some(Better::Lower) => means().all(|other| estimate.mean <= other.mean),
        Some(Better::Higher) => means().all(|other| estimate.mean >= other.mean),
        None => false,
    };
    let counted = group.counted().count();
    let aside = match counted - estimate.n {
        0 => String::new(),
        _ => format!(
            "over {} of {counted} runs; the others have none, or one that is not finite",
            estimate.n
        ),
    };
    Cell {
        text: estimate.text(),
        bold: best,
        aside,
        alarming: false,
    }
}

fn has(run: &super::run_files::Run, name: &str) -> bool {
    run.numbers.iter().any(|(known, _)| known == name)
}

/// Where the published numbers stand.
fn sources(study: &Study) -> Option<Block> {
    let mut sources: Vec<String> = Vec::new();
    for section in study.groups.iter().filter_map(published::section) {
        if !section.source.is_empty() && !sources.contains(&section.source) {
            sources.push(section.source);
        }
    }
    (!sources.is_empty()).then(|| Block::Text(format!("Published: {}.", sources.join("; "))))
}
