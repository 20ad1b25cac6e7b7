//! Settles what an empty value in a layer means: a section that says nothing, or a mapping that is cleared.
//!
//! An empty section (`run:`) says nothing: what earlier layers say of it stays. A mapping with free keys, such as
//! `evaluate.metrics`, is cleared by `{}`; otherwise a later layer would have to name every key of the earlier ones.

use ebipla_core::Registry;
use ebipla_core::registry::{OptionSpec, OptionType};
use figment::value::{Dict, Value};

use super::layer::Layer;
use super::sections::{SECTIONS, SectionKind};
use super::yaml::join;

/// Removes empty sections from the layers of files, and from earlier layers what a later one clears.
pub fn settle(layers: &mut [Layer], registry: &Registry) {
    for (section, kind) in SECTIONS {
        let specs = match kind {
            SectionKind::Options(specs) | SectionKind::Notes(specs) => specs(),
            SectionKind::Plugin(kind) | SectionKind::Variant { kind, .. } => {
                let name = layers.iter().rev().find_map(|layer| layer.plugin_name(section));
                let plugin = name.and_then(|name| registry.find(kind, &name));
                plugin.map(|plugin| plugin.options()).unwrap_or_default()
            }
        };
        // null leaves these out, as it does with options that may be null.
        let may_be_null = matches!(kind, SectionKind::Notes(_) | SectionKind::Variant { .. });
        for layer in layers.iter_mut().filter(|layer| !layer.is_text()) {
            if !may_be_null {
                remove_if_empty(&mut layer.values, section);
            }
            if let Some(Value::Dict(_, values)) = layer.values.get_mut(section) {
                remove_empty_sections(values, &specs);
            }
        }
        let mut free = Vec::new();
        find_free(section, &specs, &mut free);
        for i in 1..layers.len() {
            let (earlier, later) = layers.split_at_mut(i);
            for key in free.iter().filter(|key| later[0].emptied.contains(*key)) {
                for layer in &mut *earlier {
                    remove(&mut layer.values, key);
                }
            }
        }
    }
}

/// The keys of all empty mappings in `value`, which is at `key`.
pub fn empty_mappings(key: &str, value: &Value) -> Vec<String> {
    match value {
        Value::Dict(_, inside) if inside.is_empty() => vec![key.to_owned()],
        Value::Dict(_, inside) => {
            let each = inside.iter();
            each.flat_map(|(name, value)| empty_mappings(&join(key, name), value))
                .collect()
        }
        _ => Vec::new(),
    }
}

fn is_mapping(spec: &OptionSpec) -> bool {
    matches!(spec.kind, OptionType::Mapping | OptionType::Entries(_))
}

/// The mappings with free keys among the options of a section.
fn find_free(path: &str, specs: &[OptionSpec], found: &mut Vec<String>) {
    for spec in specs {
        let key = join(path, &spec.name);
        if is_mapping(spec) {
            found.push(key);
        } else {
            find_free(&key, &spec.options, found);
        }
    }
}

/// Such as `energy` in `optimizer: { energy: }`.
fn remove_empty_sections(values: &mut Dict, specs: &[OptionSpec]) {
    for spec in specs {
        if spec.kind == OptionType::Section || is_mapping(spec) {
            remove_if_empty(values, &spec.name);
        }
        if let Some(Value::Dict(_, inside)) = values.get_mut(&spec.name) {
            remove_empty_sections(inside, &spec.options);
        }
    }
}

fn remove_if_empty(values: &mut Dict, name: &str) {
    if matches!(values.get(name), Some(Value::Empty(..))) {
        values.remove(name);
    }
}

fn remove(values: &mut Dict, key: &str) {
    match key.split_once('.') {
        None => _ = values.remove(key),
        Some((first, rest)) => {
            if let Some(Value::Dict(_, inside)) = values.get_mut(first) {
                remove(inside, rest);
            }
        }
    }
}
