//! Says what an energy is: the negative log-density of the prior, up to a constant.

use tch::Tensor;

use crate::{Parameters, gradient};

/// An energy U_α on the latent space; the prior is p_α(x) ∝ exp(−U_α(x)).
pub trait Energy {
    /// The parameters α.
    fn parameters(&self) -> &Parameters;

    /// U(x) for each row: `[n, latent] → [n]`, differentiable in x and α.
    fn energy(&self, x: &Tensor) -> Tensor;

    /// ∇ₓU(x) for each row, without a graph. Override it where there is a faster way than autograd.
    fn gradient(&self, x: &Tensor) -> Tensor {
        let x = gradient::leaf(x);
        let energies = tch::with_grad(|| self.energy(&x));
        gradient::gradients(&energies, &[x]).remove(0)
    }
}
