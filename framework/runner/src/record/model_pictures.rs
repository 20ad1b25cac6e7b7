//! Shows what a model of images makes: samples, and data beside what the model remembers of them.

use anyhow::ensure;
use ebipla_core::Model;
use tch::{Kind, Tensor};

use super::Picture;
use super::image_grid::{image_grid, square_columns};

/// Images in a row of reconstructions.
const COLUMNS: i64 = 16;

/// What the generator makes of `latents`, `[n, latent]`, in a square.
pub fn sample_grid(model: &Model, latents: &Tensor) -> anyhow::Result<Picture> {
    image_grid(&model.mean(latents), square_columns(latents.size()[0] as usize))
}

/// Data points, `[n, …]`, each above the mean of what the generator makes of its particles, `[n, particles, latent]`.
pub fn reconstruction_grid(model: &Model, data: &Tensor, clouds: &Tensor) -> anyhow::Result<Picture> {
    pair_grid(data, &cloud_means(model, clouds))
}

/// The mean of g over each cloud of `[n, particles, latent]`.
pub fn cloud_means(model: &Model, clouds: &Tensor) -> Tensor {
    let particles = clouds.size()[1];
    let decoded = model.mean(&clouds.flatten(0, 1));
    let shape = [&[-1, particles], &decoded.size()[1..]].concat();
    decoded.view(&shape[..]).mean_dim(1, false, Kind::Float)
}

/// Each image of `above` with its partner below it.
pub fn pair_grid(above: &Tensor, below: &Tensor) -> anyhow::Result<Picture> {
    ensure!(
        above.size() == below.size(),
        "images of {:?} do not pair with {:?}",
        above.size(),
        below.size()
    );
    let [above, below] = [above, below].map(|images| images.to_device(tch::Device::Cpu));
    let columns = above.size()[0].clamp(1, COLUMNS);
    let rows = above.split(columns, 0).into_iter().zip(below.split(columns, 0));
    // A ragged last row is filled up with white, so that partners stay below each other.
    let filled = |row: Tensor| {
        let missing = columns - row.size()[0];
        row.pad([0, 0, 0, 0, 0, 0, 0, missing], "constant", 1.0)
    };
    let rows: Vec<_> = rows
        .flat_map(|(above, below)| [filled(above), filled(below)])
        .collect();
    image_grid(&Tensor::cat(&rows, 0), columns as usize)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use ebipla_core::testing;

    use super::*;

    /// Images of one pixel: 20 pairs are rows of 16 and 4, the second filled up, 3 pixels apart.
    #[test]
    fn partners_are_below_each_other() {
        let above = Tensor::linspace(-1.0, 1.0, 20, tch::kind::FLOAT_CPU).view([20, 1, 1, 1]);
        let picture = pair_grid(&above, &-&above).unwrap();
        assert_eq!((picture.width, picture.height), (16 * 3 + 2, 4 * 3 + 2));
        let level = |column: i64, row: i64| {
            let at = (2 + 3 * row) * i64::from(picture.width) + 2 + 3 * column;
            i64::from(picture.pixels[3 * at as usize])
        };
        for i in 0..20 {
            let (column, row) = (i % 16, i / 16 * 2);
            let expected = (above.double_value(&[i, 0, 0, 0]) + 1.0) * 127.5;
            assert!((level(column, row) as f64 - expected).abs() <= 0.5, "{i}");
            assert!(
                (level(column, row + 1) as f64 - (255.0 - expected)).abs() <= 0.5,
                "{i}"
            );
        }
        assert_eq!((level(4, 2), level(4, 3)), (255, 255));
    }

    /// The generator of the test model changes nothing: means of clouds are means of particles.
    #[test]
    fn clouds_are_decoded_and_averaged() {
        let clouds = Tensor::from_slice(&[0f32, 1.0, 4.0, 3.0, 5.0, 5.0, 7.0, 9.0]).view([2, 2, 2]);
        let means = cloud_means(&testing::model(1.0), &clouds);
        assert!(means.equal(&Tensor::from_slice(&[2f32, 2.0, 6.0, 7.0]).view([2, 2])));
    }
}
