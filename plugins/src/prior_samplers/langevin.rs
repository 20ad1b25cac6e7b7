//! Unadjusted overdamped Langevin chains for any map from gradients to drifts.

use ebipla_core::prelude::*;

use super::statistics::statistics;

/// x ← x − γ·drift(∇U(x)) + √(2γτ)ξ: the options and the chains that `ula` and `tamed_ula` share.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Langevin {
    /// Steps J of each chain. [steps]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub steps: u32,
    /// Step size γ, a raw Euler–Maruyama step. [latent units²]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub step_size: f64,
    /// Temperature τ: 1 samples exp(−U), 0 is gradient descent without noise. [1]
    #[schemars(range(min = 0.0))]
    pub temperature: f64,
}

impl Default for Langevin {
    fn default() -> Self {
        Self {
            steps: 60,
            step_size: 0.1,
            temperature: 1.0,
        }
    }
}

impl Langevin {
    /// Runs the chains; `drift` maps gradients to drifts.
    pub fn run(
        &self,
        energy: &dyn Energy,
        start: &Tensor,
        draws: &mut Draws,
        drift: impl Fn(&Tensor) -> Tensor,
    ) -> anyhow::Result<Chains> {
        let _guard = tch::no_grad_guard();
        let noise_scale = (2.0 * self.step_size * self.temperature).sqrt();
        let mut x = start.copy();
        let mut gradient = x.zeros_like();
        let minus_step = Tensor::full([1], -self.step_size, (x.kind(), x.device()));
        for _ in 0..self.steps {
            gradient = energy.gradient(&x);
            let _ = x.addcmul_(&drift(&gradient), &minus_step);
            draws.add_normal(&mut x, noise_scale);
        }
        let statistics = statistics(start, &x, &energy.energy(&x), &gradient);
        Ok(Chains { last: x, statistics })
    }
}
