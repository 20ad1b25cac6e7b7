//! Counts how many gradients a model has been asked for, the currency in which algorithms are compared.

use std::cell::Cell;

/// How often a row of latents went through each network forth and back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GradientCount {
    pub energy: u64,
    pub generator: u64,
    /// Of those, rows at which both networks also gave the gradients of their parameters.
    pub with_parameters: u64,
}

impl GradientCount {
    /// What has come since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            energy: self.energy - earlier.energy,
            generator: self.generator - earlier.generator,
            with_parameters: self.with_parameters - earlier.with_parameters,
        }
    }
}

/// A count that goes up while the model is only looked at.
#[derive(Debug, Default)]
pub struct GradientCounter(Cell<GradientCount>);

impl GradientCounter {
    pub fn add(&self, more: GradientCount) {
        let count = self.0.get();
        self.0.set(GradientCount {
            energy: count.energy + more.energy,
            generator: count.generator + more.generator,
            with_parameters: count.with_parameters + more.with_parameters,
        });
    }

    pub fn get(&self) -> GradientCount {
        self.0.get()
    }
}
