//! Arrays in HDF5 files.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use ebipla_core::cache_folder;
use ebipla_core::prelude::*;
use hdf5::types::{FloatSize, IntSize, TypeDescriptor};
use hdf5::{H5Type, Hyperslab, SliceOrIndex};
use indicatif::BinaryBytes;
use ndarray::IxDyn;

use crate::cache::{self, Cache, Draft, Element, Layout, Source};
use crate::cached::{Cached, Part};
use crate::held_out::held_out;
use crate::subset::Subset;

/// Rows of an array [n, …] in an HDF5 file: uint8 scaled to [−1, 1], or float32 as it is.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Hdf5Array {
    /// Path of the file.
    path: PathBuf,
    /// Name of the array with the training points.
    train: String,
    /// Name of the array with the validation points; null holds out a fraction of the training points.
    validation: Option<String>,
    /// Fraction of the points to hold out, spread evenly. [fraction of all]
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 1.0, "only_with" = "validation=null"))]
    held_out: f64,
    /// Maximum number of training points; null keeps all. [points]
    #[schemars(range(min = 1))]
    limit: Option<usize>,
    /// Seed of a random choice of `limit` points; null keeps the first ones. [any integer]
    #[schemars(extend("only_with" = "limit"))]
    subset_seed: Option<u64>,
}

impl Default for Hdf5Array {
    fn default() -> Self {
        Self {
            path: "data/hdf5/data.h5".into(),
            train: "train".into(),
            validation: None,
            held_out: 0.1,
            limit: None,
            subset_seed: None,
        }
    }
}

impl Plugin for Hdf5Array {
    type Builds = dyn Dataset;

    fn build(self, _: &mut Scope) -> anyhow::Result<Box<dyn Dataset>> {
        Ok(Box::new(self.open(&cache_folder()?)?))
    }
}

/// Bytes read at a time.
const BLOCK: usize = 4 << 20;
/// HDF5 holds whole chunks in memory.
const LARGEST_CHUNK: u64 = 256 << 20;

impl Hdf5Array {
    fn open(&self, caches: &Path) -> anyhow::Result<Cached> {
        let train = self.cached(caches, &self.train)?;
        let [train, validation] = match &self.validation {
            Some(name) => [train, self.cached(caches, name)?].map(Part::all),
            None => held_out(train, self.held_out),
        };
        let subset = Subset {
            limit: self.limit,
            seed: self.subset_seed,
            ..Subset::default()
        };
        Cached::new(subset.of(train)?, validation)
    }

    fn cached(&self, caches: &Path, name: &str) -> anyhow::Result<Cache> {
        let path = &self.path;
        let (folder, file) = cache::parts(path);
        let source = Source {
            name: format!("hdf5-{}", path.file_stem().unwrap_or_default().display()),
            folder,
            files: vec![file],
            preprocessing: format!("rows of {name}"),
            advice: "set dataset.path to an HDF5 file",
        };
        cache::open(caches, &source, |draft| {
            read(path, name, draft).with_context(|| format!("reading `{name}` of {}", path.display()))
        })
    }
}

fn read(path: &Path, name: &str, draft: &Draft) -> anyhow::Result<()> {
    let file = hdf5::FileBuilder::new()
        .with_fapl(|access| access.file_locking(false))
        .open(path)
        .context("this is not an HDF5 file, or it is damaged")?;
    let Ok(array) = file.dataset(name) else {
        let mut names = file.member_names().unwrap_or_default();
        names.sort();
        bail!("the array does not exist; the file has {}", names.join(", "));
    };
    let element = match array.dtype()?.to_descriptor()? {
        TypeDescriptor::Unsigned(IntSize::U1) => Element::U8,
        TypeDescriptor::Float(FloatSize::U4) => Element::F32,
        other => bail!("numbers of type {other}, expected uint8 or float32"),
    };
    let dims = array.shape();
    let (count, shape) = match &dims[..] {
        [count, shape @ ..] if *count > 0 && !shape.is_empty() => (*count, shape.to_vec()),
        _ => bail!("the array has the shape {dims:?}, expected [points, …]"),
    };
    if let Some(chunk) = array.chunk() {
        let bytes = chunk.iter().fold(element.bytes() as u64, |bytes, size| {
            bytes.saturating_mul(*size as u64)
        });
        ensure!(
            bytes <= LARGEST_CHUNK,
            "the array has chunks of {}, expected at most {}",
            BinaryBytes(bytes),
            BinaryBytes(LARGEST_CHUNK)
        );
    }
    let layout = Layout {
        element,
        shape,
        count,
        labelled: false,
    };
    // Also ensures that the size of a point does not overflow.
    let writer = draft.begin(layout.clone())?;
    let most = (BLOCK / layout.point_bytes()).max(1);
    for first in (0..count).step_by(most) {
        let points = first..count.min(first + most);
        let mut block = vec![SliceOrIndex::from(points)];
        block.resize_with(dims.len(), || SliceOrIndex::from(..));
        let block = Hyperslab::from(block);
        let bytes = match element {
            Element::U8 => slice::<u8>(&array, block)?,
            Element::F32 => slice::<f32>(&array, block)?
                .into_iter()
                .flat_map(f32::to_le_bytes)
                .collect(),
        };
        writer.put(first, &bytes)?;
    }
    writer.finish()
}

fn slice<T: H5Type>(array: &hdf5::Dataset, block: Hyperslab) -> anyhow::Result<Vec<T>> {
    let values = array
        .read_slice::<T, _, IxDyn>(block)
        .context("the file is damaged")?;
    Ok(values.into_raw_vec_and_offset().0)
}

inventory::submit! { Registration::of::<Hdf5Array>("hdf5") }

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use ndarray::{Array2, Array4, ArrayD};

    use super::*;
    use crate::testing::{bytes, error};

    fn array(path: &Path) -> Hdf5Array {
        Hdf5Array {
            path: path.into(),
            held_out: 0.25,
            ..Hdf5Array::default()
        }
    }

    #[test]
    fn reads_numbers_as_they_are_and_scales_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let (path, caches) = (folder.path().join("a.h5"), folder.path().join("cache"));
        let numbers = Array2::from_shape_fn((40, 3), |(i, j)| i as f32 * 0.5 - j as f32);
        let images = Array4::from_shape_fn((5, 1, 2, 2), |(i, _, y, x)| (100 * i / 2 + 10 * y + x) as u8);
        let file = hdf5::File::create(&path).unwrap();
        let train = file
            .new_dataset::<f32>()
            .shape((40, 3))
            .chunk((7, 2))
            .deflate(3)
            .create("train")
            .unwrap();
        train.write(&numbers).unwrap();
        drop(train);
        file.new_dataset_builder()
            .with_data(&images)
            .create("images")
            .unwrap();
        file.close().unwrap();

        let set = array(&path).open(&caches).unwrap();
        assert_eq!((set.len(Split::Train), set.len(Split::Validation)), (30, 10));
        let rows = set.first(Split::Validation, 2).unwrap();
        let rows = Vec::<f32>::try_from(rows.view(6)).unwrap();
        assert_eq!(rows, [1.5, 0.5, -0.5, 3.5, 2.5, 1.5], "rows 3 and 7");

        let set = Hdf5Array {
            train: "images".into(),
            validation: Some("images".into()),
            limit: Some(4),
            ..array(&path)
        };
        let set = set.open(&caches).unwrap();
        assert_eq!((set.len(Split::Train), set.len(Split::Validation)), (4, 5));
        assert_eq!(bytes(&set, Split::Validation, 3), [150, 151, 160, 161]);
    }

    #[test]
    fn unreadable_arrays_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let (path, caches) = (folder.path().join("a.h5"), folder.path().join("cache"));
        let attempt = |name: &str| {
            let set = Hdf5Array {
                train: name.into(),
                ..array(&path)
            };
            error(set.open(&caches))
        };
        assert!(
            attempt("train").contains("a.h5 is missing"),
            "{}",
            attempt("train")
        );
        fs::write(&path, "not HDF5").unwrap();
        assert!(
            attempt("train").contains("not an HDF5 file"),
            "{}",
            attempt("train")
        );

        let file = hdf5::File::create(&path).unwrap();
        let doubles = ArrayD::<f64>::zeros(vec![2, 2]);
        file.new_dataset_builder()
            .with_data(&doubles)
            .create("doubles")
            .unwrap();
        file.new_dataset::<u8>().shape(5).create("flat").unwrap();
        file.new_dataset::<u8>()
            .shape((1 << 20, 1 << 20))
            .chunk((1 << 20, 1 << 10))
            .create("huge_chunks")
            .unwrap();
        file.new_dataset::<u8>()
            .shape((1 << 40, 1 << 10))
            .chunk((1, 1 << 10))
            .create("huge")
            .unwrap();
        file.close().unwrap();
        for (name, word) in [
            ("doubles", "expected uint8 or float32"),
            ("flat", "[5], expected [points, …]"),
            ("huge_chunks", "chunks of 1.00 GiB"),
            ("huge", "free there"),
            ("other", "the file has doubles, flat, huge, huge_chunks"),
        ] {
            let error = attempt(name);
            assert!(
                error.contains(word) && error.contains("a.h5"),
                "no `{word}` in: {error}"
            );
        }
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        assert!(attempt("doubles").contains("damaged"), "{}", attempt("doubles"));
    }
}
