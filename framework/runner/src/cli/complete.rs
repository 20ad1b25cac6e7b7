//! Teaches the shell the names of plugins, recipes and options.

use std::ffi::OsStr;

use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use ebipla_core::Kind;
use ebipla_core::registry::{OptionSpec, OptionType, Registry};

use crate::Home;
use crate::recipe::{SECTIONS, SectionKind, recipe_names};

/// The command line with completers for what clap cannot know.
pub fn teach(line: Command, home: &Home) -> Command {
    let keys = |command: Command| {
        let devices = || ["auto", "cpu", "cuda"].map(CompletionCandidate::new).into();
        command
            .mut_arg("set", |arg| arg.add(ArgValueCompleter::new(override_keys)))
            .mut_arg("device", |arg| arg.add(ArgValueCandidates::new(devices)))
    };
    let recipes = |command: Command| {
        let folders = home.recipe_folders();
        let recipes = move || {
            let names = recipe_names(&folders);
            names.into_iter().map(CompletionCandidate::new).collect()
        };
        command.mut_arg("recipe", |arg| arg.add(ArgValueCandidates::new(recipes)))
    };
    let recipes_and_keys = |command: Command| keys(recipes(command));
    let names =
        |command: Command| command.mut_arg("name", |arg| arg.add(ArgValueCandidates::new(plugin_names)));
    recipes_and_keys(line)
        .mut_subcommand("run", recipes_and_keys)
        .mut_subcommand("show", recipes_and_keys)
        .mut_subcommand("check", recipes_and_keys)
        .mut_subcommand("sweep", |command| {
            let sweeps = home.sweep_folders();
            let sweeps = move || {
                let names = recipe_names(&sweeps);
                names.into_iter().map(CompletionCandidate::new).collect()
            };
            let varied = |arg: Arg| arg.add(ArgValueCompleter::new(override_keys));
            recipes_and_keys(command)
                .mut_arg("file", |arg| arg.add(ArgValueCandidates::new(sweeps)))
                .mut_arg("grid", varied)
                .mut_arg("zip", varied)
        })
        .mut_subcommand("describe", names)
        .mut_subcommand("eval", keys)
        .mut_subcommand("sample", keys)
        .mut_subcommand("reconstruct", keys)
        .mut_subcommand("interpolate", keys)
        .mut_subcommand("compose", keys)
        .mut_subcommand("score", |command| {
            let data = |arg: Arg| arg.add(ArgValueCandidates::new(datasets));
            keys(command).mut_arg("data", data).mut_arg("against", data)
        })
        .mut_subcommand("fetch", |command| {
            command.mut_arg("dataset", |arg| arg.add(ArgValueCandidates::new(fetchable)))
        })
}

fn datasets() -> Vec<CompletionCandidate> {
    let names = Registry::collect().map(|registry| registry.names(Kind::Dataset));
    names
        .unwrap_or_default()
        .into_iter()
        .map(CompletionCandidate::new)
        .collect()
}

/// The plugins of the kind that stands before the cursor, or all of them.
fn plugin_names() -> Vec<CompletionCandidate> {
    let Ok(registry) = Registry::collect() else {
        return Vec::new();
    };
    let typed: Vec<_> = std::env::args().collect();
    let kind = Kind::ALL
        .into_iter()
        .find(|kind| typed.iter().any(|word| word == kind.name()));
    let kinds = kind.map_or_else(|| Kind::ALL.to_vec(), |kind| vec![kind]);
    let plugins = kinds
        .into_iter()
        .flat_map(|kind| registry.of_kind(kind).collect::<Vec<_>>());
    plugins
        .map(|plugin| CompletionCandidate::new(plugin.name).help(Some(plugin.summary().into())))
        .collect()
}

fn fetchable() -> Vec<CompletionCandidate> {
    let entries = crate::fetch::entries().into_iter();
    entries
        .map(|entry| CompletionCandidate::new(entry.name))
        .collect()
}

/// Keys for `--set`, each with `=`; behind `section.name=`, the plugins of that section.
fn override_keys(current: &OsStr) -> Vec<CompletionCandidate> {
    let (Ok(registry), Some(current)) = (Registry::collect(), current.to_str()) else {
        return Vec::new();
    };
    let mut words = Vec::new();
    for (section, kind) in SECTIONS {
        match kind {
            SectionKind::Options(specs) | SectionKind::Notes(specs) => {
                option_keys(section, &specs(), &mut words);
            }
            SectionKind::Plugin(kind) | SectionKind::Variant { kind, .. } => {
                for plugin in registry.of_kind(kind) {
                    words.push(format!("{section}.name={}", plugin.name));
                    option_keys(section, &plugin.options(), &mut words);
                }
            }
        }
    }
    words.sort();
    words.dedup();
    words.retain(|word| word.starts_with(current));
    words.into_iter().map(CompletionCandidate::new).collect()
}

fn option_keys(path: &str, specs: &[OptionSpec], words: &mut Vec<String>) {
    for spec in specs {
        let path = format!("{path}.{}", spec.name);
        // What stands in a list has no key of its own.
        if !matches!(spec.kind, OptionType::List(..)) {
            option_keys(&path, &spec.options, words);
        }
        match spec.kind.inner() {
            OptionType::Section | OptionType::Mapping | OptionType::Entries(_) => {}
            OptionType::Choice(choices) => {
                words.extend(choices.iter().map(|choice| format!("{path}={}", choice.word)));
            }
            _ => words.push(format!("{path}=")),
        }
    }
}
