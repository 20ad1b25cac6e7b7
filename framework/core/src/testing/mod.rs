//! For tests of the framework: a model of which only the shapes matter, and damaged files.
#![allow(clippy::unwrap_used)]

pub mod fuzzing;

use tch::Tensor;

use crate::{Energy, Generator, Model, Parameters};

/// Two latent dimensions, no parameters, and a generator that changes nothing.
struct Nothing(Parameters);

impl Energy for Nothing {
    fn parameters(&self) -> &Parameters {
        &self.0
    }

    fn energy(&self, x: &Tensor) -> Tensor {
        x.sum_dim_intlist(1, false, x.kind())
    }
}

impl Generator for Nothing {
    fn parameters(&self) -> &Parameters {
        &self.0
    }

    fn latent_dim(&self) -> i64 {
        2
    }

    fn generate(&self, x: &Tensor) -> Tensor {
        x.shallow_clone()
    }
}

/// The model, with this σ.
pub fn model(sigma: f64) -> Model {
    Model::new(
        Box::new(Nothing(Parameters::new())),
        Box::new(Nothing(Parameters::new())),
        sigma,
    )
}
