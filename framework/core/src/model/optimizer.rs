//! First-order optimisers whose state is plain tensors, so that it can be saved.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tch::Tensor;

use crate::{Persistent, Slot, gradient};

/// How the parameters of one network are updated.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OptimizerConfig {
    /// The update rule.
    pub name: Method,
    /// Learning rate. [per step]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub lr: f64,
    /// Decay rates of the first and second moment. [per step]
    #[schemars(inner(range(min = 0.0, max = 0.999999)), extend("only_with" = "name=adam"))]
    pub betas: [f64; 2],
    /// Share of the last update that is kept. [per step]
    #[schemars(range(min = 0.0, max = 0.999999), extend("only_with" = "name=sgd"))]
    pub momentum: f64,
    /// Decay rate of the second moment. [per step]
    #[schemars(range(min = 0.0, max = 0.999999), extend("only_with" = "name=rmsprop"))]
    pub smoothing: f64,
    /// Added to the root of the second moment. [gradient]
    #[schemars(extend("exclusiveMinimum" = 0.0, "only_with" = "name=adam|rmsprop"))]
    pub eps: f64,
    /// The learning rate is multiplied by this after each epoch. [per epoch]
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    pub decay: f64,
    /// Gradients whose norm over the whole network is larger are scaled down to it; null never does. [gradient]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub clip_norm: Option<f64>,
    /// Evaluates with an exponential average of the parameters that keeps this share at each step; null evaluates
    /// with the parameters themselves. [per step]
    #[schemars(range(min = 0.0, max = 0.999999))]
    pub average: Option<f64>,
}

/// An update rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Kingma & Ba 2015, with bias correction.
    Adam,
    /// Stochastic gradient descent, optionally with momentum.
    Sgd,
    /// Gradients divided by a running root mean square.
    Rmsprop,
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self {
            name: Method::Adam,
            lr: 1e-3,
            betas: [0.9, 0.999],
            momentum: 0.0,
            smoothing: 0.99,
            eps: 1e-8,
            decay: 1.0,
            clip_norm: None,
            average: None,
        }
    }
}

/// An update rule at work on a fixed list of tensors.
pub struct Optimizer {
    config: OptimizerConfig,
    parameters: Vec<Tensor>,
    /// Running mean of the gradients (adam), or the last update (sgd).
    first: Vec<Tensor>,
    /// Running mean of their squares (adam, rmsprop).
    second: Vec<Tensor>,
    /// Exponential averages of the parameters; empty where none are asked for.
    averages: Vec<Tensor>,
    steps: i64,
    epoch: u64,
}

impl Optimizer {
    /// Fresh moments for `parameters`.
    ///
    /// Refuses a config with an `average`: only the energy and the generator, whose optimisers the runner makes from
    /// the recipe's section `optimizer`, are evaluated with averages.
    pub fn new(config: OptimizerConfig, parameters: Vec<Tensor>) -> anyhow::Result<Self> {
        anyhow::ensure!(
            config.average.is_none(),
            "average: only optimizer.energy and optimizer.generator keep averages, since nothing evaluates with those \
             of another network; expected null"
        );
        Ok(Self::averaging(config, parameters))
    }

    /// The same for a network that is evaluated with averages, where the config asks for them.
    pub fn averaging(config: OptimizerConfig, parameters: Vec<Tensor>) -> Self {
        let zeros = || {
            let zeros = parameters.iter().map(Tensor::zeros_like);
            zeros.map(|zero| zero.detach()).collect()
        };
        let averages = match config.average {
            Some(_) => parameters
                .iter()
                .map(|parameter| parameter.detach().copy())
                .collect(),
            None => Vec::new(),
        };
        Self {
            first: zeros(),
            second: zeros(),
            averages,
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
        let scale = self.config.clip_norm.map(|most| clip(gradients, most));
        for (i, gradient) in gradients.iter().enumerate() {
            let update = match &scale {
                Some(scale) => self.update(i, &(gradient * scale)),
                None => self.update(i, gradient),
            };
            let _ = self.parameters[i].g_sub_(&update);
        }
        self.update_averages();
    }

    /// At first the average forgets faster, lest the random start stay in it for long.
    fn update_averages(&mut self) {
        let steps = self.steps as f64;
        let keep = self
            .config
            .average
            .unwrap_or(0.0)
            .min((1.0 + steps) / (10.0 + steps));
        for (average, parameter) in self.averages.iter_mut().zip(&self.parameters) {
            let _ = average.lerp_(parameter, 1.0 - keep);
        }
    }

    /// Whether it has taken a step.
    pub fn is_used(&self) -> bool {
        self.steps > 0
    }

    /// Whether averages are kept.
    pub fn has_averages(&self) -> bool {
        !self.averages.is_empty()
    }

    /// Puts the averages in the parameters' place until what it returns is dropped.
    pub fn averages(&self) -> Averages {
        let _guard = tch::no_grad_guard();
        let mut replaced = Vec::new();
        for (parameter, average) in self.parameters.iter().zip(&self.averages) {
            let mut parameter = parameter.detach();
            replaced.push((parameter.shallow_clone(), parameter.copy()));
            parameter.copy_(average);
        }
        Averages { replaced }
    }

    /// What is subtracted from parameter `i`.
    fn update(&mut self, i: usize, gradient: &Tensor) -> Tensor {
        let rate = self.learning_rate();
        let OptimizerConfig {
            betas: [beta1, beta2],
            momentum,
            smoothing,
            eps,
            ..
        } = self.config;
        match self.config.name {
            Method::Adam => {
                let _ = self.first[i].lerp_(gradient, 1.0 - beta1);
                let _ = self.second[i].lerp_(&gradient.square(), 1.0 - beta2);
                let corrected = &self.second[i] / (1.0 - beta2.powi(self.steps as i32));
                let rate = rate / (1.0 - beta1.powi(self.steps as i32));
                &self.first[i] / (corrected.sqrt() + eps) * rate
            }
            Method::Sgd => {
                self.first[i] = &self.first[i] * momentum + gradient;
                &self.first[i] * rate
            }
            Method::Rmsprop => {
                let _ = self.second[i].lerp_(&gradient.square(), 1.0 - smoothing);
                gradient / (self.second[i].sqrt() + eps) * rate
            }
        }
    }
}

impl Persistent for Optimizer {
    fn slots(&mut self) -> Vec<(&'static str, Slot<'_>)> {
        vec![
            ("first", Slot::List(&mut self.first)),
            ("second", Slot::List(&mut self.second)),
            ("average", Slot::List(&mut self.averages)),
            ("steps", Slot::Count(&mut self.steps)),
        ]
    }
}

/// Parameters with averages in their place; dropping it puts them back, bit for bit.
pub struct Averages {
    /// Each parameter with its own value.
    replaced: Vec<(Tensor, Tensor)>,
}

impl Drop for Averages {
    fn drop(&mut self) {
        for (parameter, own) in &mut self.replaced {
            parameter.copy_(own);
        }
    }
}

/// min(1, most/‖gradients‖), left on their device.
fn clip(gradients: &[Tensor], most: f64) -> Tensor {
    (gradient::norm(gradients).reciprocal() * most).clamp_max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// θ after each of two steps on f(θ) = θ² from θ = 1.
    fn two_steps(config: OptimizerConfig) -> [f64; 2] {
        let theta = Tensor::from_slice(&[1f64]);
        let mut optimizer = Optimizer::averaging(config, vec![theta.shallow_clone()]);
        [(); 2].map(|()| {
            optimizer.step(&[theta.copy() * 2.0]);
            theta.double_value(&[0])
        })
    }

    fn assert_close(found: [f64; 2], expected: [f64; 2]) {
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-7, "{found} for {expected}");
        }
    }

    /// g = 2: m = 1, v = 0.4, m̂ = 2, v̂ = 4, θ = 1 − 0.1·2/2 = 0.9.
    /// g = 1.8: m = 1.4, v = 0.36 + 0.324 = 0.684, m̂ = 1.4/0.75, v̂ = 0.684/0.19 = 3.6.
    #[test]
    fn adam_by_hand() {
        let config = OptimizerConfig {
            lr: 0.1,
            betas: [0.5, 0.9],
            ..OptimizerConfig::default()
        };
        assert_close(two_steps(config), [0.9, 0.9 - 0.1 * (1.4 / 0.75) / 3.6f64.sqrt()]);
    }

    /// u = 2, θ = 0.8; u = 0.5·2 + 1.6 = 2.6, θ = 0.54.
    #[test]
    fn sgd_with_momentum_by_hand() {
        let config = OptimizerConfig {
            name: Method::Sgd,
            lr: 0.1,
            momentum: 0.5,
            ..OptimizerConfig::default()
        };
        assert_close(two_steps(config), [0.8, 0.54]);
    }

    /// v = 0.5·4 = 2, θ = 1 − 0.1·2/√2 = a; v = 1 + 0.5·(2a)², θ = a − 0.1·2a/√v.
    #[test]
    fn rmsprop_by_hand() {
        let config = OptimizerConfig {
            name: Method::Rmsprop,
            lr: 0.1,
            smoothing: 0.5,
            ..OptimizerConfig::default()
        };
        let a = 1.0 - 0.1 * 2f64.sqrt();
        assert_close(two_steps(config), [a, a - 0.2 * a / (1.0 + 2.0 * a * a).sqrt()]);
    }

    /// ‖(3, 4)‖ = 5 over both tensors, scaled down to 1; a smaller gradient stays as it is.
    #[test]
    fn clipping_scales_by_the_norm_over_all_tensors() {
        let parameters = [0f64, 0.0].map(|zero| Tensor::from_slice(&[zero]));
        let config = OptimizerConfig {
            name: Method::Sgd,
            lr: 1.0,
            clip_norm: Some(1.0),
            ..OptimizerConfig::default()
        };
        let handles = parameters.iter().map(Tensor::shallow_clone).collect();
        let mut optimizer = Optimizer::averaging(config, handles);
        optimizer.step(&[3f64, 4.0].map(|value| Tensor::from_slice(&[value])));
        let values = || {
            parameters
                .each_ref()
                .map(|parameter| parameter.double_value(&[0]))
        };
        assert_close(values(), [-0.6, -0.8]);
        optimizer.step(&[0.1f64, 0.0].map(|value| Tensor::from_slice(&[value])));
        assert_close(values(), [-0.7, -0.8]);
    }

    /// θ = 1 goes to 0 and −1 by steps of 1. The average keeps 2/11 of itself in the first step and ¼ in the second,
    /// less than the ½ asked for: 2/11, then 2/44 − ¾.
    #[test]
    fn averages_stand_in_for_the_parameters_and_leave_them_as_they_were() {
        let theta = Tensor::from_slice(&[1f64]);
        let config = OptimizerConfig {
            name: Method::Sgd,
            lr: 1.0,
            average: Some(0.5),
            ..OptimizerConfig::default()
        };
        let refused = Optimizer::new(config.clone(), Vec::new());
        assert!(refused.is_err_and(|error| error.to_string().starts_with("average: only")));
        let mut optimizer = Optimizer::averaging(config, vec![theta.shallow_clone()]);
        for (own, average) in [(0.0, 2.0 / 11.0), (-1.0, 2.0 / 44.0 - 0.75)] {
            optimizer.step(&[Tensor::from_slice(&[1f64])]);
            let averages = optimizer.averages();
            assert!((theta.double_value(&[0]) - average).abs() < 1e-12);
            drop(averages);
            assert_eq!(theta.double_value(&[0]), own);
        }
    }

    #[test]
    fn the_rate_decays_by_epoch() {
        let config = OptimizerConfig {
            lr: 0.5,
            decay: 0.1,
            ..OptimizerConfig::default()
        };
        let mut optimizer = Optimizer::averaging(config, vec![]);
        optimizer.set_epoch(2);
        assert!((optimizer.learning_rate() - 0.005).abs() < 1e-15);
    }
}
