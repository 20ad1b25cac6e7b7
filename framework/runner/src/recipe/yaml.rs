//! Reads YAML into figment's values together with the line each key stands on, and writes it back.

use std::collections::BTreeMap;
use std::fmt;

use figment::value::{Dict, Value};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::yaml_error::YamlError;

/// A parsed file.
#[derive(Debug, Default)]
pub struct Document {
    pub values: Dict,
    /// Line of each value, by dotted key.
    pub lines: BTreeMap<String, u64>,
}

/// Parses a recipe file. An empty one has no values.
pub fn parse(text: &str) -> Result<Document, YamlError> {
    match parse_as::<Option<Node>>(text)? {
        None => Ok(Document::default()),
        Some(Node::Map(entries)) => {
            let mut document = Document::default();
            document.values = flatten(entries, "", &mut document.lines);
            Ok(document)
        }
        Some(_) => Err(YamlError {
            line: Some(1),
            message: "a recipe is a mapping from sections to their options".into(),
        }),
    }
}

/// Parses a file into what it must hold.
pub fn parse_as<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    let options = serde_saphyr::options! { with_snippet: false };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| YamlError::of(&error))
}

/// Parses one value as it is written behind `--set key=`.
pub fn parse_value(text: &str) -> Option<Value> {
    let node: Node = parse_as(text).ok()?;
    Some(plain(node, "", &mut BTreeMap::new()))
}

/// A YAML node whose children know their line.
enum Node {
    Scalar(Value),
    List(Vec<Spanned<Node>>),
    Map(Vec<(String, Spanned<Node>)>),
}

/// `null` has no figment value of its own; a unit stands for it.
fn null() -> Value {
    Value::Empty(figment::value::Tag::Default, figment::value::Empty::Unit)
}

fn plain(node: Node, path: &str, lines: &mut BTreeMap<String, u64>) -> Value {
    match node {
        Node::Scalar(value) => value,
        Node::List(items) => {
            let items = items.into_iter().enumerate();
            let items: Vec<_> = items
                .map(|(i, item)| spanned(item, join(path, &i.to_string()), lines))
                .collect();
            Value::from(items)
        }
        Node::Map(entries) => Value::from(flatten(entries, path, lines)),
    }
}

fn flatten(entries: Vec<(String, Spanned<Node>)>, path: &str, lines: &mut BTreeMap<String, u64>) -> Dict {
    let mut dict = Dict::new();
    for (key, node) in entries {
        let value = spanned(node, join(path, &key), lines);
        dict.insert(key, value);
    }
    dict
}

fn spanned(node: Spanned<Node>, path: String, lines: &mut BTreeMap<String, u64>) -> Value {
    let value = plain(node.value, &path, lines);
    lines.insert(path, node.referenced.line());
    value
}

/// `a` and `b` to `a.b`.
pub fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Scalar(Value::from(value)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Scalar(Value::from(value)))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Scalar(Value::from(value)))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Scalar(Value::from(value)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Scalar(Value::from(value)))
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Scalar(null()))
    }

    fn visit_none<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Scalar(null()))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Node::Map(entries))
    }
}

/// Writes values as YAML.
pub fn to_yaml(values: &serde_json::Map<String, serde_json::Value>) -> String {
    serde_saphyr::to_string(values).unwrap_or_else(|problem| format!("# could not be written: {problem}\n"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn every_value_knows_its_line() {
        let document = parse("run:\n  seed: 3\n\n  lr: 1e-2\nlist: [1, two]\n")
            .map_err(|e| e.message)
            .unwrap();
        assert_eq!(document.lines["run.seed"], 2);
        assert_eq!(document.lines["run.lr"], 4);
        assert_eq!(document.values["list"].as_array().unwrap().len(), 2);
        let run = document.values["run"].as_dict().unwrap();
        assert_eq!(run["lr"].to_f64(), Some(0.01));
        assert_eq!(run["seed"].to_u128(), Some(3));
    }

    #[test]
    fn items_of_a_list_go_by_their_number() {
        let document = parse("layers:\n  - size: 3\n  - size: 4\n    name: last\n")
            .map_err(|e| e.message)
            .unwrap();
        assert_eq!(document.lines["layers.0.size"], 2);
        assert_eq!(document.lines["layers.1.name"], 4);
    }

    #[test]
    fn a_key_given_twice_is_an_error() {
        let error = parse("run:\n  seed: 3\n  seed: 4\n").err().unwrap();
        assert_eq!(error.message, "`seed` is given twice");
        assert_eq!(error.line, Some(3));
    }

    /// What is wrong is said in our words, on the line where it is.
    #[test]
    fn mistakes_in_yaml_are_put_in_words() {
        for (text, line, words) in [
            ("run: { seed: 1", 1, "never closed"),
            ("run: {seed: 1}}\n", 1, "too many"),
            ("run: {a: 1 b: 2}\n", 1, "`,` is missing"),
            ("run:\n  seed: 1\n seed: 2\n", 3, "indentation"),
            ("run:\n\tseed: 1\n", 2, "a tab"),
            ("run:\n  seed: \"abc\n", 3, "a quote that is never closed"),
            ("run: \"\\q\"\n", 1, "an escape"),
            ("run: - a\n", 1, "an item of a list"),
            ("run: a: b\n", 1, "a second `:`"),
            ("run: @a\n", 1, "in quotes"),
            ("run: *foo\n", 1, "no anchor"),
            ("run: {}\nseed\n", 2, "is the `:` missing"),
            ("run: {}\n---\nrun: {}\n", 3, "a second document"),
            ("run: !!int abc\n", 1, "its tag"),
            ("? [a, b]\n: 1\n", 1, "a single word"),
            ("%YAML 9\n", 1, "`%`"),
        ] {
            let error = parse(text).err().unwrap();
            assert!(error.message.contains(words), "{text:?}: {error:?}");
            assert!(!error.message.contains(" at line "), "{text:?}: {error:?}");
            assert_eq!(error.line, Some(line), "{text:?}: {error:?}");
        }
    }

    #[test]
    fn values_behind_set_are_yaml() {
        assert_eq!(parse_value("1e-3").unwrap().to_f64(), Some(0.001));
        assert_eq!(parse_value("[1, 2]").unwrap().as_array().unwrap().len(), 2);
        assert_eq!(parse_value("null").unwrap(), null());
        assert!(parse_value("[1, 2").is_none());
    }
}
