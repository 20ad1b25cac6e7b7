//! A recipe's values by dotted key, as far as they make it one experiment or another.

use serde_json::{Map, Value};

use crate::recipe::Bearing;

/// Every value that is not null, by its dotted key, in the recipe's order.
pub fn flat(recipe: &Map<String, Value>) -> Map<String, Value> {
    let mut all = Map::new();
    for (name, value) in recipe {
        add(name.clone(), value, &mut all);
    }
    all
}

fn add(key: String, value: &Value, all: &mut Map<String, Value>) {
    match value {
        _ if !Bearing::of(&key).tells_experiments_apart() => {}
        // Whether an option is null or does not exist is all the same.
        Value::Null => {}
        Value::Object(inside) => {
            for (name, value) in inside {
                add(format!("{key}.{name}"), value, all);
            }
        }
        value => _ = all.insert(key, value.clone()),
    }
}

/// The same as sections again.
pub fn nested<'a>(flat: impl Iterator<Item = (&'a String, &'a Value)>) -> Map<String, Value> {
    let mut all = Map::new();
    for (key, value) in flat {
        put(&mut all, key, value);
    }
    all
}

fn put(place: &mut Map<String, Value>, key: &str, value: &Value) {
    match key.split_once('.') {
        None => _ = place.insert(key.to_owned(), value.clone()),
        Some((section, rest)) => {
            let inside = place.entry(section).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inside) = inside {
                put(inside, rest, value);
            }
        }
    }
}

/// A value without the marks of JSON; 1 and 1.0 are the same.
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            Some(number) if number != 0.0 && !(1e-4..1e7).contains(&number.abs()) => format!("{number:e}"),
            Some(number) => number.to_string(),
            None => number.to_string(),
        },
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(shown).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(_) | Value::Null | Value::Bool(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_flat_without_what_is_aside_and_nested_again() {
        let recipe = json!({
            "run": { "seed": 3, "epochs": 2, "particles": { "memory": 2.0 } },
            "energy": { "name": "mlp", "tilt": null, "layers": [8, 8] },
            "record": { "metrics": { "every": 1 } },
            "slurm": { "time": "1:00", "partition": "gpu" },
        });
        let values = flat(recipe.as_object().unwrap());
        let keys: Vec<_> = values.keys().collect();
        assert_eq!(keys, ["run.epochs", "energy.name", "energy.layers"]);
        let again = json!({ "run": { "epochs": 2 }, "energy": { "name": "mlp", "layers": [8, 8] } });
        assert_eq!(Value::Object(nested(values.iter())), again);
        assert_eq!(shown(&json!(1.0)), shown(&json!(1)));
        assert_eq!(shown(&json!(1e-8)), "1e-8");
    }
}
