//! The network that a list of transposed convolutions describes.

use anyhow::{Context, bail, ensure};
use ebipla_core::prelude::*;
use tch::Kind;

use super::initialisation::Initialisation;
use super::layer::{ConvLayer, fitting, image_shape, multiplications};
use crate::activation::Nonlinearity;

/// Order of an image's numbers in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryLayout {
    /// One channel after another.
    ChannelsFirst,
    /// All channels of a pixel together.
    ChannelsLast,
}

/// Precision of the network's arithmetic. Its parameters and images are f32 in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// Single precision.
    F32,
    /// Convolutions and activations in bfloat16: faster on GPUs that support it, slower on most CPUs.
    Bf16,
}

/// Everything needed to build the network.
#[derive(Clone, Debug)]
pub struct Blueprint {
    pub latent_dim: u32,
    pub layers: Vec<ConvLayer>,
    pub nonlinearity: Nonlinearity,
    pub initialisation: Initialisation,
    pub memory_layout: MemoryLayout,
    pub precision: Precision,
}

impl Blueprint {
    /// Builds the network for the data of `scope`, whose shape its images must have.
    pub fn build(self, scope: &mut Scope) -> anyhow::Result<Box<dyn Generator>> {
        fits(&self.layers, &scope.data.shape)?;
        scope.require_parameters(self.parameters())?;
        let mut draws = scope.random.stream("generator_initialisation", 0);
        let mut parameters = Parameters::new();
        let mut inputs = i64::from(self.latent_dim);
        let mut tensors = Vec::new();
        for (i, layer) in self.layers.iter().enumerate() {
            let channels = [inputs, i64::from(layer.channels)];
            let drawn = self
                .initialisation
                .draw(channels, layer.kernel.into(), &mut draws, scope.device);
            // Its index in an nn.Sequential in which an activation follows each convolution.
            let place = 2 * i;
            let [weight, bias] = drawn;
            tensors.push([
                parameters.add(format!("{place}.weight"), weight),
                parameters.add(format!("{place}.bias"), bias),
            ]);
            inputs = channels[1];
        }
        Ok(Box::new(Network {
            blueprint: self,
            parameters,
            tensors,
        }))
    }
}

impl Blueprint {
    /// Number of parameters of the network.
    fn parameters(&self) -> u128 {
        let mut inputs = u128::from(self.latent_dim);
        let count = self.layers.iter().map(|layer| {
            let [channels, kernel] = [layer.channels, layer.kernel].map(u128::from);
            let count = (inputs * kernel * kernel + 1) * channels;
            inputs = channels;
            count
        });
        count.sum()
    }
}

/// Checks that `layers` make images of the data's shape.
fn fits(layers: &[ConvLayer], data: &[i64]) -> anyhow::Result<()> {
    ensure!(
        data.len() == 3,
        "takes data that are images (channels, height, width), found the shape {data:?}"
    );
    let made = image_shape(layers)
        .map_err(anyhow::Error::msg)
        .context("layers")?;
    if made == data {
        return Ok(());
    }
    let made =
        format!("makes images of the shape {made:?} (channels, height, width), but the data are {data:?}");
    match fitting(data) {
        Some(layers) => bail!("{made}; generator `conv_decoder` fits them with layers: {layers}"),
        None => bail!("{made}; all kernels are square, and so must be the data"),
    }
}

struct Network {
    blueprint: Blueprint,
    parameters: Parameters,
    /// Weight and bias of each layer.
    tensors: Vec<[Tensor; 2]>,
}

impl Generator for Network {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn latent_dim(&self) -> i64 {
        self.blueprint.latent_dim.into()
    }

    fn generate(&self, x: &Tensor) -> Tensor {
        let kind = match self.blueprint.precision {
            Precision::F32 => Kind::Float,
            Precision::Bf16 => Kind::BFloat16,
        };
        let mut images = x.to_kind(kind).unsqueeze(-1).unsqueeze(-1);
        for (i, (layer, [weight, bias])) in self.blueprint.layers.iter().zip(&self.tensors).enumerate() {
            if i > 0 {
                images = self.blueprint.nonlinearity.apply(&images);
            }
            let weight = match self.blueprint.memory_layout {
                MemoryLayout::ChannelsFirst => weight.to_kind(kind),
                MemoryLayout::ChannelsLast => channels_last(&weight.to_kind(kind)),
            };
            images = images.conv_transpose2d(
                &weight,
                None::<Tensor>,
                [i64::from(layer.stride); 2],
                [i64::from(layer.padding); 2],
                [0, 0],
                1,
                [1, 1],
            );
            // Separate from the convolution, since oneDNN would compute its gradient there by a slow reference
            // implementation.
            images += bias.to_kind(kind).view([-1, 1, 1]);
        }
        images.to_kind(Kind::Float).tanh()
    }

    fn multiplications(&self) -> Option<u64> {
        let Blueprint {
            latent_dim, layers, ..
        } = &self.blueprint;
        Some(multiplications(*latent_dim, layers))
    }
}

/// The same tensor with the channels of a pixel together; convolutions keep the layout of their input.
fn channels_last(weight: &Tensor) -> Tensor {
    weight.permute([0, 2, 3, 1]).contiguous().permute([0, 3, 1, 2])
}
