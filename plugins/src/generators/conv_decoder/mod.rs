//! A decoder of transposed convolutions whose layers the recipe lists, and the named presets from papers.

mod initialisation;
mod layer;
mod network;
mod presets;

use ebipla_core::prelude::*;

use self::initialisation::Initialisation;
use self::layer::{ConvLayer, image_shape};
use self::network::{Blueprint, MemoryLayout, Precision};
use crate::activation::{Activation, SLOPE};

/// Transposed convolutions with an activation after each but the last, and tanh at the end: for images in [−1, 1].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ConvDecoder {
    /// Dimension of the latent space. [dimensions]
    #[schemars(range(min = 1))]
    latent_dim: u32,
    /// The layers, from the latent (an image of one pixel) to the data.
    layers: Vec<ConvLayer>,
    /// Activation after each layer except the last.
    activation: Activation,
    /// Slope of leaky_relu for negative arguments. [1]
    #[schemars(range(min = 0.0, max = 1.0), extend("only_with" = "activation=leaky_relu"))]
    slope: f64,
    /// Initialisation of the weights.
    initialisation: Initialisation,
    /// Order of an image's numbers in memory; changes results by rounding only.
    memory_layout: MemoryLayout,
    /// Precision of the network's arithmetic.
    precision: Precision,
}

impl Default for ConvDecoder {
    fn default() -> Self {
        Self {
            latent_dim: 100,
            layers: vec![
                ConvLayer::opening(128, 4),
                ConvLayer::doubling(64),
                ConvLayer::doubling(32),
                ConvLayer::doubling(3),
            ],
            activation: Activation::LeakyRelu,
            slope: SLOPE,
            initialisation: Initialisation::Pytorch,
            memory_layout: MemoryLayout::ChannelsLast,
            precision: Precision::F32,
        }
    }
}

impl Plugin for ConvDecoder {
    type Builds = dyn Generator;

    fn check(&self) -> Vec<Complaint> {
        let wrong = image_shape(&self.layers).err();
        let complaint = |message| Complaint {
            option: "layers",
            message,
        };
        wrong.into_iter().map(complaint).collect()
    }

    fn build(self, scope: &mut Scope) -> anyhow::Result<Box<dyn Generator>> {
        let blueprint = Blueprint {
            latent_dim: self.latent_dim,
            layers: self.layers,
            nonlinearity: self.activation.with_slope(self.slope),
            initialisation: self.initialisation,
            memory_layout: self.memory_layout,
            precision: self.precision,
        };
        blueprint.build(scope)
    }
}

inventory::submit! { Registration::of::<ConvDecoder>("conv_decoder") }

#[cfg(test)]
mod tests;
