//! A picture in memory, on its way to a file and to TensorBoard.

use std::io::Cursor;
use std::path::Path;

use ebipla_core::system::files::write_bytes;
use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder};

/// Pixels row by row from the top, three bytes each: red, green, blue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    pub width: u32,
    pub height: u32,
    pub pixels: Vec<u8>,
}

impl Picture {
    /// The contents of a PNG file.
    pub fn png(&self) -> anyhow::Result<Vec<u8>> {
        let mut png = Cursor::new(Vec::new());
        PngEncoder::new(&mut png).write_image(
            &self.pixels,
            self.width,
            self.height,
            ExtendedColorType::Rgb8,
        )?;
        Ok(png.into_inner())
    }

    /// Writes a PNG file, whole or not at all.
    pub fn write_png(&self, path: &Path) -> anyhow::Result<()> {
        write_bytes(path, self.png()?)
    }
}
