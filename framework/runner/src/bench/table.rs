//! What a part of the bench found: a table for people, the same as JSON for scripts.

use std::fmt::Write;

use serde_json::{Map, Value, json};

/// Rows of numbers under a title.
pub struct Table {
    pub title: String,
    columns: Vec<String>,
    rows: Vec<(String, Vec<Option<f64>>)>,
    notes: Vec<String>,
}

impl Table {
    pub fn new(title: impl Into<String>, columns: &[&str]) -> Self {
        Self {
            title: title.into(),
            columns: columns.iter().map(|column| (*column).to_owned()).collect(),
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// A number for each column, where there is one.
    pub fn row(&mut self, name: impl Into<String>, numbers: Vec<Option<f64>>) {
        self.rows.push((name.into(), numbers));
    }

    /// A line below the table.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    pub fn to_text(&self) -> String {
        let cell = |number: &Option<f64>| number.map_or_else(String::new, significant);
        let cells: Vec<Vec<_>> = self
            .rows
            .iter()
            .map(|(_, row)| row.iter().map(cell).collect())
            .collect();
        let chars = |text: &str| text.chars().count();
        let first = self.rows.iter().map(|(name, _)| chars(name)).max().unwrap_or(0);
        let width = |(i, column): (usize, &String)| {
            let cells = cells.iter().filter_map(|row| row.get(i));
            cells
                .map(|cell| chars(cell))
                .max()
                .unwrap_or(0)
                .max(chars(column))
        };
        let widths: Vec<_> = self.columns.iter().enumerate().map(width).collect();
        let mut text = format!("{}\n  {:first$}", self.title, "");
        for (column, width) in self.columns.iter().zip(&widths) {
            let _ = write!(text, "  {column:>width$}");
        }
        text.push('\n');
        for ((name, _), row) in self.rows.iter().zip(&cells) {
            let mut line = format!("  {name:first$}");
            for (cell, width) in row.iter().zip(&widths) {
                let _ = write!(line, "  {cell:>width$}");
            }
            text += line.trim_end();
            text.push('\n');
        }
        for note in &self.notes {
            let _ = writeln!(text, "  {note}");
        }
        text
    }

    pub fn to_json(&self) -> Value {
        let row = |(name, numbers): &(String, Vec<Option<f64>>)| {
            let numbers = self
                .columns
                .iter()
                .cloned()
                .zip(numbers.iter().map(|number| json!(number)));
            let mut row = Map::from_iter([("name".to_owned(), json!(name))]);
            row.extend(numbers);
            Value::Object(row)
        };
        let rows: Vec<_> = self.rows.iter().map(row).collect();
        json!({ "title": self.title, "rows": rows, "notes": self.notes })
    }
}

/// Three significant digits, and no more than three behind the point.
fn significant(number: f64) -> String {
    match number.abs() {
        size if size >= 100.0 => format!("{number:.0}"),
        size if size >= 10.0 => format!("{number:.1}"),
        size if size >= 1.0 => format!("{number:.2}"),
        _ => format!("{number:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_gaps_stay_empty() {
        let mut table = Table::new("title", &["ms", "× least"]);
        table.row("one", vec![Some(12.345), Some(1.0)]);
        table.row("another", vec![Some(0.1234), None]);
        table.note("a note");
        let expected =
            "title\n              ms  × least\n  one       12.3     1.00\n  another  0.123\n  a note\n";
        assert_eq!(table.to_text(), expected);
        let json = table.to_json();
        assert_eq!(json["rows"][1]["ms"], 0.1234);
        assert!(json["rows"][1]["× least"].is_null());
    }
}
