//! Decodes an image, crops and resizes it.

use std::fs::{self, File};
use std::io::Cursor;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use image::imageops::{self, FilterType};
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};

/// Target format of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// 1 (grey) or 3 (colour).
    pub channels: usize,
    /// Side of the central square to keep before resizing; `None`: the largest possible.
    pub crop: Option<u32>,
    /// Side of the result.
    pub size: u32,
}

impl Shape {
    /// Description for the cache key.
    pub fn describe(&self) -> String {
        format!(
            "pictures, channels {}, crop {:?}, bilinear to {}",
            self.channels, self.crop, self.size
        )
    }
}

/// Larger files and images are refused, so that no file can exhaust the memory.
const LARGEST_FILE: u64 = 256 << 20;
const LARGEST_SIDE: u32 = 16_384;
const MOST_PIXELS: u64 = 64 << 20;

/// The bytes of an image, channel by channel, row by row.
pub fn decode(path: &Path, shape: Shape) -> anyhow::Result<Vec<u8>> {
    let decoded = panic::catch_unwind(AssertUnwindSafe(|| read(path)));
    decoded
        .unwrap_or_else(|_| bail!("the decoder gave up: the file is damaged"))
        .and_then(|picture| planes(picture, shape))
        .with_context(|| format!("reading {}", path.display()))
}

fn read(path: &Path) -> anyhow::Result<DynamicImage> {
    let length = File::open(path)?.metadata()?.len();
    ensure!(
        length <= LARGEST_FILE,
        "the file has {length} bytes, expected at most {LARGEST_FILE}"
    );
    let bytes = fs::read(path)?;
    let mut reader = ImageReader::new(Cursor::new(&bytes)).with_guessed_format()?;
    let format = reader
        .format()
        .filter(|format| matches!(format, ImageFormat::Jpeg | ImageFormat::Png))
        .context("this is neither a JPEG nor a PNG file")?;
    let mut limits = Limits::default();
    limits.max_image_width = Some(LARGEST_SIDE);
    limits.max_image_height = Some(LARGEST_SIDE);
    limits.max_alloc = Some(4 * MOST_PIXELS);
    reader.limits(limits);
    let decoder = reader
        .into_decoder()
        .context("the image is damaged or too large")?;
    let (width, height) = decoder.dimensions();
    ensure!(
        u64::from(width) * u64::from(height) <= MOST_PIXELS,
        "the image has {width} × {height} pixels, expected at most {MOST_PIXELS} in all"
    );
    ensure!(
        format != ImageFormat::Jpeg || has_end(&bytes),
        "the file is truncated: its end is missing"
    );
    DynamicImage::from_decoder(decoder).context("the image is damaged")
}

/// A decoder fills the missing part of a JPEG with grey; only the marker at its end shows that it is complete.
fn has_end(jpeg: &[u8]) -> bool {
    // Some cameras write padding after it.
    let end = jpeg
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    jpeg[..end].ends_with(&[0xff, 0xd9])
}

fn planes(picture: DynamicImage, shape: Shape) -> anyhow::Result<Vec<u8>> {
    let (width, height) = (picture.width(), picture.height());
    let side = shape.crop.unwrap_or(width.min(height));
    ensure!(
        side > 0 && side <= width && side <= height,
        "the image has {width} × {height} pixels, expected at least {side} × {side}"
    );
    let square = picture.crop_imm((width - side) / 2, (height - side) / 2, side, side);
    let size = shape.size;
    Ok(match shape.channels {
        1 => resized(square.into_luma8(), size).into_raw(),
        _ => {
            let pixels = resized(square.into_rgb8(), size).into_raw();
            (0..3)
                .flat_map(|channel| pixels.iter().skip(channel).step_by(3).copied())
                .collect()
        }
    })
}

/// Bilinear; smaller images are weighted means over all pixels, as in Pillow.
fn resized<P>(square: image::ImageBuffer<P, Vec<u8>>, size: u32) -> image::ImageBuffer<P, Vec<u8>>
where
    P: image::Pixel<Subpixel = u8> + 'static,
{
    if square.width() == size {
        return square;
    }
    imageops::resize(&square, size, size, FilterType::Triangle)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use image::{ImageBuffer, Luma, Rgb};

    use super::*;
    use crate::testing::{error, shared};

    fn shape(size: u32) -> Shape {
        Shape {
            channels: 3,
            crop: None,
            size,
        }
    }

    fn save(picture: impl Into<DynamicImage>, name: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        picture.into().save(&path).unwrap();
        (folder, path)
    }

    #[test]
    fn keeps_channels_rows_and_columns_of_the_centre() {
        // 5 × 4 pixels; the middle square is columns 0 to 3 (the half is rounded down), all rows.
        let picture = ImageBuffer::from_fn(5, 4, |x, y| Rgb([x as u8, 10 * y as u8, 200]));
        let (_folder, path) = save(picture, "a.png");
        let bytes = decode(&path, shape(4)).unwrap();
        let expected: Vec<u8> = (0..48u8)
            .map(|i| match i / 16 {
                0 => i % 4,
                1 => 10 * (i / 4 % 4),
                _ => 200,
            })
            .collect();
        assert_eq!(bytes, expected);
        let cropped = Shape {
            crop: Some(2),
            ..shape(2)
        };
        assert_eq!(
            decode(&path, cropped).unwrap(),
            [1, 2, 1, 2, 10, 10, 20, 20, 200, 200, 200, 200]
        );
        let error = error(decode(
            &path,
            Shape {
                crop: Some(5),
                ..cropped
            },
        ));
        assert!(error.contains("5 × 4 pixels, expected at least 5 × 5"), "{error}");
    }

    /// Halving a ramp 0, 8, 16, …: triangle weights (1, 3, 3, 1)/8 in the middle give 8·(i + ½) for pairs; at the ends
    /// (3, 3, 1)/7 of 0, 8, 16 give 40/7 ≈ 6, and 56 − 40/7 ≈ 50 by symmetry.
    #[test]
    fn downscaled_images_are_smoothed() {
        let picture = ImageBuffer::from_fn(8, 8, |x, _| Luma([8 * x as u8]));
        let (_folder, path) = save(picture, "a.png");
        let grey = Shape {
            channels: 1,
            ..shape(4)
        };
        assert_eq!(decode(&path, grey).unwrap()[..4], [6, 20, 36, 50]);
        let colour = decode(&path, shape(4)).unwrap();
        assert_eq!((&colour[..4], colour.len()), (&[6, 20, 36, 50][..], 48));
    }

    #[test]
    fn a_jpeg_truncated_anywhere_is_refused() {
        let picture = ImageBuffer::from_fn(40, 40, |x, y| Rgb([(3 * x) as u8, (5 * y) as u8, 90]));
        let (_folder, path) = save(picture, "a.jpg");
        let whole = fs::read(&path).unwrap();
        assert!(decode(&path, shape(20)).is_ok());
        for length in (0..whole.len()).step_by(7) {
            fs::write(&path, &whole[..length]).unwrap();
            let error = error(decode(&path, shape(20)));
            assert!(error.contains("a.jpg"), "{error}");
        }
        fs::write(&path, [&whole[..], &[0; 5]].concat()).unwrap();
        assert!(decode(&path, shape(20)).is_ok(), "padding is harmless");
    }

    #[test]
    fn a_damaged_png_is_refused() {
        let picture = ImageBuffer::from_fn(40, 40, |x, y| Luma([(x * y) as u8]));
        let (_folder, path) = save(picture, "a.png");
        let whole = fs::read(&path).unwrap();
        for length in (0..whole.len() - 12).step_by(7) {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(
                decode(&path, shape(20)).is_err(),
                "{length} of {} bytes",
                whole.len()
            );
        }
        fs::write(&path, b"GIF89a and so on").unwrap();
        let error = error(decode(&path, shape(20)));
        assert!(error.contains("neither a JPEG nor a PNG"), "{error}");
    }

    /// The size follows the marker FF C0: length (2 bytes), precision (1), height (2), width (2).
    #[test]
    fn a_jpeg_that_declares_a_huge_size_is_refused() {
        let (_folder, path) = save(ImageBuffer::from_pixel(16, 16, Luma([9u8])), "a.jpg");
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
        for (side, word) in [(60_000u16, "too large"), (16_000, "16000 × 16000 pixels")] {
            bytes[at + 5..at + 7].copy_from_slice(&side.to_be_bytes());
            bytes[at + 7..at + 9].copy_from_slice(&side.to_be_bytes());
            fs::write(&path, &bytes).unwrap();
            let error = error(decode(&path, shape(20)));
            assert!(error.contains(word) && error.contains("a.jpg"), "{error}");
        }
    }

    /// Pillow's means and pixels after crop 148 and bilinear resize to 64. Decoders differ by a level or two where
    /// chroma is interpolated, and Pillow rounds between its two passes: means to 0.5, pixels to 4 levels.
    #[test]
    fn the_shared_faces_match_pillow() {
        let Some(folder) = shared("celeba") else { return };
        let celeba = Shape {
            crop: Some(148),
            ..shape(64)
        };
        for (name, means, pixel) in [
            ("000002.jpg", [146.957_5, 123.349_6, 115.975_6], [214, 188, 184]),
            ("000086.jpg", [202.700_2, 171.050_5, 155.909_4], [211, 151, 132]),
            ("162922.jpg", [184.576_4, 149.539_3, 129.553_5], [241, 208, 189]),
        ] {
            let bytes = decode(&folder.join("img_align_celeba").join(name), celeba).unwrap();
            for (channel, plane) in bytes.chunks(64 * 64).enumerate() {
                let mean = plane.iter().map(|byte| f64::from(*byte)).sum::<f64>() / 4096.0;
                assert!(
                    (mean - means[channel]).abs() < 0.5,
                    "{name}: {mean}, expected {means:?}"
                );
                let found = i32::from(plane[40 * 64 + 33]);
                assert!(
                    (found - pixel[channel]).abs() <= 4,
                    "{name}: {found}, expected {pixel:?}"
                );
            }
        }
    }
}
