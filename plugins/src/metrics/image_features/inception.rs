//! The Inception-v3 of FID, as in pytorch-fid, which ports the original TensorFlow network with its quirks.
//!
//! Quirks compared with the published Inception-v3: average pools do not count their padding, and the last block has a
//! maximum pool. Batch normalisation is folded into the convolutions, since nothing is trained here.

use ebipla_core::prelude::*;
use tch::{Device, Kind};

use super::weights::{Weights, WeightsFile};
use super::{Network, channels_last};

/// The network up to its last pool.
pub struct Inception {
    blocks: Vec<Block>,
}

/// Branches with the same input; their outputs are concatenated.
struct Block(Vec<Vec<Layer>>);

enum Layer {
    Convolution(Convolution),
    /// Two convolutions of the same input, concatenated.
    Fork(Convolution, Convolution),
    AveragePool,
    /// Without padding, stride two.
    HalvingMaxPool,
    MaxPool,
}

/// A convolution, batch normalisation, and ReLU.
struct Convolution {
    weight: Tensor,
    bias: Tensor,
    stride: i64,
    padding: [i64; 2],
}

/// Width and height of the network's input.
const SIDE: i64 = 299;
/// Added to variances by batch normalisation.
const EPSILON: f64 = 0.001;

impl Network for Inception {
    fn dim(&self) -> i64 {
        2048
    }

    fn preprocessing(&self) -> &'static str {
        "8-bit, bilinear to 299x299 (align_corners false, no antialias), [-1, 1]"
    }

    fn features(&self, images: &Tensor) -> Tensor {
        let _guard = tch::no_grad_guard();
        let images = images.to_kind(Kind::Float) / 255.0;
        let images = images.upsample_bilinear2d([SIDE, SIDE], false, None, None) * 2.0 - 1.0;
        let images = channels_last(&images);
        let last = self.blocks.iter().fold(images, |x, block| block.forward(&x));
        last.mean_dim([2i64, 3].as_slice(), false, Kind::Float)
    }
}

impl Block {
    fn forward(&self, x: &Tensor) -> Tensor {
        let branches: Vec<_> = self
            .0
            .iter()
            .map(|branch| {
                branch
                    .iter()
                    .fold(x.shallow_clone(), |x, layer| layer.forward(&x))
            })
            .collect();
        Tensor::cat(&branches, 1)
    }
}

impl Layer {
    fn forward(&self, x: &Tensor) -> Tensor {
        match self {
            Self::Convolution(convolution) => convolution.forward(x),
            Self::Fork(one, other) => Tensor::cat(&[one.forward(x), other.forward(x)], 1),
            Self::AveragePool => x.avg_pool2d([3, 3], [1, 1], [1, 1], false, false, None),
            Self::HalvingMaxPool => x.max_pool2d([3, 3], [2, 2], [0, 0], [1, 1], false),
            Self::MaxPool => x.max_pool2d([3, 3], [1, 1], [1, 1], [1, 1], false),
        }
    }
}

impl Convolution {
    fn forward(&self, x: &Tensor) -> Tensor {
        let stride = [self.stride, self.stride];
        x.conv2d(&self.weight, Some(&self.bias), stride, self.padding, [1, 1], 1)
            .relu_()
    }
}

impl Inception {
    /// Reads the network, ignoring the classifiers that the file may have.
    pub fn load(file: &WeightsFile, device: Device) -> anyhow::Result<Self> {
        let unused = |name: &str| {
            name.starts_with("fc.")
                || name.starts_with("AuxLogits.")
                || name.ends_with(".num_batches_tracked")
        };
        let blocks = file.load(device, unused, |weights| {
            Ok(vec![
                stem(weights)?,
                a(weights, "Mixed_5b", 192, 32)?,
                a(weights, "Mixed_5c", 256, 64)?,
                a(weights, "Mixed_5d", 288, 64)?,
                b(weights, "Mixed_6a", 288)?,
                c(weights, "Mixed_6b", 768, 128)?,
                c(weights, "Mixed_6c", 768, 160)?,
                c(weights, "Mixed_6d", 768, 160)?,
                c(weights, "Mixed_6e", 768, 192)?,
                d(weights, "Mixed_7a", 768)?,
                e(weights, "Mixed_7b", 1280, Layer::AveragePool)?,
                e(weights, "Mixed_7c", 2048, Layer::MaxPool)?,
            ])
        })?;
        Ok(Self { blocks })
    }
}

/// A branch under construction.
struct Branch<'w, 'f> {
    weights: &'w mut Weights<'f>,
    /// Prefix of its layers' names.
    prefix: String,
    channels: i64,
    layers: Vec<Layer>,
}

fn branch<'w, 'f>(weights: &'w mut Weights<'f>, block: &str, channels: i64) -> Branch<'w, 'f> {
    Branch {
        weights,
        prefix: if block.is_empty() {
            String::new()
        } else {
            format!("{block}.")
        },
        channels,
        layers: Vec::new(),
    }
}

impl Branch<'_, '_> {
    /// A convolution that preserves width and height.
    fn same(self, name: &str, channels: i64, kernel: [i64; 2]) -> anyhow::Result<Self> {
        self.with(name, channels, kernel, 1, kernel.map(|size| size / 2))
    }

    /// A 3 × 3 convolution without padding.
    fn valid(self, name: &str, channels: i64, stride: i64) -> anyhow::Result<Self> {
        self.with(name, channels, [3, 3], stride, [0, 0])
    }

    fn with(
        mut self,
        name: &str,
        channels: i64,
        kernel: [i64; 2],
        stride: i64,
        padding: [i64; 2],
    ) -> anyhow::Result<Self> {
        let convolution = self.convolution(name, channels, kernel, stride, padding)?;
        self.channels = channels;
        self.layers.push(Layer::Convolution(convolution));
        Ok(self)
    }

    /// The 1 × 3 and the 3 × 1 convolution into which the last blocks branch.
    fn fork(mut self, name: &str, channels: i64) -> anyhow::Result<Self> {
        let wide = self.convolution(&format!("{name}a"), channels, [1, 3], 1, [0, 1])?;
        let high = self.convolution(&format!("{name}b"), channels, [3, 1], 1, [1, 0])?;
        self.layers.push(Layer::Fork(wide, high));
        Ok(self)
    }

    fn pool(mut self, pool: Layer) -> Self {
        self.layers.push(pool);
        self
    }

    /// w(x·s) + b·s + t is one convolution: s = γ/√(v + ε), t = β − μs.
    fn convolution(
        &mut self,
        name: &str,
        channels: i64,
        [height, width]: [i64; 2],
        stride: i64,
        padding: [i64; 2],
    ) -> anyhow::Result<Convolution> {
        let name = format!("{}{name}", self.prefix);
        let weight = self.weights.take(
            &format!("{name}.conv.weight"),
            &[channels, self.channels, height, width],
        )?;
        let mut normalisation = |part: &str| {
            let tensor = self.weights.take(&format!("{name}.bn.{part}"), &[channels])?;
            anyhow::Ok(tensor.to_kind(Kind::Double))
        };
        let scale = normalisation("weight")? / (normalisation("running_var")? + EPSILON).sqrt();
        let bias = normalisation("bias")? - normalisation("running_mean")? * &scale;
        let weight = weight.to_kind(Kind::Double) * scale.view([-1, 1, 1, 1]);
        Ok(Convolution {
            weight: channels_last(&weight.to_kind(Kind::Float)),
            bias: bias.to_kind(Kind::Float),
            stride,
            padding,
        })
    }
}

fn stem(w: &mut Weights) -> anyhow::Result<Block> {
    let stem = branch(w, "", 3)
        .valid("Conv2d_1a_3x3", 32, 2)?
        .valid("Conv2d_2a_3x3", 32, 1)?
        .same("Conv2d_2b_3x3", 64, [3, 3])?
        .pool(Layer::HalvingMaxPool)
        .same("Conv2d_3b_1x1", 80, [1, 1])?
        .valid("Conv2d_4a_3x3", 192, 1)?
        .pool(Layer::HalvingMaxPool);
    Ok(Block(vec![stem.layers]))
}

fn a(w: &mut Weights, name: &str, channels: i64, pooled: i64) -> anyhow::Result<Block> {
    let one = branch(w, name, channels).same("branch1x1", 64, [1, 1])?.layers;
    let five = branch(w, name, channels)
        .same("branch5x5_1", 48, [1, 1])?
        .same("branch5x5_2", 64, [5, 5])?
        .layers;
    let three = branch(w, name, channels)
        .same("branch3x3dbl_1", 64, [1, 1])?
        .same("branch3x3dbl_2", 96, [3, 3])?
        .same("branch3x3dbl_3", 96, [3, 3])?
        .layers;
    let pool = branch(w, name, channels)
        .pool(Layer::AveragePool)
        .same("branch_pool", pooled, [1, 1])?
        .layers;
    Ok(Block(vec![one, five, three, pool]))
}

fn b(w: &mut Weights, name: &str, channels: i64) -> anyhow::Result<Block> {
    let three = branch(w, name, channels).valid("branch3x3", 384, 2)?.layers;
    let double = branch(w, name, channels)
        .same("branch3x3dbl_1", 64, [1, 1])?
        .same("branch3x3dbl_2", 96, [3, 3])?
        .valid("branch3x3dbl_3", 96, 2)?
        .layers;
    Ok(Block(vec![three, double, vec![Layer::HalvingMaxPool]]))
}

fn c(w: &mut Weights, name: &str, channels: i64, inner: i64) -> anyhow::Result<Block> {
    let one = branch(w, name, channels).same("branch1x1", 192, [1, 1])?.layers;
    let seven = branch(w, name, channels)
        .same("branch7x7_1", inner, [1, 1])?
        .same("branch7x7_2", inner, [1, 7])?
        .same("branch7x7_3", 192, [7, 1])?
        .layers;
    let double = branch(w, name, channels)
        .same("branch7x7dbl_1", inner, [1, 1])?
        .same("branch7x7dbl_2", inner, [7, 1])?
        .same("branch7x7dbl_3", inner, [1, 7])?
        .same("branch7x7dbl_4", inner, [7, 1])?
        .same("branch7x7dbl_5", 192, [1, 7])?
        .layers;
    let pool = branch(w, name, channels)
        .pool(Layer::AveragePool)
        .same("branch_pool", 192, [1, 1])?
        .layers;
    Ok(Block(vec![one, seven, double, pool]))
}

fn d(w: &mut Weights, name: &str, channels: i64) -> anyhow::Result<Block> {
    let three = branch(w, name, channels)
        .same("branch3x3_1", 192, [1, 1])?
        .valid("branch3x3_2", 320, 2)?
        .layers;
    let seven = branch(w, name, channels)
        .same("branch7x7x3_1", 192, [1, 1])?
        .same("branch7x7x3_2", 192, [1, 7])?
        .same("branch7x7x3_3", 192, [7, 1])?
        .valid("branch7x7x3_4", 192, 2)?
        .layers;
    Ok(Block(vec![three, seven, vec![Layer::HalvingMaxPool]]))
}

fn e(w: &mut Weights, name: &str, channels: i64, pool: Layer) -> anyhow::Result<Block> {
    let one = branch(w, name, channels).same("branch1x1", 320, [1, 1])?.layers;
    let three = branch(w, name, channels)
        .same("branch3x3_1", 384, [1, 1])?
        .fork("branch3x3_2", 384)?
        .layers;
    let double = branch(w, name, channels)
        .same("branch3x3dbl_1", 448, [1, 1])?
        .same("branch3x3dbl_2", 384, [3, 3])?
        .fork("branch3x3dbl_3", 384)?
        .layers;
    let pool = branch(w, name, channels)
        .pool(pool)
        .same("branch_pool", 192, [1, 1])?
        .layers;
    Ok(Block(vec![one, three, double, pool]))
}
