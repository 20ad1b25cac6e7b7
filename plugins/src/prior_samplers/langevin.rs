//! Overdamped Langevin chains without correction, for any rule that turns gradients into drifts.

use ebipla_framework::prelude::*;

use super::statistics::statistics;

/// x ← x − γ·drift(∇U(x)) + √(2γτ)ξ.
pub struct Langevin {
    pub steps: u32,
    pub step_size: f64,
    pub temperature: f64,
}

impl Langevin {
    pub fn run(
        &self,
        energy: &dyn Energy,
        start: &Tensor,
        draws: &mut Draws,
        drift: impl Fn(Tensor) -> Tensor,
    ) -> anyhow::Result<Chains> {
        let _guard = tch::no_grad_guard();
        let noise_scale = (2.0 * self.step_size * self.temperature).sqrt();
        let mut x = start.copy();
        for _ in 0..self.steps {
            let drift = drift(energy.gradient(&x));
            x -= drift * self.step_size;
            x += draws.normal_like(&x) * noise_scale;
        }
        let (value, gradient) = energy.value_and_gradient(&x);
        let statistics = statistics(start, &x, &value, &gradient);
        Ok(Chains { last: x, statistics })
    }
}
