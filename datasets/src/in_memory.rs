//! A data set that is two tensors.

use ebipla_framework::prelude::*;

/// Training and validation points held in memory.
pub struct InMemory {
    shape: Vec<i64>,
    train: Tensor,
    validation: Tensor,
    log_density: Option<LogDensity>,
}

/// The log-density of the points' distribution at each row.
pub type LogDensity = Box<dyn Fn(&Tensor) -> Tensor>;

impl InMemory {
    /// Both tensors have one row per point.
    pub fn new(train: Tensor, validation: Tensor, log_density: Option<LogDensity>) -> Self {
        Self {
            shape: train.size()[1..].to_vec(),
            train,
            validation,
            log_density,
        }
    }

    fn split(&self, split: Split) -> &Tensor {
        match split {
            Split::Train => &self.train,
            Split::Validation => &self.validation,
        }
    }
}

impl Dataset for InMemory {
    fn shape(&self) -> &[i64] {
        &self.shape
    }

    fn len(&self, split: Split) -> usize {
        self.split(split).size()[0] as usize
    }

    fn get(&self, split: Split, indices: &Tensor) -> anyhow::Result<Tensor> {
        Ok(self.split(split).f_index_select(0, indices)?)
    }

    fn log_density(&self, y: &Tensor) -> Option<Tensor> {
        self.log_density.as_ref().map(|log_density| log_density(y))
    }
}
