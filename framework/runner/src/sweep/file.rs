//! Reads sweep files: `recipes/sweeps/NAME.yaml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Axes, Axis, Part, Request, Seeds, SweepError};
use crate::Origin;
use crate::recipe::{Override, RecipeFolders, find_recipe, parse_yaml, parse_yaml_as, read_recipe, stem};

/// What a sweep file may hold.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepFile {
    /// What a report is headed with.
    title: Option<String>,
    /// Short names of keys; keys of the same short name share an axis in reports.
    #[serde(default)]
    names: BTreeMap<String, String>,
    /// How many seeds, or which; the recipe's own alone if left out.
    seeds: Option<Seeds>,
    /// How many members run at a time, unless the command line says so.
    jobs: Option<u32>,
    /// Values for all members.
    #[serde(default)]
    set: Map<String, Value>,
    /// What is swept, one part after the other.
    parts: Vec<PartOfFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartOfFile {
    recipe: OneOrMany,
    #[serde(default)]
    set: Map<String, Value>,
    /// Keys whose values are combined.
    #[serde(default)]
    grid: Map<String, Value>,
    /// Keys whose values go together.
    #[serde(default)]
    zip: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a recipe or a list of recipes")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl SweepFile {
    /// Finds and reads `sweep`: a path, or a name in one of the folders of sweeps.
    pub fn load(sweep: &str, sweeps: &RecipeFolders, recipes: &RecipeFolders) -> Result<Request, SweepError> {
        let path = find_recipe("sweep", sweep, sweeps).map_err(|error| {
            let problems: Vec<_> = error.problems.iter().map(ToString::to_string).collect();
            SweepError(format!("{sweep}: {}", problems.join("\n")))
        })?;
        let wrong = |message: String| SweepError(format!("sweep {}: {message}", path.display()));
        let text = read_recipe(&path).map_err(|error| wrong(error.to_string()))?;
        let lines = parse_yaml(&text).map_err(|error| wrong(error.with_line()))?.lines;
        let file: Self = parse_yaml_as(&text).map_err(|error| wrong(error.with_line()))?;
        let reader = Reader { path: &path, lines };
        file.request(&reader, recipes).map_err(wrong)
    }

    fn request(self, reader: &Reader, folders: &RecipeFolders) -> Result<Request, String> {
        if self.parts.is_empty() {
            return Err("parts: expected at least one".into());
        }
        let common = reader.set("set", &self.set);
        let part = |(i, part): (usize, PartOfFile)| {
            let key = |name: &str| format!("parts.{i}.{name}");
            let own = reader.set(&key("set"), &part.set);
            Ok(Part {
                recipes: match part.recipe {
                    OneOrMany::One(recipe) => vec![recipe],
                    OneOrMany::Many(recipes) => recipes,
                },
                set: common.iter().cloned().chain(own).collect(),
                axes: Axes {
                    grid: reader.axes(&key("grid"), &part.grid)?,
                    zip: reader.axes(&key("zip"), &part.zip)?,
                },
            })
        };
        let parts = self.parts.into_iter().enumerate().map(part);
        // Recipes beside the sweep file come first, as for `extends`.
        let beside = reader.path.parent().map(Path::to_owned);
        Ok(Request {
            name: stem(reader.path).unwrap_or_default(),
            title: self.title,
            names: self.names,
            seeds: self.seeds,
            jobs: self.jobs.filter(|jobs| *jobs > 0),
            parts: parts.collect::<Result<_, String>>()?,
            folders: RecipeFolders(beside.into_iter().chain(folders.0.iter().cloned()).collect()),
        })
    }
}

/// Knows where in the file a value stands.
struct Reader<'a> {
    path: &'a PathBuf,
    lines: BTreeMap<String, u64>,
}

impl Reader<'_> {
    fn origin(&self, key: &str) -> Origin {
        Origin::File {
            path: self.path.clone(),
            line: self.lines.get(key).copied(),
        }
    }

    fn set(&self, section: &str, values: &Map<String, Value>) -> Vec<Override> {
        let values = values.iter().map(|(key, value)| Override {
            key: key.clone(),
            text: text(value),
            origin: self.origin(&format!("{section}.{key}")),
        });
        values.collect()
    }

    fn axes(&self, section: &str, values: &Map<String, Value>) -> Result<Vec<Axis>, String> {
        let axis = |(key, value): (&String, &Value)| {
            let origin = self.origin(&format!("{section}.{key}"));
            match value {
                Value::Array(values) => Ok(Axis {
                    key: key.clone(),
                    texts: values.iter().map(text).collect(),
                    origin,
                }),
                _ => Err(format!("{key} ({origin}): expected a list of values")),
            }
        };
        values.iter().map(axis).collect()
    }
}

/// A value as it would be written behind `--set key=`.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
