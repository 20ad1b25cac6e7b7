//! `runner list`: the registered plugins.

use ebipla_core::Kind;
use serde_json::json;

use super::arguments::ListArguments;
use super::{Program, print};

pub fn list(program: &Program, arguments: &ListArguments) -> anyhow::Result<()> {
    let kinds: Vec<_> = Kind::ALL
        .into_iter()
        .filter(|kind| arguments.kind.is_none_or(|wanted| wanted == *kind))
        .collect();
    let plugins: Vec<_> = kinds
        .iter()
        .flat_map(|kind| program.registry.of_kind(*kind))
        .collect();
    if arguments.json {
        let rows: Vec<_> = plugins
            .iter()
            .map(|plugin| {
                json!({
                    "kind": plugin.kind,
                    "name": plugin.name,
                    "summary": plugin.summary(),
                    "crate": plugin.crate_name(),
                    "options": plugin.options(),
                })
            })
            .collect();
        return print(&format!("{:#}\n", json!(rows)));
    }
    let width = plugins.iter().map(|plugin| plugin.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for kind in kinds {
        text += &format!("{kind}\n");
        for plugin in program.registry.of_kind(kind) {
            text += &format!("  {:<width$}  {}\n", plugin.name, plugin.summary());
        }
    }
    print(&text)
}
