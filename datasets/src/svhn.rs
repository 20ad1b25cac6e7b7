//! Street View House Numbers, from the MATLAB files.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use ebipla_core::cache_folder;
use ebipla_core::fetch::{Fetch, How, Remote};
use ebipla_core::prelude::*;

use crate::cache::{self, Cache, Draft, Element, Layout, Source};
use crate::cached::{Cached, Part};
use crate::formats::mat;
use crate::subset::Subset;

/// Street View House Numbers: 32×32 colour images of digits; validation is its test set.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Svhn {
    /// Folder with train_32x32.mat and test_32x32.mat.
    path: PathBuf,
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

impl Default for Svhn {
    fn default() -> Self {
        Self {
            path: "data/svhn".into(),
            limit: None,
            subset_seed: None,
            labels: None,
            exclude_labels: Vec::new(),
        }
    }
}

impl Plugin for Svhn {
    type Builds = dyn Dataset;

    fn check(&self) -> Vec<Complaint> {
        self.subset().complaints(10)
    }

    fn build(self, _: &mut Scope) -> anyhow::Result<Box<dyn Dataset>> {
        Ok(Box::new(self.open(&cache_folder()?)?))
    }
}

const SIZE: usize = 32;
const IMAGE: usize = 3 * SIZE * SIZE;

impl Svhn {
    fn open(&self, caches: &Path) -> anyhow::Result<Cached> {
        let train = Part::all(self.split(caches, "train")?);
        let validation = Part::all(self.split(caches, "test")?);
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

    fn split(&self, caches: &Path, split: &str) -> anyhow::Result<Cache> {
        let file = format!("{split}_32x32.mat");
        let source = Source {
            name: format!("svhn-{split}"),
            folder: self.path.clone(),
            files: vec![file.clone().into()],
            preprocessing: "svhn".into(),
            advice: "run `runner fetch svhn` to download it, or set dataset.path to its folder",
        };
        let path = self.path.join(file);
        cache::open(caches, &source, |draft| {
            read(&path, draft).with_context(|| format!("reading {}", path.display()))
        })
    }
}

fn read(path: &Path, draft: &Draft) -> anyhow::Result<()> {
    let mut images = mat::array(path, "X")?;
    let [SIZE, SIZE, 3, count] = images.dims[..] else {
        anyhow::bail!(
            "`X` has the shape {:?}, expected 32 × 32 × 3 × images",
            images.dims
        );
    };
    let labels = labels(path, count)?;
    let writer = draft.begin(Layout {
        element: Element::U8,
        shape: vec![3, SIZE, SIZE],
        count,
        labelled: true,
    })?;
    let (mut columns, mut rows) = (vec![0; IMAGE], vec![0; IMAGE]);
    for i in 0..count {
        images.read(&mut columns)?;
        transpose(&columns, &mut rows);
        writer.put(i, &rows)?;
    }
    images.end()?;
    writer.put_labels(0, &labels)?;
    writer.finish()
}

/// MATLAB stores the columns of each channel one after another.
fn transpose(columns: &[u8], rows: &mut [u8]) {
    for (from, to) in columns.chunks(SIZE * SIZE).zip(rows.chunks_mut(SIZE * SIZE)) {
        for (i, value) in to.iter_mut().enumerate() {
            *value = from[i % SIZE * SIZE + i / SIZE];
        }
    }
}

/// The digits; the files store 0 as 10.
fn labels(path: &Path, count: usize) -> anyhow::Result<Vec<u8>> {
    let mut array = mat::array(path, "y")?;
    let found = array.dims.iter().product::<usize>();
    ensure!(found == count, "there are {count} images, but {found} labels");
    let mut labels = Vec::new();
    for i in 0..count {
        let label = array.next_number()?;
        ensure!(
            (0.0..=10.0).contains(&label) && label.fract() == 0.0,
            "image {i} has the label {label}, expected 1 to 10"
        );
        labels.push(label as u8 % 10);
    }
    array.end()?;
    Ok(labels)
}

inventory::submit! { Registration::of::<Svhn>("svhn") }

inventory::submit! {
    Fetch {
        name: "svhn",
        how: How::Files {
            base: "http://ufldl.stanford.edu/housenumbers/",
            files: &[
                Remote {
                    name: "train_32x32.mat",
                    md5: "e26dedcc434d2e4c54c9b2d4a06d8373",
                    bytes: 182_040_794,
                    folder: None,
                },
                Remote {
                    name: "test_32x32.mat",
                    md5: "eb5a983be6a315427106f1b164d9cef3",
                    bytes: 64_275_384,
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
    use crate::formats::mat::tests::{compressed, header, matrix_of};
    use crate::testing::{byte_sum, bytes, error, labels, shared};

    /// Image i has the byte 100·channel + 3·row + column + i at each pixel.
    fn images(count: usize) -> Vec<u8> {
        let mut all = Vec::new();
        for i in 0..count {
            for channel in 0..3 {
                for column in 0..SIZE {
                    all.extend((0..SIZE).map(|row| (100 * channel + 3 * row + column + i) as u8));
                }
            }
        }
        all
    }

    fn file(count: i32, labels: &[u8]) -> Vec<u8> {
        let x = matrix_of("X", &[32, 32, 3, count], 2, &images(labels.len()));
        let y = matrix_of("y", &[labels.len() as i32, 1], 2, labels);
        [header(), compressed(&x), compressed(&y)].concat()
    }

    fn svhn(folder: &Path) -> Svhn {
        Svhn {
            path: folder.into(),
            ..Svhn::default()
        }
    }

    #[test]
    fn reads_rows_columns_and_digits() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("train_32x32.mat"), file(4, &[10, 1, 9, 1])).unwrap();
        fs::write(folder.path().join("test_32x32.mat"), file(2, &[3, 10])).unwrap();
        let set = svhn(folder.path()).open(&folder.path().join("cache")).unwrap();
        assert_eq!(set.shape(), [3, 32, 32]);
        assert_eq!(labels(&set, Split::Train), [0, 1, 9, 1]);
        assert_eq!(labels(&set, Split::Validation), [3, 0]);
        let image = bytes(&set, Split::Train, 3);
        for (channel, row, column) in [(0, 0, 0), (0, 5, 7), (1, 31, 2), (2, 7, 5)] {
            let found = image[(channel * 32 + row) * 32 + column];
            assert_eq!(found, (100 * channel + 3 * row + column + 3) as u8);
        }
        let held_out = Svhn {
            exclude_labels: vec![1],
            ..svhn(folder.path())
        };
        let set = held_out.open(&folder.path().join("cache")).unwrap();
        assert_eq!(labels(&set, Split::Train), [0, 9]);
        assert_eq!(bytes(&set, Split::Train, 1), bytes(&set, Split::Train, 1));
        assert_eq!(set.len(Split::Validation), 2);
        assert!(set.get(Split::Train, &Tensor::from_slice(&[2i64])).is_err());
        assert!(set.get(Split::Train, &Tensor::from_slice(&[-1i64])).is_err());
    }

    #[test]
    fn files_that_are_not_svhn_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train_32x32.mat");
        let attempt = || error(svhn(folder.path()).open(&folder.path().join("cache")));
        assert!(attempt().contains("runner fetch svhn"), "{}", attempt());
        let gray = matrix_of("X", &[32, 32, 2], 2, &[0; 2048]);
        let mut truncated = file(3, &[1, 2, 3]);
        truncated.truncate(truncated.len() / 2);
        for (bytes, word) in [
            ([header(), gray].concat(), "expected 32 × 32 × 3"),
            (file(5, &[1, 2, 3]), "do not fit"),
            (file(3, &[1, 2, 11]), "label 11"),
            (truncated, "truncated"),
        ] {
            fs::write(&path, bytes).unwrap();
            let error = attempt();
            assert!(
                error.contains(word) && error.contains("train_32x32.mat"),
                "{error}"
            );
        }
    }

    /// Sums, pixels and labels as read by SciPy.
    #[test]
    fn the_shared_files() {
        let Some(folder) = shared("svhn") else { return };
        let caches = tempfile::tempdir().unwrap();
        let set = svhn(&folder).open(caches.path()).unwrap();
        assert_eq!((set.len(Split::Train), set.len(Split::Validation)), (9000, 1000));
        assert_eq!(labels(&set, Split::Train)[..10], [5, 2, 1, 0, 6, 1, 9, 1, 1, 8]);
        assert_eq!(byte_sum(&set, Split::Train), 3_246_380_236.0);
        assert_eq!(byte_sum(&set, Split::Validation), 351_221_189.0);
        let image = bytes(&set, Split::Train, 7);
        let weighted: usize = image
            .iter()
            .enumerate()
            .map(|(i, byte)| i * usize::from(*byte))
            .sum();
        assert_eq!(weighted, 366_076_523);
        let ones = Svhn {
            labels: Some(vec![1]),
            ..svhn(&folder)
        };
        assert_eq!(ones.open(caches.path()).unwrap().len(Split::Train), 1751);
    }
}
