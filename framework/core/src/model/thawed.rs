//! Shows a frozen energy to samplers as an energy.

use std::cell::{RefCell, RefMut};

use tch::{Kind, Tensor};

use super::{Energy, FrozenEnergy, Parameters};
use crate::system::interruption_point;

/// A frozen energy as samplers know energies, for one thread.
pub(crate) struct Thawed<'a> {
    frozen: &'a dyn FrozenEnergy,
    /// It is not trained.
    parameters: Parameters,
    buffers: RefCell<Buffers>,
}

/// Kept from one evaluation to the next.
#[derive(Default)]
struct Buffers {
    points: Vec<f32>,
    values: Vec<f32>,
    gradients: Vec<f32>,
}

impl<'a> Thawed<'a> {
    pub fn new(frozen: &'a dyn FrozenEnergy) -> Self {
        Self {
            frozen,
            parameters: Parameters::new(),
            buffers: RefCell::default(),
        }
    }
}

impl Thawed<'_> {
    fn evaluate(&self, x: &Tensor) -> RefMut<'_, Buffers> {
        interruption_point();
        let mut all = self.buffers.borrow_mut();
        let Buffers {
            points,
            values,
            gradients,
        } = &mut *all;
        points.resize(x.numel(), 0.0);
        gradients.resize(x.numel(), 0.0);
        values.resize(x.size()[0] as usize, 0.0);
        x.to_kind(Kind::Float).contiguous().copy_data(points, x.numel());
        self.frozen.evaluate(points, values, gradients);
        all
    }
}

impl Energy for Thawed<'_> {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn energy(&self, x: &Tensor) -> Tensor {
        Tensor::from_slice(&self.evaluate(x).values).to_kind(x.kind())
    }

    fn value_and_gradient(&self, x: &Tensor) -> (Tensor, Tensor) {
        let found = self.evaluate(x);
        let tensor = |numbers: &[f32]| Tensor::from_slice(numbers).to_kind(x.kind());
        (tensor(&found.values), tensor(&found.gradients).view_as(x))
    }

    fn gradient(&self, x: &Tensor) -> Tensor {
        let found = self.evaluate(x);
        Tensor::from_slice(&found.gradients).to_kind(x.kind()).view_as(x)
    }
}
