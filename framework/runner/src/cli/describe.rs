//! `runner describe`: one plugin with all its options.

use ebipla_core::registry::{OptionSpec, OptionType};
use serde_json::json;

use super::arguments::DescribeArguments;
use super::{Program, print};
use crate::recipe::Problem;

/// Nothing has the name that was asked for.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unknown(pub Problem);

pub fn describe(program: &Program, arguments: &DescribeArguments) -> anyhow::Result<()> {
    let Some(plugin) = program.registry.find(arguments.kind, &arguments.name) else {
        let message = format!("no {} is called `{}`", arguments.kind, arguments.name);
        let problem = Problem::at("", None, message);
        let names = program.registry.names(arguments.kind);
        return Err(Unknown(problem.with_names(&arguments.name, names)).into());
    };
    let options = plugin.options();
    if arguments.json {
        let all = json!({
            "kind": plugin.kind,
            "name": plugin.name,
            "summary": plugin.summary(),
            "note": plugin.kind.note(),
            "crate": plugin.crate_name(),
            "options": options,
        });
        return print(&format!("{all:#}\n"));
    }
    let mut text = format!(
        "{} {}  (crate {})\n  {}\n",
        plugin.kind,
        plugin.name,
        plugin.crate_name(),
        plugin.summary()
    );
    if let Some(note) = plugin.kind.note() {
        text += &format!("  {note}\n");
    }
    if !options.is_empty() {
        text += "\noptions\n";
        write_options(&mut text, &options, "  ");
    }
    print(&text)
}

fn write_options(text: &mut String, options: &[OptionSpec], indent: &str) {
    for option in options {
        let default = option.default.as_ref().map_or_else(
            || "required".to_owned(),
            |default| match option.kind {
                OptionType::Section => String::new(),
                _ => format!("default {default}"),
            },
        );
        let unit = option.unit.as_ref().map(|unit| format!("unit: {unit}"));
        let condition = option.only_with.as_ref().map(ToString::to_string);
        let facts: Vec<_> = [Some(option.kind.to_string()), Some(default), unit, condition]
            .into_iter()
            .flatten()
            .filter(|fact| !fact.is_empty())
            .collect();
        *text += &format!("{indent}{}  ({})\n", option.name, facts.join("; "));
        if !option.doc.is_empty() {
            *text += &format!("{indent}    {}\n", option.doc);
        }
        if let OptionType::Choice(choices) = option.kind.inner() {
            for choice in choices.iter().filter(|choice| !choice.doc.is_empty()) {
                *text += &format!("{indent}    {}: {}\n", choice.word, choice.doc);
            }
        }
        write_options(text, &option.options, &format!("{indent}  "));
    }
}
