//! Underdamped (kinetic) Langevin chains with three integrators.

use ebipla_framework::prelude::*;

use super::statistics::statistics;

/// Underdamped Langevin chains: dx = v dt, dv = −∇U dt − cv dt + √(2cτ) dB, not corrected.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Underdamped {
    /// Steps J of each chain. [steps]
    #[schemars(range(min = 1))]
    steps: u32,
    /// Step size h. [latent units]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    step_size: f64,
    /// Friction c. [1/latent units]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    friction: f64,
    /// How a step is taken.
    integrator: Integrator,
    /// Temperature τ: 1 samples exp(−U), 0 has no noise. [1]
    #[schemars(range(min = 0.0))]
    temperature: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Integrator {
    /// Half friction, half kick, drift, half kick, half friction.
    Obabo,
    /// Half kick, half drift, friction, half drift, half kick.
    Baoab,
    /// Exact for a gradient held fixed over the step.
    Exponential,
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

/// Positions and velocities.
struct Phase {
    x: Tensor,
    v: Tensor,
}

impl PriorSampler for Underdamped {
    fn sample(&self, energy: &dyn Energy, start: Tensor, draws: &mut Draws) -> anyhow::Result<Chains> {
        let _guard = tch::no_grad_guard();
        let mut phase = Phase {
            x: start.copy(),
            v: draws.normal_like(&start) * self.temperature.sqrt(),
        };
        match self.integrator {
            Integrator::Obabo => self.obabo(energy, &mut phase, draws),
            Integrator::Baoab => self.baoab(energy, &mut phase, draws),
            Integrator::Exponential => self.exponential(energy, &mut phase, draws),
        }
        let (value, gradient) = energy.value_and_gradient(&phase.x);
        let statistics = statistics(&start, &phase.x, &value, &gradient);
        Ok(Chains {
            last: phase.x,
            statistics,
        })
    }

    fn gradient_evaluations(&self) -> u64 {
        match self.integrator {
            Integrator::Exponential => self.steps.into(),
            Integrator::Obabo | Integrator::Baoab => u64::from(self.steps) + 1,
        }
    }
}

impl Underdamped {
    /// O over a time t: v ← δv + √(τ(1 − δ²))ξ with δ = e^{−ct}, which keeps N(0, τ).
    fn refresh(&self, v: &mut Tensor, time: f64, draws: &mut Draws) {
        let kept = (-self.friction * time).exp();
        let noise_scale = (self.temperature * (1.0 - kept * kept)).sqrt();
        *v *= kept;
        *v += draws.normal_like(v) * noise_scale;
    }

    fn obabo(&self, energy: &dyn Energy, Phase { x, v }: &mut Phase, draws: &mut Draws) {
        let h = self.step_size;
        let mut gradient = energy.gradient(x);
        for _ in 0..self.steps {
            self.refresh(v, h / 2.0, draws);
            *v -= &gradient * (h / 2.0);
            *x += &*v * h;
            gradient = energy.gradient(x);
            *v -= &gradient * (h / 2.0);
            self.refresh(v, h / 2.0, draws);
        }
    }

    fn baoab(&self, energy: &dyn Energy, Phase { x, v }: &mut Phase, draws: &mut Draws) {
        let h = self.step_size;
        let mut gradient = energy.gradient(x);
        for _ in 0..self.steps {
            *v -= &gradient * (h / 2.0);
            *x += &*v * (h / 2.0);
            self.refresh(v, h, draws);
            *x += &*v * (h / 2.0);
            gradient = energy.gradient(x);
            *v -= &gradient * (h / 2.0);
        }
    }

    /// x ← x + ψ₁v − ψ₂∇ + ε_x, v ← ψ₀v − ψ₁∇ + ε_v, with the noises' exact joint covariance.
    fn exponential(&self, energy: &dyn Energy, Phase { x, v }: &mut Phase, draws: &mut Draws) {
        let coefficients = Exponential::new(self.friction, self.step_size);
        let Exponential { psi0, psi1, psi2, .. } = coefficients;
        let scale = self.temperature.sqrt();
        let [from_own, from_velocity] = coefficients.position_noise();
        let velocity_noise = coefficients.var_v.sqrt();
        for _ in 0..self.steps {
            let gradient = energy.gradient(x);
            let for_v = draws.normal_like(v) * scale;
            let for_x = draws.normal_like(x) * scale;
            *x += &*v * psi1 - &gradient * psi2 + &for_v * from_velocity + for_x * from_own;
            *v *= psi0;
            *v += for_v * velocity_noise - gradient * psi1;
        }
    }
}

/// The exponential integrator's coefficients: the linear part of the equation solved exactly over a step h.
///
/// The noises are ε_v = √(2c)∫e^{−c(h−s)}dB and ε_x = √(2c)∫(1 − e^{−c(h−s)})/c dB over [0, h].
struct Exponential {
    psi0: f64,
    psi1: f64,
    psi2: f64,
    var_v: f64,
    var_x: f64,
    covariance: f64,
}

impl Exponential {
    fn new(c: f64, h: f64) -> Self {
        // 1 − e^{−ch} and 1 − e^{−2ch} without cancellation for a small step.
        let one_minus = -(-c * h).exp_m1();
        let psi1 = one_minus / c;
        Self {
            psi0: 1.0 - one_minus,
            psi1,
            psi2: (h - psi1) / c,
            var_v: -(-2.0 * c * h).exp_m1(),
            var_x: 2.0 / c * (h - 2.0 * psi1) - (-2.0 * c * h).exp_m1() / (c * c),
            covariance: one_minus * one_minus / c,
        }
    }

    /// Weights of a fresh normal and of the velocity's normal in ε_x, by Cholesky's factorisation.
    fn position_noise(&self) -> [f64; 2] {
        let from_velocity = self.covariance / self.var_v.sqrt();
        let own = (self.var_x - from_velocity * from_velocity).max(0.0);
        [own.sqrt(), from_velocity]
    }
}

inventory::submit! { Registration::of::<Underdamped>("underdamped") }

#[cfg(test)]
mod tests {
    use super::*;
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

    /// On N(0, 1), OBABO is a Verlet step between exact refreshments: Var x = τ/(1 − h²/4), whatever the friction.
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

    /// The stationary covariance S = ASAᵀ + Q of the linear chain on N(0, 1), by iterating to the fixed point.
    ///
    /// A and Q are written out from the integrals above, independently of the code under test: A = [[1 − ψ₂, ψ₁],
    /// [−ψ₁, ψ₀]], Var ε_v = 1 − ψ₀², Cov = (1 − ψ₀)²/c, Var ε_x = (2ch + 4ψ₀ − ψ₀² − 3)/c².
    fn exponential_variance(c: f64, h: f64) -> f64 {
        let psi0 = (-c * h).exp();
        let psi1 = (1.0 - psi0) / c;
        let psi2 = (h - psi1) / c;
        let [xx, xv, vx, vv] = [1.0 - psi2, psi1, -psi1, psi0];
        let noise_x = (2.0 * c * h + 4.0 * psi0 - psi0 * psi0 - 3.0) / (c * c);
        let noise_xv = (1.0 - psi0) * (1.0 - psi0) / c;
        let noise_v = 1.0 - psi0 * psi0;
        let (mut x, mut both, mut v) = (0.0, 0.0, 1.0);
        for _ in 0..100_000 {
            (x, both, v) = (
                xx * xx * x + 2.0 * xx * xv * both + xv * xv * v + noise_x,
                xx * vx * x + (xx * vv + xv * vx) * both + xv * vv * v + noise_xv,
                vx * vx * x + 2.0 * vx * vv * both + vv * vv * v + noise_v,
            );
        }
        x
    }

    #[test]
    fn the_exponential_integrator_has_its_known_bias() {
        // Known from elsewhere: 1.026 at c = 2, h = 0.1.
        assert!((exponential_variance(2.0, 0.1) - 1.026).abs() < 5e-4);
        for (h, c, temperature) in [(0.5, 2.0, 1.0), (0.1, 2.0, 1.0), (0.4, 1.0, 0.5)] {
            let x = end_of_many(&sampler(Integrator::Exponential, h, c, temperature));
            assert_moments(&x, temperature * exponential_variance(c, h));
        }
    }

    /// The coefficients against the formulas that the integrals give, and positive where rounding bites.
    #[test]
    fn exponential_coefficients() {
        let (c, h) = (1.3, 0.8);
        let found = Exponential::new(c, h);
        let psi0 = f64::exp(-c * h);
        let close =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found} for {expected}");
        close(found.psi0, psi0);
        close(found.var_v, 1.0 - psi0 * psi0);
        close(found.covariance, (1.0 - psi0).powi(2) / c);
        close(
            found.var_x,
            (2.0 * c * h + 4.0 * psi0 - psi0 * psi0 - 3.0) / (c * c),
        );
        let [own, shared] = Exponential::new(1.0, 1e-4).position_noise();
        assert!(own.is_finite() && shared > 0.0);
    }
}
