//! Everything that a report is about: groups of runs, what tells them apart, and what is known of their numbers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ebipla_core::registry::OptionSpec;
use ebipla_core::{Better, Registry};
use serde_json::{Map, Value};

use super::axes::{Axis, DATASET, Differences};
use super::chart::Chart;
use super::find::Found;
use super::groups::{Group, group};
use super::page::Block;
use super::run_files::Run;
use crate::recipe::{SECTIONS, SectionKind};

pub struct Study<'a> {
    pub groups: Vec<Group>,
    pub differences: Differences,
    /// Names and titles of sweeps.
    pub titles: Vec<String>,
    /// What could not be read.
    pub notes: Vec<String>,
    pub registry: &'a Registry,
}

/// Groups whose numbers compare: those of one data set.
pub struct Panel {
    /// The data set, if there are several.
    pub title: Option<String>,
    /// Places of the groups in the study.
    pub groups: Vec<usize>,
}

impl<'a> Study<'a> {
    pub fn of(folders: &[PathBuf], registry: &'a Registry) -> Self {
        let found = Found::below(folders);
        let mut notes = found.notes;
        let mut runs = Vec::new();
        for found in &found.runs {
            match Run::read(found, registry) {
                Ok(run) => runs.push(run),
                Err(error) => notes.push(format!("{error:#}: the run is left out")),
            }
        }
        notes.extend(runs.iter().flat_map(|run| run.notes.clone()));
        let mut names = BTreeMap::new();
        let mut titles = Vec::new();
        for sweep in found.sweeps {
            for (key, name) in sweep.names {
                names.entry(key).or_insert(name);
            }
            titles.push(sweep.title.unwrap_or(sweep.name));
        }
        let mut swept: Vec<String> = Vec::new();
        for key in runs.iter().flat_map(|run| &run.set) {
            if !swept.contains(key) {
                swept.push(key.clone());
            }
        }
        let mut groups = group(runs);
        let differences = Differences::between(&groups, &names, &swept);
        differences.sort(&mut groups);
        Self {
            groups,
            differences,
            titles,
            notes,
            registry,
        }
    }

    /// The charts of each panel, below its title.
    pub fn charts(&self, of_panel: impl Fn(&Panel) -> Vec<Chart>) -> Vec<Block> {
        let mut blocks = Vec::new();
        for panel in self.panels() {
            let charts = of_panel(&panel);
            if !charts.is_empty() {
                blocks.extend(panel.title.map(Block::Heading));
                blocks.push(Block::Charts(charts));
            }
        }
        blocks
    }

    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.groups.iter().flat_map(|group| &group.runs)
    }

    pub fn label(&self, group: &Group) -> String {
        self.differences.label(group)
    }

    /// The groups of each data set.
    pub fn panels(&self) -> Vec<Panel> {
        let all: Vec<_> = (0..self.groups.len()).collect();
        let Some(axis) = self.differences.axes.iter().find(|axis| axis.is(DATASET)) else {
            return vec![Panel {
                title: None,
                groups: all,
            }];
        };
        let mut panels: Vec<Panel> = Vec::new();
        for i in all {
            let title = Some(axis.text(&self.groups[i]));
            match panels.iter_mut().find(|panel| panel.title == title) {
                Some(panel) => panel.groups.push(i),
                None => panels.push(Panel {
                    title,
                    groups: vec![i],
                }),
            }
        }
        panels
    }

    /// What a group is called among those of its panel.
    pub fn label_in(&self, panel: &Panel, group: &Group) -> String {
        self.label_in_without(panel, group, None)
    }

    /// The same without what an axis of a chart says already.
    pub fn label_in_without(&self, panel: &Panel, group: &Group, said: Option<&Axis>) -> String {
        let said = said.map(|axis| &axis.keys);
        self.differences.label_without(group, |axis| {
            Some(&axis.keys) == said || (panel.title.is_some() && axis.is(DATASET))
        })
    }

    /// Names of all final numbers of some groups, in their order.
    pub fn numbers(&self, groups: &[usize]) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let runs = groups.iter().flat_map(|i| self.groups[*i].counted());
        for (name, _) in runs.flat_map(|run| &run.numbers) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    /// Which values of a final number are better, as its metric says.
    pub fn better(&self, number: &str) -> Option<Better> {
        self.registry.better(number)
    }

    /// What an axis is called, with its unit.
    pub fn axis_label(&self, axis: &Axis) -> String {
        let mut units: Vec<_> = self
            .groups
            .iter()
            .filter_map(|group| {
                let mut keys = axis.keys.iter();
                let key = keys.find(|key| group.values.contains_key(*key))?;
                self.unit(group, key)
            })
            .collect();
        units.dedup();
        match &units[..] {
            [unit] => format!("{} [{unit}]", axis.label),
            // Keys that share an axis need not count the same.
            _ => axis.label.clone(),
        }
    }

    fn unit(&self, group: &Group, key: &str) -> Option<String> {
        let (section, rest) = key.split_once('.')?;
        let (_, kind) = SECTIONS.iter().find(|(name, _)| *name == section)?;
        let mut specs: Vec<OptionSpec> = match kind {
            SectionKind::Options(specs) | SectionKind::Notes(specs) => specs(),
            SectionKind::Plugin(kind) | SectionKind::Variant { kind, .. } => {
                let name = group.values.get(&format!("{section}.name"))?;
                self.registry.find(*kind, name.as_str()?)?.options()
            }
        };
        let mut unit = None;
        for part in rest.split('.') {
            let spec = specs.into_iter().find(|spec| spec.name == part)?;
            unit = spec.unit;
            specs = spec.options;
        }
        unit
    }

    /// The values that all groups share, as sections.
    pub fn shared(&self) -> Map<String, Value> {
        let Some(first) = self.groups.first() else {
            return Map::new();
        };
        let differs = |key: &String| {
            self.differences.others.contains(key) || self.differences.axes.iter().any(|axis| axis.is(key))
        };
        super::values::nested(first.values.iter().filter(|(key, _)| !differs(key)))
    }
}
