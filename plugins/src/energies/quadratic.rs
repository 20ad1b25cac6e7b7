//! The energy of a Gaussian with unknown mean, for which every expectation is known.

use ebipla_core::prelude::*;
use tch::Kind;

/// Gaussian prior with unknown mean: U(x) = ½‖x − a‖², for checks against closed forms.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Quadratic {
    /// Initial value of every coordinate of the mean a. [latent units]
    start: f64,
}

impl Default for Quadratic {
    fn default() -> Self {
        Self { start: 0.0 }
    }
}

impl Plugin for Quadratic {
    type Builds = dyn Energy;

    fn build(self, scope: &mut Scope) -> anyhow::Result<Box<dyn Energy>> {
        let mut parameters = Parameters::new();
        let start = Tensor::full([scope.latent_dim], self.start, (Kind::Float, scope.device));
        let mean = parameters.add("mean", start);
        Ok(Box::new(Bowl { parameters, mean }))
    }
}

struct Bowl {
    parameters: Parameters,
    mean: Tensor,
}

impl Energy for Bowl {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn energy(&self, x: &Tensor) -> Tensor {
        (x - &self.mean).square().sum_dim_intlist(1, false, x.kind()) / 2.0
    }

    fn value_and_gradient(&self, x: &Tensor) -> (Tensor, Tensor) {
        let _guard = tch::no_grad_guard();
        (self.energy(x), x - &self.mean)
    }

    /// ∇_a U = a − x, whose mean under N(a, I) is 0.
    fn prior_expectation(&self) -> Option<Vec<Tensor>> {
        Some(vec![self.mean.zeros_like().detach()])
    }
}

inventory::submit! { Registration::of::<Quadratic>("quadratic") }
