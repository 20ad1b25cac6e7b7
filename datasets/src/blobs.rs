//! Small images that need no files, for trying image networks, recipes and commands.

use ebipla_core::prelude::*;
use ebipla_core::{Random, require_memory};
use tch::Device;

use crate::gather::gather;

/// Square images, each of three soft coloured blobs on black, in [−1, 1].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Blobs {
    /// Training images M. [images]
    #[schemars(range(min = 1))]
    size: usize,
    /// Held-out images, drawn independently. [images]
    validation: usize,
    /// Side of an image. [pixels]
    #[schemars(range(min = 1, max = 4096))]
    image_size: u32,
    /// Channels of an image. [channels]
    #[schemars(range(min = 1, max = 64))]
    channels: u32,
    /// Seed of the images, independent of run.seed: all runs see the same data. [any integer]
    seed: u64,
}

impl Default for Blobs {
    fn default() -> Self {
        Self {
            size: 1000,
            validation: 200,
            image_size: 32,
            channels: 3,
            seed: 0,
        }
    }
}

impl Plugin for Blobs {
    type Builds = dyn Dataset;

    fn build(self, _: &mut Scope) -> anyhow::Result<Box<dyn Dataset>> {
        let images = self.size as u128 + self.validation as u128;
        let blob = size_of::<Blob>() + 2 * self.channels as usize * size_of::<f32>();
        require_memory(
            &format!("the blob parameters of {images} images"),
            images * (COUNT * blob) as u128,
        )?;
        Ok(Box::new(self.images()))
    }
}

/// Blobs per image.
const COUNT: usize = 3;
/// Standard deviations of a blob, as fractions of the side.
const RADII: (f64, f64) = (0.08, 0.2);

impl Blobs {
    fn images(&self) -> Images {
        let mut random = Random::new(self.seed);
        let channels = self.channels as usize;
        let mut split = |split: &str, count: usize| {
            let mut draws = random.stream(&format!("blobs/{split}"), 0);
            draw(count, channels, &mut draws)
        };
        let side = i64::from(self.image_size);
        Images {
            shape: [self.channels.into(), side, side],
            train: split("train", self.size),
            validation: split("validation", self.validation),
        }
    }
}

struct Blob {
    /// Position from the left and from the top, as fractions of the side.
    centre: [f32; 2],
    /// As a fraction of the side.
    radius: f32,
    /// Brightness in each channel; 0 is black.
    colour: Vec<f32>,
}

fn draw(count: usize, channels: usize, draws: &mut Draws) -> Vec<[Blob; COUNT]> {
    let mut uniform = |low, high, size: usize| {
        let numbers = draws.uniform(low, high, &[(count * COUNT * size) as i64], Device::Cpu);
        Vec::<f32>::try_from(numbers).expect("a tensor of one dimension on the CPU")
    };
    let (centres, radii) = (uniform(0.2, 0.8, 2), uniform(RADII.0, RADII.1, 1));
    let colours = uniform(0.0, 1.0, channels);
    let blob = |i: usize| Blob {
        centre: [centres[2 * i], centres[2 * i + 1]],
        radius: radii[i],
        colour: colours[i * channels..][..channels].to_vec(),
    };
    let images = 0..count;
    images
        .map(|image| std::array::from_fn(|i| blob(image * COUNT + i)))
        .collect()
}

impl Blob {
    /// exp(−distance²/(2 radius²)) along one axis, pixel by pixel; the product over both axes is the blob.
    fn profile(&self, axis: usize, side: usize) -> Vec<f32> {
        let pixel = |i: usize| (i as f32 + 0.5) / side as f32;
        let distances = (0..side).map(|i| (pixel(i) - self.centre[axis]) / self.radius);
        distances
            .map(|distance| (-0.5 * distance * distance).exp())
            .collect()
    }
}

/// 1 − Π(1 − colour·exp(−distance²/(2 radius²))), which adds light up, scaled to [−1, 1].
fn render(blobs: &[Blob], side: usize, image: &mut [f32]) {
    image.fill(1.0);
    for blob in blobs {
        let (across, down) = (blob.profile(0, side), blob.profile(1, side));
        for (channel, light) in image.chunks_exact_mut(side * side).zip(&blob.colour) {
            for (row, down) in channel.chunks_exact_mut(side).zip(&down) {
                for (dark, across) in row.iter_mut().zip(&across) {
                    *dark *= 1.0 - light * down * across;
                }
            }
        }
    }
    for dark in image {
        *dark = 1.0 - 2.0 * *dark;
    }
}

/// Pixels are computed on demand, so that a large set takes no memory.
struct Images {
    shape: [i64; 3],
    train: Vec<[Blob; COUNT]>,
    validation: Vec<[Blob; COUNT]>,
}

impl Images {
    fn split(&self, split: Split) -> &[[Blob; COUNT]] {
        match split {
            Split::Train => &self.train,
            Split::Validation => &self.validation,
        }
    }
}

impl Dataset for Images {
    fn shape(&self) -> &[i64] {
        &self.shape
    }

    fn len(&self, split: Split) -> usize {
        self.split(split).len()
    }

    fn get(&self, split: Split, indices: &Tensor) -> anyhow::Result<Tensor> {
        let images = self.split(split);
        gather(indices, images.len(), &self.shape, |i, image| {
            render(&images[i], self.shape[1] as usize, image);
        })
    }
}

inventory::submit! { Registration::of::<Blobs>("blobs") }

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use tch::Kind;

    /// 2 × 2 pixels and one channel. The blob has colour ½ and is centred vertically, at the centre of the left pixels
    /// horizontally, ¼ from the left: with radius ¼, pixels are 1 radius away vertically, and 0 or 2 horizontally.
    #[test]
    fn an_image_matches_a_calculation_by_hand() {
        let blob = |colour| Blob {
            centre: [0.25, 0.5],
            radius: 0.25,
            colour: vec![colour],
        };
        let mut image = [0.0; 4];
        render(&[blob(0.5), blob(0.0)], 2, &mut image);
        let (left, right) = ((-0.5f32).exp() - 1.0, (-2.5f32).exp() - 1.0);
        for (found, expected) in image.iter().zip([left, right, left, right]) {
            assert!((found - expected).abs() < 1e-6, "{found}, expected {expected}");
        }
        render(&[blob(1.0), blob(1.0)], 2, &mut image);
        let dark = 1.0 - (-0.5f32).exp();
        assert!(
            (image[0] - (1.0 - 2.0 * dark * dark)).abs() < 1e-6,
            "light adds up: {image:?}"
        );
    }

    #[test]
    fn images_have_the_requested_size() {
        let blobs = Blobs {
            size: 50,
            validation: 7,
            image_size: 12,
            channels: 2,
            seed: 3,
        };
        let images = blobs.images();
        assert_eq!(images.shape(), [2, 12, 12]);
        let train = images.first(Split::Train, usize::MAX).unwrap();
        assert_eq!((train.size(), train.kind()), (vec![50, 2, 12, 12], Kind::Float));
        let validation = images.first(Split::Validation, usize::MAX).unwrap();
        assert_eq!(validation.size(), [7, 2, 12, 12]);
        assert!(!validation.equal(&train.narrow(0, 0, 7)), "drawn independently");
        let range = (train.min().double_value(&[]), train.max().double_value(&[]));
        assert!(
            range.0 >= -1.0 && range.0 < -0.9 && range.1 <= 1.0 && range.1 > 0.5,
            "{range:?}"
        );
        assert!(blobs.images().first(Split::Train, 50).unwrap().equal(&train));
    }

    #[test]
    fn an_index_out_of_range_is_an_error() {
        let images = Blobs::default().images();
        assert!(images.get(Split::Train, &Tensor::from_slice(&[1000i64])).is_err());
    }
}
