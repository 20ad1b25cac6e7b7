//! Collects the layers of a recipe: base files, the file, the environment, the command line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use figment::value::{Dict, Value};

use super::layer::{Layer, Override, Source};
use super::locate::{RecipeFolders, find_from};
use super::nothing_said::empty_mappings;
use super::sections::{SECTIONS, SectionKind};
use super::{Origin, Problem, RecipeError, shipped, yaml};

/// Environment variables that begin like this set values: `EBIPLA__RUN__SEED=3`.
const PREFIX: &str = "EBIPLA__";

/// All layers in rising precedence, with the options of replaced plugins already dropped.
pub fn layers(
    path: &Path,
    environment: &[(String, String)],
    set: &[Override],
    folders: &RecipeFolders,
) -> Result<Vec<Layer>, RecipeError> {
    let mut files = Files {
        folders,
        layers: Vec::new(),
        problems: Vec::new(),
        open: Vec::new(),
    };
    files.add(path, None);
    let mut problems = files.problems;
    let mut layers = files.layers;
    layers.push(override_layer(&environment_overrides(environment), &mut problems));
    layers.push(override_layer(set, &mut problems));
    if !problems.is_empty() {
        return Err(RecipeError {
            recipe: path.display().to_string(),
            problems,
        });
    }
    drop_replaced_options(&mut layers);
    Ok(layers)
}

/// Files read so far, bases before what extends them.
struct Files<'a> {
    /// Where names are looked up.
    folders: &'a RecipeFolders,
    layers: Vec<Layer>,
    problems: Vec<Problem>,
    /// The chain of files that led to the one being read.
    open: Vec<PathBuf>,
}

impl Files<'_> {
    fn add(&mut self, path: &Path, extended_by: Option<&Origin>) {
        let text = match shipped::read(path) {
            Ok(text) => text,
            Err(problem) => {
                let message = format!("cannot read {}: {problem}", path.display());
                let key = if extended_by.is_some() { "extends" } else { "" };
                self.problems.push(Problem::at(key, extended_by, message));
                return;
            }
        };
        let identity = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if let Some(start) = self.open.iter().position(|open| *open == identity) {
            let cycle: Vec<_> = self.open[start..]
                .iter()
                .chain([&identity])
                .map(|path| {
                    path.file_name()
                        .unwrap_or_default()
                        .to_string_lossy()
                        .into_owned()
                })
                .collect();
            let message = format!("files extend each other in a circle: {}", cycle.join(" → "));
            self.problems.push(Problem::at("extends", extended_by, message));
            return;
        }
        let document = match yaml::parse(&text) {
            Ok(document) => document,
            Err(error) => {
                let origin = Origin::File {
                    path: path.to_owned(),
                    line: error.line,
                };
                self.problems.push(Problem::at("", Some(&origin), error.message));
                return;
            }
        };
        let mut layer = Layer {
            source: Source::File(path.to_owned()),
            emptied: empty_in(&document.values),
            values: document.values,
            lines: document.lines,
        };
        let origin = layer.origin("extends");
        self.open.push(identity);
        for base in self.bases(layer.values.remove("extends"), &origin) {
            let folder = path.parent().unwrap_or(Path::new(""));
            match find_from("recipe", folder, &base, self.folders) {
                Ok(base) => self.add(&base, Some(&origin)),
                Err(problem) => self.problems.push(Problem {
                    key: "extends".into(),
                    origin: Some(origin.clone()),
                    ..*problem
                }),
            }
        }
        self.open.pop();
        self.layers.push(layer);
    }

    fn bases(&mut self, extends: Option<Value>, origin: &Origin) -> Vec<String> {
        let as_text = |value: &Value| value.as_str().map(str::to_owned);
        let bases = match extends {
            None => Some(Vec::new()),
            Some(Value::Array(_, items)) => items.iter().map(as_text).collect(),
            Some(value) => as_text(&value).map(|base| vec![base]),
        };
        bases.unwrap_or_else(|| {
            let message = "expected a recipe or a list of recipes: files relative to this one, or names";
            self.problems.push(Problem::at("extends", Some(origin), message));
            Vec::new()
        })
    }
}

/// What environment variables set.
fn environment_overrides(environment: &[(String, String)]) -> Vec<Override> {
    let mut set: Vec<_> = environment
        .iter()
        .filter(|(name, _)| name.starts_with(PREFIX))
        .map(|(variable, text)| Override {
            key: variable[PREFIX.len()..].to_lowercase().replace("__", "."),
            text: text.clone(),
            origin: Origin::Environment {
                variable: variable.clone(),
            },
        })
        .collect();
    set.sort_by(|a, b| a.key.cmp(&b.key));
    set
}

/// Later overrides of the same key win.
fn override_layer(set: &[Override], problems: &mut Vec<Problem>) -> Layer {
    let mut values = Dict::new();
    let mut origins = BTreeMap::new();
    let mut emptied = BTreeSet::new();
    for Override { key, text, origin } in set {
        insert(&mut values, key, text, origin, problems);
        // A later one may fill it again.
        emptied.append(&mut empty_in(&values));
        origins.insert(key.clone(), origin.clone());
    }
    Layer {
        source: Source::Overrides(origins),
        values,
        lines: BTreeMap::new(),
        emptied,
    }
}

/// The keys of all empty mappings.
fn empty_in(values: &Dict) -> BTreeSet<String> {
    let each = values.iter();
    each.flat_map(|(name, value)| empty_mappings(name, value))
        .collect()
}

/// Puts `text` at the dotted `key`. Scalars stay text until the option that they are for says what they are.
fn insert(values: &mut Dict, key: &str, text: &str, origin: &Origin, problems: &mut Vec<Problem>) {
    let mut parts: Vec<_> = key.split('.').collect();
    let last = parts.pop().unwrap_or_default();
    if last.is_empty() || parts.iter().any(|part| part.is_empty()) {
        let message = "a key is a path such as `prior_sampler.step_size`";
        problems.push(Problem::at(key, Some(origin), message));
        return;
    }
    let mut place = values;
    for part in parts {
        let entry = place
            .entry(part.to_owned())
            .or_insert_with(|| Value::from(Dict::new()));
        let Value::Dict(_, inner) = entry else {
            let message = format!("`{part}` was given a value of its own as well");
            problems.push(Problem::at(key, Some(origin), message));
            return;
        };
        place = inner;
    }
    let value = match yaml::parse_value(text) {
        Some(value) if has_keys(&value) => value,
        _ => Value::from(text),
    };
    place.insert(last.to_owned(), value);
}

/// Whether it is a mapping, or a list of some.
fn has_keys(value: &Value) -> bool {
    match value {
        Value::Dict(..) => true,
        Value::Array(_, items) => items.iter().any(has_keys),
        _ => false,
    }
}

/// When a layer changes a section's `name`, the options that earlier layers gave to the old plugin go with it.
fn drop_replaced_options(layers: &mut [Layer]) {
    for (section, kind) in SECTIONS {
        if matches!(kind, SectionKind::Options(_) | SectionKind::Notes(_)) {
            continue;
        }
        let mut current: Option<String> = None;
        for i in 0..layers.len() {
            let Some(name) = layers[i].plugin_name(section) else {
                continue;
            };
            if current.is_some_and(|old| old != name) {
                for earlier in &mut layers[..i] {
                    earlier.values.remove(section);
                }
            }
            current = Some(name);
        }
    }
}
