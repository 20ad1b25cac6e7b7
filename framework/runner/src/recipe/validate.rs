//! Types a composed recipe by what each option expects, fills in the defaults, and finds all that is wrong.

use std::path::Path;

use ebipla_core::registry::{OptionSpec, OptionType, Registration};
use ebipla_core::system::device;
use ebipla_core::{Kind, Registry};
use figment::Figment;
use figment::value::{Dict, Value as Raw};
use serde_json::{Map, Number, Value};

use super::layer::{Layer, Numbered, Origin};
use super::nothing_said;
use super::sections::{SECTIONS, SectionKind};
use super::yaml::{self, join};
use super::{Problem, Recipe, RecipeError, SlurmSection, locate};

/// Turns layers into a checked recipe, or into the list of all problems.
pub fn resolve(path: &Path, mut layers: Vec<Layer>, registry: &Registry) -> Result<Recipe, RecipeError> {
    nothing_said::settle(&mut layers, registry);
    let figment = layers
        .iter()
        .enumerate()
        .fold(Figment::new(), |figment, (i, layer)| {
            figment.merge(Numbered(i, layer))
        });
    let mut checker = Checker {
        figment,
        layers: &layers,
        registry,
        problems: Vec::new(),
        warnings: Vec::new(),
        origins: Vec::new(),
        changed: Vec::new(),
    };
    let values = checker.recipe();
    let Checker {
        problems,
        warnings,
        origins,
        ..
    } = checker;
    let wrong = |problems| RecipeError {
        recipe: path.display().to_string(),
        problems,
    };
    if !problems.is_empty() {
        return Err(wrong(problems));
    }
    let read = |error: serde_json::Error| wrong(vec![Problem::at("", None, error.to_string())]);
    Ok(Recipe {
        name: locate::name(path),
        run: section(&values, "run").map_err(read)?,
        decoder: section(&values, "decoder").map_err(read)?,
        prior_chains: section(&values, "prior_chains").map_err(read)?,
        optimizer: section(&values, "optimizer").map_err(read)?,
        loss: section(&values, "loss").map_err(read)?,
        guard: section(&values, "guard").map_err(read)?,
        evaluate: section(&values, "evaluate").map_err(read)?,
        record: section(&values, "record").map_err(read)?,
        slurm: section(&values, "slurm").map_err(read)?,
        values,
        origins,
        warnings,
    })
}

fn section<T: serde::de::DeserializeOwned>(values: &Map<String, Value>, name: &str) -> serde_json::Result<T> {
    serde_json::from_value(values.get(name).cloned().unwrap_or_default())
}

struct Checker<'a> {
    figment: Figment,
    layers: &'a [Layer],
    registry: &'a Registry,
    problems: Vec<Problem>,
    /// Values without effect.
    warnings: Vec<Problem>,
    /// Origin of each leaf, in printing order.
    origins: Vec<(String, Origin)>,
    /// Keys whose values are not their defaults.
    changed: Vec<String>,
}

impl Checker<'_> {
    fn recipe(&mut self) -> Map<String, Value> {
        let known = SECTIONS.map(|(name, _)| name);
        let mut given: Vec<_> = self.layers.iter().flat_map(|layer| layer.values.keys()).collect();
        given.sort();
        given.dedup();
        for name in given {
            if !known.contains(&name.as_str()) {
                let origin = self
                    .layers
                    .iter()
                    .rev()
                    .find(|layer| layer.values.contains_key(name));
                let origin = origin.map(|layer| layer.origin(name));
                let problem = Problem::at(name, origin.as_ref(), "unknown section");
                self.problems.push(problem.with_names(name, known));
            }
        }
        let mut values = Map::new();
        for (name, kind) in SECTIONS {
            let raw = self.figment.find_value(name).ok();
            let checked = match kind {
                SectionKind::Options(specs) => self.options(name, raw.as_ref(), &specs()),
                SectionKind::Notes(specs) => match raw.filter(|raw| !self.is_null(raw)) {
                    Some(raw) => self.options(name, Some(&raw), &specs()),
                    None => continue,
                },
                SectionKind::Plugin(kind) => self.plugin(name, kind, raw.as_ref()),
                SectionKind::Variant { kind, of } => match raw.filter(|raw| !self.is_null(raw)) {
                    Some(raw) => self.plugin(name, kind, Some(&self.varied(of, raw))),
                    None => continue,
                },
            };
            values.insert(name.to_owned(), Value::Object(checked));
        }
        self.check_device(&values);
        self.check_slurm(&values);
        self.find_unused(&values);
        values
    }

    fn check_device(&mut self, values: &Map<String, Value>) {
        let found = values["run"].get("device").and_then(Value::as_str);
        if let Some(found) = found.filter(|found| !device::is_name(found)) {
            let message = format!("found `{found}`, expected auto, cpu, cuda or cuda:i");
            self.complain("run.device", message);
        }
    }

    fn check_slurm(&mut self, values: &Map<String, Value>) {
        // Where a value has the wrong type, that has been said already.
        let found: Option<SlurmSection> = section(values, "slurm").ok();
        for (option, message) in found.iter().flat_map(SlurmSection::problems) {
            self.complain(&join("slurm", option), message);
        }
    }

    /// Warns of values in other sections that the algorithm does not use.
    fn find_unused(&mut self, values: &Map<String, Value>) {
        let section = Kind::Algorithm.name();
        let Some(Value::Object(mut options)) = values.get(section).cloned() else {
            return;
        };
        let name = options.shift_remove("name").unwrap_or_default();
        let name = name.as_str().unwrap_or_default();
        let entry = self.registry.find(Kind::Algorithm, name);
        // Where options are wrong, that has been said already.
        let unused = entry.and_then(|entry| entry.unused(&Value::Object(options)).ok());
        let below = |key: &str, unused: &&&str| {
            key.strip_prefix(**unused)
                .is_some_and(|rest| rest.starts_with('.'))
        };
        let of_none = |key: &&String| unused.iter().copied().flatten().any(|unused| below(key, &unused));
        for key in self.changed.iter().filter(of_none).cloned().collect::<Vec<_>>() {
            self.warn(
                &key,
                format!("has no effect: algorithm `{name}` does not use it as it is set"),
            );
        }
    }

    /// A section with `name` and the options of the plugin of that name.
    fn plugin(&mut self, path: &str, kind: Kind, raw: Option<&Raw>) -> Map<String, Value> {
        let names = self.registry.names(kind);
        let name = match raw.map(|raw| (raw, raw.as_dict())) {
            Some((_, Some(dict))) => dict.get("name"),
            Some((raw, None)) => {
                let message = format!(
                    "found {}, expected a mapping with `name` and options",
                    describe(raw)
                );
                self.problems
                    .push(Problem::at(path, Some(&self.origin(raw, path)), message));
                return Map::new();
            }
            None => None,
        };
        let key = join(path, "name");
        let Some(name) = name else {
            let message = format!("missing: expected the name of a {kind}");
            let origin = raw.map(|raw| self.origin(raw, path));
            self.problems
                .push(Problem::at(key, origin.as_ref(), message).with_names("", names));
            return Map::new();
        };
        let origin = self.origin(name, &key);
        let found = name.as_str().unwrap_or_default().to_owned();
        let Some(entry) = self.registry.find(kind, &found) else {
            let message = format!("unknown {kind} {}", describe(name));
            self.problems
                .push(Problem::at(key, Some(&origin), message).with_names(&found, names));
            return Map::new();
        };
        self.origins.push((key, origin));
        let mut options = raw.and_then(Raw::as_dict).cloned().unwrap_or_default();
        options.remove("name");
        let mut values = Map::new();
        values.insert("name".into(), found.clone().into());
        values.append(&mut self.plugin_options(path, entry, &options));
        values
    }

    /// The options of section `of` with those of `raw` over them, unless `raw` names another plugin.
    fn varied(&self, of: &str, raw: Raw) -> Raw {
        let base = self.figment.find_value(of).ok();
        let (Some(varied), Some(base)) = (raw.as_dict(), base.as_ref().and_then(Raw::as_dict)) else {
            return raw;
        };
        let name = varied.get("name").and_then(Raw::as_str);
        if name.is_some() && name != base.get("name").and_then(Raw::as_str) {
            return raw;
        }
        let mut all = base.clone();
        all.extend(varied.clone());
        Raw::Dict(raw.tag(), all)
    }

    fn plugin_options(&mut self, path: &str, entry: &Registration, given: &Dict) -> Map<String, Value> {
        let before = self.problems.len();
        let owner = format!("{} `{}`", entry.kind, entry.name);
        let options = self.dict(path, given, &entry.options(), &owner);
        if self.problems.len() == before {
            match entry.check(&Value::Object(options.clone())) {
                Ok(complaints) => {
                    for complaint in complaints {
                        self.complain(&join(path, complaint.option), complaint.message);
                    }
                }
                Err(error) => self.complain(path, error.to_string()),
            }
        }
        options
    }

    /// A section with fixed options.
    fn options(&mut self, path: &str, raw: Option<&Raw>, specs: &[OptionSpec]) -> Map<String, Value> {
        match raw {
            None => self.dict(path, &Dict::new(), specs, path),
            Some(raw) => match raw.as_dict() {
                Some(dict) => self.dict(path, dict, specs, path),
                None => {
                    let message = format!("found {}, expected a mapping of options", describe(raw));
                    self.problems
                        .push(Problem::at(path, Some(&self.origin(raw, path)), message));
                    Map::new()
                }
            },
        }
    }

    /// Checks a mapping against its options; `owner` is whose options they are.
    fn dict(&mut self, path: &str, given: &Dict, specs: &[OptionSpec], owner: &str) -> Map<String, Value> {
        for (name, raw) in given {
            if !specs.iter().any(|spec| spec.name == *name) {
                let key = join(path, name);
                let origin = self.origin(raw, &key);
                let problem = Problem::at(key, Some(&origin), format!("unknown option of {owner}"));
                let valid = specs.iter().map(|spec| spec.name.as_str());
                self.problems.push(problem.with_names(name, valid));
            }
        }
        let mut values = Map::new();
        for spec in specs {
            let key = join(path, &spec.name);
            if let Some(value) = self.option(&key, given.get(&spec.name), spec) {
                values.insert(spec.name.clone(), value);
            }
        }
        for spec in specs {
            let key = join(path, &spec.name);
            let idle = spec
                .only_with
                .as_ref()
                .filter(|condition| !condition.holds(&values));
            if let Some(condition) = idle.filter(|_| self.changed.contains(&key)) {
                let found = values.get(condition.option()).map(ToString::to_string);
                let found = found.unwrap_or_default().replace('"', "");
                let message = format!("has no effect: it counts {condition}, which is {found}");
                self.warn(&key, message);
            }
        }
        values
    }

    fn option(&mut self, key: &str, raw: Option<&Raw>, spec: &OptionSpec) -> Option<Value> {
        let nested = matches!(spec.kind.inner(), OptionType::Section);
        match (raw, &spec.kind) {
            (Some(raw), kind)
                if nested && !(matches!(kind, OptionType::Optional(_)) && self.is_null(raw)) =>
            {
                Some(Value::Object(self.options(key, Some(raw), &spec.options)))
            }
            (None, OptionType::Section) => Some(Value::Object(self.options(key, None, &spec.options))),
            (Some(Raw::Array(_, items)), OptionType::List(item, None)) if **item == OptionType::Section => {
                let items = items.iter().enumerate().map(|(i, raw)| {
                    let key = join(key, &i.to_string());
                    Value::Object(self.options(&key, Some(raw), &spec.options))
                });
                Some(items.collect())
            }
            (Some(raw), OptionType::Mapping) => Some(Value::Object(self.metrics(key, raw))),
            (Some(raw), OptionType::Entries(kind)) => Some(Value::Object(self.entries(key, raw, kind))),
            (Some(raw), _) => {
                let origin = self.origin(raw, key);
                match self.typed(raw, &spec.kind) {
                    Ok(value) => {
                        self.origins.push((key.to_owned(), origin));
                        if spec.default.as_ref() != Some(&value) {
                            self.changed.push(key.to_owned());
                        }
                        Some(value)
                    }
                    Err(message) => {
                        self.problems.push(Problem::at(key, Some(&origin), message));
                        None
                    }
                }
            }
            (None, _) => {
                if spec.default.is_none() {
                    self.complain(key, format!("missing: expected {}", spec.kind));
                }
                self.origins.push((key.to_owned(), Origin::Default));
                spec.default.clone()
            }
        }
    }

    /// Names with values of one type. As among metrics, `null` takes out what a base file has.
    fn entries(&mut self, path: &str, raw: &Raw, kind: &OptionType) -> Map<String, Value> {
        let mut values = Map::new();
        let origin = self.origin(raw, path);
        let Some(dict) = raw.as_dict() else {
            let message = format!("found {}, expected a mapping from names to {kind}", describe(raw));
            self.problems.push(Problem::at(path, Some(&origin), message));
            return values;
        };
        self.origins.push((path.to_owned(), origin));
        for (name, raw) in dict {
            if self.is_null(raw) {
                continue;
            }
            match self.typed(raw, kind) {
                Ok(value) => _ = values.insert(name.clone(), value),
                Err(message) => {
                    let key = join(path, name);
                    let origin = self.origin(raw, &key);
                    self.problems.push(Problem::at(key, Some(&origin), message));
                }
            }
        }
        values
    }

    /// `evaluate.metrics`: metric names with their options. `null` takes out one that a base file asked for.
    fn metrics(&mut self, path: &str, raw: &Raw) -> Map<String, Value> {
        let mut values = Map::new();
        let Some(dict) = raw.as_dict() else {
            let message = format!(
                "found {}, expected a mapping from metrics to their options",
                describe(raw)
            );
            self.problems
                .push(Problem::at(path, Some(&self.origin(raw, path)), message));
            return values;
        };
        for (name, raw) in dict {
            let key = join(path, name);
            let origin = self.origin(raw, &key);
            let Some(entry) = self.registry.find(Kind::Metric, name) else {
                let problem = Problem::at(key, Some(&origin), format!("unknown metric `{name}`"));
                self.problems
                    .push(problem.with_names(name, self.registry.names(Kind::Metric)));
                continue;
            };
            if self.is_null(raw) {
                continue;
            }
            let Some(given) = raw.as_dict() else {
                let message = format!(
                    "found {}, expected its options, {{}} for the defaults",
                    describe(raw)
                );
                self.problems.push(Problem::at(key, Some(&origin), message));
                continue;
            };
            let options = self.plugin_options(&key, entry, given);
            values.insert(name.clone(), Value::Object(options));
        }
        values
    }

    /// Types one value, or says what was found and what is expected.
    fn typed(&self, raw: &Raw, kind: &OptionType) -> Result<Value, String> {
        // What came as text is typed by what is expected; a text option takes it literally.
        let parsed = match (raw, kind.inner()) {
            (_, OptionType::Text | OptionType::Choice(_)) => None,
            (Raw::String(_, text), _) if self.layer(raw).is_some_and(Layer::is_text) => {
                yaml::parse_value(text)
            }
            _ => None,
        };
        let value = parsed.as_ref().unwrap_or(raw);
        if matches!(kind, OptionType::Optional(_)) && self.is_null(raw) {
            return Ok(Value::Null);
        }
        typed(value, kind.inner()).ok_or_else(|| format!("found {}, expected {kind}", describe(value)))
    }

    fn is_null(&self, raw: &Raw) -> bool {
        let text = raw
            .as_str()
            .filter(|_| self.layer(raw).is_some_and(Layer::is_text));
        matches!(raw, Raw::Empty(..)) || matches!(text, Some("null" | "~"))
    }

    fn layer(&self, raw: &Raw) -> Option<&Layer> {
        let metadata = self.figment.get_metadata(raw.tag())?;
        self.layers.get(metadata.name.parse::<usize>().ok()?)
    }

    fn origin(&self, raw: &Raw, key: &str) -> Origin {
        self.layer(raw).map_or(Origin::Default, |layer| layer.origin(key))
    }

    /// A problem with a value that has been read already.
    fn complain(&mut self, key: &str, message: String) {
        let problem = self.with(key, message);
        self.problems.push(problem);
    }

    fn warn(&mut self, key: &str, message: String) {
        let problem = self.with(key, message);
        self.warnings.push(problem);
    }

    fn with(&self, key: &str, message: String) -> Problem {
        let below = |known: &str| known.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'));
        let mut origins = self.origins.iter();
        let origin = origins.find(|(known, _)| known == key || below(known));
        let origin = origin.map(|(_, origin)| origin.clone());
        Problem::at(key, origin.as_ref(), message)
    }
}

fn typed(raw: &Raw, kind: &OptionType) -> Option<Value> {
    match kind {
        OptionType::Boolean => raw.to_bool().map(Value::from),
        OptionType::Integer(range) => {
            let integer = integer(raw)?;
            range
                .contains(integer.as_f64()?)
                .then_some(Value::Number(integer))
        }
        OptionType::Number(range) => {
            let number = number(raw)?;
            (range.contains(number)).then_some(Value::Number(Number::from_f64(number)?))
        }
        OptionType::Text => Some(Value::from(raw.as_str()?)),
        OptionType::Choice(choices) => {
            let word = raw.as_str()?;
            choices
                .iter()
                .any(|choice| choice.word == word)
                .then(|| word.into())
        }
        OptionType::List(item, length) => {
            let items = raw.as_array()?;
            if length.is_some_and(|length| items.len() as u64 != length) {
                return None;
            }
            items
                .iter()
                .map(|raw| typed(raw, item))
                .collect::<Option<_>>()
                .map(Value::Array)
        }
        OptionType::Optional(inner) => match raw {
            Raw::Empty(..) => Some(Value::Null),
            raw => typed(raw, inner),
        },
        OptionType::Section | OptionType::Mapping | OptionType::Entries(_) => None,
    }
}

fn number(raw: &Raw) -> Option<f64> {
    let number = raw
        .to_f64()
        .or_else(|| whole(raw).map(|integer| integer as f64))?;
    number.is_finite().then_some(number)
}

/// figment keeps signed and unsigned integers apart.
fn whole(raw: &Raw) -> Option<i128> {
    raw.to_i128().or_else(|| i128::try_from(raw.to_u128()?).ok())
}

/// An integer, also when it is written like `1e4`.
fn integer(raw: &Raw) -> Option<Number> {
    if let Some(integer) = whole(raw) {
        return Number::from_i128(integer);
    }
    let number = number(raw)?;
    (number.fract() == 0.0 && number.abs() < 2f64.powi(53)).then(|| Number::from(number as i64))
}

/// A number without a row of zeros.
fn short(number: f64) -> String {
    match number.abs() {
        0.0 | 1e-5..1e16 => number.to_string(),
        _ => format!("{number:e}"),
    }
}

/// What a user wrote, in words.
fn describe(raw: &Raw) -> String {
    match raw {
        Raw::String(_, text) => format!("`{text}`"),
        Raw::Bool(_, value) => format!("`{value}`"),
        Raw::Num(..) => match whole(raw) {
            Some(integer) => format!("`{integer}`"),
            None => format!("`{}`", short(raw.to_f64().unwrap_or(f64::NAN))),
        },
        Raw::Array(_, items) => {
            let items: Vec<_> = items.iter().map(|item| describe(item).replace('`', "")).collect();
            format!("`[{}]`", items.join(", "))
        }
        Raw::Dict(..) => "a mapping".into(),
        Raw::Empty(..) => "nothing (null)".into(),
        Raw::Char(_, value) => format!("`{value}`"),
    }
}
