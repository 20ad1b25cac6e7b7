//! Shared by algorithms that take Langevin steps on the posterior.

use ebipla_core::prelude::*;
use ebipla_core::{Joint, Model, Wanted};

/// Unit of a posterior step size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepUnit {
    /// The Euler–Maruyama step itself.
    Raw,
    /// Multiples of the decoder's variance σ².
    Sigma2,
}

impl StepUnit {
    /// The raw Euler–Maruyama step. Warns if it exceeds what the decoder allows.
    pub fn raw(self, step_size: f64, sigma: f64) -> f64 {
        let variance = sigma * sigma;
        let raw = match self {
            StepUnit::Raw => step_size,
            StepUnit::Sigma2 => step_size * variance,
        };
        // The posterior's curvature is about ‖∇g‖²/σ²; a Langevin step above 2/curvature is unstable.
        if raw > 2.0 * variance {
            tracing::warn!(
                "algorithm.step_size is {raw} raw, above 2σ² = {}: posterior samples diverge unless the generator contracts; did \
                 you mean step_unit: sigma2?",
                2.0 * variance
            );
        }
        raw
    }
}

/// φ at clouds `x` (`[batch, samples, latent]`) of the data points `y` (`[batch, …]`).
pub fn joint_of_clouds(model: &Model, x: &Tensor, y: &Tensor, wanted: Wanted) -> Joint {
    let samples = x.size()[1];
    let y = if samples == 1 {
        y.shallow_clone()
    } else {
        y.repeat_interleave_self_int(samples, 0, None)
    };
    model.joint(&x.flatten(0, 1), &y, wanted)
}
