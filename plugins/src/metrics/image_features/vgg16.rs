//! VGG-16: features at a fraction of Inception's cost, for comparing our own runs.

use ebipla_core::prelude::*;
use tch::{Device, Kind};

use super::weights::WeightsFile;
use super::{Network, channels_last};

/// The convolutions of VGG-16, up to relu5_3, at the image's own size.
pub struct Vgg16 {
    stages: Vec<Vec<Convolution>>,
    mean: Tensor,
    deviation: Tensor,
}

/// A 3 × 3 convolution and ReLU.
struct Convolution {
    weight: Tensor,
    bias: Tensor,
}

/// Channels of each stage and the indices of its convolutions in torchvision's `features`; pools lie in between.
const STAGES: [(i64, &[i64]); 5] = [
    (64, &[0, 2]),
    (128, &[5, 7]),
    (256, &[10, 12, 14]),
    (512, &[17, 19, 21]),
    (512, &[24, 26, 28]),
];

/// ImageNet's mean and deviation of red, green and blue.
const MEAN: [f32; 3] = [0.485, 0.456, 0.406];
const DEVIATION: [f32; 3] = [0.229, 0.224, 0.225];

impl Vgg16 {
    /// Minimum side: some pixels must remain after four pools.
    pub const SMALLEST: i64 = 16;

    /// Reads the network, ignoring the classifier that the file may have.
    pub fn load(file: &WeightsFile, device: Device) -> anyhow::Result<Self> {
        let unused = |name: &str| name.starts_with("classifier.");
        let stages = file.load(device, unused, |weights| {
            let mut input = 3;
            let mut stages = Vec::new();
            for (channels, places) in STAGES {
                let mut stage = Vec::new();
                for place in places {
                    stage.push(Convolution {
                        weight: channels_last(
                            &weights.take(&format!("features.{place}.weight"), &[channels, input, 3, 3])?,
                        ),
                        bias: weights.take(&format!("features.{place}.bias"), &[channels])?,
                    });
                    input = channels;
                }
                stages.push(stage);
            }
            Ok(stages)
        })?;
        let per_channel = |values| Tensor::from_slice(values).view([1, 3, 1, 1]).to_device(device);
        Ok(Self {
            stages,
            mean: per_channel(&MEAN),
            deviation: per_channel(&DEVIATION),
        })
    }
}

impl Network for Vgg16 {
    fn dim(&self) -> i64 {
        512
    }

    fn preprocessing(&self) -> &'static str {
        "8-bit, own size, ImageNet mean and deviation; mean of relu5_3 over positions"
    }

    fn features(&self, images: &Tensor) -> Tensor {
        let _guard = tch::no_grad_guard();
        let images = (images.to_kind(Kind::Float) / 255.0 - &self.mean) / &self.deviation;
        let mut x = channels_last(&images);
        for (i, stage) in self.stages.iter().enumerate() {
            if i > 0 {
                x = x.max_pool2d([2, 2], [2, 2], [0, 0], [1, 1], false);
            }
            for layer in stage {
                x = x
                    .conv2d(&layer.weight, Some(&layer.bias), [1, 1], [1, 1], [1, 1], 1)
                    .relu_();
            }
        }
        x.mean_dim([2i64, 3].as_slice(), false, Kind::Float)
    }
}
