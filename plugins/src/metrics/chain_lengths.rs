//! Evaluates a sample metric at several chain lengths, to show how it changes when the prior chains run longer.

use ebipla_core::prelude::*;
use ebipla_core::require_memory;

/// Lengths of the chains, as multiples of the prior sampler's own; one number is reported per length. [times]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ChainLengths(#[schemars(inner(range(min = 1)))] Vec<u32>);

impl Default for ChainLengths {
    fn default() -> Self {
        Self(vec![1])
    }
}

impl ChainLengths {
    /// Problems with the option `chain_lengths`.
    pub fn complaints(&self) -> Vec<Complaint> {
        let increasing = self.0.windows(2).all(|pair| pair[0] < pair[1]);
        if increasing && self.0.first().is_some_and(|first| *first >= 1) {
            return Vec::new();
        }
        vec![Complaint {
            option: "chain_lengths",
            message: format!(
                "found {:?}, expected increasing lengths of at least 1, such as [1, 10]",
                self.0
            ),
        }]
    }

    /// Refuses more samples than fit into memory, with `copies` of each number of a sample.
    pub fn require(&self, metric: &str, n: u32, copies: usize, scope: &Scope) -> anyhow::Result<()> {
        let of_sample: i64 = scope.data.shape.iter().product();
        let numbers = u128::from(n) * of_sample as u128 * self.0.len() as u128;
        let what = format!("{n} samples for {metric}");
        require_memory(&what, numbers * (copies * size_of::<f32>()) as u128)
    }

    /// `n` samples at each length, each with the name of the number that `metric` computes from them.
    pub fn samples(
        &self,
        metric: &str,
        n: u32,
        subject: &mut Subject,
    ) -> anyhow::Result<Vec<(String, Tensor)>> {
        let names = self.0.iter().map(|length| match length {
            1 => metric.to_owned(),
            more => format!("{metric}/chains_x{more}"),
        });
        Ok(names.zip(subject.samples(n.into(), &self.0)?).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_increasing_lengths_are_accepted() {
        for right in [vec![1], vec![2], vec![1, 10, 100]] {
            assert!(ChainLengths(right).complaints().is_empty());
        }
        for wrong in [vec![], vec![0, 1], vec![10, 1], vec![1, 1]] {
            assert_eq!(ChainLengths(wrong).complaints().len(), 1);
        }
    }
}
