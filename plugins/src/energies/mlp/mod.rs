//! A multi-layer perceptron as energy, with a hand-written gradient.

mod affine;
mod buffers;
mod frozen;
mod tiles;

use std::cell::{RefCell, RefMut};

use buffers::Buffers;
use ebipla_core::FrozenEnergy;
use ebipla_core::prelude::*;
use tch::Kind;

use crate::activation::{Activation, Nonlinearity, SLOPE};
use crate::linear_layer::LinearLayer;

/// Multi-layer perceptron: latent → hidden × layers → 1, optionally with a Gaussian tilt.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Mlp {
    /// Units in each hidden layer. [units]
    #[schemars(range(min = 1))]
    hidden: u32,
    /// Number of hidden layers. [layers]
    #[schemars(range(min = 1))]
    layers: u32,
    /// Activation after each hidden layer.
    activation: Activation,
    /// Slope of leaky_relu for negative arguments. [1]
    #[schemars(range(min = 0.0, max = 1.0), extend("only_with" = "activation=leaky_relu"))]
    slope: f64,
    /// Width s of a Gaussian tilt, which adds ½‖x‖²/s² to the energy; null adds nothing. [latent units]
    #[schemars(range(min = 1e-6))]
    tilt: Option<f64>,
    /// Implementation that prior chains on a CPU use to evaluate the energy.
    engine: Engine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Engine {
    /// Built-in kernels, which keep a few points in the cache through all layers.
    Tiles,
    /// libtorch, as on a GPU: the same distribution, slower, with other random numbers.
    Libtorch,
}

impl Default for Mlp {
    fn default() -> Self {
        Self {
            hidden: 200,
            layers: 2,
            activation: Activation::LeakyRelu,
            slope: SLOPE,
            tilt: None,
            engine: Engine::Tiles,
        }
    }
}

impl Plugin for Mlp {
    type Builds = dyn Energy;

    fn build(self, scope: &mut Scope) -> anyhow::Result<Box<dyn Energy>> {
        let hidden = i64::from(self.hidden);
        let widths: Vec<_> = std::iter::once(scope.latent_dim)
            .chain((0..self.layers).map(|_| hidden))
            .chain([1])
            .collect();
        scope.require_parameters(LinearLayer::parameters(&widths))?;
        let mut parameters = Parameters::new();
        let mut draws = scope.random.stream("energy_initialisation", 0);
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
            nonlinearity: self.activation.with_slope(self.slope),
            tilt: self
                .tilt
                .map(|s| Tensor::full([1], 1.0 / (s * s), (Kind::Float, scope.device))),
            config: self,
            parameters,
            hidden: layers,
            last,
            buffers: RefCell::default(),
        }))
    }
}

struct MlpEnergy {
    config: Mlp,
    nonlinearity: Nonlinearity,
    parameters: Parameters,
    hidden: Vec<LinearLayer>,
    last: LinearLayer,
    /// 1/s².
    tilt: Option<Tensor>,
    /// Reused from one gradient to the next.
    buffers: RefCell<Option<Buffers>>,
}

impl Energy for MlpEnergy {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn energy(&self, x: &Tensor) -> Tensor {
        let features = self.hidden.iter().fold(x.shallow_clone(), |x, layer| {
            self.nonlinearity.apply(&layer.forward(&x))
        });
        self.head(&features, x)
    }

    /// Hand-written backpropagation: faster than autograd, which also records the parameters.
    fn value_and_gradient(&self, x: &Tensor) -> (Tensor, Tensor) {
        let _guard = tch::no_grad_guard();
        let mut buffers = self.buffers_for(x);
        self.forward(x, &mut buffers);
        let value = self.head(&buffers.given, x);
        (value, self.backward(x, &mut buffers))
    }

    fn gradient(&self, x: &Tensor) -> Tensor {
        let _guard = tch::no_grad_guard();
        let mut buffers = self.buffers_for(x);
        self.forward(x, &mut buffers);
        self.backward(x, &mut buffers)
    }

    fn frozen(&self) -> Option<Box<dyn FrozenEnergy>> {
        match self.config.engine {
            Engine::Tiles => Some(Box::new(frozen::freeze(self)?)),
            Engine::Libtorch => None,
        }
    }

    fn multiplications(&self) -> Option<u64> {
        let layers = self.hidden.iter().chain([&self.last]);
        Some(layers.map(|layer| layer.weight.numel() as u64).sum())
    }
}

impl MlpEnergy {
    fn buffers_for(&self, x: &Tensor) -> RefMut<'_, Buffers> {
        RefMut::map(self.buffers.borrow_mut(), |kept| {
            let fitting = kept.take().filter(|buffers| buffers.fit(x));
            kept.insert(
                fitting.unwrap_or_else(|| Buffers::new(x, self.hidden.len(), self.config.hidden.into())),
            )
        })
    }

    /// Leaves the features of the last hidden layer in `buffers`.
    fn forward(&self, x: &Tensor, buffers: &mut Buffers) {
        for (i, (layer, z)) in self.hidden.iter().zip(&mut buffers.before_activation).enumerate() {
            let given = if i == 0 { x } else { &buffers.given };
            *z = layer.bias.addmm_out(z, given, &layer.weight.tr());
            buffers.given = self.nonlinearity.apply_out(z, &buffers.given);
        }
    }

    /// The last layer and the tilt.
    fn head(&self, features: &Tensor, x: &Tensor) -> Tensor {
        let energy = self.last.forward(features).squeeze_dim(1);
        match self.config.tilt {
            Some(s) => energy + x.square().sum_dim_intlist(1, false, x.kind()) / (2.0 * s * s),
            None => energy,
        }
    }

    fn backward(&self, x: &Tensor, buffers: &mut Buffers) -> Tensor {
        let Buffers {
            before_activation,
            given,
            upstream,
        } = buffers;
        let mut gradient = self.last.weight.shallow_clone();
        for (i, (layer, z)) in self.hidden.iter().zip(before_activation).enumerate().rev() {
            *given = self
                .nonlinearity
                .backward_out(z, &gradient.expand_as(given), given);
            gradient = match i {
                // Owned by the caller.
                0 => given.matmul(&layer.weight),
                _ => given.matmul_out(upstream, &layer.weight),
            };
        }
        match &self.tilt {
            Some(tilt) => gradient.addcmul_(x, tilt),
            None => gradient,
        }
    }
}

inventory::submit! { Registration::of::<Mlp>("mlp") }

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::HashMap;
    use std::path::Path;

    use super::*;
    use ebipla_core::{Random, gradient};
    use tch::Device;

    fn build(config: Mlp, latent_dim: i64) -> Box<dyn Energy> {
        let mut random = Random::new(3);
        let mut scope = Scope {
            latent_dim,
            ..Scope::on_cpu(&mut random)
        };
        config.build(&mut scope).unwrap()
    }

    fn evaluate(energy: &dyn FrozenEnergy, x: &Tensor) -> (Tensor, Tensor) {
        let points = Vec::<f32>::try_from(x.view(-1)).unwrap();
        let (mut values, mut gradients) = (vec![0.0; x.size()[0] as usize], vec![0.0; points.len()]);
        energy.evaluate(&points, &mut values, &mut gradients);
        (
            Tensor::from_slice(&values),
            Tensor::from_slice(&gradients).view_as(x),
        )
    }

    /// Hand-written gradients against autograd; all are f32, so a few units in the last place may differ.
    #[test]
    fn hand_written_gradients_equal_autograd() {
        use Activation::{Gelu, LeakyRelu, Relu, Silu};
        for activation in [Silu, Relu, LeakyRelu, Gelu] {
            for tilt in [None, Some(0.7)] {
                let config = Mlp {
                    hidden: 17,
                    layers: 3,
                    activation,
                    slope: 0.3,
                    tilt,
                    ..Mlp::default()
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
                let (value, found) = evaluate(energy.frozen().unwrap().as_ref(), &x);
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
        for (latent_dim, count) in [(100, 60_601), (128, 66_201)] {
            assert_eq!(build(Mlp::default(), latent_dim).parameters().count(), count);
        }
    }

    /// Compared with PyTorch's own results; `plugins/golden/make.py` wrote the files. Sums have at most 12·9 f32 terms,
    /// each rounded to 2⁻²⁴ of itself: 108·2⁻²⁴ = 6e-6.
    #[test]
    fn agrees_with_pytorch() {
        let golden = |file: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(file);
        let read = Tensor::read_safetensors(golden("mlp.safetensors")).unwrap();
        let expected: HashMap<_, _> = read.into_iter().collect();
        for (activation, word) in [(Activation::LeakyRelu, "leaky_relu"), (Activation::Gelu, "gelu")] {
            let config = Mlp {
                hidden: 9,
                activation,
                tilt: Some(1.0),
                ..Mlp::default()
            };
            let energy = build(config, 7);
            energy
                .parameters()
                .load(&golden("mlp_weights.safetensors"))
                .unwrap();
            let x = gradient::leaf(&expected["x"]);
            let output = energy.energy(&x);
            let names = ["x"]
                .into_iter()
                .chain(energy.parameters().named().map(|(name, _)| name));
            let inputs: Vec<_> = std::iter::once(x.shallow_clone())
                .chain(energy.parameters().tensors())
                .collect();
            let gradients = gradient::gradients(&output, &inputs);
            let by_hand = energy.gradient(&expected["x"]);
            let found = names.zip(gradients).chain([("x", by_hand)]);
            let found = found.map(|(name, tensor)| (format!("{word}.gradient.{name}"), tensor));
            for (name, found) in found.chain([(format!("{word}.output"), output)]) {
                let scale = expected[&name].abs().max().double_value(&[]);
                assert!(
                    found.allclose(&expected[&name], 0.0, 6e-6 * scale, false),
                    "{name}"
                );
            }
        }
    }

    /// By hand: weights that are all ½ and biases that are all −1 make each unit of the first layer
    /// z = ½·(x₁ + x₂) − 1, of the second ½·3·a(z) − 1, and so on.
    #[test]
    fn layers_activation_and_tilt_are_where_they_belong() {
        let config = Mlp {
            hidden: 3,
            tilt: Some(1.0),
            ..Mlp::default()
        };
        let energy = build(config, 2);
        for (name, tensor) in energy.parameters().named() {
            let value = if name.ends_with("bias") { -1.0 } else { 0.5 };
            let _ = tensor.detach().fill_(value);
        }
        let leaky = |z: f64| if z > 0.0 { z } else { 0.2 * z };
        let expected = |x: [f64; 2]| {
            let first = leaky(0.5 * (x[0] + x[1]) - 1.0);
            let second = leaky(1.5 * first - 1.0);
            1.5 * second - 1.0 + 0.5 * (x[0] * x[0] + x[1] * x[1])
        };
        for x in [[4.0, 2.0], [1.5, 1.0], [-3.0, 0.5]] {
            let found = energy.energy(&Tensor::from_slice(&x).to_kind(Kind::Float).view([1, 2]));
            // Each of the numbers is below 16, so one rounding is at most 2⁻²⁰; there are a dozen.
            assert!(
                (found.double_value(&[0]) - expected(x)).abs() < 12.0 * 2f64.powi(-20),
                "{x:?}"
            );
        }
    }

    /// PyTorch's default: uniform on ±1/√inputs, so the variance is 1/(3·inputs).
    /// With n = 100·200 draws the sample variance has relative standard error √(0.8/n) ≈ 0.6 %.
    #[test]
    fn initial_weights_follow_pytorch() {
        let energy = build(Mlp::default(), 100);
        let (name, weight) = energy.parameters().named().next().unwrap();
        assert_eq!(name, "layers.0.weight");
        let variance = weight.to_kind(Kind::Double).var(true).double_value(&[]);
        assert!((variance * 300.0 - 1.0).abs() < 0.03, "{variance}");
        assert!(weight.abs().max().double_value(&[]) <= 0.1);
    }
}
