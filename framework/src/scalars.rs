//! Carries named numbers from where they arise to where they are recorded.

use tch::Tensor;

/// Named numbers, left on their device until somebody reads them, so that computing never waits for recording.
#[derive(Debug, Default)]
pub struct Scalars {
    entries: Vec<(String, Tensor)>,
    distributions: Vec<(String, Tensor)>,
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

    /// Adds numbers of which the distribution is of interest, such as the energies of all samples.
    pub fn add_distribution(&mut self, name: impl Into<String>, values: &Tensor) {
        self.distributions.push((name.into(), values.detach()));
    }

    /// Adds all of `other`, each name behind `prefix`.
    pub fn extend(&mut self, prefix: &str, other: Scalars) {
        let renamed = |(name, value)| (format!("{prefix}{name}"), value);
        self.entries.extend(other.entries.into_iter().map(renamed));
        self.distributions
            .extend(other.distributions.into_iter().map(renamed));
    }

    /// Means with weights over parts that have the same names, and the distributions of all parts together.
    pub(crate) fn averaged(parts: impl IntoIterator<Item = (f64, Scalars)>) -> Self {
        let mut parts = parts.into_iter();
        let Some((mut total, mut sum)) = parts.next() else {
            return Self::new();
        };
        for (_, value) in &mut sum.entries {
            *value = &*value * total;
        }
        for (weight, part) in parts {
            total += weight;
            for ((_, sum), (_, value)) in sum.entries.iter_mut().zip(part.entries) {
                *sum = &*sum + value * weight;
            }
            for ((_, all), (_, more)) in sum.distributions.iter_mut().zip(part.distributions) {
                *all = Tensor::cat(&[&*all, &more], 0);
            }
        }
        for (_, value) in &mut sum.entries {
            *value = &*value / total;
        }
        sum
    }

    /// Reads the numbers; this is where a GPU is waited for.
    pub fn read(&self) -> Vec<(String, f64)> {
        self.entries
            .iter()
            .map(|(name, value)| (name.clone(), value.double_value(&[])))
            .collect()
    }

    /// The distributions, still on their device.
    pub fn distributions(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.distributions
            .iter()
            .map(|(name, values)| (name.as_str(), values))
    }
}
