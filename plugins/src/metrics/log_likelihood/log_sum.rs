//! Sums of exponentials that neither overflow nor underflow.

/// log Σ exp(vᵢ), accumulated term by term.
#[derive(Clone, Copy, Debug)]
pub struct LogSum {
    largest: f64,
    /// Σ exp(vᵢ − largest).
    sum: f64,
}

/// exp(−40) = 4e-18 of a sum is below its rounding error.
const NEGLIGIBLE: f64 = 40.0;

impl LogSum {
    /// No terms: log 0.
    pub const EMPTY: Self = Self {
        largest: f64::NEG_INFINITY,
        sum: 0.0,
    };

    pub fn add(&mut self, value: f64) {
        if value > self.largest {
            self.sum = self.sum * (self.largest - value).exp() + 1.0;
            self.largest = value;
        } else if value > f64::NEG_INFINITY {
            self.sum += (value - self.largest).exp();
        }
    }

    /// Whether `value` is too small to change the sum.
    pub fn dwarfs(&self, value: f64) -> bool {
        value < self.largest - NEGLIGIBLE
    }

    pub fn value(&self) -> f64 {
        self.largest + self.sum.ln()
    }

    /// The share of this sum that `part` of its terms contribute; 1 if there are no terms.
    pub fn share(&self, part: &Self) -> f64 {
        if self.sum == 0.0 {
            1.0
        } else {
            (part.value() - self.value()).exp().min(1.0)
        }
    }
}

impl FromIterator<f64> for LogSum {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        values.into_iter().fold(Self::EMPTY, |mut sum, value| {
            sum.add(value);
            sum
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_terms_far_beyond_the_range_of_exp() {
        let sum: LogSum = [-2000.0, -2000.0, f64::NEG_INFINITY, -1999.0]
            .into_iter()
            .collect();
        assert!((sum.value() - (-1999.0 + (1.0 + 2.0 * (-1f64).exp()).ln())).abs() < 1e-12);
        assert!((sum.share(&[-2000.0].into_iter().collect()) - 1.0 / (2.0 + 1f64.exp())).abs() < 1e-12);
        assert_eq!(LogSum::EMPTY.value(), f64::NEG_INFINITY);
        assert_eq!(sum.share(&LogSum::EMPTY), 0.0);
        assert!(sum.dwarfs(-2100.0) && !sum.dwarfs(-2010.0));
    }
}
