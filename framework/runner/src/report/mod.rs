//! Turns any set of runs and sweeps into one page to look at, and the same as text.

mod axes;
mod chart;
mod cost;
mod curves;
mod curves_file;
mod find;
mod groups;
mod html;
mod markdown;
mod page;
mod pictures;
mod published;
mod results;
mod run_files;
mod statistics;
mod study;
mod swept;
mod values;
mod what_was_run;

use std::path::PathBuf;

use ebipla_core::Registry;
use page::{Block, Page, Section};
use study::Study;

/// A report in both its forms.
pub struct Report {
    pub html: String,
    pub markdown: String,
}

/// Reports on all runs below `folders`; `None` if there are none.
pub fn report(folders: &[PathBuf], registry: &Registry) -> Option<Report> {
    let study = Study::of(folders, registry);
    if study.groups.is_empty() && study.notes.is_empty() {
        return None;
    }
    let page = compose(&study);
    Some(Report {
        html: html::page(&page),
        markdown: markdown::page(&page),
    })
}

fn compose(study: &Study) -> Page {
    let mut notes = study.notes.clone();
    let pictures = pictures::section(study, &mut notes);
    let mut sections = Vec::new();
    if !study.groups.is_empty() {
        sections.push(what_was_run::section(study));
        sections.push(results::section(study));
        sections.extend(swept::section(study));
        sections.extend(pictures);
        sections.extend(curves::section(study));
        sections.push(cost::section(study));
    }
    if let Some(warnings) = warnings(study, notes) {
        sections.insert(0, warnings);
    }
    Page {
        title: title(study),
        summary: summary(study),
        sections,
    }
}

/// What to know before believing the rest.
fn warnings(study: &Study, notes: Vec<String>) -> Option<Section> {
    let mut all = Vec::new();
    let uncounted = study.runs().filter(|run| !run.counts()).count();
    if uncounted > 0 {
        all.push(format!(
            "{uncounted} of {} runs are not counted in any mean: {}.",
            study.runs().count(),
            what_was_run::states(study.runs().filter(|run| !run.counts()))
        ));
    }
    all.extend(published::all_warnings(
        &study.groups,
        &study.differences,
        study.registry,
    ));
    all.extend(what_was_run::provenance_warnings(study));
    all.extend(notes);
    (!all.is_empty()).then(|| Section {
        id: "warnings",
        title: "Before you compare",
        blocks: vec![Block::Warnings(all)],
    })
}

fn title(study: &Study) -> String {
    if !study.titles.is_empty() {
        return study.titles.join(", ");
    }
    let mut names: Vec<_> = study.groups.iter().map(|group| group.recipe_name()).collect();
    names.dedup();
    match &names[..] {
        [] => "Report".into(),
        [first, second, third, .., _] if names.len() > 4 => {
            format!("{first}, {second}, {third} and {} more", names.len() - 3)
        }
        names => names.join(", "),
    }
}

fn summary(study: &Study) -> Vec<String> {
    let plural = |count: usize, one: &str, many: &str| match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {many}"),
    };
    let runs = study.runs().count();
    let now = jiff::Timestamp::now().to_string();
    vec![format!(
        "{} of {}: {}. Written by runner {} on {}.",
        plural(runs, "run", "runs"),
        plural(study.groups.len(), "experiment", "experiments"),
        what_was_run::states(study.runs()),
        env!("CARGO_PKG_VERSION"),
        now.get(..10).unwrap_or_default(),
    )]
}
