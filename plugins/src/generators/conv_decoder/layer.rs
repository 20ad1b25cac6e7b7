//! A layer of a convolutional decoder, the image shape that a list of layers produces, and layers for a given shape.

use std::fmt;

use ebipla_core::prelude::*;

/// A transposed convolution. By default (without kernel, stride and padding) it doubles the side of its images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConvLayer {
    /// Output channels. [channels]
    #[schemars(range(min = 1, max = 65536))]
    pub channels: u32,
    /// Side of the kernel. [pixels]
    #[serde(default = "doubling::kernel")]
    #[schemars(range(min = 1, max = 1024))]
    pub kernel: u32,
    /// Distance between the kernel positions of neighbouring pixels. [pixels]
    #[serde(default = "doubling::stride")]
    #[schemars(range(min = 1, max = 1024))]
    pub stride: u32,
    /// Pixels cropped from each side of the result. [pixels]
    #[serde(default = "doubling::padding")]
    #[schemars(range(max = 1024))]
    pub padding: u32,
}

mod doubling {
    pub fn kernel() -> u32 {
        4
    }
    pub fn stride() -> u32 {
        2
    }
    pub fn padding() -> u32 {
        1
    }
}

impl ConvLayer {
    /// Makes images of `side` from single pixels, such as latents.
    pub fn opening(channels: u32, side: u32) -> Self {
        Self {
            channels,
            kernel: side,
            stride: 1,
            padding: 0,
        }
    }

    /// Doubles the side of its images.
    pub fn doubling(channels: u32) -> Self {
        Self {
            channels,
            kernel: doubling::kernel(),
            stride: doubling::stride(),
            padding: doubling::padding(),
        }
    }

    /// Keeps the side of its images.
    pub fn keeping(channels: u32) -> Self {
        Self {
            channels,
            kernel: 3,
            stride: 1,
            padding: 1,
        }
    }

    fn side_from(self, side: i64) -> i64 {
        (side - 1) * i64::from(self.stride) - 2 * i64::from(self.padding) + i64::from(self.kernel)
    }
}

impl fmt::Display for ConvLayer {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self {
            channels,
            kernel,
            stride,
            padding,
        } = *self;
        if *self == Self::doubling(channels) {
            return write!(f, "{{channels: {channels}}}");
        }
        write!(
            f,
            "{{channels: {channels}, kernel: {kernel}, stride: {stride}, padding: {padding}}}"
        )
    }
}

/// Number of multiplications that `layers` perform for a latent of `latent_dim` dimensions: each pixel places a kernel
/// for each pair of channels.
pub fn multiplications(latent_dim: u32, layers: &[ConvLayer]) -> u64 {
    let (mut channels, mut side, mut sum) = (u64::from(latent_dim), 1, 0);
    for layer in layers {
        let kernel = u64::from(layer.kernel * layer.kernel) * u64::from(layer.channels);
        sum += (side * side) as u64 * channels * kernel;
        channels = layer.channels.into();
        side = layer.side_from(side);
    }
    sum
}

/// Channels, height and width of the images that `layers` make from a latent, or what is wrong with the layers.
pub fn image_shape(layers: &[ConvLayer]) -> Result<[i64; 3], String> {
    let Some(last) = layers.last() else {
        return Err("found no layers, expected at least one".into());
    };
    let mut side = 1;
    for (i, layer) in layers.iter().enumerate() {
        let before = side;
        side = layer.side_from(before);
        if side < 1 {
            return Err(format!(
                "layer {i} makes images of side {side} from images of side {before}: the side is \
                 (before − 1)·stride − 2·padding + kernel, which must be at least 1"
            ));
        }
        // Far beyond any image, and far below an overflow of the side.
        if side > 1 << 20 {
            return Err(format!(
                "layer {i} makes images of side {side}, which is too large"
            ));
        }
    }
    Ok([i64::from(last.channels), side, side])
}

/// Layers that make square images of this shape, in recipe syntax; `None` if there are none.
pub fn fitting(shape: &[i64]) -> Option<String> {
    let [channels, height, width] = *shape else {
        return None;
    };
    let mut side = u32::try_from(height).ok().filter(|_| height == width)?;
    let mut doublings = 0;
    while side.is_multiple_of(2) && side >= 8 {
        side /= 2;
        doublings += 1;
    }
    let widths = (0..doublings).map(|before| (32u32 << (doublings - before).min(4)).min(512));
    let channels = widths.chain([u32::try_from(channels).ok()?]);
    let layers: Vec<_> = channels
        .enumerate()
        .map(|(i, channels)| match i {
            0 => ConvLayer::opening(channels, side),
            _ => ConvLayer::doubling(channels),
        })
        .map(|layer| layer.to_string())
        .collect();
    Some(format!("[{}]", layers.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_by_hand() {
        let doubled = [
            ConvLayer::opening(8, 7),
            ConvLayer::doubling(4),
            ConvLayer::doubling(1),
        ];
        assert_eq!(image_shape(&doubled), Ok([1, 28, 28]));
        assert_eq!(
            image_shape(&[ConvLayer::opening(8, 5), ConvLayer::keeping(3)]),
            Ok([3, 5, 5])
        );
        let strided = ConvLayer {
            channels: 2,
            kernel: 5,
            stride: 3,
            padding: 2,
        };
        // Three pixels place kernels at 0, 3 and 6: 11 pixels, minus 2 on each side.
        assert_eq!(image_shape(&[ConvLayer::opening(8, 3), strided]), Ok([2, 7, 7]));
    }

    /// By hand: 10 latents place 8 kernels of 7 × 7, then each of 49 pixels with 8 channels 4 kernels of 4 × 4.
    #[test]
    fn multiplications_by_hand() {
        let layers = [ConvLayer::opening(8, 7), ConvLayer::doubling(4)];
        assert_eq!(multiplications(10, &layers), 10 * 8 * 49 + 49 * 8 * 4 * 16);
    }

    #[test]
    fn layers_that_leave_no_pixels_are_refused() {
        let nothing = image_shape(&[ConvLayer::opening(8, 2), ConvLayer::keeping(8), {
            ConvLayer {
                channels: 1,
                kernel: 1,
                stride: 1,
                padding: 1,
            }
        }]);
        assert!(nothing.is_err_and(|message| message.starts_with("layer 2 makes images of side 0 from")));
        assert!(image_shape(&[]).is_err());
    }

    #[test]
    fn suggests_layers_that_fit() {
        assert_eq!(
            fitting(&[1, 28, 28]).as_deref(),
            Some("[{channels: 128, kernel: 7, stride: 1, padding: 0}, {channels: 64}, {channels: 1}]")
        );
        assert_eq!(fitting(&[3, 20, 30]), None);
        assert_eq!(fitting(&[2]), None);
    }
}
