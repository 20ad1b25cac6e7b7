//! Adam, with its moments and step count as plain values that can be saved.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tch::Tensor;

/// How the parameters of one network are updated.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AdamConfig {
    /// Learning rate. [per step]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub lr: f64,
    /// Decay rates of the first and second moment. [per step]
    #[schemars(inner(range(min = 0.0, max = 0.999999)))]
    pub betas: [f64; 2],
    /// Added to the root of the second moment. [gradient]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub eps: f64,
    /// The learning rate is multiplied by this after each epoch. [per epoch]
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    pub decay: f64,
}

impl Default for AdamConfig {
    fn default() -> Self {
        Self {
            lr: 1e-3,
            betas: [0.9, 0.999],
            eps: 1e-8,
            decay: 1.0,
        }
    }
}

/// Adam (Kingma & Ba 2015) over a fixed list of tensors.
pub struct Adam {
    config: AdamConfig,
    parameters: Vec<Tensor>,
    first: Vec<Tensor>,
    second: Vec<Tensor>,
    steps: i32,
    epoch: u64,
}

impl Adam {
    /// Fresh moments for `parameters`.
    pub fn new(config: AdamConfig, parameters: Vec<Tensor>) -> Self {
        let zeros = || {
            parameters
                .iter()
                .map(Tensor::zeros_like)
                .map(|zero| zero.detach())
                .collect()
        };
        Self {
            first: zeros(),
            second: zeros(),
            config,
            parameters,
            steps: 0,
            epoch: 0,
        }
    }

    /// Tells which epoch it is, which decides the learning rate.
    pub fn set_epoch(&mut self, epoch: u64) {
        self.epoch = epoch;
    }

    /// The learning rate of the current epoch.
    pub fn learning_rate(&self) -> f64 {
        self.config.lr * self.config.decay.powi(self.epoch as i32)
    }

    /// One step down `gradients`, given in the order of the parameters.
    pub fn step(&mut self, gradients: &[Tensor]) {
        let _guard = tch::no_grad_guard();
        assert_eq!(
            gradients.len(),
            self.parameters.len(),
            "one gradient per parameter"
        );
        self.steps += 1;
        let [beta1, beta2] = self.config.betas;
        let correction1 = 1.0 - beta1.powi(self.steps);
        let correction2 = 1.0 - beta2.powi(self.steps);
        let rate = self.learning_rate() / correction1;
        for (i, gradient) in gradients.iter().enumerate() {
            let _ = self.first[i].lerp_(gradient, 1.0 - beta1);
            let _ = self.second[i].lerp_(&gradient.square(), 1.0 - beta2);
            let scale = (&self.second[i] / correction2).sqrt() + self.config.eps;
            let _ = self.parameters[i].g_sub_(&(&self.first[i] / scale * rate));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first steps of Adam on f(θ) = θ², computed by hand from the paper's recursion.
    #[test]
    fn first_steps_by_hand() {
        let config = AdamConfig {
            lr: 0.1,
            betas: [0.5, 0.9],
            eps: 1e-8,
            decay: 1.0,
        };
        let theta = Tensor::from_slice(&[1f64]);
        let mut adam = Adam::new(config, vec![theta.shallow_clone()]);
        // m₁ = 0.5·2 = 1, v₁ = 0.1·4 = 0.4; m̂ = 2, v̂ = 4; θ₁ = 1 − 0.1·2/2 = 0.9.
        adam.step(&[theta.copy() * 2.0]);
        assert!((theta.double_value(&[0]) - 0.9).abs() < 1e-8);
        // g = 1.8: m₂ = 1.4, v₂ = 0.36 + 0.324 = 0.684; m̂ = 1.4/0.75, v̂ = 0.684/0.19 = 3.6.
        adam.step(&[theta.copy() * 2.0]);
        let expected = 0.9 - 0.1 * (1.4 / 0.75) / 3.6f64.sqrt();
        assert!((theta.double_value(&[0]) - expected).abs() < 1e-8);
    }

    #[test]
    fn the_rate_decays_by_epoch() {
        let config = AdamConfig {
            lr: 0.5,
            decay: 0.1,
            ..AdamConfig::default()
        };
        let mut adam = Adam::new(config, vec![]);
        adam.set_epoch(2);
        assert!((adam.learning_rate() - 0.005).abs() < 1e-15);
    }
}
