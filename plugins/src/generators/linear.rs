//! A linear layer as generator.

use ebipla_core::prelude::*;

use crate::linear_layer::LinearLayer;

/// A linear layer: g(x) = xWᵀ + b, in the shape of the data.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Linear {
    /// Dimension of the latent space. [dimensions]
    #[schemars(range(min = 1))]
    latent_dim: u32,
}

impl Default for Linear {
    fn default() -> Self {
        Self { latent_dim: 2 }
    }
}

impl Plugin for Linear {
    type Builds = dyn Generator;

    fn build(self, scope: &mut Scope) -> anyhow::Result<Box<dyn Generator>> {
        let outputs = scope.data.shape.iter().product();
        let latent_dim = i64::from(self.latent_dim);
        scope.require_parameters(LinearLayer::parameters(&[latent_dim, outputs]))?;
        let mut parameters = Parameters::new();
        let mut draws = scope.random.stream("generator_initialisation", 0);
        let layer = LinearLayer::new(
            &mut parameters,
            "layers.0",
            [latent_dim, outputs],
            &mut draws,
            scope.device,
        );
        Ok(Box::new(LinearGenerator {
            parameters,
            layer,
            latent_dim,
            shape: [&[-1], &scope.data.shape[..]].concat(),
        }))
    }
}

struct LinearGenerator {
    parameters: Parameters,
    layer: LinearLayer,
    latent_dim: i64,
    /// Shape of a stack of points of any length.
    shape: Vec<i64>,
}

impl Generator for LinearGenerator {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn latent_dim(&self) -> i64 {
        self.latent_dim
    }

    fn generate(&self, x: &Tensor) -> Tensor {
        self.layer.forward(x).view(&self.shape[..])
    }

    fn multiplications(&self) -> Option<u64> {
        Some(self.layer.weight.numel() as u64)
    }
}

inventory::submit! { Registration::of::<Linear>("linear") }
