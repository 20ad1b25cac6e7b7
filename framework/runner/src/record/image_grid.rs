//! Lays images out in a grid.

use anyhow::{bail, ensure};
use tch::{Device, Kind, Tensor};

use super::Picture;

/// White pixels around each image.
const PADDING: i64 = 2;

/// Whether data points of this shape are images that can be shown: `[1 or 3, height, width]`.
pub fn is_image(shape: &[i64]) -> bool {
    matches!(shape, [1 | 3, _, _])
}

/// Images `[n, 1 or 3, height, width]` with values in [−1, 1], row by row, `columns` in each.
///
/// Values beyond are cut off; what is not a number is shown grey.
pub fn image_grid(images: &Tensor, columns: usize) -> anyhow::Result<Picture> {
    let [count, _, height, width] = images.size()[..] else {
        bail!(
            "images have the shape [n, channels, height, width], found {:?}",
            images.size()
        );
    };
    ensure!(
        is_image(&images.size()[1..]),
        "images have 1 or 3 channels, found {}",
        images.size()[1]
    );
    ensure!(count > 0, "there are no images to show");

    let columns = (columns as i64).clamp(1, count);
    let rows = (count + columns - 1) / columns;
    let [cell_height, cell_width] = [height + PADDING, width + PADDING];
    let size = [rows * cell_height + PADDING, columns * cell_width + PADDING];
    let canvas = Tensor::full([size[0], size[1], 3], 255, (Kind::Uint8, Device::Cpu));
    for (i, image) in (0..).zip(bytes(images).unbind(0)) {
        let top = PADDING + i / columns * cell_height;
        let left = PADDING + i % columns * cell_width;
        canvas.narrow(0, top, height).narrow(1, left, width).copy_(&image);
    }
    Ok(Picture {
        width: u32::try_from(size[1])?,
        height: u32::try_from(size[0])?,
        pixels: canvas.flatten(0, -1).try_into()?,
    })
}

/// `[n, height, width, 3]` as bytes on the CPU.
fn bytes(images: &Tensor) -> Tensor {
    let _guard = tch::no_grad_guard();
    let images = images.to_device(Device::Cpu).to_kind(Kind::Float);
    let levels = (images.nan_to_num(0.0, 1.0, -1.0).clamp(-1.0, 1.0) + 1.0) * 127.5;
    let levels = levels.round().to_kind(Kind::Uint8);
    levels.expand([-1, 3, -1, -1], false).permute([0, 2, 3, 1])
}

/// Columns of a grid of `count` images that is about as wide as high.
pub fn square_columns(count: usize) -> usize {
    (count as f64).sqrt().ceil() as usize
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn pixel(picture: &Picture, x: u32, y: u32) -> [u8; 3] {
        let at = 3 * (y * picture.width + x) as usize;
        picture.pixels[at..at + 3].try_into().unwrap()
    }

    /// Three images of 1 × 2 pixels in two columns: by hand 2 · (2 + 2) + 2 = 10 wide and 2 · (1 + 2) + 2 = 8 high.
    #[test]
    fn a_grid_by_hand() {
        let grey = [-1f32, 1.0, 0.0, 2.0, f32::NAN, -0.6];
        let picture = image_grid(&Tensor::from_slice(&grey).view([3, 1, 1, 2]), 2).unwrap();
        assert_eq!((picture.width, picture.height), (10, 8));
        assert_eq!(picture.pixels.len(), 3 * 10 * 8);
        for (x, y, level) in [
            (2, 2, 0),
            (3, 2, 255),
            (6, 2, 128),
            (7, 2, 255),
            (2, 5, 128),
            (3, 5, 51),
            (0, 0, 255),
            (6, 5, 255),
        ] {
            assert_eq!(pixel(&picture, x, y), [level; 3], "at {x}, {y}");
        }
    }

    #[test]
    fn colours_stay_apart_and_every_level_survives() {
        let levels = Tensor::arange(256, (Kind::Float, Device::Cpu)) / 127.5 - 1.0;
        let image = Tensor::stack(&[&levels, &-&levels, &levels.zeros_like()], 0).view([1, 3, 1, 256]);
        let picture = image_grid(&image, 1).unwrap();
        for level in 0..=255u8 {
            let expected = [level, 255 - level, 128];
            assert_eq!(pixel(&picture, 2 + u32::from(level), 2), expected);
        }
    }

    #[test]
    fn what_is_no_image_is_refused() {
        let refused = |shape: &[i64]| {
            let error = image_grid(&Tensor::zeros(shape, tch::kind::FLOAT_CPU), 4);
            error.unwrap_err().to_string()
        };
        assert!(refused(&[5, 2]).contains("found [5, 2]"));
        assert!(refused(&[5, 4, 8, 8]).contains("1 or 3 channels, found 4"));
        assert!(refused(&[0, 3, 8, 8]).contains("no images"));
    }
}
