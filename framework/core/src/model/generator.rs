//! Says what a generator is: the mean of the decoder.

use tch::Tensor;

use crate::Parameters;

/// A generator g_β; the decoder is p_β(y|x) = N(y; g_β(x), σ²I).
pub trait Generator {
    /// The parameters β.
    fn parameters(&self) -> &Parameters;

    /// Dimension of the latent space.
    fn latent_dim(&self) -> i64;

    /// g(x) for each row: `[n, latent] → [n, data shape…]`, differentiable in x and β.
    fn generate(&self, x: &Tensor) -> Tensor;

    /// Multiplications in the layers that g(x) takes for a row, for the count of operations in `runner bench`.
    fn multiplications(&self) -> Option<u64> {
        None
    }
}
