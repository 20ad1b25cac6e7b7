//! Tensors that one gradient leaves to the next, since all of a chain's have the same sizes.

use ebipla_core::prelude::*;

/// Room for a pass of so many points through the hidden layers and back.
pub struct Buffers {
    /// Each hidden layer before its activation.
    pub before_activation: Vec<Tensor>,
    /// What a layer is given: features on the way forth, gradients on the way back.
    pub given: Tensor,
    /// Gradients before they have gone through an activation.
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

    /// Whether points like `x` can use it.
    pub fn fit(&self, x: &Tensor) -> bool {
        self.given.size()[0] == x.size()[0]
            && self.given.kind() == x.kind()
            && self.given.device() == x.device()
    }
}
