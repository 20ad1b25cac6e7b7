//! What others published beside our numbers, and plain words where the two do not compare.

use ebipla_core::{Kind, Registry};
use serde_json::{Map, Value};

use super::axes::Differences;
use super::groups::Group;
use super::statistics::{whole, written};
use super::values::shown;
use crate::recipe::PublishedSection;

/// The recipe's section, if it has one that can be read.
pub fn section(group: &Group) -> Option<PublishedSection> {
    let section = group.recipe()?.get("published")?.clone();
    serde_json::from_value(section).ok()
}

/// The published number of that name, as it is written.
pub fn number(group: &Group, name: &str) -> Option<String> {
    let section = section(group)?;
    let numbers = section.numbers.get(name)?;
    let (value, error) = (numbers.first()?, numbers.get(1));
    // A published number has the digits that it was printed with.
    Some(match error {
        Some(error) => written(*value, Some(*error)),
        None => shown(&Value::from(*value)),
    })
}

/// Groups that a warning names.
const MOST_NAMED: usize = 3;

/// Options that change what a metric costs, not what it says.
const HARMLESS: [&str; 2] = ["batch", "weights"];

/// Why our numbers of this group may not be compared with those of others.
pub fn warnings(group: &Group, registry: &Registry) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(limit) = group.values.get("dataset.limit") {
        let limit = limit.as_f64().map_or_else(|| shown(limit), whole);
        all.push(format!(
            "trained and measured on a subset of the data: dataset.limit is {limit}"
        ));
    }
    let Some(published) = section(group) else {
        return all;
    };
    for (key, theirs) in &published.settings {
        let ours = group.values.get(key);
        if ours.and_then(Value::as_f64) != Some(*theirs) {
            let ours = ours.map_or_else(|| "none".into(), shown);
            all.push(format!(
                "{key} is {ours}; the published numbers were obtained with {}",
                shown(&Value::from(*theirs))
            ));
        }
    }
    for metric in metrics_of(group) {
        if published.numbers.contains_key(&metric) {
            all.extend(other_options(group, &metric, registry));
        } else if let Some(weights) = weights_of(group, &metric) {
            all.push(format!(
                "{metric} is taken with the weights {weights} and has no published counterpart: it is not to be compared \
                 with the published {}",
                published.numbers.keys().cloned().collect::<Vec<_>>().join(", ")
            ));
        }
    }
    all
}

/// The same warning of several groups is said once.
pub fn all_warnings(groups: &[Group], differences: &Differences, registry: &Registry) -> Vec<String> {
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    for group in groups {
        for warning in warnings(group, registry) {
            let label = differences.label(group);
            match all.iter_mut().find(|(known, _)| *known == warning) {
                Some((_, labels)) => labels.push(label),
                None => all.push((warning, vec![label])),
            }
        }
    }
    all.into_iter()
        .map(|(warning, labels)| match labels.len() {
            count if count == groups.len() => format!("All runs: {warning}."),
            count if count > MOST_NAMED => {
                format!(
                    "{count} of {} groups, {} among them: {warning}.",
                    groups.len(),
                    labels[0]
                )
            }
            _ => format!("{}: {warning}.", labels.join("; ")),
        })
        .collect()
}

fn metrics_of(group: &Group) -> Vec<String> {
    let metrics = group
        .recipe()
        .and_then(|recipe| recipe.get("evaluate")?.get("metrics"));
    let metrics = metrics.and_then(Value::as_object);
    metrics.map_or_else(Vec::new, |metrics| metrics.keys().cloned().collect())
}

/// The file of weights that the metric says it has used.
fn weights_of(group: &Group, metric: &str) -> Option<String> {
    let facts = |run: &super::run_files::Run| -> Option<String> {
        Some(run.facts.get(metric)?.get("weights")?.as_str()?.to_owned())
    };
    group.runs.iter().find_map(facts)
}

/// The defaults of a metric are what papers do.
fn other_options(group: &Group, metric: &str, registry: &Registry) -> Option<String> {
    let options: &Map<String, Value> = group
        .recipe()?
        .get("evaluate")?
        .get("metrics")?
        .get(metric)?
        .as_object()?;
    let specs = registry.find(Kind::Metric, metric)?.options();
    let other: Vec<_> = options
        .iter()
        .filter(|(name, _)| !HARMLESS.contains(&name.as_str()))
        .filter_map(|(name, value)| {
            let default = specs.iter().find(|spec| spec.name == **name)?.default.as_ref()?;
            (shown(default) != shown(value)).then(|| {
                let default = match default {
                    Value::Null => "not set".into(),
                    default => shown(default),
                };
                format!("{name} = {} (by default {default})", shown(value))
            })
        })
        .collect();
    (!other.is_empty()).then(|| {
        format!(
            "{metric} was measured otherwise than published: {}",
            other.join(", ")
        )
    })
}
