//! Fashion-MNIST: images of clothes in MNIST's file format.

use std::path::{Path, PathBuf};

use ebipla_core::cache_folder;
use ebipla_core::fetch::{Fetch, How, Remote};
use ebipla_core::prelude::*;

use crate::cached::Cached;
use crate::mnist::{IdxFiles, SIZE};
use crate::subset::Subset;

/// Fashion-MNIST: 28×28 grey images of clothes; validation is its test set.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FashionMnist {
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
    /// Classes to train on, from 0 (T-shirt) to 9 (ankle boot); null uses all.
    labels: Option<Vec<u8>>,
    /// Classes to leave out of training.
    exclude_labels: Vec<u8>,
}

impl Default for FashionMnist {
    fn default() -> Self {
        Self {
            path: "data/fashion_mnist".into(),
            image_size: SIZE,
            limit: None,
            subset_seed: None,
            labels: None,
            exclude_labels: Vec::new(),
        }
    }
}

impl Plugin for FashionMnist {
    type Builds = dyn Dataset;

    fn check(&self) -> Vec<Complaint> {
        self.subset().complaints(10)
    }

    fn build(self, _: &mut Scope) -> anyhow::Result<Box<dyn Dataset>> {
        Ok(Box::new(self.open(&cache_folder()?)?))
    }
}

impl FashionMnist {
    fn open(&self, caches: &Path) -> anyhow::Result<Cached> {
        let files = IdxFiles {
            name: "fashion_mnist",
            folder: &self.path,
            image_size: self.image_size,
            advice: "run `runner fetch fashion_mnist` to download it, or set dataset.path to its folder",
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

inventory::submit! { Registration::of::<FashionMnist>("fashion_mnist") }

inventory::submit! {
    Fetch {
        name: "fashion_mnist",
        how: How::Files {
            base: "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            files: &[
                Remote {
                    name: "train-images-idx3-ubyte.gz",
                    md5: "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
                    bytes: 26_421_880,
                    folder: None,
                },
                Remote {
                    name: "train-labels-idx1-ubyte.gz",
                    md5: "25c81989df183df01b3e8a0aad5dffbe",
                    bytes: 29_515,
                    folder: None,
                },
                Remote {
                    name: "t10k-images-idx3-ubyte.gz",
                    md5: "bef4ecab320f06d8554ea6380940ec79",
                    bytes: 4_422_102,
                    folder: None,
                },
                Remote {
                    name: "t10k-labels-idx1-ubyte.gz",
                    md5: "bb300cfdad3c16e7a12a480ee83cd310",
                    bytes: 5_148,
                    folder: None,
                },
            ],
        },
    }
}
