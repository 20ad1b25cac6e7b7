//! Reads kinds of plugins and parts of the data by name.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use ebipla_core::{Kind, Split};

/// A kind of plugin.
pub fn kind() -> impl TypedValueParser<Value = Kind> {
    PossibleValuesParser::new(Kind::ALL.map(Kind::name)).try_map(|name| {
        let known = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        known.ok_or("no such kind")
    })
}

/// A part of the data.
pub fn split() -> impl TypedValueParser<Value = Split> {
    let value = |split: Split| {
        PossibleValue::new(split.name()).help(match split {
            Split::Train => "What the model is trained on",
            Split::Validation => "What it never sees",
        })
    };
    PossibleValuesParser::new(Split::ALL.map(value)).try_map(|name| split_of(&name).ok_or("no such part"))
}

/// The part of this name.
pub fn split_of(name: &str) -> Option<Split> {
    Split::ALL.into_iter().find(|split| split.name() == name)
}
