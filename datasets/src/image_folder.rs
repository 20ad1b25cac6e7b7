//! Any folder of images.

use std::path::{Path, PathBuf};

use ebipla_core::cache_folder;
use ebipla_core::prelude::*;

use crate::cache::Source;
use crate::cached::Cached;
use crate::held_out::held_out;
use crate::images::decode::Shape;
use crate::images::{files, fill};
use crate::subset::Subset;

/// All JPEG and PNG files in a folder and its subfolders, cropped to their central square and resized; some are held
/// out.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ImageFolder {
    /// Path of the folder.
    path: PathBuf,
    /// Side of an image. [pixels]
    #[schemars(range(min = 1, max = 4096))]
    image_size: u32,
    /// Channels of an image: 1 (grey) or 3 (colour). [channels]
    channels: usize,
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

impl Default for ImageFolder {
    fn default() -> Self {
        Self {
            path: "data/image_folder".into(),
            image_size: 64,
            channels: 3,
            validation: 0.1,
            limit: None,
            subset_seed: None,
        }
    }
}

impl Plugin for ImageFolder {
    type Builds = dyn Dataset;

    fn check(&self) -> Vec<Complaint> {
        let wrong = ![1, 3].contains(&self.channels);
        let complaint = || Complaint {
            option: "channels",
            message: format!("found {}, expected 1 (grey) or 3 (colour)", self.channels),
        };
        wrong.then(complaint).into_iter().collect()
    }

    fn build(self, _: &mut Scope) -> anyhow::Result<Box<dyn Dataset>> {
        Ok(Box::new(self.open(&cache_folder()?)?))
    }
}

impl ImageFolder {
    fn open(&self, caches: &Path) -> anyhow::Result<Cached> {
        let pictures = Pictures {
            name: "image_folder",
            folder: &self.path,
            shape: Shape {
                channels: self.channels,
                crop: None,
                size: self.image_size,
            },
            validation: self.validation,
            advice: "set dataset.path to the folder of the images",
        };
        let subset = Subset {
            limit: self.limit,
            seed: self.subset_seed,
            ..Subset::default()
        };
        pictures.open(caches, &subset)
    }
}

/// The images in a folder and its subfolders, a fraction of which is held out.
pub struct Pictures<'a> {
    pub name: &'static str,
    pub folder: &'a Path,
    pub shape: Shape,
    pub validation: f64,
    pub advice: &'static str,
}

impl Pictures<'_> {
    /// Both splits.
    pub fn open(&self, caches: &Path, subset: &Subset) -> anyhow::Result<Cached> {
        let source = Source {
            name: self.name.into(),
            folder: self.folder.into(),
            files: files::below(self.folder, self.advice)?,
            preprocessing: self.shape.describe(),
            advice: self.advice,
        };
        let [train, validation] = held_out(fill::open(caches, &source, self.shape)?, self.validation);
        Cached::new(subset.of(train)?, validation)
    }
}

inventory::submit! { Registration::of::<ImageFolder>("image_folder") }

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use image::{ImageBuffer, Luma};

    use super::*;
    use crate::testing::{bytes, error};

    fn folder_of(count: u8) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for i in 0..count {
            let inner = folder.path().join(if i < 3 { "a" } else { "b" });
            fs::create_dir_all(&inner).unwrap();
            let picture = ImageBuffer::from_pixel(20 + u32::from(i), 16, Luma([10 * i]));
            picture.save(inner.join(format!("{i}.png"))).unwrap();
        }
        folder
    }

    fn image_folder(folder: &Path) -> ImageFolder {
        ImageFolder {
            path: folder.into(),
            image_size: 8,
            validation: 0.25,
            ..ImageFolder::default()
        }
    }

    #[test]
    fn reads_images_of_all_sizes_in_grey_and_colour() {
        let folder = folder_of(8);
        let caches = tempfile::tempdir().unwrap();
        for channels in [1, 3] {
            let set = ImageFolder {
                channels,
                ..image_folder(folder.path())
            };
            let set = set.open(caches.path()).unwrap();
            assert_eq!(set.shape(), [channels as i64, 8, 8]);
            assert_eq!((set.len(Split::Train), set.len(Split::Validation)), (6, 2));
            assert_eq!(bytes(&set, Split::Validation, 0), vec![30; 64 * channels]);
            assert_eq!(bytes(&set, Split::Train, 3), vec![40; 64 * channels]);
        }
    }

    #[test]
    fn an_added_or_removed_image_rebuilds_the_cache() {
        let folder = folder_of(4);
        let caches = tempfile::tempdir().unwrap();
        let count = || {
            let set = image_folder(folder.path()).open(caches.path()).unwrap();
            set.len(Split::Train) + set.len(Split::Validation)
        };
        assert_eq!(count(), 4);
        fs::remove_file(folder.path().join("b/3.png")).unwrap();
        assert_eq!(count(), 3);
    }

    #[test]
    fn wrong_channels_and_missing_folders_are_reported() {
        let two = ImageFolder {
            channels: 2,
            ..ImageFolder::default()
        };
        assert_eq!(two.check()[0].option, "channels");
        let missing = error(image_folder(Path::new("/no/such/folder")).open(Path::new("/nowhere")));
        assert!(missing.contains("dataset.path"), "{missing}");
    }
}
