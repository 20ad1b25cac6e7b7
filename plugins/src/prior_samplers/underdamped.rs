//! Underdamped (kinetic) Langevin chains with three integrators.

use ebipla_core::prelude::*;

use super::statistics::statistics;
use crate::kinetic::{Integrator, Kinetic, Phase};

/// Underdamped Langevin chains without correction: dx = v dt, dv = −∇U dt − cv dt + √(2cτ) dB.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Underdamped {
    /// Steps J of each chain. [steps]
    #[schemars(range(min = 1, max = 1_000_000))]
    steps: u32,
    /// Step size h. [latent units]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    step_size: f64,
    /// Friction c. [1/latent units]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    friction: f64,
    /// Integrator of a step.
    integrator: Integrator,
    /// Temperature τ: 1 samples exp(−U), 0 has no noise. [1]
    #[schemars(range(min = 0.0))]
    temperature: f64,
}

impl Default for Underdamped {
    fn default() -> Self {
        Self {
            steps: 60,
            step_size: 0.1,
            friction: 2.0,
            integrator: Integrator::Obabo,
            temperature: 1.0,
        }
    }
}

impl Plugin for Underdamped {
    type Builds = dyn PriorSampler;

    fn build(self, _: &mut Scope) -> anyhow::Result<Box<dyn PriorSampler>> {
        Ok(Box::new(self))
    }
}

impl PriorSampler for Underdamped {
    fn sample(&self, energy: &dyn Energy, start: Tensor, draws: &mut Draws) -> anyhow::Result<Chains> {
        let _guard = tch::no_grad_guard();
        let kinetic = Kinetic {
            step_size: self.step_size,
            friction: self.friction,
            temperature: self.temperature,
            integrator: self.integrator,
        };
        let mut phase = Phase {
            x: start.copy(),
            v: draws.normal_like(&start) * self.temperature.sqrt(),
        };
        let mut gradient = energy.gradient(&phase.x);
        for _ in 0..self.steps {
            let end = kinetic.step(&mut phase, &gradient, |x| energy.gradient(x), draws);
            gradient = end.unwrap_or_else(|| energy.gradient(&phase.x));
        }
        let statistics = statistics(&start, &phase.x, &energy.energy(&phase.x), &gradient);
        Ok(Chains {
            last: phase.x,
            statistics,
        })
    }

    fn gradient_evaluations(&self) -> u64 {
        u64::from(self.steps) + 1
    }
}

inventory::submit! { Registration::of::<Underdamped>("underdamped") }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinetic::tests::exponential_variance;
    use crate::prior_samplers::testing::{assert_moments, end_of_many};

    fn sampler(integrator: Integrator, step_size: f64, friction: f64, temperature: f64) -> Underdamped {
        Underdamped {
            steps: (30.0 / step_size) as u32,
            step_size,
            friction,
            integrator,
            temperature,
        }
    }

    /// On N(0, 1), OBABO is a Verlet step between exact refreshments: Var x = τ/(1 − h²/4), for any friction.
    #[test]
    fn obabo_has_its_known_bias() {
        for (h, c, temperature) in [(1.0, 2.0, 1.0), (1.0, 0.7, 0.5), (0.2, 2.0, 1.0)] {
            let x = end_of_many(&sampler(Integrator::Obabo, h, c, temperature));
            assert_moments(&x, temperature / (1.0 - h * h / 4.0));
        }
    }

    /// BAOAB's positions are exact on a Gaussian at any stable step.
    #[test]
    fn baoab_is_exact_in_position() {
        for (h, c, temperature) in [(1.0, 2.0, 1.0), (0.3, 0.7, 0.5)] {
            assert_moments(
                &end_of_many(&sampler(Integrator::Baoab, h, c, temperature)),
                temperature,
            );
        }
    }

    #[test]
    fn the_exponential_integrator_has_its_known_bias() {
        // From an independent calculation: 1.026 at c = 2, h = 0.1.
        assert!((exponential_variance(2.0, 0.1) - 1.026).abs() < 5e-4);
        for (h, c, temperature) in [(0.5, 2.0, 1.0), (0.1, 2.0, 1.0), (0.4, 1.0, 0.5)] {
            let x = end_of_many(&sampler(Integrator::Exponential, h, c, temperature));
            assert_moments(&x, temperature * exponential_variance(c, h));
        }
    }
}
