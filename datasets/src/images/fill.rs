//! Decodes many images into a cache, on all cores.

use std::path::Path;

use anyhow::Context;
use rayon::prelude::*;

use super::decode::{Shape, decode};
use crate::cache::{self, Cache, Element, Layout, Source};

/// Fills the cache of the images that `source` lists. Each thread holds one image at a time.
pub fn open(caches: &Path, source: &Source, shape: Shape) -> anyhow::Result<Cache> {
    cache::open(caches, source, |draft| {
        let writer = draft.begin(Layout {
            element: Element::U8,
            shape: vec![shape.channels, shape.size as usize, shape.size as usize],
            count: source.files.len(),
            labelled: false,
        })?;
        source
            .files
            .par_iter()
            .enumerate()
            .try_for_each(|(i, file)| writer.put(i, &decode(&source.folder.join(file), shape)?))
            .context("replace or remove the damaged image")?;
        writer.finish()
    })
}
