//! Mean and covariance of features that arrive in batches, in memory that does not grow with their number.

use ebipla_core::prelude::*;
use tch::{Device, Kind};

/// Mean and covariance, in double precision on the CPU.
#[derive(Debug)]
pub struct Moments {
    pub mean: Tensor,
    /// Unbiased, as in `np.cov`.
    pub covariance: Tensor,
}

/// Sums over the features so far.
pub struct Sums {
    count: i64,
    features: Tensor,
    products: Tensor,
}

impl Sums {
    pub fn new(dim: i64) -> Self {
        let zeros = |shape: &[i64]| Tensor::zeros(shape, (Kind::Double, Device::Cpu));
        Self {
            count: 0,
            features: zeros(&[dim]),
            products: zeros(&[dim, dim]),
        }
    }

    /// Adds a batch, `[n, dim]`.
    pub fn add(&mut self, features: &Tensor) {
        let _guard = tch::no_grad_guard();
        let features = features.to_device(Device::Cpu).to_kind(Kind::Double);
        self.count += features.size()[0];
        self.features += features.sum_dim_intlist(0, false, Kind::Double);
        self.products += features.transpose(0, 1).matmul(&features);
    }

    /// The moments of at least two feature vectors. Double precision suffices for Σxxᵀ − nμμᵀ: features are of the same
    /// size as their deviations.
    pub fn moments(&self) -> Moments {
        let n = self.count as f64;
        let mean = &self.features / n;
        let covariance = (&self.products - mean.outer(&mean) * n) / (n - 1.0);
        Moments { mean, covariance }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked out by hand: the mean of (1, 2), (3, 6), (5, 1) is (3, 3), the deviations are (−2, −1), (0, 3), (2, −2).
    #[test]
    fn moments_do_not_depend_on_the_batch_size() {
        let all = Tensor::from_slice(&[1f32, 2.0, 3.0, 6.0, 5.0, 1.0]).view([3, 2]);
        for batch in [1, 2, 3] {
            let mut sums = Sums::new(2);
            for features in all.split(batch, 0) {
                sums.add(&features);
            }
            let Moments { mean, covariance } = sums.moments();
            assert!(mean.allclose(&Tensor::from_slice(&[3.0, 3.0]), 1e-12, 1e-12, false));
            let expected = Tensor::from_slice(&[4.0, -1.0, -1.0, 7.0]).view([2, 2]);
            assert!(
                covariance.allclose(&expected, 1e-12, 1e-12, false),
                "{covariance}"
            );
        }
    }
}
