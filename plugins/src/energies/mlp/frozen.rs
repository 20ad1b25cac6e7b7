//! A perceptron at fixed parameters, for the many evaluations of a chain on the CPU.

use ebipla_framework::prelude::*;
use rayon::prelude::*;
use tch::{Device, Kind};

use super::MlpEnergy;
use super::tiles::{Network, Weights};
use crate::linear_layer::LinearLayer;

/// The energy with its gradient by [`Network`].
pub struct FrozenMlp<'a> {
    energy: &'a MlpEnergy,
    network: Network,
}

/// Multiplications below which a second thread costs more than it saves.
const WORTH_A_THREAD: usize = 1 << 20;

impl<'a> FrozenMlp<'a> {
    /// `None` where the parameters are not single-precision numbers in main memory.
    pub fn new(energy: &'a MlpEnergy) -> Option<Self> {
        let all = energy.hidden.iter().chain([&energy.last]);
        let weights: Option<Vec<_>> = all.map(weights_of).collect();
        let mut hidden = weights?;
        let last = hidden.pop()?;
        let inputs = energy.hidden.first()?.weight.size()[1] as usize;
        let tilt = energy.config.tilt.map_or(0.0, |s| (s * s).recip() as f32);
        Some(Self {
            energy,
            network: Network::new(inputs, &hidden, last, energy.nonlinearity, tilt),
        })
    }
}

/// Values and gradients at `count` points, split among the threads that tch may use.
fn evaluate(network: &Network, points: &[f32], count: usize) -> (Vec<f32>, Vec<f32>) {
    let inputs = points.len() / count.max(1);
    let (mut values, mut gradients) = (vec![0.0; count], vec![0.0; points.len()]);
    let threads = (count * network.work() / WORTH_A_THREAD).clamp(1, tch::get_num_threads() as usize);
    let share = count.div_ceil(threads).max(1);
    if threads == 1 {
        network.value_and_gradient(points, &mut values, &mut gradients);
    } else {
        points
            .par_chunks(share * inputs)
            .zip(values.par_chunks_mut(share))
            .zip(gradients.par_chunks_mut(share * inputs))
            .for_each(|((points, values), gradients)| network.value_and_gradient(points, values, gradients));
    }
    (values, gradients)
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

impl Energy for FrozenMlp<'_> {
    fn parameters(&self) -> &Parameters {
        self.energy.parameters()
    }

    fn energy(&self, x: &Tensor) -> Tensor {
        self.energy.energy(x)
    }

    fn value_and_gradient(&self, x: &Tensor) -> (Tensor, Tensor) {
        match numbers(x) {
            Some(points) => {
                let (values, gradients) = evaluate(&self.network, &points, x.size()[0] as usize);
                (
                    Tensor::from_slice(&values),
                    Tensor::from_slice(&gradients).view_as(x),
                )
            }
            None => self.energy.value_and_gradient(x),
        }
    }
}
