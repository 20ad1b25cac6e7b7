//! Decides by a file's ending what is written, and whether the data can be drawn.

use std::path::Path;

use crate::cli::Misuse;
use crate::record::is_image;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Picture(Shown),
    Npy,
    Hdf5,
}

/// How data points are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    Images,
    /// Points in the plane.
    Points,
}

impl Format {
    /// The format of the file `path` with data points of this shape.
    pub fn of(path: &Path, shape: &[i64]) -> Result<Self, Misuse> {
        let ending = path.extension().unwrap_or_default().to_string_lossy();
        match ending.as_ref() {
            "png" if is_image(shape) => Ok(Format::Picture(Shown::Images)),
            "png" if shape == [2] => Ok(Format::Picture(Shown::Points)),
            "png" => Err(Misuse(format!(
                "--out {}: data points of shape {shape:?} cannot be drawn, only images and points in the plane; \
                 write a .npy or .h5 file",
                path.display()
            ))),
            "npy" => Ok(Format::Npy),
            "h5" => Ok(Format::Hdf5),
            _ => Err(Misuse(format!(
                "--out {}: expected a name that ends in .png, .npy or .h5",
                path.display()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_ending_and_the_shape_decide() {
        let format = |name: &str, shape: &[i64]| Format::of(Path::new(name), shape);
        assert_eq!(
            format("a.png", &[3, 8, 8]).unwrap(),
            Format::Picture(Shown::Images)
        );
        assert_eq!(format("a.png", &[2]).unwrap(), Format::Picture(Shown::Points));
        assert_eq!(format("a.npy", &[5]).unwrap(), Format::Npy);
        assert_eq!(format("b/a.h5", &[5]).unwrap(), Format::Hdf5);
        let refused = format("a.png", &[5]).unwrap_err().to_string();
        assert!(refused.contains("[5]") && refused.contains(".npy"), "{refused}");
        for name in ["a.jpg", "png", "a"] {
            let refused = format(name, &[2]).unwrap_err().to_string();
            assert!(refused.contains(".png, .npy or .h5"), "{refused}");
        }
    }
}
