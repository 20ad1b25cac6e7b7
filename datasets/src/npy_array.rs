//! Arrays in NumPy's .npy files.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use ebipla_core::cache_folder;
use ebipla_core::prelude::*;

use crate::cache::{self, Cache, Draft, Layout, Source};
use crate::cached::{Cached, Part};
use crate::formats::npy;
use crate::held_out::held_out;
use crate::subset::Subset;

/// Rows of a NumPy array [n, …]: uint8 scaled to [−1, 1], other numbers as float32.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NpyArray {
    /// Path of a .npy file, or of a folder with train.npy and optionally validation.npy.
    path: PathBuf,
    /// Fraction of the points to hold out, spread evenly, if there is no validation.npy. [fraction of all]
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 1.0))]
    validation: f64,
    /// Maximum number of training points; null keeps all. [points]
    #[schemars(range(min = 1))]
    limit: Option<usize>,
    /// Seed of a random choice of `limit` points; null keeps the first ones. [any integer]
    #[schemars(extend("only_with" = "limit"))]
    subset_seed: Option<u64>,
}

impl Default for NpyArray {
    fn default() -> Self {
        Self {
            path: "data/npy".into(),
            validation: 0.1,
            limit: None,
            subset_seed: None,
        }
    }
}

impl Plugin for NpyArray {
    type Builds = dyn Dataset;

    fn build(self, _: &mut Scope) -> anyhow::Result<Box<dyn Dataset>> {
        Ok(Box::new(self.open(&cache_folder()?)?))
    }
}

/// Bytes read at a time.
const BLOCK: usize = 1 << 20;

impl NpyArray {
    fn open(&self, caches: &Path) -> anyhow::Result<Cached> {
        let (train, validation) = match self.path.is_file() {
            true => (self.path.clone(), None),
            false => {
                let validation = Some(self.path.join("validation.npy")).filter(|path| path.exists());
                (self.path.join("train.npy"), validation)
            }
        };
        let train = cached(caches, &train)?;
        let [train, validation] = match validation {
            Some(validation) => [train, cached(caches, &validation)?].map(Part::all),
            None => held_out(train, self.validation),
        };
        let subset = Subset {
            limit: self.limit,
            seed: self.subset_seed,
            ..Subset::default()
        };
        Cached::new(subset.of(train)?, validation)
    }
}

fn cached(caches: &Path, path: &Path) -> anyhow::Result<Cache> {
    let (folder, file) = cache::parts(path);
    let source = Source {
        name: format!("npy-{}", path.file_stem().unwrap_or_default().display()),
        folder,
        files: vec![file],
        preprocessing: "rows".into(),
        advice: "set dataset.path to a .npy file, or to a folder with train.npy and optionally validation.npy",
    };
    cache::open(caches, &source, |draft| {
        read(path, draft).with_context(|| format!("reading {}", path.display()))
    })
}

fn read(path: &Path, draft: &Draft) -> anyhow::Result<()> {
    let mut array = npy::open(path)?;
    let [count, shape @ ..] = &array.dims[..] else {
        anyhow::bail!("the array is a single number");
    };
    ensure!(
        *count > 0 && !shape.is_empty(),
        "the array has the shape {:?}, expected [points, …]",
        array.dims
    );
    let (count, shape) = (*count, shape.to_vec());
    if let Some(conversion) = array.conversion {
        tracing::info!("{}: converting {} to float32", path.display(), conversion.name);
    }
    let layout = Layout {
        element: array.element,
        shape,
        count,
        labelled: false,
    };
    let size = layout.point_bytes();
    let writer = draft.begin(layout)?;
    let most = (BLOCK / size).max(1);
    for first in (0..count).step_by(most) {
        let mut block = vec![0; most.min(count - first) * size];
        array.read(&mut block)?;
        writer.put(first, &block)?;
    }
    writer.finish()
}

inventory::submit! { Registration::of::<NpyArray>("npy") }

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;
    use crate::formats::npy::tests::file;
    use crate::testing::{bytes, error};

    fn open(path: &Path, caches: &Path) -> anyhow::Result<Cached> {
        let set = NpyArray {
            path: path.into(),
            validation: 0.5,
            ..NpyArray::default()
        };
        set.open(caches)
    }

    #[test]
    fn reads_numbers_as_they_are_and_scales_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let (path, caches) = (folder.path().join("train.npy"), folder.path().join("cache"));
        let numbers = [1.5f32, -2.0, 1e30, 0.1];
        fs::write(
            &path,
            file("<f4", "(2, 2)", &numbers.map(f32::to_le_bytes).concat()),
        )
        .unwrap();
        let set = open(&path, &caches).unwrap();
        assert_eq!((set.len(Split::Train), set.len(Split::Validation)), (1, 1));
        let rows = [Split::Train, Split::Validation].map(|split| {
            let row = set.get(split, &Tensor::from_slice(&[0i64])).unwrap();
            Vec::<f32>::try_from(row.view(2)).unwrap()
        });
        assert_eq!(rows.concat(), numbers);

        fs::write(&path, file("|u1", "(4, 1, 2)", &[0, 255, 2, 3, 4, 5, 6, 7])).unwrap();
        fs::write(
            folder.path().join("validation.npy"),
            file("|u1", "(1, 1, 2)", &[9, 8]),
        )
        .unwrap();
        let set = open(folder.path(), &caches).unwrap();
        assert_eq!((set.len(Split::Train), set.len(Split::Validation)), (4, 1));
        assert_eq!(set.shape(), [1, 2]);
        assert_eq!(bytes(&set, Split::Train, 0), [0, 255]);
        assert_eq!(bytes(&set, Split::Validation, 0), [9, 8]);
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let caches = folder.path().join("cache");
        let attempt = || error(open(folder.path(), &caches));
        assert!(attempt().contains("train.npy is missing"), "{}", attempt());
        for (shape, data, word) in [
            ("()", 1, "single number"),
            ("(3,)", 3, "[3], expected [points, …]"),
            ("(0, 2)", 0, "[0, 2], expected"),
            ("(2, 0)", 0, "empty"),
            ("(1, 1, 1, 1, 1, 1, 1, 1, 1, 1)", 1, "9 dimensions"),
        ] {
            fs::write(
                folder.path().join("train.npy"),
                file("|u1", shape, &vec![0; data]),
            )
            .unwrap();
            let error = attempt();
            assert!(
                error.contains(word) && error.contains("train.npy"),
                "no `{word}` in: {error}"
            );
        }
        fs::write(folder.path().join("train.npy"), file("|u1", "(2, 3)", &[0; 6])).unwrap();
        fs::write(
            folder.path().join("validation.npy"),
            file("|u1", "(2, 2)", &[0; 4]),
        )
        .unwrap();
        let error = attempt();
        assert!(error.contains("[3], validation points [2]"), "{error}");
    }
}
