//! CelebA-HQ: a folder of large images of faces.

use std::path::{Path, PathBuf};

use ebipla_core::cache_folder;
use ebipla_core::fetch::{Fetch, How};
use ebipla_core::prelude::*;

use crate::cached::Cached;
use crate::image_folder::Pictures;
use crate::images::decode::Shape;
use crate::subset::Subset;

/// CelebA-HQ: large colour images of faces, all images in a folder; a fraction of them is held out.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CelebaHq {
    /// Folder with the images.
    path: PathBuf,
    /// Side of an image; images of another size are resized. [pixels]
    #[schemars(range(min = 1, max = 4096))]
    image_size: u32,
    /// Fraction of the images to hold out, spread evenly over their names. [fraction of all]
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 1.0))]
    validation: f64,
    /// Maximum number of training points; null keeps all. [points]
    #[schemars(range(min = 1))]
    limit: Option<usize>,
    /// Seed of a random choice of `limit` points; null keeps the first ones. [any integer]
    #[schemars(extend("only_with" = "limit"))]
    subset_seed: Option<u64>,
}

impl Default for CelebaHq {
    fn default() -> Self {
        Self {
            path: "data/celeba_hq".into(),
            image_size: 256,
            validation: 0.1,
            limit: None,
            subset_seed: None,
        }
    }
}

impl Plugin for CelebaHq {
    type Builds = dyn Dataset;

    fn build(self, _: &mut Scope) -> anyhow::Result<Box<dyn Dataset>> {
        Ok(Box::new(self.open(&cache_folder()?)?))
    }
}

impl CelebaHq {
    fn open(&self, caches: &Path) -> anyhow::Result<Cached> {
        let pictures = Pictures {
            name: "celeba_hq",
            folder: &self.path,
            shape: Shape {
                channels: 3,
                crop: None,
                size: self.image_size,
            },
            validation: self.validation,
            advice: "run `runner fetch celeba_hq` for instructions, or set dataset.path to their folder",
        };
        let subset = Subset {
            limit: self.limit,
            seed: self.subset_seed,
            ..Subset::default()
        };
        pictures.open(caches, &subset)
    }
}

inventory::submit! { Registration::of::<CelebaHq>("celeba_hq") }

inventory::submit! {
    Fetch {
        name: "celeba_hq",
        how: How::ByHand(
            "CelebA-HQ is for non-commercial research only, and downloading it requires agreeing to its terms. Download it by hand:
  1. Open https://github.com/switchablenorms/CelebAMask-HQ and read the agreement. Its archive CelebAMask-HQ.zip
     (3 GB) has the 30,000 pictures of CelebA-HQ as JPEG files. (The original, which is made from CelebA:
     https://github.com/tkarras/progressive_growing_of_gans.)
  2. Copy its folder CelebA-HQ-img, so that there are
       {folder}/CelebA-HQ-img/0.jpg to 29999.jpg
     Any folder of JPEG or PNG files will do; what is not 256×256 is resized.",
        ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::testing::{bytes, shared};

    /// The first face as decoded by Pillow: mean 185.5 of red, and (170, 209, 238) at row 10, column 20. Decoders
    /// differ by a level or two where chroma is interpolated.
    #[test]
    fn the_shared_faces() {
        let Some(folder) = shared("faces256") else { return };
        let caches = tempfile::tempdir().unwrap();
        let set = CelebaHq {
            path: folder,
            ..CelebaHq::default()
        };
        let set = set.open(caches.path()).unwrap();
        assert_eq!((set.len(Split::Train), set.len(Split::Validation)), (270, 30));
        assert_eq!(set.shape(), [3, 256, 256]);
        let face = bytes(&set, Split::Train, 0);
        let red = face[..65_536].iter().map(|byte| f64::from(*byte)).sum::<f64>() / 65_536.0;
        assert!((red - 185.548).abs() < 0.5, "{red}");
        for (channel, expected) in [170, 209, 238].into_iter().enumerate() {
            let found = i32::from(face[(channel * 256 + 10) * 256 + 20]);
            assert!((found - expected).abs() <= 4, "{found}, expected {expected}");
        }
    }
}
