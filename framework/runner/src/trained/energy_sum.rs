//! Adds energies up: the sum is the energy of the product of their priors.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ebipla_core::{Energy, FrozenEnergy, Parameters};
use tch::Tensor;

/// Σ wᵢUᵢ(x), whose prior is proportional to Π pᵢ(x)^wᵢ.
pub struct EnergySum<'a> {
    terms: Vec<(f64, &'a dyn Energy)>,
    /// The sum has none of its own: it is not trained.
    parameters: Parameters,
    is_used: Arc<AtomicBool>,
}

impl<'a> EnergySum<'a> {
    /// Weights with energies over the same latent space.
    pub fn of(terms: impl IntoIterator<Item = (f64, &'a dyn Energy)>) -> Self {
        Self {
            terms: terms.into_iter().collect(),
            parameters: Parameters::new(),
            is_used: Arc::default(),
        }
    }

    /// Whether it has been evaluated at all.
    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    fn use_it(&self) {
        self.is_used.store(true, Ordering::Relaxed);
    }
}

impl Energy for EnergySum<'_> {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn energy(&self, x: &Tensor) -> Tensor {
        self.use_it();
        let zero = x.select(1, 0).zeros_like();
        let add = |sum: Tensor, (weight, energy): &(f64, &dyn Energy)| sum + energy.energy(x) * *weight;
        self.terms.iter().fold(zero, add)
    }

    fn value_and_gradient(&self, x: &Tensor) -> (Tensor, Tensor) {
        self.use_it();
        let mut sum = (x.select(1, 0).zeros_like(), x.zeros_like());
        for (weight, energy) in &self.terms {
            let (value, gradient) = energy.value_and_gradient(x);
            sum.0 += value * *weight;
            sum.1 += gradient * *weight;
        }
        sum
    }

    fn gradient(&self, x: &Tensor) -> Tensor {
        self.use_it();
        let add = |sum: Tensor, (weight, energy): &(f64, &dyn Energy)| sum + energy.gradient(x) * *weight;
        self.terms.iter().fold(x.zeros_like(), add)
    }

    fn frozen(&self) -> Option<Box<dyn FrozenEnergy>> {
        let freeze = |(weight, energy): &(f64, &dyn Energy)| Some((*weight as f32, energy.frozen()?));
        let terms: Option<Vec<_>> = self.terms.iter().map(freeze).collect();
        Some(Box::new(FrozenSum {
            terms: terms?,
            is_used: Arc::clone(&self.is_used),
        }))
    }
}

/// The same at fixed parameters.
struct FrozenSum {
    terms: Vec<(f32, Box<dyn FrozenEnergy>)>,
    is_used: Arc<AtomicBool>,
}

impl FrozenEnergy for FrozenSum {
    fn evaluate(&self, points: &[f32], values: &mut [f32], gradients: &mut [f32]) {
        self.is_used.store(true, Ordering::Relaxed);
        let (mut value, mut gradient) = (vec![0.0; values.len()], vec![0.0; gradients.len()]);
        values.fill(0.0);
        gradients.fill(0.0);
        let add = |sums: &mut [f32], terms: &[f32], weight: f32| {
            for (sum, term) in sums.iter_mut().zip(terms) {
                *sum += weight * term;
            }
        };
        for (weight, energy) in &self.terms {
            energy.evaluate(points, &mut value, &mut gradient);
            add(values, &value, *weight);
            add(gradients, &gradient, *weight);
        }
    }

    fn engine(&self) -> String {
        let engines: Vec<_> = self.terms.iter().map(|(_, energy)| energy.engine()).collect();
        engines.join(", ")
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
        assert!(!sum.is_used());
        let x = Tensor::from_slice(&[0f32, 3.0]).view([1, 2]);
        let value = 2.5 + 0.5 * 8.5;
        let gradient = Tensor::from_slice(&[-1.5f32, 3.0]).view([1, 2]);
        assert_eq!(sum.energy(&x).double_value(&[0]), value);
        assert!(sum.is_used());
        let both = sum.value_and_gradient(&x);
        assert_eq!(both.0.double_value(&[0]), value);
        assert!(both.1.equal(&gradient) && sum.gradient(&x).equal(&gradient));
    }
}
