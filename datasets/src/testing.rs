//! Small files and caches for tests.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use ebipla_core::prelude::*;

#[path = "../../tests/support/skip.rs"]
mod skip;

use skip::skip;

use crate::cache::{self, Cache, Element, Layout, Source};

/// A cache of points of one byte each, optionally with labels.
pub fn cache(bytes: &[u8], labels: &[u8]) -> Cache {
    let folder = tempfile::tempdir().unwrap();
    let source = Source {
        name: "test".into(),
        folder: folder.path().into(),
        files: Vec::new(),
        preprocessing: String::new(),
        advice: "",
    };
    let layout = Layout {
        element: Element::U8,
        shape: vec![1],
        count: bytes.len(),
        labelled: !labels.is_empty(),
    };
    // The map outlives the folder's name.
    cache::open(&folder.path().join("cache"), &source, |draft| {
        let writer = draft.begin(layout)?;
        writer.put(0, bytes)?;
        if !labels.is_empty() {
            writer.put_labels(0, labels)?;
        }
        writer.finish()
    })
    .unwrap()
}

/// The labels of a split.
pub fn labels(dataset: &dyn Dataset, split: Split) -> Vec<i64> {
    Vec::try_from(dataset.labels(split).unwrap()).unwrap()
}

/// The bytes of point number `i`, in the order of its tensor.
pub fn bytes(dataset: &dyn Dataset, split: Split, i: i64) -> Vec<u8> {
    let point = dataset.get(split, &Tensor::from_slice(&[i])).unwrap();
    let values = Vec::<f32>::try_from(point.flatten(0, -1)).unwrap();
    values
        .into_iter()
        .map(|value| {
            let byte = ((value + 1.0) * 127.5).round() as u8;
            assert_eq!(f32::from(byte) / 127.5 - 1.0, value, "not a byte");
            byte
        })
        .collect()
}

/// The sum of all bytes of a split.
pub fn byte_sum(dataset: &dyn Dataset, split: Split) -> f64 {
    let points = dataset.first(split, usize::MAX).unwrap();
    let bytes = ((points + 1.0) * 127.5).round();
    bytes.sum(tch::Kind::Double).double_value(&[])
}

/// The error with all its causes.
pub fn error<T>(result: anyhow::Result<T>) -> String {
    format!("{:#}", result.err().expect("an error"))
}

/// A folder of the shared data; reports a skip if it is missing.
pub fn shared(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("EBIPLA_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
        PathBuf::from,
    );
    let folder = root.join("data").join(name);
    if !folder.is_dir() {
        skip(&format!("{} is missing", folder.display()));
        return None;
    }
    Some(folder)
}
