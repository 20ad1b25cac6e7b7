//! Small pictures that need no files, to try image networks, recipes and commands with.

use ebipla_framework::Random;
use ebipla_framework::prelude::*;
use tch::{Device, Kind};

/// Square images of three soft coloured blobs each on black, in [−1, 1].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Blobs {
    /// Training images M. [images]
    #[schemars(range(min = 1))]
    size: usize,
    /// Held-out images, drawn apart. [images]
    validation: usize,
    /// Side of an image. [pixels]
    #[schemars(range(min = 1, max = 4096))]
    image_size: u32,
    /// Channels of an image. [channels]
    #[schemars(range(min = 1, max = 64))]
    channels: u32,
    /// Seed of the images, apart from run.seed: all runs see the same data. [any integer]
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
        Ok(Box::new(self.images()))
    }
}

/// Blobs in each image.
const COUNT: i64 = 3;
/// Standard deviations of a blob, as shares of the side.
const RADII: (f64, f64) = (0.08, 0.2);

impl Blobs {
    fn images(&self) -> Images {
        let mut random = Random::new(self.seed);
        let mut split = |split: &str, count: usize| {
            let mut draws = random.stream(&format!("blobs/{split}"), 0);
            Drawn::new(count as i64, self.channels.into(), &mut draws)
        };
        let side = i64::from(self.image_size);
        Images {
            shape: [self.channels.into(), side, side],
            train: split("train", self.size),
            validation: split("validation", self.validation),
        }
    }
}

/// What was drawn for each image of a split. The pixels follow from it when they are asked for, so that a large set
/// takes no memory.
struct Drawn {
    /// `[n, blobs, 2]`, as shares of the side: from the left, from the top.
    centres: Tensor,
    /// `[n, blobs, 1]`, as shares of the side.
    radii: Tensor,
    /// `[n, blobs, channels]`: 0 is black.
    colours: Tensor,
}

impl Drawn {
    fn new(count: i64, channels: i64, draws: &mut Draws) -> Self {
        let mut uniform = |low, high, size| draws.uniform(low, high, &[count, COUNT, size], Device::Cpu);
        Self {
            centres: uniform(0.2, 0.8, 2),
            radii: uniform(RADII.0, RADII.1, 1),
            colours: uniform(0.0, 1.0, channels),
        }
    }

    /// 1 − Π(1 − colour·exp(−distance²/(2 radius²))), as light adds up, stretched to [−1, 1].
    fn render(&self, indices: &Tensor, side: i64) -> anyhow::Result<Tensor> {
        let [centres, radii, colours] =
            [&self.centres, &self.radii, &self.colours].map(|drawn| drawn.f_index_select(0, indices));
        let pixels = (Tensor::arange(side, (Kind::Float, Device::Cpu)) + 0.5) / side as f64;
        // exp(−d²) is a product over both axes: [n, blobs, axis, side].
        let distances = (pixels - centres?.unsqueeze(-1)) / radii?.unsqueeze(-1);
        let profiles = (distances.square() * -0.5).exp();
        let (across, down) = (profiles.select(2, 0), profiles.select(2, 1));
        let light = (down.unsqueeze(-1) * across.unsqueeze(-2)).unsqueeze(2);
        let dark = (light * colours?.unsqueeze(-1).unsqueeze(-1)).neg() + 1.0;
        Ok(dark.prod_dim_int(1, false, Kind::Float) * -2.0 + 1.0)
    }
}

struct Images {
    shape: [i64; 3],
    train: Drawn,
    validation: Drawn,
}

impl Images {
    fn split(&self, split: Split) -> &Drawn {
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
        self.split(split).radii.size()[0] as usize
    }

    fn get(&self, split: Split, indices: &Tensor) -> anyhow::Result<Tensor> {
        self.split(split).render(indices, self.shape[1])
    }
}

inventory::submit! { Registration::of::<Blobs>("blobs") }

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// One image of 2 × 2 pixels and one channel, whose second and third blob are black. The first is of colour ½, half
    /// a side below the top and at the centre of the left pixels, ¼ from the left: with radius ¼, the pixels are
    /// (0, 1) and (2, 1) radii away.
    #[test]
    fn an_image_by_hand() {
        let tensor = |numbers: &[f32]| Tensor::from_slice(numbers).view([1, 3, -1]);
        let drawn = Drawn {
            centres: tensor(&[0.25, 0.5, 0.5, 0.5, 0.5, 0.5]),
            radii: tensor(&[0.25, 0.1, 0.1]),
            colours: tensor(&[0.5, 0.0, 0.0]),
        };
        let image = drawn.render(&Tensor::from_slice(&[0i64]), 2).unwrap();
        assert_eq!(image.size(), [1, 1, 2, 2]);
        let found: Vec<f64> = image.view([-1]).to_kind(Kind::Double).try_into().unwrap();
        let (left, right) = ((-0.5f64).exp() - 1.0, (-2.5f64).exp() - 1.0);
        for (found, expected) in found.iter().zip([left, right, left, right]) {
            assert!((found - expected).abs() < 1e-6, "{found} for {expected}");
        }
    }

    #[test]
    fn images_of_the_size_that_was_asked_for() {
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
        assert!(!validation.equal(&train.narrow(0, 0, 7)), "drawn apart");
        let range = (train.min().double_value(&[]), train.max().double_value(&[]));
        assert!(
            range.0 >= -1.0 && range.0 < -0.9 && range.1 <= 1.0 && range.1 > 0.5,
            "{range:?}"
        );
        assert!(blobs.images().first(Split::Train, 50).unwrap().equal(&train));
    }

    #[test]
    fn an_index_too_far_is_an_error() {
        let images = Blobs::default().images();
        assert!(images.get(Split::Train, &Tensor::from_slice(&[1000i64])).is_err());
    }
}
