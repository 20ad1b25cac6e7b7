//! Reads what a run's folder says, and notes what cannot be read instead of giving up.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context;
use ebipla_core::Registry;
use serde_json::{Map, Value};

use super::curves_file::{self, Curves};
use super::find::FoundRun;
use crate::Recipe;
use crate::run::{Account, State};

/// One run, as its files tell.
#[derive(Debug)]
pub struct Run {
    pub folder: PathBuf,
    /// The recipe's file stem.
    pub recipe_name: String,
    /// All values, those included that came with a newer version of the program.
    pub recipe: Map<String, Value>,
    pub seed: Option<u64>,
    pub state: State,
    /// Why it is in that state, in its own words.
    pub reason: Option<String>,
    /// Final numbers by name, in their order; `None` where a number was not finite.
    pub numbers: Vec<(String, Option<f64>)>,
    /// What has to stand beside them, by metric.
    pub facts: Map<String, Value>,
    pub provenance: Map<String, Value>,
    pub cost: Option<Account>,
    pub curves: Curves,
    /// The last picture of each kind.
    pub pictures: BTreeMap<String, PathBuf>,
    /// What could not be read.
    pub notes: Vec<String>,
    /// What a sweep set for it.
    pub set: Vec<String>,
    /// Whether an earlier one of its group has the same seed, and so the same numbers.
    pub repeat: bool,
}

impl Run {
    /// Fails only where there is no telling what was run.
    pub fn read(found: &FoundRun, registry: &Registry) -> anyhow::Result<Self> {
        let folder = &found.folder;
        let recipe = read_recipe(&folder.join("recipe.yaml"), registry)?;
        let mut notes = Vec::new();
        let mut json = |name: &str| match read_json(&folder.join(name)) {
            Ok(value) => value,
            Err(error) => {
                notes.push(format!("{error:#}"));
                None
            }
        };
        let provenance = json("provenance.json").and_then(object);
        // Damage is noted; what it says is in the state.
        json("outcome.json");
        let mut evaluation = json("evaluation.json").and_then(object).unwrap_or_default();
        let cost = json("progress.json").map(serde_json::from_value);
        let cost = cost.transpose().unwrap_or_else(|error| {
            notes.push(format!("{}/progress.json: {error}", folder.display()));
            None
        });
        let curves = curves_file::read(folder, &mut notes);
        let facts = evaluation.shift_remove("facts").and_then(object);
        let numbers = evaluation
            .into_iter()
            .filter(|(name, value)| name != "step" && (value.is_number() || value.is_null()))
            .map(|(name, value)| (name, value.as_f64()));
        let (state, reason) = State::of(folder);
        let provenance = provenance.unwrap_or_default();
        let member = found.member.as_ref();
        Ok(Self {
            recipe_name: member
                .map(|member| member.recipe.clone())
                .filter(|name| !name.is_empty())
                .unwrap_or_else(|| recipe_name(folder)),
            seed: recipe.get("run").and_then(|run| run["seed"].as_u64()),
            numbers: numbers.collect(),
            facts: facts.unwrap_or_default(),
            set: member.map_or_else(Vec::new, |member| member.values.keys().cloned().collect()),
            pictures: last_pictures(&folder.join("figures")),
            folder: folder.clone(),
            repeat: false,
            recipe,
            state,
            reason,
            provenance,
            cost,
            curves,
            notes,
        })
    }

    /// The folder's own name.
    pub fn name(&self) -> String {
        let name = self.folder.canonicalize().unwrap_or_else(|_| self.folder.clone());
        let name = name.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Whether its numbers go into means.
    pub fn counts(&self) -> bool {
        self.state == State::Finished && !self.repeat
    }
}

/// With today's defaults for options that did not exist when it was written; as it stands, if it is of another time.
fn read_recipe(path: &Path, registry: &Registry) -> anyhow::Result<Map<String, Value>> {
    if let Ok(recipe) = Recipe::load_resolved(path, registry) {
        return Ok(recipe.values);
    }
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let value: Value =
        serde_saphyr::from_str(&text).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
    object(value).with_context(|| format!("{} is not a mapping from sections to options", path.display()))
}

fn object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

fn read_json(path: &Path) -> anyhow::Result<Option<Value>> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.with_context(|| format!("reading {}", path.display()))?,
    };
    let value = serde_json::from_slice(&text).with_context(|| format!("{} is damaged", path.display()))?;
    Ok(Some(value))
}

/// NAME of NAME-HASH-sSEED, or all of the folder's name where it is another.
fn recipe_name(folder: &Path) -> String {
    let name = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let name = name
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let is_hash = |part: &str| part.len() == 8 && part.chars().all(|c| c.is_ascii_hexdigit());
    let parts: Vec<_> = name.split('-').collect();
    match parts.iter().rposition(|part| is_hash(part)) {
        Some(hash) if hash > 0 => parts[..hash].join("-"),
        _ => name,
    }
}

/// Files are called step_NNNNNNNN_KIND.png; runs of old have no kind.
fn last_pictures(folder: &Path) -> BTreeMap<String, PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let mut last = BTreeMap::new();
    for path in paths {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let kind = name
            .strip_prefix("step_")
            .and_then(|rest| rest.strip_suffix(".png"))
            .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
        if let Some(kind) = kind {
            let kind = kind.trim_start_matches('_');
            let kind = if kind.is_empty() { "model" } else { kind };
            last.insert(kind.to_owned(), path);
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_called_after_its_recipe() {
        for (folder, name) in [
            ("runs/swiss_roll-0577dea5-s1", "swiss_roll"),
            ("runs/a-b-0577dea5-s1-2", "a-b"),
            ("runs/mine", "mine"),
        ] {
            assert_eq!(recipe_name(Path::new(folder)), name);
        }
    }
}
