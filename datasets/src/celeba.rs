//! CelebA, from its aligned images and the official partition.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use ebipla_core::cache_folder;
use ebipla_core::fetch::{Fetch, How};
use ebipla_core::prelude::*;

use crate::cache::{Cache, Source};
use crate::cached::{Cached, Part};
use crate::images::decode::Shape;
use crate::images::fill;
use crate::subset::Subset;

/// CelebA: colour images of faces, the middle 148×148 pixels of each, resized; official training and validation sets.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Celeba {
    /// Folder with list_eval_partition.txt and the folder img_align_celeba.
    path: PathBuf,
    /// Side of an image. [pixels]
    #[schemars(range(min = 1, max = 1024))]
    image_size: u32,
    /// Maximum number of training points; null keeps all. [points]
    #[schemars(range(min = 1))]
    limit: Option<usize>,
    /// Seed of a random choice of `limit` points; null keeps the first ones. [any integer]
    #[schemars(extend("only_with" = "limit"))]
    subset_seed: Option<u64>,
}

impl Default for Celeba {
    fn default() -> Self {
        Self {
            path: "data/celeba".into(),
            image_size: 64,
            limit: None,
            subset_seed: None,
        }
    }
}

impl Plugin for Celeba {
    type Builds = dyn Dataset;

    fn build(self, _: &mut Scope) -> anyhow::Result<Box<dyn Dataset>> {
        Ok(Box::new(self.open(&cache_folder()?)?))
    }
}

const PICTURES: &str = "img_align_celeba";
const PARTITION: &str = "list_eval_partition.txt";
const CROP: u32 = 148;
const ADVICE: &str = "run `runner fetch celeba` for instructions, or set dataset.path to its folder";

impl Celeba {
    fn open(&self, caches: &Path) -> anyhow::Result<Cached> {
        let [train, validation, _test] = partition(&self.path.join(PARTITION))?;
        let train = Part::all(self.split(caches, "train", train)?);
        let validation = Part::all(self.split(caches, "validation", validation)?);
        let subset = Subset {
            limit: self.limit,
            seed: self.subset_seed,
            ..Subset::default()
        };
        Cached::new(subset.of(train)?, validation)
    }

    fn split(&self, caches: &Path, split: &str, files: Vec<PathBuf>) -> anyhow::Result<Cache> {
        let shape = Shape {
            channels: 3,
            crop: Some(CROP),
            size: self.image_size,
        };
        let source = Source {
            name: format!("celeba-{split}"),
            folder: self.path.join(PICTURES),
            files,
            preprocessing: shape.describe(),
            advice: ADVICE,
        };
        fill::open(caches, &source, shape)
    }
}

/// The names of the images for training, validation and test.
fn partition(path: &Path) -> anyhow::Result<[Vec<PathBuf>; 3]> {
    ensure!(path.exists(), "{} is missing: {ADVICE}", path.display());
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let mut parts = [(); 3].map(|()| Vec::new());
    for (i, line) in text.lines().enumerate() {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            [] => {}
            [name, part @ ("0" | "1" | "2")] if !name.contains('/') => {
                parts[usize::from(part.as_bytes()[0] - b'0')].push(name.into());
            }
            _ => bail!(
                "{}, line {}: found `{line}`, expected the name of an image, then 0, 1 or 2",
                path.display(),
                i + 1
            ),
        }
    }
    ensure!(
        !parts[0].is_empty(),
        "{} lists no images for training",
        path.display()
    );
    Ok(parts)
}

inventory::submit! { Registration::of::<Celeba>("celeba") }

inventory::submit! {
    Fetch {
        name: "celeba",
        how: How::ByHand(
            "CelebA is for non-commercial research only, and downloading it requires agreeing to its terms. Download it by hand:
  1. Open https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html and read the agreement.
  2. Get img_align_celeba.zip (Align&Cropped Images, 1.3 GB) and list_eval_partition.txt (folder Eval).
  3. Unpack the archive, so that there are
       {folder}/img_align_celeba/000001.jpg to 202599.jpg
       {folder}/list_eval_partition.txt",
        ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use image::{ImageBuffer, Rgb};

    use super::*;
    use crate::testing::{bytes, error, shared};

    fn celeba(folder: &Path) -> Celeba {
        Celeba {
            path: folder.into(),
            ..Celeba::default()
        }
    }

    #[test]
    fn images_follow_the_partition() {
        let folder = tempfile::tempdir().unwrap();
        let caches = folder.path().join("cache");
        fs::create_dir(folder.path().join(PICTURES)).unwrap();
        for (name, level) in [("1.png", 10), ("2.png", 20), ("3.png", 30), ("4.png", 40)] {
            // The middle 148 × 148 pixels have the level, all others are white.
            let picture = ImageBuffer::from_fn(178, 218, |x, y| {
                let inside = (15..163).contains(&x) && (35..183).contains(&y);
                Rgb([if inside { level } else { 255u8 }; 3])
            });
            picture.save(folder.path().join(PICTURES).join(name)).unwrap();
        }
        let list = "1.png 1\n2.png 0\n3.png 2\n4.png 0\n";
        fs::write(folder.path().join(PARTITION), list).unwrap();
        let set = celeba(folder.path()).open(&caches).unwrap();
        assert_eq!(set.shape(), [3, 64, 64]);
        assert_eq!((set.len(Split::Train), set.len(Split::Validation)), (2, 1));
        assert_eq!(bytes(&set, Split::Train, 1), [40; 3 * 64 * 64]);
        assert_eq!(bytes(&set, Split::Validation, 0), [10; 3 * 64 * 64]);
        assert!(set.labels(Split::Train).is_none());
        let limited = Celeba {
            limit: Some(1),
            image_size: 8,
            ..celeba(folder.path())
        };
        let set = limited.open(&caches).unwrap();
        assert_eq!((set.len(Split::Train), set.shape()), (1, &[3, 8, 8][..]));

        fs::write(folder.path().join(PICTURES).join("4.png"), "broken").unwrap();
        let error = error(celeba(folder.path()).open(&caches));
        assert!(
            error.contains("4.png") && error.contains("replace or remove"),
            "{error}"
        );
    }

    #[test]
    fn errors_in_the_partition_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let attempt = || error(celeba(folder.path()).open(&folder.path().join("cache")));
        assert!(attempt().contains("runner fetch celeba"), "{}", attempt());
        for (text, words) in [
            ("1.jpg 0\n2.jpg 3\n", ["line 2", "`2.jpg 3`"]),
            ("../../etc/passwd 0\n", ["line 1", "passwd"]),
            ("1.jpg 1\n", ["no images", "for training"]),
            (
                "1.jpg 0\n",
                ["img_align_celeba/1.jpg is missing", "runner fetch celeba"],
            ),
        ] {
            fs::write(folder.path().join(PARTITION), text).unwrap();
            let error = attempt();
            assert!(words.iter().all(|word| error.contains(word)), "{error}");
        }
    }

    /// 110.490 is Pillow's mean over all training images. Decoders differ by a fraction of a level in the mean.
    #[test]
    fn the_shared_pictures() {
        let Some(folder) = shared("celeba") else { return };
        let caches = tempfile::tempdir().unwrap();
        let set = celeba(&folder).open(caches.path()).unwrap();
        assert_eq!((set.len(Split::Train), set.len(Split::Validation)), (2267, 408));
        let all = set.first(Split::Train, usize::MAX).unwrap();
        let mean = (all.mean(tch::Kind::Double).double_value(&[]) + 1.0) * 127.5;
        assert!((mean - 110.490).abs() < 0.25, "{mean}");
    }
}
