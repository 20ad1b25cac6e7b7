//! Adds energies up: the sum is the energy of the product of their priors.

use tch::Tensor;

use crate::{Energy, Parameters};

/// Σ wᵢUᵢ(x), whose prior is proportional to Π pᵢ(x)^wᵢ.
pub struct EnergySum<'a> {
    terms: Vec<Term<'a>>,
    /// The sum has none of its own: it is not trained.
    parameters: Parameters,
}

struct Term<'a> {
    weight: f64,
    energy: Box<dyn Energy + 'a>,
}

impl<'a> EnergySum<'a> {
    /// Weights with energies over the same latent space, each in its fastest form at its present parameters.
    pub fn of(terms: impl IntoIterator<Item = (f64, &'a dyn Energy)>) -> Self {
        let term = |(weight, energy): (f64, &'a dyn Energy)| Term {
            weight,
            energy: energy.frozen().unwrap_or_else(|| Box::new(Borrowed(energy))),
        };
        Self {
            terms: terms.into_iter().map(term).collect(),
            parameters: Parameters::new(),
        }
    }
}

impl Energy for EnergySum<'_> {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn energy(&self, x: &Tensor) -> Tensor {
        let zero = x.select(1, 0).zeros_like();
        let add = |sum: Tensor, term: &Term| sum + term.energy.energy(x) * term.weight;
        self.terms.iter().fold(zero, add)
    }

    fn value_and_gradient(&self, x: &Tensor) -> (Tensor, Tensor) {
        let mut sum = (x.select(1, 0).zeros_like(), x.zeros_like());
        for term in &self.terms {
            let (value, gradient) = term.energy.value_and_gradient(x);
            sum.0 += value * term.weight;
            sum.1 += gradient * term.weight;
        }
        sum
    }

    fn gradient(&self, x: &Tensor) -> Tensor {
        let add = |sum: Tensor, term: &Term| sum + term.energy.gradient(x) * term.weight;
        self.terms.iter().fold(x.zeros_like(), add)
    }
}

struct Borrowed<'a>(&'a dyn Energy);

impl Energy for Borrowed<'_> {
    fn parameters(&self) -> &Parameters {
        self.0.parameters()
    }

    fn energy(&self, x: &Tensor) -> Tensor {
        self.0.energy(x)
    }

    fn value_and_gradient(&self, x: &Tensor) -> (Tensor, Tensor) {
        self.0.value_and_gradient(x)
    }

    fn gradient(&self, x: &Tensor) -> Tensor {
        self.0.gradient(x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// U(x) = ½‖x − m‖².
    struct Bowl(f64, Parameters);

    impl Energy for Bowl {
        fn parameters(&self) -> &Parameters {
            &self.1
        }

        fn energy(&self, x: &Tensor) -> Tensor {
            (x - self.0).square().sum_dim_intlist(1, false, x.kind()) / 2.0
        }
    }

    /// By hand: 1·½‖x − 2‖² + ½·½‖x + 1‖² at (0, 3), and its gradient (x − 2) + ½(x + 1).
    #[test]
    fn values_and_gradients_add_up_with_their_weights() {
        let bowls = [2.0, -1.0].map(|mean| Bowl(mean, Parameters::new()));
        let sum = EnergySum::of([(1.0, &bowls[0] as &dyn Energy), (0.5, &bowls[1])]);
        let x = Tensor::from_slice(&[0f32, 3.0]).view([1, 2]);
        let value = 2.5 + 0.5 * 8.5;
        let gradient = Tensor::from_slice(&[-1.5f32, 3.0]).view([1, 2]);
        assert_eq!(sum.energy(&x).double_value(&[0]), value);
        let both = sum.value_and_gradient(&x);
        assert_eq!(both.0.double_value(&[0]), value);
        assert!(both.1.equal(&gradient) && sum.gradient(&x).equal(&gradient));
    }
}
