//! Holds what an evaluation found, and how it is told.

use std::fmt::Write;

use ebipla_core::Facts;
use serde_json::{Map, Value};

/// What every metric of a recipe found, in the recipe's order.
#[derive(Debug, Default)]
pub struct Findings {
    metrics: Vec<Measured>,
}

/// What one metric found.
#[derive(Debug)]
pub struct Measured {
    pub metric: String,
    pub numbers: Vec<(String, f64)>,
    /// What has to stand beside the numbers; most metrics have nothing to say.
    pub facts: Facts,
}

impl Findings {
    pub fn add(&mut self, measured: Measured) {
        self.metrics.push(measured);
    }

    /// All numbers, under names that are unique.
    pub fn numbers(&self) -> impl Iterator<Item = (&str, f64)> {
        let all = self.metrics.iter().flat_map(|measured| &measured.numbers);
        all.map(|(name, number)| (name.as_str(), *number))
    }

    /// The same, to keep.
    pub fn to_numbers(&self) -> Vec<(String, f64)> {
        let numbers = self.numbers();
        numbers.map(|(name, number)| (name.to_owned(), number)).collect()
    }

    /// The numbers by name, and by metric what has to stand beside them as `facts`, where there is something.
    pub fn to_json(&self) -> Map<String, Value> {
        let mut all: Map<_, _> = self
            .numbers()
            .map(|(name, number)| (name.to_owned(), Value::from(number)))
            .collect();
        let told = self.metrics.iter().filter(|measured| !measured.facts.is_empty());
        let facts: Map<_, _> = told
            .map(|measured| (measured.metric.clone(), Value::Object(measured.facts.clone())))
            .collect();
        if !facts.is_empty() {
            all.insert("facts".into(), Value::Object(facts));
        }
        all
    }

    /// A line for each number, and below a metric's numbers a line for each fact.
    pub fn to_text(&self) -> String {
        let width = self.numbers().map(|(name, _)| name.len()).max().unwrap_or(0);
        let mut text = String::new();
        for measured in &self.metrics {
            for (name, number) in &measured.numbers {
                let _ = writeln!(text, "  {name:<width$}  {number:.5}");
            }
            for (name, value) in &measured.facts {
                let _ = writeln!(text, "    {name}: {}", plain(value));
            }
        }
        text
    }
}

/// A value without the marks of JSON, as far as that can be read.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(parts) => {
            let parts: Vec<_> = parts
                .iter()
                .map(|(name, value)| format!("{name} {}", plain(value)))
                .collect();
            parts.join(", ")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn findings() -> Findings {
        let facts = |facts: Value| facts.as_object().cloned().unwrap_or_default();
        let mut findings = Findings::default();
        findings.add(Measured {
            metric: "mmd".into(),
            numbers: vec![("mmd".into(), 0.5)],
            facts: Facts::new(),
        });
        findings.add(Measured {
            metric: "fid".into(),
            numbers: vec![("fid".into(), 27.54)],
            facts: facts(json!({"samples": 50, "sampler": {"name": "ula", "steps": 60}})),
        });
        findings
    }

    #[test]
    fn facts_stand_beside_the_numbers() {
        let expected = json!({
            "mmd": 0.5,
            "fid": 27.54,
            "facts": {"fid": {"samples": 50, "sampler": {"name": "ula", "steps": 60}}},
        });
        assert_eq!(Value::Object(findings().to_json()), expected);
        let text = "  mmd  0.50000\n  fid  27.54000\n    samples: 50\n    sampler: name ula, steps 60\n";
        assert_eq!(findings().to_text(), text);
    }
}
