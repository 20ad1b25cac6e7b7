//! A data set held in memory.

use ebipla_core::prelude::*;

use crate::gather::gather;

/// Training and validation points held in memory.
pub struct InMemory {
    shape: Vec<i64>,
    train: Points,
    validation: Points,
    log_density: Option<LogDensity>,
}

/// The log-density of the points' distribution at each row.
pub type LogDensity = Box<dyn Fn(&Tensor) -> Tensor + Send + Sync>;

/// Plain numbers, since tensors must not be used from two threads at once.
struct Points {
    count: usize,
    values: Vec<f32>,
}

impl InMemory {
    /// Both tensors have one row per point.
    pub fn new(train: Tensor, validation: Tensor, log_density: Option<LogDensity>) -> Self {
        Self {
            shape: train.size()[1..].to_vec(),
            train: Points::of(&train),
            validation: Points::of(&validation),
            log_density,
        }
    }

    fn split(&self, split: Split) -> &Points {
        match split {
            Split::Train => &self.train,
            Split::Validation => &self.validation,
        }
    }
}

impl Points {
    fn of(rows: &Tensor) -> Self {
        let mut values = vec![0f32; rows.numel()];
        rows.contiguous().copy_data(&mut values, rows.numel());
        Self {
            count: rows.size()[0] as usize,
            values,
        }
    }
}

impl Dataset for InMemory {
    fn shape(&self) -> &[i64] {
        &self.shape
    }

    fn len(&self, split: Split) -> usize {
        self.split(split).count
    }

    fn get(&self, split: Split, indices: &Tensor) -> anyhow::Result<Tensor> {
        let points = self.split(split);
        gather(indices, points.count, &self.shape, |i, row| {
            row.copy_from_slice(&points.values[i * row.len()..][..row.len()]);
        })
    }

    fn log_density(&self, y: &Tensor) -> Option<Tensor> {
        self.log_density.as_ref().map(|log_density| log_density(y))
    }
}
