//! The generators used in papers, by name: the same network with fixed layers.

use ebipla_core::prelude::*;

use super::initialisation::Initialisation;
use super::layer::ConvLayer;
use super::network::{Blueprint, MemoryLayout, Precision};
use crate::activation::{Activation, SLOPE};

/// Defines a plugin whose layers follow from a width and the data; serde cannot share fields between structs that
/// refuse unknown ones.
macro_rules! preset {
    (
        $(#[$doc:meta])*
        $name:literal => $Type:ident {
            width: $width:literal,
            latent_dim: $latent_dim:literal,
            initialisation: $initialisation:ident,
            layers: $layers:expr,
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct $Type {
            /// Base number of channels: every layer but the last has a multiple of it. [channels]
            #[schemars(range(min = 1, max = 4096))]
            width: u32,
            /// Dimension of the latent space. [dimensions]
            #[schemars(range(min = 1))]
            latent_dim: u32,
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

        impl Default for $Type {
            fn default() -> Self {
                Self {
                    width: $width,
                    latent_dim: $latent_dim,
                    activation: Activation::LeakyRelu,
                    slope: SLOPE,
                    initialisation: Initialisation::$initialisation,
                    memory_layout: MemoryLayout::ChannelsLast,
                    precision: Precision::F32,
                }
            }
        }

        impl Plugin for $Type {
            type Builds = dyn Generator;

            fn build(self, scope: &mut Scope) -> anyhow::Result<Box<dyn Generator>> {
                let layers: fn(u32, Images) -> Vec<ConvLayer> = $layers;
                let blueprint = Blueprint {
                    latent_dim: self.latent_dim,
                    layers: layers(self.width, Images::of(&scope.data.shape)?),
                    nonlinearity: self.activation.with_slope(self.slope),
                    initialisation: self.initialisation,
                    memory_layout: self.memory_layout,
                    precision: self.precision,
                };
                blueprint.build(scope)
            }
        }

        inventory::submit! { Registration::of::<$Type>($name) }
    };
}

/// The shape of the data.
struct Images {
    channels: u32,
    side: u32,
}

impl Images {
    fn of(shape: &[i64]) -> anyhow::Result<Self> {
        match *shape {
            [channels, side, _] => Ok(Self {
                channels: u32::try_from(channels)?,
                side: u32::try_from(side)?,
            }),
            _ => anyhow::bail!(
                "takes data that are images (channels, height, width), found the shape {shape:?}"
            ),
        }
    }
}

/// Opens to 4 × 4 pixels, then doubles to these multiples of the width, and once more to the data.
fn doublings(width: u32, multiples: &[u32], images: &Images) -> Vec<ConvLayer> {
    let mut layers: Vec<_> = multiples
        .iter()
        .map(|multiple| ConvLayer::doubling(width * multiple))
        .chain([ConvLayer::doubling(images.channels)])
        .collect();
    layers[0] = ConvLayer::opening(layers[0].channels, 4);
    layers
}

preset! {
    /// For 32 × 32 pixels, 4 layers: SVHN in Pang et al. 2020, SVHN and CIFAR-10 in the paper.
    "svhn_generator" => SvhnGenerator {
        width: 64,
        latent_dim: 100,
        initialisation: Xavier,
        layers: |width, images| doublings(width, &[8, 4, 2], &images),
    }
}

preset! {
    /// For 64 × 64 pixels, 5 layers: CelebA in Pang et al. 2020 and in the paper.
    "celeba64_generator" => Celeba64Generator {
        width: 128,
        latent_dim: 100,
        initialisation: Xavier,
        layers: |width, images| doublings(width, &[8, 4, 2, 1], &images),
    }
}

preset! {
    /// For 32 × 32 pixels, 4 layers from 8 × 8 on: CIFAR-10 in Pang et al. 2020.
    "cifar10_generator" => Cifar10Generator {
        width: 128,
        latent_dim: 128,
        initialisation: Xavier,
        layers: |width, images| vec![
            ConvLayer::opening(8 * width, 8),
            ConvLayer::doubling(4 * width),
            ConvLayer::doubling(2 * width),
            ConvLayer::keeping(images.channels),
        ],
    }
}

preset! {
    /// For 256 × 256 pixels, 7 layers: CelebA-HQ in Yu et al. 2023 and in the paper.
    "celeba_hq_generator" => CelebaHqGenerator {
        width: 128,
        latent_dim: 128,
        initialisation: Pytorch,
        layers: |width, images| doublings(width, &[16, 8, 4, 4, 2, 1], &images),
    }
}

preset! {
    /// For images whose side is a multiple of 4, such as 28 or 32 pixels: 3 layers, small enough for a laptop.
    "small_generator" => SmallGenerator {
        width: 16,
        latent_dim: 32,
        initialisation: Xavier,
        layers: |width, images| vec![
            ConvLayer::opening(4 * width, (images.side / 4).max(1)),
            ConvLayer::doubling(2 * width),
            ConvLayer::doubling(images.channels),
        ],
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use ebipla_core::{DataFacts, Random};
    use tch::Device;

    fn build<P: Plugin<Builds = dyn Generator>>(
        plugin: P,
        shape: &[i64],
    ) -> anyhow::Result<Box<dyn Generator>> {
        let mut random = Random::new(1);
        let mut scope = Scope {
            data: DataFacts {
                count: 1,
                shape: shape.to_vec(),
            },
            ..Scope::on_cpu(&mut random)
        };
        plugin.build(&mut scope)
    }

    #[track_caller]
    fn has_parameters<P: Plugin<Builds = dyn Generator> + Default>(side: i64, latent_dim: i64, count: usize) {
        let generator = build(P::default(), &[3, side, side]).unwrap();
        assert_eq!(generator.parameters().count(), count);
        assert_eq!(generator.latent_dim(), latent_dim);
    }

    #[test]
    fn parameter_counts_match_the_published_ones() {
        has_parameters::<SvhnGenerator>(32, 100, 3_447_683);
        has_parameters::<Celeba64Generator>(64, 100, 12_656_515);
        has_parameters::<Cifar10Generator>(32, 128, 18_883_075);
        has_parameters::<CelebaHqGenerator>(256, 128, 52_963_715);
    }

    #[test]
    fn makes_small_images_of_any_shape() {
        for shape in [[1, 28, 28], [3, 32, 32], [1, 16, 16]] {
            let generator = build(SmallGenerator::default(), &shape).unwrap();
            let x = Random::new(2).stream("x", 0).normal(&[2, 32], Device::Cpu);
            assert_eq!(generator.generate(&x).size(), [&[2][..], &shape].concat());
        }
    }

    #[test]
    fn refuses_data_that_do_not_fit_and_suggests_layers() {
        let refused = |shape: &[i64]| build(SvhnGenerator::default(), shape).err().unwrap().to_string();
        let message = refused(&[1, 28, 28]);
        for part in [
            "makes images of the shape [1, 32, 32]",
            "the data are [1, 28, 28]",
            "layers: [{channels: 128, kernel: 7, stride: 1, padding: 0}, {channels: 64}, {channels: 1}]",
        ] {
            assert!(message.contains(part), "no `{part}` in: {message}");
        }
        assert!(refused(&[3, 32, 30]).contains("all kernels are square"));
        assert!(refused(&[2]).contains("found the shape [2]"));
    }
}
