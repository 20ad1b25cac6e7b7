//! The unadjusted Langevin algorithm.

use ebipla_core::prelude::*;

use super::langevin::Langevin;

/// Unadjusted Langevin chains: x ← x − γ∇U(x) + √(2γτ)ξ.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Ula(Langevin);

impl Plugin for Ula {
    type Builds = dyn PriorSampler;

    fn build(self, _: &mut Scope) -> anyhow::Result<Box<dyn PriorSampler>> {
        Ok(Box::new(self))
    }
}

impl PriorSampler for Ula {
    fn sample(&self, energy: &dyn Energy, start: Tensor, draws: &mut Draws) -> anyhow::Result<Chains> {
        self.0.run(energy, &start, draws, Tensor::shallow_clone)
    }

    fn gradient_evaluations(&self) -> u64 {
        self.0.steps.into()
    }
}

inventory::submit! { Registration::of::<Ula>("ula") }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prior_samplers::testing::{assert_moments, end, end_of_many};

    /// On N(0, 1) the chain is x' = (1 − γ)x + √(2γτ)ξ: stationary variance τ/(1 − γ/2).
    #[test]
    fn stationary_variance_has_the_known_discretisation_bias() {
        for (step_size, temperature) in [(0.3, 1.0), (0.3, 0.5), (0.05, 1.0)] {
            let ula = Ula(Langevin {
                steps: 400,
                step_size,
                temperature,
            });
            assert_moments(&end_of_many(&ula), temperature / (1.0 - step_size / 2.0));
        }
    }

    /// Without noise, x after J steps is (1 − γ)^J x.
    #[test]
    fn descends_at_temperature_zero() {
        let ula = Ula(Langevin {
            steps: 3,
            step_size: 0.5,
            temperature: 0.0,
        });
        let x = end(&ula, Tensor::from_slice(&[8f32, -16.0]).view([2, 1]));
        assert!(x.equal(&Tensor::from_slice(&[1f32, -2.0]).view([2, 1])));
    }
}
