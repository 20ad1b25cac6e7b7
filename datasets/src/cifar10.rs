//! CIFAR-10, from its binary batches.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use ebipla_core::cache_folder;
use ebipla_core::fetch::{Fetch, How, Remote};
use ebipla_core::prelude::*;

use crate::cache::{self, Cache, Draft, Element, Layout, Source};
use crate::cached::{Cached, Part};
use crate::subset::Subset;

/// CIFAR-10: 32×32 colour images in ten classes; validation is its test set.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cifar10 {
    /// Folder with some or all of data_batch_1.bin to data_batch_5.bin, and test_batch.bin; or its parent folder.
    path: PathBuf,
    /// Maximum number of training points; null keeps all. [points]
    #[schemars(range(min = 1))]
    limit: Option<usize>,
    /// Seed of a random choice of `limit` points; null keeps the first ones. [any integer]
    #[schemars(extend("only_with" = "limit"))]
    subset_seed: Option<u64>,
    /// Classes to train on, from 0 (airplane) to 9 (truck); null uses all.
    labels: Option<Vec<u8>>,
    /// Classes to leave out of training.
    exclude_labels: Vec<u8>,
}

impl Default for Cifar10 {
    fn default() -> Self {
        Self {
            path: "data/cifar10".into(),
            limit: None,
            subset_seed: None,
            labels: None,
            exclude_labels: Vec::new(),
        }
    }
}

impl Plugin for Cifar10 {
    type Builds = dyn Dataset;

    fn check(&self) -> Vec<Complaint> {
        self.subset().complaints(10)
    }

    fn build(self, _: &mut Scope) -> anyhow::Result<Box<dyn Dataset>> {
        Ok(Box::new(self.open(&cache_folder()?)?))
    }
}

/// Name of the folder in the archive.
const FOLDER: &str = "cifar-10-batches-bin";
const BATCHES: usize = 5;

const SIZE: usize = 32;
/// Size of a label and an image.
const RECORD: usize = 1 + 3 * SIZE * SIZE;
/// Records read at a time.
const BLOCK: usize = 256;

impl Cifar10 {
    fn open(&self, caches: &Path) -> anyhow::Result<Cached> {
        let folder = [self.path.join(FOLDER), self.path.clone()];
        let [inner, outer] = &folder;
        let folder = if inner.is_dir() { inner } else { outer };
        let mut batches: Vec<_> = (1..=BATCHES)
            .map(|i| PathBuf::from(format!("data_batch_{i}.bin")))
            .filter(|file| folder.join(file).exists())
            .collect();
        if batches.is_empty() {
            // Reading it reports that it is missing.
            batches.push("data_batch_1.bin".into());
        }
        let found = batches.len();
        let train = Part::all(split(caches, folder, "train", batches)?);
        let validation = Part::all(split(caches, folder, "test", vec!["test_batch.bin".into()])?);
        tracing::info!(
            "cifar10: {found} of {BATCHES} batches found in {}: {} training images",
            folder.display(),
            train.points.len()
        );
        Cached::new(self.subset().of(train)?, validation)
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

fn split(caches: &Path, folder: &Path, split: &str, files: Vec<PathBuf>) -> anyhow::Result<Cache> {
    let source = Source {
        name: format!("cifar10-{split}"),
        folder: folder.into(),
        files,
        preprocessing: "cifar10".into(),
        advice: "run `runner fetch cifar10` to download it, or set dataset.path to its folder",
    };
    cache::open(caches, &source, |draft| {
        let files: Vec<_> = source.files.iter().map(|file| folder.join(file)).collect();
        read(&files, draft)
    })
}

fn read(files: &[PathBuf], draft: &Draft) -> anyhow::Result<()> {
    let counts: Vec<_> = files
        .iter()
        .map(|file| records(file))
        .collect::<anyhow::Result<_>>()?;
    let writer = draft.begin(Layout {
        element: Element::U8,
        shape: vec![3, SIZE, SIZE],
        count: counts.iter().sum(),
        labelled: true,
    })?;
    let mut first = 0;
    for (path, count) in files.iter().zip(counts) {
        let reading = || format!("reading {}", path.display());
        let mut file = File::open(path).with_context(reading)?;
        for start in (0..count).step_by(BLOCK) {
            let mut block = vec![0; RECORD * BLOCK.min(count - start)];
            file.read_exact(&mut block).with_context(reading)?;
            let records: Vec<_> = block.chunks(RECORD).collect();
            let labels: Vec<_> = records.iter().map(|record| record[0]).collect();
            if let Some(wrong) = labels.iter().position(|label| *label > 9) {
                bail!(
                    "{}: image {} has the label {}, expected 0 to 9",
                    path.display(),
                    start + wrong,
                    labels[wrong]
                );
            }
            let images: Vec<_> = records.iter().flat_map(|record| &record[1..]).copied().collect();
            writer.put(first + start, &images)?;
            writer.put_labels(first + start, &labels)?;
        }
        first += count;
    }
    writer.finish()
}

/// The number of images in a file.
fn records(path: &Path) -> anyhow::Result<usize> {
    let bytes = path
        .metadata()
        .with_context(|| format!("reading {}", path.display()))?
        .len();
    let record = RECORD as u64;
    ensure!(
        bytes > 0 && bytes.is_multiple_of(record),
        "{} has {bytes} bytes, expected a multiple of {record}: it is truncated, or not a CIFAR-10 batch",
        path.display()
    );
    Ok((bytes / record) as usize)
}

inventory::submit! { Registration::of::<Cifar10>("cifar10") }

inventory::submit! {
    Fetch {
        name: "cifar10",
        how: How::Files {
            base: "https://www.cs.toronto.edu/~kriz/",
            files: &[Remote {
                name: "cifar-10-binary.tar.gz",
                md5: "c32a1d4ab5d03f1284b67883e8d87530",
                bytes: 170_052_171,
                folder: Some(FOLDER),
            }],
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;
    use crate::testing::{byte_sum, bytes, error, labels, shared};

    /// Records whose pixels are ten times their label.
    fn batch(labels: &[u8]) -> Vec<u8> {
        let record = |label: &u8| [vec![*label], vec![10 * label; RECORD - 1]].concat();
        labels.iter().flat_map(record).collect()
    }

    fn cifar10(folder: &Path) -> Cifar10 {
        Cifar10 {
            path: folder.into(),
            ..Cifar10::default()
        }
    }

    #[test]
    fn reads_the_batches_that_exist_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let caches = folder.path().join("cache");
        let inner = folder.path().join(FOLDER);
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("data_batch_4.bin"), batch(&[7; 300])).unwrap();
        fs::write(inner.join("data_batch_2.bin"), batch(&[1, 2])).unwrap();
        fs::write(inner.join("test_batch.bin"), batch(&[9])).unwrap();
        for path in [folder.path(), &inner] {
            let set = cifar10(path).open(&caches).unwrap();
            assert_eq!((set.len(Split::Train), set.len(Split::Validation)), (302, 1));
            assert_eq!(labels(&set, Split::Train)[..3], [1, 2, 7]);
            assert_eq!(bytes(&set, Split::Train, 301), [70; RECORD - 1]);
            assert_eq!(bytes(&set, Split::Validation, 0), [90; RECORD - 1]);
        }
        // One more batch, and the cache is rebuilt.
        fs::write(inner.join("data_batch_1.bin"), batch(&[0])).unwrap();
        assert_eq!(cifar10(&inner).open(&caches).unwrap().len(Split::Train), 303);
    }

    #[test]
    fn truncated_missing_and_other_files_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let attempt = || error(cifar10(folder.path()).open(&folder.path().join("cache")));
        assert!(attempt().contains("runner fetch cifar10"), "{}", attempt());
        let whole = batch(&[3, 4]);
        for (bytes, word) in [
            (&whole[..whole.len() - 1], "truncated"),
            (&[], "truncated"),
            (&batch(&[3, 11]), "image 1 has the label 11"),
        ] {
            fs::write(folder.path().join("data_batch_3.bin"), bytes).unwrap();
            let error = attempt();
            assert!(
                error.contains(word) && error.contains("data_batch_3.bin"),
                "{error}"
            );
        }
    }

    /// Sums, pixels and labels as read by NumPy.
    #[test]
    fn the_shared_files() {
        let Some(folder) = shared("cifar-10-batches-bin") else {
            return;
        };
        let caches = tempfile::tempdir().unwrap();
        let set = cifar10(&folder).open(caches.path()).unwrap();
        assert_eq!((set.len(Split::Train), set.len(Split::Validation)), (5000, 1000));
        assert_eq!(labels(&set, Split::Train)[..10], [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]);
        assert_eq!(byte_sum(&set, Split::Train), 1_850_223_105.0);
        assert_eq!(byte_sum(&set, Split::Validation), 374_560_331.0);
        assert_eq!(bytes(&set, Split::Train, 3)[(32 + 2) * 32 + 3], 41);
    }
}
