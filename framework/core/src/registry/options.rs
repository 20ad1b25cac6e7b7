//! Reads a config struct's options out of its generated schema.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use super::OnlyWith;

/// One option of a plugin or section.
#[derive(Clone, Debug, Serialize)]
pub struct OptionSpec {
    pub name: String,
    /// Its doc comment, without the unit.
    pub doc: String,
    /// The unit, written in brackets at the end of the doc comment.
    pub unit: Option<String>,
    #[serde(rename = "type", serialize_with = "as_text")]
    pub kind: OptionType,
    /// Absent where a recipe has to give a value.
    pub default: Option<Value>,
    /// Where it has an effect; `None` where it always does.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    pub only_with: Option<OnlyWith>,
    /// The options of a nested section.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<OptionSpec>,
}

/// What values an option takes.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionType {
    Boolean,
    Integer(Range),
    Number(Range),
    Text,
    /// One of a fixed set of words.
    Choice(Vec<Choice>),
    /// A list, of a fixed length where one is given.
    List(Box<OptionType>, Option<u64>),
    /// A nested section, whose options are [`OptionSpec::options`]. A list of sections has those of an item there.
    Section,
    /// A mapping from names to sections that somebody else knows.
    Mapping,
    /// A mapping from names to values of one type.
    Entries(Box<OptionType>),
    /// The same, or `null`.
    Optional(Box<OptionType>),
}

/// A word that a choice takes, with what it means.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub word: String,
    pub doc: String,
}

/// Where a number may lie.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Range {
    pub above: Option<f64>,
    pub at_least: Option<f64>,
    pub below: Option<f64>,
    pub at_most: Option<f64>,
}

impl Range {
    fn of(schema: &Map<String, Value>) -> Self {
        let bound = |key| schema.get(key).and_then(Value::as_f64);
        Self {
            above: bound("exclusiveMinimum"),
            at_least: bound("minimum"),
            below: bound("exclusiveMaximum"),
            at_most: bound("maximum"),
        }
    }

    /// Whether `x` lies inside.
    pub fn contains(&self, x: f64) -> bool {
        self.above.is_none_or(|bound| x > bound)
            && self.at_least.is_none_or(|bound| x >= bound)
            && self.below.is_none_or(|bound| x < bound)
            && self.at_most.is_none_or(|bound| x <= bound)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let bounds = [
            (">", self.above),
            ("≥", self.at_least),
            ("<", self.below),
            ("≤", self.at_most),
        ];
        for (i, (sign, bound)) in bounds
            .into_iter()
            .filter_map(|(sign, bound)| Some((sign, bound?)))
            .enumerate()
        {
            let and = if i == 0 { " " } else { " and " };
            // Powers of ten, but for small ones, are easier to read as such.
            match bound.abs() {
                1e5.. | ..1e-3 if bound != 0.0 => write!(f, "{and}{sign} {bound:e}")?,
                _ => write!(f, "{and}{sign} {bound}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for OptionType {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Boolean => f.write_str("true or false"),
            Self::Integer(range) => write!(f, "integer{range}"),
            Self::Number(range) => write!(f, "number{range}"),
            Self::Text => f.write_str("text"),
            Self::Choice(choices) => {
                let words: Vec<_> = choices.iter().map(|choice| choice.word.as_str()).collect();
                f.write_str(&words.join(" | "))
            }
            Self::List(item, Some(length)) => write!(f, "list of {length} × {item}"),
            Self::List(item, None) if **item == Self::Section => f.write_str("list of sections"),
            Self::List(item, None) => write!(f, "list of {item}"),
            Self::Section => f.write_str("section"),
            Self::Mapping => f.write_str("mapping"),
            Self::Entries(value) => write!(f, "mapping from names to {value}"),
            Self::Optional(inner) => write!(f, "{inner}, or null"),
        }
    }
}

impl OptionType {
    /// The type without `null`.
    pub fn inner(&self) -> &OptionType {
        match self {
            Self::Optional(inner) => inner,
            other => other,
        }
    }

    fn of(schema: &Map<String, Value>) -> Self {
        if let Some(inner) = nullable(schema) {
            return Self::Optional(Box::new(Self::of(&inner)));
        }
        if let Some(choices) = choices(schema) {
            return Self::Choice(choices);
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("boolean") => Self::Boolean,
            Some("integer") => Self::Integer(Range::of(schema)),
            Some("number") => Self::Number(Range::of(schema)),
            Some("array") => {
                let item = match schema.get("items").and_then(Value::as_object) {
                    Some(items) => Self::of(items),
                    None => Self::Text,
                };
                let length = schema.get("minItems").and_then(Value::as_u64);
                let fixed = length.filter(|_| schema.get("maxItems") == schema.get("minItems"));
                Self::List(Box::new(item), fixed)
            }
            Some("object") if schema.contains_key("properties") => Self::Section,
            Some("object") => match schema.get("additionalProperties").and_then(Value::as_object) {
                Some(value) => Self::Entries(Box::new(Self::of(value))),
                None => Self::Mapping,
            },
            _ => Self::Text,
        }
    }
}

fn as_optional_text<S: serde::Serializer>(
    condition: &Option<OnlyWith>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    condition.as_ref().map(ToString::to_string).serialize(serializer)
}

fn as_text<S: serde::Serializer>(kind: &OptionType, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(kind)
}

/// `Some` schema of the inner type if the schema also allows null (`["integer", "null"]` or `anyOf` with null).
fn nullable(schema: &Map<String, Value>) -> Option<Map<String, Value>> {
    if let Some(Value::Array(types)) = schema.get("type") {
        let inner = types.iter().find(|name| *name != "null")?;
        let mut schema = schema.clone();
        schema.insert("type".into(), inner.clone());
        if let Some(Value::Array(words)) = schema.get_mut("enum") {
            words.retain(|word| !word.is_null());
        }
        return Some(schema);
    }
    let any_of = schema.get("anyOf")?.as_array()?;
    let inner = any_of
        .iter()
        .find(|option| option.get("type") != Some(&Value::from("null")))?;
    inner.as_object().cloned()
}

/// The words of an enum, with or without doc comments.
fn choices(schema: &Map<String, Value>) -> Option<Vec<Choice>> {
    if let Some(words) = schema.get("enum") {
        let plain = |word: &Value| {
            Some(Choice {
                word: word.as_str()?.to_owned(),
                doc: String::new(),
            })
        };
        return words.as_array()?.iter().map(plain).collect();
    }
    let variants = schema.get("oneOf")?.as_array()?;
    let mut all = Vec::new();
    for variant in variants {
        // Variants without a doc comment come together in one `enum`.
        if let Some(word) = variant.get("const").and_then(Value::as_str) {
            all.push(Choice {
                word: word.to_owned(),
                doc: text(variant.as_object()?, "description"),
            });
        } else {
            all.extend(choices(variant.as_object()?)?);
        }
    }
    Some(all)
}

/// The options of a config struct, in the order of its fields.
pub fn options_of(schema: &Value) -> Vec<OptionSpec> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    properties
        .iter()
        .filter_map(|(name, property)| Some(option_of(name, property.as_object()?)))
        .collect()
}

fn option_of(name: &str, schema: &Map<String, Value>) -> OptionSpec {
    let (doc, unit) = split_unit(&text(schema, "description"));
    let nested = nullable(schema).unwrap_or_else(|| schema.clone());
    let mut options = options_of(nested.get("items").unwrap_or(&Value::Object(nested.clone())));
    if let Some(default) = schema.get("default") {
        take_defaults(&mut options, default);
    }
    let mut kind = OptionType::of(schema);
    kind.limit(unit.as_deref());
    OptionSpec {
        name: name.to_owned(),
        doc,
        unit,
        kind,
        only_with: OnlyWith::of(schema),
        default: schema.get("default").cloned().or_else(|| {
            // An `Option` without a stated default may be left out.
            nullable(schema).map(|_| Value::Null)
        }),
        options,
    }
}

/// The defaults that a struct states for a nested one win over the nested one's own.
fn take_defaults(options: &mut [OptionSpec], defaults: &Value) {
    for option in options {
        if let Some(default) = defaults.get(&option.name) {
            take_defaults(&mut option.options, default);
            option.default = Some(default.clone());
        }
    }
}

/// The first sentence of a struct's doc comment.
pub fn summary(schema: &Value) -> String {
    let doc = schema.as_object().map(|schema| text(schema, "description"));
    let doc = doc.unwrap_or_default();
    doc.split("\n\n").next().unwrap_or_default().to_owned()
}

/// A schema's text with line breaks inside a paragraph undone.
fn text(schema: &Map<String, Value>, key: &str) -> String {
    let raw = schema.get(key).and_then(Value::as_str).unwrap_or_default();
    let paragraphs = raw.split("\n\n").map(|part| part.replace('\n', " "));
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// Splits "Chain steps J. [steps]" into the text and the unit.
fn split_unit(doc: &str) -> (String, Option<String>) {
    match doc.strip_suffix(']').and_then(|doc| doc.rsplit_once('[')) {
        Some((text, unit)) => (text.trim_end().to_owned(), Some(unit.to_owned())),
        None => (doc.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    use super::*;
    use crate::registry::plugin::schema_of;

    /// A struct
    /// for tests.
    ///
    /// With more to say.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    struct Sample {
        /// How far. [nats]
        #[schemars(extend("exclusiveMinimum" = 0.0))]
        step_size: f64,
        /// How often. [steps]
        #[schemars(range(min = 1))]
        steps: u32,
        /// Which way.
        way: Way,
        /// Both betas. [1]
        betas: [f64; 2],
        /// Nested, or none.
        inner: Option<Inner>,
        /// Nested, any number of them.
        many: Vec<Inner>,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Way {
        /// Up it goes.
        Up,
        /// Down it goes.
        Down,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Inner {
        /// Needed.
        size: u32,
    }

    impl Default for Sample {
        fn default() -> Self {
            Self {
                step_size: 0.5,
                steps: 3,
                way: Way::Down,
                betas: [0.5, 0.999],
                inner: None,
                many: Vec::new(),
            }
        }
    }

    #[test]
    fn options_carry_doc_unit_type_range_and_default() {
        let schema = schema_of::<Sample>();
        let options = options_of(schema.as_value());
        let rows: Vec<_> = options
            .iter()
            .map(|option| {
                (
                    option.name.as_str(),
                    option.doc.as_str(),
                    option.unit.as_deref(),
                    option.kind.to_string(),
                    option.default.clone(),
                )
            })
            .collect();
        let number =
            |name, doc, unit, kind: &str, default| (name, doc, Some(unit), kind.to_owned(), Some(default));
        assert_eq!(
            rows[0],
            number(
                "step_size",
                "How far.",
                "nats",
                "number > 0 and ≤ 1e6",
                json!(0.5)
            )
        );
        assert_eq!(
            rows[1],
            number("steps", "How often.", "steps", "integer ≥ 1 and ≤ 1e9", json!(3))
        );
        assert_eq!(rows[2].3, "up | down");
        assert_eq!(rows[2].4, Some(json!("down")));
        assert_eq!(rows[3].3, "list of 2 × number ≥ -1e6 and ≤ 1e6");
        assert_eq!(rows[4].3, "section, or null");
        assert_eq!(rows[4].4, Some(Value::Null));
        assert_eq!(options[4].options[0].default, None, "`size` has no default");
        assert_eq!(rows[5].3, "list of sections");
        assert_eq!(options[5].options[0].name, "size");
        assert_eq!(summary(schema.as_value()), "A struct for tests.");
    }
}
