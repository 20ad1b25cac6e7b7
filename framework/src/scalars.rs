//! Carries named numbers from where they arise to where they are recorded.

use tch::Tensor;

/// Named numbers, left on their device until somebody reads them, so that computing never waits for recording.
#[derive(Debug, Default)]
pub struct Scalars {
    entries: Vec<(String, Tensor)>,
}

impl Scalars {
    /// No numbers yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tensor with one element.
    pub fn add(&mut self, name: impl Into<String>, value: &Tensor) {
        self.entries.push((name.into(), value.detach()));
    }

    /// Adds a plain number.
    pub fn add_number(&mut self, name: impl Into<String>, value: f64) {
        self.entries.push((name.into(), Tensor::from(value)));
    }

    /// Adds all of `other`, each name behind `prefix`.
    pub fn extend(&mut self, prefix: &str, other: Scalars) {
        let renamed = other
            .entries
            .into_iter()
            .map(|(name, value)| (format!("{prefix}{name}"), value));
        self.entries.extend(renamed);
    }

    /// Reads the numbers; this is where a GPU is waited for.
    pub fn read(&self) -> Vec<(String, f64)> {
        self.entries
            .iter()
            .map(|(name, value)| (name.clone(), value.double_value(&[])))
            .collect()
    }
}
