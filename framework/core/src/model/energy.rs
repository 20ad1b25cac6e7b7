//! Says what an energy is: the negative log-density of the prior, up to a constant.

use tch::Tensor;

use crate::{FrozenEnergy, Parameters, gradient, interruption_point};

/// An energy U_α on the latent space; the prior is p_α(x) ∝ exp(−U_α(x)).
pub trait Energy {
    /// The parameters α.
    fn parameters(&self) -> &Parameters;

    /// U(x) for each row: `[n, latent] → [n]`, differentiable in x and α.
    fn energy(&self, x: &Tensor) -> Tensor;

    /// U(x) and ∇ₓU(x) for each row, without a graph. Override it where there is a faster way than autograd.
    fn value_and_gradient(&self, x: &Tensor) -> (Tensor, Tensor) {
        let x = gradient::leaf(x);
        let values = tch::with_grad(|| self.energy(&x));
        let gradient = gradient::gradients(&values, &[x]).remove(0);
        (values.detach(), gradient)
    }

    /// ∇ₓU(x) alone.
    fn gradient(&self, x: &Tensor) -> Tensor {
        self.value_and_gradient(x).1
    }

    /// The energy at its present parameters, in a form for the many evaluations of chains on the CPU.
    fn frozen(&self) -> Option<Box<dyn FrozenEnergy>> {
        None
    }

    /// Multiplications in the layers that U(x) takes for a row, for the count of operations in `runner bench`.
    fn multiplications(&self) -> Option<u64> {
        None
    }

    /// E[∇_α U(x)] under the prior itself, one tensor per parameter, where it is known in closed form.
    fn prior_expectation(&self) -> Option<Vec<Tensor>> {
        None
    }
}

/// An energy that ends the chains that run on it where a signal asks for that: samplers need not see to it.
pub struct Interruptible<'a>(pub &'a dyn Energy);

impl Energy for Interruptible<'_> {
    fn parameters(&self) -> &Parameters {
        self.0.parameters()
    }

    fn energy(&self, x: &Tensor) -> Tensor {
        interruption_point();
        self.0.energy(x)
    }

    fn value_and_gradient(&self, x: &Tensor) -> (Tensor, Tensor) {
        interruption_point();
        self.0.value_and_gradient(x)
    }

    fn gradient(&self, x: &Tensor) -> Tensor {
        interruption_point();
        self.0.gradient(x)
    }

    fn frozen(&self) -> Option<Box<dyn FrozenEnergy>> {
        self.0.frozen()
    }

    fn multiplications(&self) -> Option<u64> {
        self.0.multiplications()
    }

    fn prior_expectation(&self) -> Option<Vec<Tensor>> {
        self.0.prior_expectation()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// U(x) = Σ xᵢ⁴ by row.
    struct Quartic(Parameters);

    impl Energy for Quartic {
        fn parameters(&self) -> &Parameters {
            &self.0
        }

        fn energy(&self, x: &Tensor) -> Tensor {
            x.pow_tensor_scalar(4).sum_dim_intlist(1, false, x.kind())
        }
    }

    #[test]
    fn gradients_come_by_autograd_also_where_it_is_switched_off() {
        let _guard = tch::no_grad_guard();
        let x = Tensor::from_slice(&[1f32, 2.0, -1.0, 0.0]).view([2, 2]);
        let (value, gradient) = Quartic(Parameters::new()).value_and_gradient(&x);
        assert!(value.equal(&Tensor::from_slice(&[17f32, 1.0])));
        assert!(gradient.equal(&Tensor::from_slice(&[4f32, 32.0, -4.0, 0.0]).view([2, 2])));
        assert!(!gradient.requires_grad() && !value.requires_grad());
    }
}
