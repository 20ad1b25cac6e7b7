//! `runner show`: the resolved recipe, with the origin of each value.

use serde_json::json;

use super::arguments::ShowArguments;
use super::{Program, print};

pub fn show(program: &Program, arguments: &ShowArguments) -> anyhow::Result<()> {
    let recipe = program.recipe(&arguments.recipe)?;
    let rows: Vec<_> = recipe.origins().collect();
    if arguments.json {
        let origins: serde_json::Map<_, _> = rows
            .iter()
            .map(|(key, _, origin)| ((*key).to_owned(), json!(origin)))
            .collect();
        let all = json!({
            "name": recipe.name,
            "hash": recipe.hash(),
            "recipe": recipe.values,
            "origins": origins,
        });
        return print(&format!("{all:#}\n"));
    }
    let key_width = rows.iter().map(|(key, ..)| key.len()).max().unwrap_or(0);
    let value_width = rows
        .iter()
        .map(|(_, value, _)| value.to_string().len())
        .max()
        .unwrap_or(0);
    let mut text = format!("# {} {}\n", recipe.name, recipe.hash());
    let mut section = "";
    for (key, value, origin) in rows {
        let this = key.split('.').next().unwrap_or_default();
        if this != section {
            text.push('\n');
            section = this;
        }
        text += &format!(
            "{key:<key_width$}  {:<value_width$}  {origin}\n",
            value.to_string()
        );
    }
    print(&text)
}
