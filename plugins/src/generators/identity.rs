//! The identity as generator.

use ebipla_core::prelude::*;

/// g(x) = x, without parameters: the latent space is the data space.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Identity {}

impl Plugin for Identity {
    type Builds = dyn Generator;

    fn build(self, scope: &mut Scope) -> anyhow::Result<Box<dyn Generator>> {
        let [latent_dim] = scope.data.shape[..] else {
            anyhow::bail!(
                "takes data that are vectors, found the shape {:?}",
                scope.data.shape
            );
        };
        Ok(Box::new(Unchanged {
            parameters: Parameters::new(),
            latent_dim,
        }))
    }
}

struct Unchanged {
    parameters: Parameters,
    latent_dim: i64,
}

impl Generator for Unchanged {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn latent_dim(&self) -> i64 {
        self.latent_dim
    }

    fn generate(&self, x: &Tensor) -> Tensor {
        x.shallow_clone()
    }
}

inventory::submit! { Registration::of::<Identity>("identity") }
