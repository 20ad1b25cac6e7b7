//! Carries named numbers from where they arise to where they are recorded.

use tch::{Device, Kind, Tensor};

/// Named numbers, left on their device until somebody reads them, so that computing never waits for recording.
#[derive(Debug, Default)]
pub struct Scalars {
    entries: Vec<(String, Number)>,
    distributions: Vec<(String, Tensor)>,
    /// What entries are to the guard, by name.
    watched: Vec<(String, Watched)>,
}

/// What a number is to the recipe's section `guard`, which has a limit for each of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// A mean energy of posterior or prior samples: `guard.energy`.
    Energy,
    /// The largest coordinate of particles or of prior chains: `guard.latent`.
    Latent,
    /// The norm of a network's gradient: `guard.gradient`.
    GradientNorm,
}

impl Watched {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Energy, Self::Latent, Self::GradientNorm];

    /// What stands before the names of such numbers.
    fn prefix(self) -> &'static str {
        match self {
            Self::Energy => "energy",
            Self::Latent => "latent",
            Self::GradientNorm => "gradient_norm",
        }
    }
}

#[derive(Debug)]
enum Number {
    /// A tensor with one element.
    OnDevice(Tensor),
    Known(f64),
}

impl Scalars {
    /// No numbers yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tensor with one element.
    pub fn add(&mut self, name: impl Into<String>, value: &Tensor) {
        // A copy, since the caller may change its tensor in place before this one is read.
        self.entries
            .push((name.into(), Number::OnDevice(value.detach().copy())));
    }

    /// Adds a tensor with one element that shows whether the run diverges, as `energy/NAME`, `latent/NAME` or
    /// `gradient_norm/NAME`.
    pub fn watch(&mut self, what: Watched, name: &str, value: &Tensor) {
        let name = format!("{}/{name}", what.prefix());
        self.add(name.clone(), value);
        self.watched.push((name, what));
    }

    /// What the number of this name is to the guard.
    pub fn watched(&self, name: &str) -> Option<Watched> {
        let found = self.watched.iter().find(|(watched, _)| watched == name);
        found.map(|(_, what)| *what)
    }

    /// Whether some number is this to the guard.
    pub fn watches(&self, what: Watched) -> bool {
        self.watched.iter().any(|(_, watched)| *watched == what)
    }

    /// Adds a plain number.
    pub fn add_number(&mut self, name: impl Into<String>, value: f64) {
        self.entries.push((name.into(), Number::Known(value)));
    }

    /// Adds numbers of which the distribution is of interest, such as the energies of all samples.
    pub fn add_distribution(&mut self, name: impl Into<String>, values: &Tensor) {
        self.distributions.push((name.into(), values.detach().copy()));
    }

    /// Adds all of `other`, each name behind `prefix`.
    pub fn extend(&mut self, prefix: &str, other: Scalars) {
        let renamed = |name: String| format!("{prefix}{name}");
        let entries = other.entries.into_iter();
        self.entries
            .extend(entries.map(|(name, number)| (renamed(name), number)));
        let distributions = other.distributions.into_iter();
        self.distributions
            .extend(distributions.map(|(name, values)| (renamed(name), values)));
        let watched = other.watched.into_iter();
        self.watched
            .extend(watched.map(|(name, what)| (renamed(name), what)));
    }

    /// Means with weights over parts that have the same names, and the distributions of all parts together.
    pub fn averaged(parts: impl IntoIterator<Item = (f64, Scalars)>) -> Self {
        let mut parts = parts.into_iter();
        let Some((mut total, mut sum)) = parts.next() else {
            return Self::new();
        };
        sum.scale(total);
        for (weight, part) in parts {
            total += weight;
            for ((_, sum), (_, number)) in sum.entries.iter_mut().zip(part.entries) {
                match (sum, number) {
                    (Number::OnDevice(sum), Number::OnDevice(value)) => *sum = &*sum + value * weight,
                    (Number::Known(sum), Number::Known(value)) => *sum += value * weight,
                    // Parts are alike.
                    _ => {}
                }
            }
            for ((_, all), (_, more)) in sum.distributions.iter_mut().zip(part.distributions) {
                *all = Tensor::cat(&[&*all, &more], 0);
            }
        }
        sum.scale(1.0 / total);
        sum
    }

    fn scale(&mut self, factor: f64) {
        for (_, number) in &mut self.entries {
            match number {
                Number::OnDevice(value) => *value = &*value * factor,
                Number::Known(value) => *value *= factor,
            }
        }
    }

    /// Reads the numbers; this is where a GPU is waited for, once for all of them.
    pub fn read(&self) -> Vec<(String, f64)> {
        let on_device = self.entries.iter().filter_map(|(_, number)| match number {
            Number::OnDevice(value) => Some(value.to_kind(Kind::Double).reshape([1])),
            Number::Known(_) => None,
        });
        let mut fetched = fetch(&on_device.collect::<Vec<_>>()).into_iter();
        let entry = |(name, number): &(String, Number)| {
            let value = match number {
                Number::OnDevice(_) => fetched.next(),
                Number::Known(value) => Some(*value),
            };
            (name.clone(), value.unwrap_or(f64::NAN))
        };
        self.entries.iter().map(entry).collect()
    }

    /// The distributions, still on their device.
    pub fn distributions(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.distributions
            .iter()
            .map(|(name, values)| (name.as_str(), values))
    }
}

/// The numbers in tensors of one element each, copied together.
fn fetch(tensors: &[Tensor]) -> Vec<f64> {
    let Some(first) = tensors.first() else {
        return Vec::new();
    };
    let device = first.device();
    let together: Vec<_> = tensors.iter().map(|tensor| tensor.to_device(device)).collect();
    let mut values = vec![0f64; tensors.len()];
    Tensor::cat(&together, 0)
        .to_device(Device::Cpu)
        .copy_data(&mut values, tensors.len());
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalars(value: f64) -> Scalars {
        let mut scalars = Scalars::new();
        scalars.add("single", &(Tensor::from(value as f32) * 2.0));
        scalars.add_number("known", 10.0 * value);
        scalars.add("double", &Tensor::from_slice(&[value]));
        scalars
    }

    #[test]
    fn numbers_are_read_in_their_order_whatever_their_type_and_shape() {
        let mut all = Scalars::new();
        all.extend("a/", scalars(0.1));
        let expected = [
            ("a/single", f64::from(0.2f32)),
            ("a/known", 1.0),
            ("a/double", 0.1),
        ];
        assert_eq!(all.read(), expected.map(|(name, value)| (name.to_owned(), value)));
        assert!(Scalars::new().read().is_empty());
    }

    /// (1·2 + 3·4)/4 = 3.5.
    #[test]
    fn means_are_weighted() {
        let mean = Scalars::averaged([(1.0, scalars(2.0)), (3.0, scalars(4.0))]);
        let found: Vec<_> = mean.read().into_iter().map(|(_, value)| value).collect();
        assert_eq!(found, [7.0, 35.0, 3.5]);
    }
}
