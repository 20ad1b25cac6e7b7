//! A data set whose points are stored in caches.

use std::sync::Arc;

use anyhow::ensure;
use ebipla_core::prelude::*;

use crate::cache::Cache;
use crate::gather::gather;

/// Training and validation points, each a selection from a cache.
pub struct Cached {
    shape: Vec<i64>,
    train: Part,
    validation: Part,
}

/// Some points of a cache, in this order.
pub struct Part {
    pub cache: Arc<Cache>,
    pub points: Vec<usize>,
}

impl Part {
    /// Every point of a cache.
    pub fn all(cache: Cache) -> Self {
        Self {
            points: (0..cache.len()).collect(),
            cache: Arc::new(cache),
        }
    }
}

impl Cached {
    /// Checks that points of both parts have the same shape.
    pub fn new(train: Part, validation: Part) -> anyhow::Result<Self> {
        let [shape, other] = [&train, &validation].map(|part| &part.cache.layout().shape);
        ensure!(
            shape == other,
            "training points have the shape {shape:?}, validation points {other:?}"
        );
        Ok(Self {
            shape: shape.iter().map(|size| *size as i64).collect(),
            train,
            validation,
        })
    }

    fn part(&self, split: Split) -> &Part {
        match split {
            Split::Train => &self.train,
            Split::Validation => &self.validation,
        }
    }
}

impl Dataset for Cached {
    fn shape(&self) -> &[i64] {
        &self.shape
    }

    fn len(&self, split: Split) -> usize {
        self.part(split).points.len()
    }

    fn get(&self, split: Split, indices: &Tensor) -> anyhow::Result<Tensor> {
        let Part { cache, points } = self.part(split);
        gather(indices, points.len(), &self.shape, |i, row| {
            cache.read(points[i], row)
        })
    }

    fn labels(&self, split: Split) -> Option<Tensor> {
        let Part { cache, points } = self.part(split);
        let labels = cache.labels()?;
        let labels: Vec<_> = points.iter().map(|i| i64::from(labels[*i])).collect();
        Some(Tensor::from_slice(&labels))
    }

    fn identity(&self, split: Split) -> Option<String> {
        Some(self.part(split).cache.identity())
    }
}
