//! A perceptron at fixed parameters, for the many evaluations of a chain on the CPU.

use ebipla_core::FrozenEnergy;
use ebipla_core::prelude::*;
use tch::{Device, Kind};

use super::MlpEnergy;
use super::tiles::{Network, Weights, instructions};
use crate::linear_layer::LinearLayer;

/// The weights laid out for tiles; `None` unless they are single-precision numbers in main memory.
pub fn freeze(energy: &MlpEnergy) -> Option<Network> {
    let all = energy.hidden.iter().chain([&energy.last]);
    let weights: Option<Vec<_>> = all.map(weights_of).collect();
    let mut hidden = weights?;
    let last = hidden.pop()?;
    let inputs = energy.hidden.first()?.weight.size()[1] as usize;
    let tilt = energy.config.tilt.map_or(0.0, |s| (s * s).recip() as f32);
    Some(Network::new(inputs, &hidden, last, energy.nonlinearity, tilt))
}

impl FrozenEnergy for Network {
    fn evaluate(&self, points: &[f32], values: &mut [f32], gradients: &mut [f32]) {
        self.value_and_gradient(points, values, gradients);
    }

    fn engine(&self) -> String {
        format!("perceptron in tiles, {}", instructions())
    }
}

fn weights_of(layer: &LinearLayer) -> Option<Weights> {
    Some(Weights {
        weight: numbers(&layer.weight)?,
        bias: numbers(&layer.bias)?,
    })
}

fn numbers(tensor: &Tensor) -> Option<Vec<f32>> {
    if (tensor.device(), tensor.kind()) != (Device::Cpu, Kind::Float) {
        return None;
    }
    let flat = tensor.detach().contiguous().view([-1]);
    Vec::try_from(flat).ok()
}
