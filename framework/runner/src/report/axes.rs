//! Finds what tells groups of runs apart: as few values as it takes, the swept ones first.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::groups::Group;
use super::values::shown;

/// Plugins that name an experiment, before any option does.
const NAMES: [&str; 6] = [
    "dataset.name",
    "algorithm.name",
    "prior_sampler.name",
    "energy.name",
    "generator.name",
    "evaluation_sampler.name",
];
pub const DATASET: &str = "dataset.name";
/// Not a key of recipes: their name.
const RECIPE: &str = "recipe";

/// A value that tells groups apart.
#[derive(Clone, Debug)]
pub struct Axis {
    pub label: String,
    /// Keys that share the axis; a group has the first of them that its recipe knows.
    pub keys: Vec<String>,
}

/// All that differs.
#[derive(Debug, Default)]
pub struct Differences {
    /// Enough to tell all groups apart.
    pub axes: Vec<Axis>,
    /// Keys that differ as well, but follow from those.
    pub others: Vec<String>,
}

impl Axis {
    pub fn value(&self, group: &Group) -> Option<Value> {
        if self.keys[0] == RECIPE {
            return Some(group.recipe_name().into());
        }
        self.keys.iter().find_map(|key| group.values.get(key)).cloned()
    }

    pub fn number(&self, group: &Group) -> Option<f64> {
        self.value(group)?.as_f64()
    }

    pub fn text(&self, group: &Group) -> String {
        self.value(group)
            .map_or_else(|| "–".into(), |value| shown(&value))
    }

    /// Whether all that have a value have a number.
    pub fn is_numeric(&self, groups: &[Group]) -> bool {
        let mut values = groups.iter().filter_map(|group| self.value(group));
        values.all(|value| value.is_number())
    }

    /// Whether its values are names that speak for themselves.
    pub fn is_name(&self) -> bool {
        self.keys[0] == RECIPE || self.keys[0].ends_with(".name")
    }

    pub fn is(&self, key: &str) -> bool {
        self.keys.iter().any(|known| known == key)
    }

    fn of(keys: Vec<String>, names: &BTreeMap<String, String>) -> Self {
        let key = &keys[0];
        let label = names.get(key).map_or(short(key), String::as_str).to_owned();
        Self { label, keys }
    }
}

/// The last part of a key; of a plugin's name, its section.
fn short(key: &str) -> &str {
    let key = key.strip_suffix(".name").unwrap_or(key);
    key.rsplit('.').next().unwrap_or(key)
}

impl Differences {
    /// `names` are short names of keys, `swept` the keys that sweeps set.
    pub fn between(groups: &[Group], names: &BTreeMap<String, String>, swept: &[String]) -> Self {
        let mut differing: Vec<String> = Vec::new();
        for key in groups.iter().flat_map(|group| group.values.keys()) {
            if !differing.contains(key) && kinds(groups, &Axis::of(vec![key.clone()], names)) > 1 {
                differing.push(key.clone());
            }
        }
        let mut axes: Vec<Axis> = Vec::new();
        let mut take = |axis: Axis, even_if_it_follows: bool| {
            let known = axis.keys.iter().any(|key| axes.iter().any(|axis| axis.is(key)));
            if known || kinds(groups, &axis) < 2 {
                return;
            }
            let before = classes(groups, &axes);
            axes.push(axis);
            if classes(groups, &axes) == before && !even_if_it_follows {
                axes.pop();
            }
        };
        let single = |key: &str| Axis::of(vec![key.to_owned()], names);
        for key in NAMES {
            take(single(key), names.contains_key(key));
        }
        for axis in named_axes(names) {
            take(axis, true);
        }
        for key in swept {
            take(single(key), false);
        }
        take(single(RECIPE), false);
        for key in &differing {
            take(single(key), false);
        }
        let labels: Vec<_> = axes.iter().map(|axis| axis.label.clone()).collect();
        for axis in &mut axes {
            if labels.iter().filter(|label| **label == axis.label).count() > 1 {
                axis.label = axis.keys[0].clone();
            }
        }
        differing.retain(|key| !axes.iter().any(|axis| axis.is(key)));
        Self {
            axes,
            others: differing,
        }
    }

    /// What a group is called: its values on the axes, or its recipe where there is nothing to tell apart.
    pub fn label(&self, group: &Group) -> String {
        self.label_without(group, |_| false)
    }

    /// The same without some axes.
    pub fn label_without(&self, group: &Group, without: impl Fn(&Axis) -> bool) -> String {
        let parts: Vec<_> = self
            .axes
            .iter()
            .filter(|axis| !without(axis))
            .filter_map(|axis| {
                let value = shown(&axis.value(group)?);
                Some(if axis.is_name() {
                    value
                } else {
                    format!("{} = {value}", axis.label)
                })
            })
            .collect();
        if parts.is_empty() {
            return group.recipe_name().to_owned();
        }
        parts.join(" · ")
    }

    /// Sorts groups by their values, numbers by size, names in the order in which they came.
    pub fn sort(&self, groups: &mut [Group]) {
        let order: Vec<Vec<String>> = self
            .axes
            .iter()
            .map(|axis| groups.iter().map(|group| axis.text(group)).collect())
            .collect();
        groups.sort_by(|a, b| {
            let each = self.axes.iter().zip(&order).map(|(axis, order)| {
                let place = |group: &Group| order.iter().position(|text| *text == axis.text(group));
                match (axis.number(a), axis.number(b)) {
                    (Some(a), Some(b)) => a.total_cmp(&b),
                    _ => place(a).cmp(&place(b)),
                }
            });
            each.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        });
    }
}

/// Keys of the same short name together.
fn named_axes(names: &BTreeMap<String, String>) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::new();
    for (key, name) in names {
        match axes.iter_mut().find(|axis| axis.label == *name) {
            Some(axis) => axis.keys.push(key.clone()),
            None => axes.push(Axis::of(vec![key.clone()], names)),
        }
    }
    axes
}

/// How many values an axis has.
fn kinds(groups: &[Group], axis: &Axis) -> usize {
    let values: BTreeSet<_> = groups.iter().map(|group| axis.text(group)).collect();
    values.len()
}

/// How many groups can be told apart.
fn classes(groups: &[Group], axes: &[Axis]) -> usize {
    let places: BTreeSet<Vec<String>> = groups
        .iter()
        .map(|group| axes.iter().map(|axis| axis.text(group)).collect())
        .collect();
    places.len()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use serde_json::json;

    fn groups(recipes: &[Value]) -> Vec<Group> {
        recipes
            .iter()
            .map(|values| Group {
                values: values.as_object().unwrap().clone(),
                runs: Vec::new(),
            })
            .collect()
    }

    fn study(names: Value, swept: &[&str]) -> (Vec<String>, Vec<String>, Vec<String>) {
        let mut groups = groups(&[
            json!({"algorithm.name": "ebipla", "algorithm.particles": 16, "algorithm.step_size": 0.7, "energy.activation": "silu"}),
            json!({"algorithm.name": "ebipla", "algorithm.particles": 4, "algorithm.step_size": 0.9, "energy.activation": "silu"}),
            json!({"algorithm.name": "lebm", "algorithm.posterior_steps": 4, "algorithm.step_size": 1.0, "energy.activation": "relu"}),
        ]);
        let swept: Vec<_> = swept.iter().map(|key| (*key).to_owned()).collect();
        let found = Differences::between(&groups, &serde_json::from_value(names).unwrap(), &swept);
        found.sort(&mut groups);
        let labels = groups.iter().map(|group| found.label(group)).collect();
        let axes = found.axes.iter().map(|axis| axis.label.clone()).collect();
        (axes, found.others, labels)
    }

    #[test]
    fn as_few_values_as_it_takes() {
        let (axes, others, labels) = study(json!({}), &["algorithm.step_size"]);
        assert_eq!(axes, ["algorithm", "step_size"]);
        let follow = [
            "algorithm.particles",
            "energy.activation",
            "algorithm.posterior_steps",
        ];
        assert_eq!(others, follow);
        assert_eq!(labels[0], "ebipla · step_size = 0.7");
    }

    #[test]
    fn keys_of_one_short_name_share_an_axis() {
        let names = json!({"algorithm.particles": "N", "algorithm.posterior_steps": "N"});
        let (axes, others, labels) = study(names, &[]);
        assert_eq!(axes, ["algorithm", "N"]);
        assert_eq!(others, ["algorithm.step_size", "energy.activation"]);
        assert_eq!(labels, ["ebipla · N = 4", "ebipla · N = 16", "lebm · N = 4"]);
    }

    #[test]
    fn one_group_has_no_differences() {
        let groups = groups(&[json!({"algorithm.name": "lebm"})]);
        let found = Differences::between(&groups, &BTreeMap::new(), &["algorithm.name".into()]);
        assert!(found.axes.is_empty() && found.others.is_empty());
    }
}
