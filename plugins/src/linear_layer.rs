//! A fully connected layer with PyTorch's names and default initialisation.

use ebipla_core::prelude::*;
use tch::Device;

/// y = xWᵀ + b.
pub struct LinearLayer {
    pub weight: Tensor,
    pub bias: Tensor,
}

impl LinearLayer {
    /// Number of parameters of layers between these widths.
    pub fn parameters(widths: &[i64]) -> u128 {
        let of_layer = |pair: &[i64]| (pair[0] as u128 + 1) * pair[1] as u128;
        widths.windows(2).map(of_layer).sum()
    }

    /// Adds weight and bias, uniform on ±1/√inputs, to `parameters` as `NAME.weight` and `NAME.bias`.
    pub fn new(
        parameters: &mut Parameters,
        name: &str,
        [inputs, outputs]: [i64; 2],
        draws: &mut Draws,
        device: Device,
    ) -> Self {
        let bound = 1.0 / (inputs as f64).sqrt();
        let mut uniform = |shape: &[i64]| draws.uniform(-bound, bound, shape, device);
        let (weight, bias) = (uniform(&[outputs, inputs]), uniform(&[outputs]));
        Self {
            weight: parameters.add(format!("{name}.weight"), weight),
            bias: parameters.add(format!("{name}.bias"), bias),
        }
    }

    pub fn forward(&self, x: &Tensor) -> Tensor {
        x.linear(&self.weight, Some(&self.bias))
    }
}
