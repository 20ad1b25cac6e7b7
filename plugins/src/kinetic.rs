//! A step of underdamped (kinetic) Langevin dynamics, shared by samplers and algorithms.

use ebipla_core::prelude::*;

/// Integrator of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Integrator {
    /// Half friction, half kick, drift, half kick, half friction.
    Obabo,
    /// Half kick, half drift, friction, half drift, half kick.
    Baoab,
    /// Exact for a gradient held fixed over the step.
    Exponential,
}

/// dx = v dt, dv = −∇F dt − cv dt + √(2cτ) dB, with target exp(−F/τ).
#[derive(Clone, Copy, Debug)]
pub struct Kinetic {
    /// Step size h.
    pub step_size: f64,
    /// Friction c.
    pub friction: f64,
    /// Temperature τ.
    pub temperature: f64,
    pub integrator: Integrator,
}

/// Positions and velocities.
pub struct Phase {
    pub x: Tensor,
    pub v: Tensor,
}

impl Kinetic {
    /// Takes one step; `start` is the gradient at the current position.
    ///
    /// Calls `gradient` for the new position if the integrator needs it, and returns that gradient.
    pub fn step(
        &self,
        phase: &mut Phase,
        start: &Tensor,
        gradient: impl FnOnce(&Tensor) -> Tensor,
        draws: &mut Draws,
    ) -> Option<Tensor> {
        let _guard = tch::no_grad_guard();
        match self.integrator {
            Integrator::Obabo => Some(self.obabo(phase, start, gradient, draws)),
            Integrator::Baoab => Some(self.baoab(phase, start, gradient, draws)),
            Integrator::Exponential => {
                self.exponential(phase, start, draws);
                None
            }
        }
    }

    /// The stationary variance of x for quadratic F with curvature λ, as a multiple of τ/λ; infinity where the step is
    /// unstable, 0 without noise.
    pub fn variance(&self, curvature: f64) -> f64 {
        // Both Verlet integrators are stable as long as h²λ < 4.
        let product = self.step_size * self.step_size * curvature;
        let variance = match self.integrator {
            Integrator::Obabo if product < 4.0 => 1.0 / (1.0 - product / 4.0),
            Integrator::Baoab if product < 4.0 => 1.0,
            Integrator::Obabo | Integrator::Baoab => f64::INFINITY,
            Integrator::Exponential => Exponential::new(self.friction, self.step_size).variance(curvature),
        };
        match self.temperature > 0.0 || variance.is_infinite() {
            true => variance,
            false => 0.0,
        }
    }

    /// O for a time t: v ← δv + √(τ(1 − δ²))ξ with δ = e^{−ct}, which preserves N(0, τ).
    fn refresh(&self, v: &mut Tensor, time: f64, draws: &mut Draws) {
        let kept = (-self.friction * time).exp();
        let noise_scale = (self.temperature * (1.0 - kept * kept)).sqrt();
        *v *= kept;
        draws.add_normal(v, noise_scale);
    }

    fn obabo(
        &self,
        Phase { x, v }: &mut Phase,
        start: &Tensor,
        gradient: impl FnOnce(&Tensor) -> Tensor,
        draws: &mut Draws,
    ) -> Tensor {
        let h = self.step_size;
        self.refresh(v, h / 2.0, draws);
        *v -= start * (h / 2.0);
        *x += &*v * h;
        let end = gradient(x);
        *v -= &end * (h / 2.0);
        self.refresh(v, h / 2.0, draws);
        end
    }

    fn baoab(
        &self,
        Phase { x, v }: &mut Phase,
        start: &Tensor,
        gradient: impl FnOnce(&Tensor) -> Tensor,
        draws: &mut Draws,
    ) -> Tensor {
        let h = self.step_size;
        *v -= start * (h / 2.0);
        *x += &*v * (h / 2.0);
        self.refresh(v, h, draws);
        *x += &*v * (h / 2.0);
        let end = gradient(x);
        *v -= &end * (h / 2.0);
        end
    }

    /// x ← x + ψ₁v − ψ₂∇ + ε_x, v ← ψ₀v − ψ₁∇ + ε_v, with the noises' exact joint covariance.
    fn exponential(&self, Phase { x, v }: &mut Phase, gradient: &Tensor, draws: &mut Draws) {
        let coefficients = Exponential::new(self.friction, self.step_size);
        let Exponential { psi0, psi1, psi2, .. } = coefficients;
        let scale = self.temperature.sqrt();
        let [from_own, from_velocity] = coefficients.position_noise();
        let velocity_noise = coefficients.var_v.sqrt();
        let for_v = draws.normal_like(v) * scale;
        let for_x = draws.normal_like(x) * scale;
        *x += &*v * psi1 - gradient * psi2 + &for_v * from_velocity + for_x * from_own;
        *v *= psi0;
        *v += for_v * velocity_noise - gradient * psi1;
    }
}

/// The exponential integrator's coefficients: it solves the linear part of the equation exactly over a step h.
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
        // 1 − e^{−ch} and 1 − e^{−2ch} without cancellation for small steps.
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

    /// λ·Var x in the chain's stationary state for curvature λ, at τ = 1; infinity if there is none.
    ///
    /// The step is linear, (x, v) ← A(x, v) + ε, so the covariance S solves S = ASAᵀ + Cov ε: three linear equations
    /// for Var x, Cov(x, v) and Var v, of which Cramer's rule gives the first.
    fn variance(&self, curvature: f64) -> f64 {
        let Self { psi0, psi1, psi2, .. } = *self;
        if curvature <= 0.0 {
            return 1.0;
        }
        let [xx, xv, vx, vv] = [1.0 - psi2 * curvature, psi1, -psi1 * curvature, psi0];
        let (trace, determinant) = (xx + vv, xx * vv - xv * vx);
        if determinant.abs() >= 1.0 || trace.abs() >= 1.0 + determinant {
            return f64::INFINITY;
        }
        let noise = [self.var_x, self.covariance, self.var_v];
        let others = [
            [-2.0 * xx * xv, 1.0 - xx * vv - xv * vx, -2.0 * vx * vv],
            [-xv * xv, -xv * vv, 1.0 - vv * vv],
        ];
        let with_first = |[a, b, c]: [f64; 3]| {
            let [[d, e, f], [g, h, i]] = others;
            a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
        };
        curvature * with_first(noise) / with_first([1.0 - xx * xx, -xx * vx, -vx * vx])
    }

    /// Weights of a new normal and of the velocity's normal in ε_x, by Cholesky factorisation.
    fn position_noise(&self) -> [f64; 2] {
        let from_velocity = self.covariance / self.var_v.sqrt();
        let own = (self.var_x - from_velocity * from_velocity).max(0.0);
        [own.sqrt(), from_velocity]
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// The stationary covariance S = ASAᵀ + Q of the linear chain on N(0, 1), by fixed-point iteration.
    ///
    /// A and Q are written out from the integrals above, independently of the code under test: A = [[1 − ψ₂, ψ₁],
    /// [−ψ₁, ψ₀]], Var ε_v = 1 − ψ₀², Cov = (1 − ψ₀)²/c, Var ε_x = (2ch + 4ψ₀ − ψ₀² − 3)/c².
    pub fn exponential_variance(c: f64, h: f64) -> f64 {
        let psi0 = (-c * h).exp();
        let psi1 = (1.0 - psi0) / c;
        let psi2 = (h - psi1) / c;
        let [xx, xv, vx, vv] = [1.0 - psi2, psi1, -psi1, psi0];
        let noise_x = (2.0 * c * h + 4.0 * psi0 - psi0 * psi0 - 3.0) / (c * c);
        let noise_xv = (1.0 - psi0) * (1.0 - psi0) / c;
        let noise_v = 1.0 - psi0 * psi0;
        let (mut x, mut both, mut v) = (0.0, 0.0, 1.0);
        for _ in 0..20_000 {
            (x, both, v) = (
                xx * xx * x + 2.0 * xx * xv * both + xv * xv * v + noise_x,
                xx * vx * x + (xx * vv + xv * vx) * both + xv * vv * v + noise_xv,
                vx * vx * x + 2.0 * vx * vv * both + vv * vv * v + noise_v,
            );
        }
        x
    }

    /// The coefficients against the formulas from the integrals, and positive where rounding would matter.
    #[test]
    fn exponential_coefficients() {
        let (c, h) = (1.3, 0.8);
        let found = Exponential::new(c, h);
        let psi0 = f64::exp(-c * h);
        let close = |found: f64, expected: f64| {
            assert!((found - expected).abs() < 1e-12, "{found}, expected {expected}")
        };
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
