//! Turns images into features of a published network, for distances between sets of images.

mod images;
mod inception;
mod vgg16;
mod weights;

pub use images::{Images, Selection, bytes, facts_of_comparison};
pub use inception::Inception;
pub use vgg16::Vgg16;
pub use weights::{WeightsFile, hex};

use anyhow::ensure;
use ebipla_core::prelude::*;
use tch::Device;

/// A network that turns 8-bit images into features.
pub trait Network {
    /// Number of features per image.
    fn dim(&self) -> i64;

    /// The preprocessing of an image before the first layer.
    fn preprocessing(&self) -> &'static str;

    /// The features of each image: u8 `[n, 3, height, width]` → f32 `[n, dim]`.
    fn features(&self, images: &Tensor) -> Tensor;
}

/// Which published network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    Inception,
    Vgg16,
}

impl Architecture {
    /// The weights file named by the option `weights` or the environment.
    pub fn weights(self, option: Option<&str>) -> anyhow::Result<WeightsFile> {
        let (variable, what) = match self {
            Self::Inception => (
                "EBIPLA_INCEPTION",
                "pt_inception-2015-12-05-6726825d.pth from \
                 https://github.com/mseitzer/pytorch-fid/releases/tag/fid_weights  (the metric \
                 `frechet_inception` also takes other weights with the same tensor names, as .pth or safetensors)",
            ),
            Self::Vgg16 => (
                "EBIPLA_VGG16",
                "vgg16-397923af.pth from https://download.pytorch.org/models/vgg16-397923af.pth is, or a safetensors \
                 file with the same tensor names",
            ),
        };
        WeightsFile::read(&weights::locate(option, variable, what)?)
    }

    /// The network with these weights, on `device`, for images of this shape.
    pub fn network(
        self,
        weights: &WeightsFile,
        device: Device,
        shape: &[i64],
    ) -> anyhow::Result<Box<dyn Network>> {
        let smallest = match self {
            Self::Inception => 1,
            Self::Vgg16 => Vgg16::SMALLEST,
        };
        ensure!(
            matches!(shape, [1 | 3, height, width] if height.min(width) >= &smallest),
            "takes images of 1 or 3 channels and at least {smallest} × {smallest} pixels, found data of shape {shape:?}"
        );
        Ok(match self {
            Self::Inception => Box::new(Inception::load(weights, device)?),
            Self::Vgg16 => Box::new(Vgg16::load(weights, device)?),
        })
    }
}

/// The same numbers, channels last: convolutions take a third less time on the CPU.
fn channels_last(x: &Tensor) -> Tensor {
    x.permute([0, 2, 3, 1]).contiguous().permute([0, 3, 1, 2])
}
