//! A multi-layer perceptron as energy, with its gradient by hand.

mod activation;
mod frozen;
mod tiles;

use ebipla_framework::prelude::*;

use self::activation::Activation;
use self::frozen::FrozenMlp;
use crate::linear_layer::LinearLayer;

/// Multi-layer perceptron: latent → hidden × layers → 1, optionally with a Gaussian tilt.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Mlp {
    /// Units in each hidden layer. [units]
    #[schemars(range(min = 1))]
    hidden: u32,
    /// Hidden layers. [layers]
    #[schemars(range(min = 1))]
    layers: u32,
    /// Activation after each hidden layer.
    activation: Activation,
    /// Adds ½‖x‖²/s² with this s to the energy; null adds nothing. [latent units]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    tilt: Option<f64>,
}

impl Default for Mlp {
    fn default() -> Self {
        Self {
            hidden: 200,
            layers: 2,
            activation: Activation::LeakyRelu,
            tilt: None,
        }
    }
}

impl Plugin for Mlp {
    type Builds = dyn Energy;

    fn build(self, scope: &mut Scope) -> anyhow::Result<Box<dyn Energy>> {
        let mut parameters = Parameters::new();
        let mut draws = scope.random.stream("energy_initialisation", 0);
        let hidden = i64::from(self.hidden);
        let widths: Vec<_> = std::iter::once(scope.latent_dim)
            .chain((0..self.layers).map(|_| hidden))
            .chain([1])
            .collect();
        let mut layers: Vec<_> = widths
            .windows(2)
            .enumerate()
            .map(|(i, pair)| {
                let name = format!("layers.{i}");
                LinearLayer::new(
                    &mut parameters,
                    &name,
                    [pair[0], pair[1]],
                    &mut draws,
                    scope.device,
                )
            })
            .collect();
        let last = layers.remove(layers.len() - 1);
        Ok(Box::new(MlpEnergy {
            config: self,
            parameters,
            hidden: layers,
            last,
        }))
    }
}

struct MlpEnergy {
    config: Mlp,
    parameters: Parameters,
    hidden: Vec<LinearLayer>,
    last: LinearLayer,
}

impl Energy for MlpEnergy {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn energy(&self, x: &Tensor) -> Tensor {
        let activation = self.config.activation;
        let features = self
            .hidden
            .iter()
            .fold(x.shallow_clone(), |x, layer| activation.apply(&layer.forward(&x)));
        self.head(&features, x)
    }

    /// Backpropagation written out: less than half the time of autograd, which also records the parameters.
    fn value_and_gradient(&self, x: &Tensor) -> (Tensor, Tensor) {
        let _guard = tch::no_grad_guard();
        let (features, before_activation) = self.features(x);
        (
            self.head(&features, x),
            self.backward(x, &features, &before_activation),
        )
    }

    fn gradient(&self, x: &Tensor) -> Tensor {
        let _guard = tch::no_grad_guard();
        let (features, before_activation) = self.features(x);
        self.backward(x, &features, &before_activation)
    }

    fn frozen(&self) -> Option<Box<dyn Energy + '_>> {
        Some(Box::new(FrozenMlp::new(self)?))
    }
}

impl MlpEnergy {
    /// The last hidden layer's output, and every hidden layer's value before its activation.
    fn features(&self, x: &Tensor) -> (Tensor, Vec<Tensor>) {
        let mut features = x.shallow_clone();
        let mut before_activation = Vec::with_capacity(self.hidden.len());
        for layer in &self.hidden {
            let z = layer.forward(&features);
            features = self.config.activation.apply(&z);
            before_activation.push(z);
        }
        (features, before_activation)
    }

    /// The last layer, and the tilt.
    fn head(&self, features: &Tensor, x: &Tensor) -> Tensor {
        let energy = self.last.forward(features).squeeze_dim(1);
        match self.config.tilt {
            Some(s) => energy + x.square().sum_dim_intlist(1, false, x.kind()) / (2.0 * s * s),
            None => energy,
        }
    }

    fn backward(&self, x: &Tensor, features: &Tensor, before_activation: &[Tensor]) -> Tensor {
        let mut upstream = self.last.weight.expand_as(features);
        for (layer, z) in self.hidden.iter().zip(before_activation).rev() {
            upstream = self
                .config
                .activation
                .backward(z, &upstream)
                .matmul(&layer.weight);
        }
        match self.config.tilt {
            Some(s) => upstream + x / (s * s),
            None => upstream,
        }
    }
}

inventory::submit! { Registration::of::<Mlp>("mlp") }

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use ebipla_framework::{Random, gradient};
    use tch::{Device, Kind};

    fn build(config: Mlp, latent_dim: i64) -> Box<dyn Energy> {
        let mut random = Random::new(3);
        let mut scope = Scope {
            latent_dim,
            ..Scope::on_cpu(&mut random)
        };
        config.build(&mut scope).unwrap()
    }

    /// The gradients by hand against autograd; all are f32, so a few units in the last place may differ.
    #[test]
    fn gradients_by_hand_equal_autograd() {
        use Activation::{Gelu, LeakyRelu, Relu, Silu};
        for activation in [Silu, Relu, LeakyRelu, Gelu] {
            for tilt in [None, Some(0.7)] {
                let config = Mlp {
                    hidden: 17,
                    layers: 3,
                    activation,
                    tilt,
                };
                let energy = build(config, 5);
                let x = Random::new(1).stream("x", 0).normal(&[40, 5], Device::Cpu);
                let leaf = gradient::leaf(&x);
                let expected = gradient::gradients(&energy.energy(&leaf), &[leaf]).remove(0);
                let found = energy.gradient(&x);
                let (value, same) = energy.value_and_gradient(&x);
                assert!(same.equal(&found));
                assert!(value.allclose(&energy.energy(&x), 1e-6, 1e-6, false));
                assert!(
                    found.allclose(&expected, 1e-5, 1e-6, false),
                    "{activation:?}, tilt {tilt:?}"
                );
                let (value, found) = energy.frozen().unwrap().value_and_gradient(&x);
                assert!(value.allclose(&energy.energy(&x), 1e-5, 1e-6, false));
                assert!(
                    found.allclose(&expected, 1e-5, 1e-6, false),
                    "frozen, {activation:?}, tilt {tilt:?}"
                );
            }
        }
    }

    #[test]
    fn the_image_energy_has_the_published_number_of_parameters() {
        let energy = build(Mlp::default(), 100);
        assert_eq!(energy.parameters().count(), 60_601);
    }

    /// PyTorch's default: uniform on ±1/√inputs, so the variance is 1/(3·inputs).
    /// With n = 100·200 draws the sample variance has relative standard error √(0.8/n) ≈ 0.6 %.
    #[test]
    fn weights_start_as_pytorch_does() {
        let energy = build(Mlp::default(), 100);
        let (name, weight) = energy.parameters().named().next().unwrap();
        assert_eq!(name, "layers.0.weight");
        let variance = weight.to_kind(Kind::Double).var(true).double_value(&[]);
        assert!((variance * 300.0 - 1.0).abs() < 0.03, "{variance}");
        assert!(weight.abs().max().double_value(&[]) <= 0.1);
    }
}
