//! Tensors reused from one gradient to the next, since all gradients of a chain have the same sizes.

use ebipla_core::prelude::*;

/// Buffers for a forward and backward pass of n points through the hidden layers.
pub struct Buffers {
    /// Each hidden layer before its activation.
    pub before_activation: Vec<Tensor>,
    /// Input of a layer: features in the forward pass, gradients in the backward pass.
    pub given: Tensor,
    /// Gradients before the activation's derivative is applied.
    pub upstream: Tensor,
}

impl Buffers {
    pub fn new(x: &Tensor, layers: usize, hidden: i64) -> Self {
        let empty = || Tensor::empty([x.size()[0], hidden], (x.kind(), x.device()));
        Self {
            before_activation: (0..layers).map(|_| empty()).collect(),
            given: empty(),
            upstream: empty(),
        }
    }

    /// Whether it fits points like `x`.
    pub fn fit(&self, x: &Tensor) -> bool {
        self.given.size()[0] == x.size()[0]
            && self.given.kind() == x.kind()
            && self.given.device() == x.device()
    }
}
