//! A layer of a recipe, as figment merges it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use figment::value::{Dict, Map};
use figment::{Metadata, Profile, Provider};
use serde::{Serialize, Serializer};

/// A value for one key that is not in the recipe's files.
#[derive(Clone, Debug)]
pub struct Override {
    /// The dotted key.
    pub key: String,
    /// The value, typed by what the option expects.
    pub text: String,
    pub origin: Origin,
}

impl Override {
    /// One that an option of the command line gives.
    pub fn by_option(option: &'static str, key: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            text: text.into(),
            origin: Origin::CommandLine { option },
        }
    }
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The default of an option.
    Default,
    /// A file, with the line.
    File { path: PathBuf, line: Option<u64> },
    /// An environment variable.
    Environment { variable: String },
    /// An option of the command line, such as `--set`.
    CommandLine { option: &'static str },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path, line: None } => write!(f, "{}", path.display()),
            Origin::File {
                path,
                line: Some(line),
            } => write!(f, "{}:{line}", path.display()),
            Origin::Environment { variable } => write!(f, "environment, {variable}"),
            Origin::CommandLine { option } => write!(f, "command line, {option}"),
        }
    }
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What a layer is read from.
#[derive(Clone, Debug)]
pub enum Source {
    File(PathBuf),
    /// Texts for single keys, each with an origin of its own.
    Overrides(BTreeMap<String, Origin>),
}

/// One layer. Later layers win.
#[derive(Clone, Debug)]
pub struct Layer {
    pub source: Source,
    pub values: Dict,
    pub lines: BTreeMap<String, u64>,
    /// Keys that it gave an empty mapping, whatever it said of keys below afterwards.
    pub emptied: BTreeSet<String>,
}

impl Layer {
    /// Where this layer got `key` from.
    pub fn origin(&self, key: &str) -> Origin {
        match &self.source {
            Source::File(path) => Origin::File {
                path: path.clone(),
                line: self.lines.get(key).copied(),
            },
            Source::Overrides(origins) => {
                let below =
                    |key: &str, of: &str| key.strip_prefix(of).is_some_and(|rest| rest.starts_with('.'));
                // What was set closest to the key, or else what made a section of it.
                let around = origins
                    .iter()
                    .rev()
                    .find(|(set, _)| key == *set || below(key, set));
                let within = || origins.iter().find(|(set, _)| below(set, key));
                around
                    .or_else(within)
                    .map_or(Origin::Default, |(_, origin)| origin.clone())
            }
        }
    }

    /// The plugin that it names for a section.
    pub fn plugin_name(&self, section: &str) -> Option<String> {
        let name = self.values.get(section)?.as_dict()?.get("name")?;
        Some(name.as_str()?.to_owned())
    }

    /// Whether values are still text, to be typed by what the option expects.
    pub fn is_text(&self) -> bool {
        matches!(self.source, Source::Overrides(_))
    }
}

/// figment carries the layer's number through the merge, as the name of its metadata.
pub struct Numbered<'a>(pub usize, pub &'a Layer);

impl Provider for Numbered<'_> {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.0.to_string())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Profile::Default.collect(self.1.values.clone()))
    }
}
