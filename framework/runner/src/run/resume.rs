//! Finds the run that a recipe continues, and says what has changed in the recipe since.

use std::fs;
use std::path::{Path, PathBuf};

use ebipla_core::Registry;
use serde_json::{Map, Value};

use super::{Checkpoint, Experiment, State};
use crate::recipe::Bearing;
use crate::{Problem, Recipe, RecipeError};

/// The newest run of this recipe and seed below `out`.
///
/// A run of a recipe of the same name and seed that differs where it matters is refused, key by key.
pub fn find_run(out: &Path, recipe: &Recipe, registry: &Registry) -> Result<PathBuf, RecipeError> {
    let mut runs = runs_of(out, recipe);
    runs.sort_by_key(|run| {
        fs::metadata(run.join("recipe.yaml"))
            .and_then(|data| data.modified())
            .ok()
    });
    let wrong = |problems| RecipeError {
        recipe: recipe.name.clone(),
        problems,
    };
    let mut newest = None;
    for run in runs.into_iter().rev() {
        let changes = match Recipe::load_resolved(&run.join("recipe.yaml"), registry) {
            Ok(old) => changes(&old.values, &recipe.values),
            Err(error) => error.problems,
        };
        if changes.is_empty() {
            return Ok(run);
        }
        newest.get_or_insert((run, changes));
    }
    Err(match newest {
        Some((run, mut changes)) => {
            let message = format!(
                "{} was run with another recipe; run without --resume, or take back",
                run.display()
            );
            changes.insert(0, Problem::at("", None, message));
            wrong(changes)
        }
        None => {
            let message = format!(
                "found no run of {} with seed {} in {} to resume; --resume-or-start starts one",
                recipe.name,
                recipe.run.seed,
                out.display()
            );
            wrong(vec![Problem::at("", None, message)])
        }
    })
}

/// After how many steps the run in `folder` has finished, where the experiment asks for no more.
pub fn finished_run(folder: &Path, experiment: &Experiment) -> Option<u64> {
    if State::noted(folder) != Some(State::Finished) {
        return None;
    }
    // Where the last checkpoint is damaged there is something to do after all.
    let done = Checkpoint::last_of(folder).ok()?.step();
    (done >= experiment.total_steps()).then_some(done)
}

/// Folders `NAME-HASH-sSEED` and `NAME-HASH-sSEED-2`, …
fn runs_of(out: &Path, recipe: &Recipe) -> Vec<PathBuf> {
    let entries = fs::read_dir(out).into_iter().flatten();
    let of_recipe = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let rest = name.strip_prefix(&format!("{}-", recipe.name));
        let rest = rest.and_then(|rest| rest.split_once(&format!("-s{}", recipe.run.seed)));
        rest.is_some_and(|(hash, attempt)| {
            let number = attempt
                .strip_prefix('-')
                .map(|number| number.parse::<u32>().is_ok());
            hash.len() == 8 && (attempt.is_empty() || number == Some(true))
        }) && path.join("recipe.yaml").is_file()
    };
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(of_recipe)
        .collect()
}

/// What differs where it matters.
fn changes(old: &Map<String, Value>, new: &Map<String, Value>) -> Vec<Problem> {
    let mut found = Vec::new();
    compare(
        "",
        Some(&Value::Object(old.clone())),
        Some(&Value::Object(new.clone())),
        &mut found,
    );
    found
}

fn compare(key: &str, old: Option<&Value>, new: Option<&Value>, found: &mut Vec<Problem>) {
    if old == new || Bearing::of(key).may_change() {
        return;
    }
    if let (Some(Value::Object(old)), Some(Value::Object(new))) = (old, new) {
        let added = new.keys().filter(|name| !old.contains_key(*name));
        for name in old.keys().chain(added) {
            let key = if key.is_empty() {
                name.clone()
            } else {
                format!("{key}.{name}")
            };
            compare(&key, old.get(name), new.get(name), found);
        }
        return;
    }
    let show = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), Value::to_string);
    let message = format!("was {}, is {}", show(old), show(new));
    found.push(Problem::at(key, None, message));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use serde_json::json;

    #[test]
    fn changes_are_named_by_key_and_harmless_ones_are_not() {
        let old = json!({ "run": { "seed": 1, "epochs": 2 }, "record": { "x": 1 }, "energy": { "name": "mlp", "hidden": 8 } });
        let new = json!({ "run": { "seed": 1, "epochs": 5 }, "record": {}, "energy": { "name": "mlp", "hidden": 9, "tilt": 1.0 } });
        let found = changes(old.as_object().unwrap(), new.as_object().unwrap());
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].contains("energy.hidden") && found[0].contains("was 8, is 9"),
            "{found:?}"
        );
        assert!(
            found[1].contains("energy.tilt") && found[1].contains("was nothing, is 1.0"),
            "{found:?}"
        );
    }
}
