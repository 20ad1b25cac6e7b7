//! The handwritten digits, and the loader that Fashion-MNIST shares: four idx files.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use ebipla_core::cache_folder;
use ebipla_core::fetch::{Fetch, How, Remote};
use ebipla_core::prelude::*;

use crate::cache::{self, Cache, Draft, Element, Layout, Source};
use crate::cached::{Cached, Part};
use crate::formats::idx;
use crate::subset::Subset;

/// MNIST: 28×28 grey images of handwritten digits; validation is its test set.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Mnist {
    /// Folder with train-images-idx3-ubyte, train-labels-idx1-ubyte and the same for t10k, each optionally with .gz.
    path: PathBuf,
    /// Side of an image; above 28 a black border is added. [pixels]
    #[schemars(range(min = 28, max = 1024))]
    image_size: usize,
    /// Maximum number of training points; null keeps all. [points]
    #[schemars(range(min = 1))]
    limit: Option<usize>,
    /// Seed of a random choice of `limit` points; null keeps the first ones. [any integer]
    #[schemars(extend("only_with" = "limit"))]
    subset_seed: Option<u64>,
    /// Digits to train on; null uses all.
    labels: Option<Vec<u8>>,
    /// Digits to leave out of training.
    exclude_labels: Vec<u8>,
}

impl Default for Mnist {
    fn default() -> Self {
        Self {
            path: "data/mnist".into(),
            image_size: SIZE,
            limit: None,
            subset_seed: None,
            labels: None,
            exclude_labels: Vec::new(),
        }
    }
}

impl Plugin for Mnist {
    type Builds = dyn Dataset;

    fn check(&self) -> Vec<Complaint> {
        self.subset().complaints(10)
    }

    fn build(self, _: &mut Scope) -> anyhow::Result<Box<dyn Dataset>> {
        Ok(Box::new(self.open(&cache_folder()?)?))
    }
}

impl Mnist {
    fn open(&self, caches: &Path) -> anyhow::Result<Cached> {
        let files = IdxFiles {
            name: "mnist",
            folder: &self.path,
            image_size: self.image_size,
            advice: "run `runner fetch mnist` to download it, or set dataset.path to its folder",
        };
        files.open(caches, &self.subset())
    }

    fn subset(&self) -> Subset<'_> {
        Subset {
            limit: self.limit,
            seed: self.subset_seed,
            labels: self.labels.as_deref(),
            exclude: &self.exclude_labels,
        }
    }
}

/// Side of an image in the files.
pub const SIZE: usize = 28;

/// The four files of a data set in MNIST's format.
pub struct IdxFiles<'a> {
    pub name: &'static str,
    pub folder: &'a Path,
    pub image_size: usize,
    pub advice: &'static str,
}

impl IdxFiles<'_> {
    /// Both splits.
    pub fn open(&self, caches: &Path, subset: &Subset) -> anyhow::Result<Cached> {
        let train = Part::all(self.split(caches, "train")?);
        let validation = Part::all(self.split(caches, "t10k")?);
        Cached::new(subset.of(train)?, validation)
    }

    fn split(&self, caches: &Path, split: &str) -> anyhow::Result<Cache> {
        let [images, labels] = ["images-idx3", "labels-idx1"]
            .map(|part| idx::name_in(self.folder, &format!("{split}-{part}-ubyte")));
        let source = Source {
            name: format!("{}-{split}", self.name),
            folder: self.folder.into(),
            files: vec![images.clone(), labels.clone()],
            preprocessing: format!("idx, side {}", self.image_size),
            advice: self.advice,
        };
        let [images, labels] = [images, labels].map(|file| self.folder.join(file));
        cache::open(caches, &source, |draft| self.read(&images, &labels, draft))
    }

    fn read(&self, images: &Path, labels: &Path, draft: &Draft) -> anyhow::Result<()> {
        let reading = |path: &Path| format!("reading {}", path.display());
        let mut pixels = idx::open(images, 3)?;
        let [count, SIZE, SIZE] = pixels.dims[..] else {
            anyhow::bail!(
                "{} has the shape {:?}, expected images × 28 × 28",
                images.display(),
                pixels.dims
            );
        };
        let classes = read_labels(labels, count).with_context(|| reading(labels))?;
        let size = self.image_size;
        let writer = draft.begin(Layout {
            element: Element::U8,
            shape: vec![1, size, size],
            count,
            labelled: true,
        })?;
        let (mut small, mut large) = (vec![0; SIZE * SIZE], vec![0; size * size]);
        let border = (size - SIZE) / 2;
        for i in 0..count {
            pixels.read(&mut small).with_context(|| reading(images))?;
            for (row, from) in small.chunks(SIZE).enumerate() {
                large[(border + row) * size + border..][..SIZE].copy_from_slice(from);
            }
            writer.put(i, &large)?;
        }
        pixels.end().with_context(|| reading(images))?;
        writer.put_labels(0, &classes)?;
        writer.finish()
    }
}

fn read_labels(path: &Path, count: usize) -> anyhow::Result<Vec<u8>> {
    let mut array = idx::open(path, 1)?;
    ensure!(
        array.dims == [count],
        "there are {count} images, but {} labels",
        array.dims[0]
    );
    // In blocks, since the declared number of images may be false as well.
    let mut labels = Vec::new();
    while labels.len() < count {
        let mut block = vec![0; (count - labels.len()).min(1 << 16)];
        array.read(&mut block)?;
        labels.extend(block);
    }
    array.end()?;
    if let Some(i) = labels.iter().position(|label| *label > 9) {
        anyhow::bail!("image {i} has the label {}, expected 0 to 9", labels[i]);
    }
    Ok(labels)
}

inventory::submit! { Registration::of::<Mnist>("mnist") }

inventory::submit! {
    Fetch {
        name: "mnist",
        how: How::Files {
            base: "https://ossci-datasets.s3.amazonaws.com/mnist/",
            files: &[
                Remote {
                    name: "train-images-idx3-ubyte.gz",
                    md5: "f68b3c2dcbeaaa9fbdd348bbdeb94873",
                    bytes: 9_912_422,
                    folder: None,
                },
                Remote {
                    name: "train-labels-idx1-ubyte.gz",
                    md5: "d53e105ee54ea40749a09fcbcd1e9432",
                    bytes: 28_881,
                    folder: None,
                },
                Remote {
                    name: "t10k-images-idx3-ubyte.gz",
                    md5: "9fb629c4189551a2d022fa330f9573f3",
                    bytes: 1_648_877,
                    folder: None,
                },
                Remote {
                    name: "t10k-labels-idx1-ubyte.gz",
                    md5: "ec29112dd5afa0611ce80d1b7f02629c",
                    bytes: 4_542,
                    folder: None,
                },
            ],
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;
    use crate::formats::idx::tests::{file, gzip};
    use crate::testing::{byte_sum, bytes, error, labels, shared};

    /// Writes images whose pixels all have these values, with these labels.
    fn write(folder: &Path, split: &str, pixels: &[u8], labels: &[u8]) {
        let images: Vec<_> = pixels.iter().flat_map(|pixel| [*pixel; SIZE * SIZE]).collect();
        let images = file(&[pixels.len() as u32, 28, 28], &images);
        fs::write(
            folder.join(format!("{split}-images-idx3-ubyte.gz")),
            gzip(&images),
        )
        .unwrap();
        let labels = file(&[labels.len() as u32], labels);
        fs::write(folder.join(format!("{split}-labels-idx1-ubyte")), labels).unwrap();
    }

    fn mnist(folder: &Path) -> Mnist {
        Mnist {
            path: folder.into(),
            ..Mnist::default()
        }
    }

    #[test]
    fn reads_images_and_labels_and_adds_a_border() {
        let folder = tempfile::tempdir().unwrap();
        let caches = folder.path().join("cache");
        write(folder.path(), "train", &[0, 128, 255], &[7, 0, 9]);
        write(folder.path(), "t10k", &[50], &[1]);
        let set = mnist(folder.path()).open(&caches).unwrap();
        assert_eq!(set.shape(), [1, 28, 28]);
        assert_eq!(labels(&set, Split::Train), [7, 0, 9]);
        assert_eq!(bytes(&set, Split::Train, 1), [128; 784]);
        // The range is [−1, 1], both ends included.
        let ends = set.get(Split::Train, &Tensor::from_slice(&[0i64, 2])).unwrap();
        assert_eq!(
            (ends.min().double_value(&[]), ends.max().double_value(&[])),
            (-1.0, 1.0)
        );

        let bordered = Mnist {
            image_size: 32,
            ..mnist(folder.path())
        };
        let set = bordered.open(&caches).unwrap();
        let image = bytes(&set, Split::Validation, 0);
        for (i, pixel) in image.iter().enumerate() {
            let inside = |x: usize| (2..30).contains(&x);
            let expected = if inside(i / 32) && inside(i % 32) { 50 } else { 0 };
            assert_eq!(*pixel, expected, "pixel {i}");
        }
    }

    #[test]
    fn mismatched_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let attempt = || error(mnist(folder.path()).open(&folder.path().join("cache")));
        assert!(attempt().contains("runner fetch mnist"), "{}", attempt());
        write(folder.path(), "train", &[1, 2], &[3]);
        assert!(attempt().contains("2 images, but 1 labels"), "{}", attempt());
        write(folder.path(), "train", &[1, 2], &[3, 10]);
        assert!(attempt().contains("image 1 has the label 10"), "{}", attempt());
        let path = folder.path().join("train-images-idx3-ubyte");
        fs::write(&path, file(&[2, 14, 56], &[0; 1568])).unwrap();
        assert!(attempt().contains("images × 28 × 28"), "{}", attempt());
    }

    /// Sums, pixels and labels as read by NumPy.
    #[test]
    fn the_shared_files() {
        let Some(folder) = shared("mnist") else { return };
        let caches = tempfile::tempdir().unwrap();
        let set = mnist(&folder).open(caches.path()).unwrap();
        assert_eq!(
            (set.len(Split::Train), set.len(Split::Validation)),
            (60_000, 10_000)
        );
        assert_eq!(labels(&set, Split::Train)[..10], [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]);
        assert_eq!(byte_sum(&set, Split::Train), 1_567_298_545.0);
        assert_eq!(byte_sum(&set, Split::Validation), 264_923_200.0);
        let row = &bytes(&set, Split::Train, 5)[14 * 28..15 * 28];
        assert_eq!(row[10..20], [10, 53, 179, 253, 253, 255, 253, 253, 228, 35]);
        let without_four = Mnist {
            exclude_labels: vec![4],
            limit: Some(50_000),
            subset_seed: Some(1),
            ..mnist(&folder)
        };
        let set = without_four.open(caches.path()).unwrap();
        assert_eq!(set.len(Split::Train), 50_000);
        assert!(!labels(&set, Split::Train).contains(&4));
        assert!(labels(&set, Split::Validation).contains(&4));
    }
}
