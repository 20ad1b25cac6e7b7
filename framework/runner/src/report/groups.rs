//! Puts runs together that differ in nothing but their seed.

use serde_json::{Map, Value};

use super::run_files::Run;
use super::statistics::Estimate;
use super::values;

/// Runs of one experiment.
#[derive(Debug)]
pub struct Group {
    /// Its recipe's values by dotted key.
    pub values: Map<String, Value>,
    pub runs: Vec<Run>,
}

impl Group {
    /// Runs whose numbers go into means.
    pub fn counted(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.counts())
    }

    /// Those, or, if there are none, all that have begun.
    pub fn shown(&self) -> Vec<&Run> {
        let counted: Vec<_> = self.counted().collect();
        if counted.is_empty() {
            return self.runs.iter().filter(|run| !run.repeat).collect();
        }
        counted
    }

    pub fn recipe_name(&self) -> &str {
        self.runs.first().map_or("", |run| run.recipe_name.as_str())
    }

    /// The resolved recipe of one of its runs.
    pub fn recipe(&self) -> Option<&Map<String, Value>> {
        self.runs.first().map(|run| &run.recipe)
    }

    /// The final number `name` of every counted run that has a finite one.
    pub fn finals(&self, name: &str) -> Vec<f64> {
        let of_run = |run: &Run| {
            let (_, value) = run.numbers.iter().find(|(known, _)| known == name)?;
            *value
        };
        self.counted().filter_map(of_run).collect()
    }

    pub fn estimate(&self, name: &str) -> Option<Estimate> {
        Estimate::of(&self.finals(name))
    }
}

/// Groups in the order of their first run.
pub fn group(runs: Vec<Run>) -> Vec<Group> {
    let mut groups: Vec<(Vec<(String, String)>, Group)> = Vec::new();
    for run in runs {
        let values = values::flat(&run.recipe);
        let mut identity: Vec<_> = values
            .iter()
            .map(|(key, value)| (key.clone(), values::shown(value)))
            .collect();
        identity.sort();
        match groups.iter_mut().find(|(known, _)| *known == identity) {
            Some((_, group)) => group.runs.push(run),
            None => {
                let runs = vec![run];
                groups.push((identity, Group { values, runs }));
            }
        }
    }
    let mut groups: Vec<_> = groups.into_iter().map(|(_, group)| group).collect();
    for group in &mut groups {
        // Those that count come first, so that of two with the same seed it is the finished one that does.
        group.runs.sort_by_key(|run| (run.seed, !run.counts()));
        for i in 1..group.runs.len() {
            group.runs[i].repeat = group.runs[i].seed == group.runs[i - 1].seed;
        }
    }
    groups
}
