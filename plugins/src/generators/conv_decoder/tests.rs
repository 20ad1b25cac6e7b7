//! Compares the decoder with PyTorch's own results; `plugins/golden/make.py` wrote the files.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::path::Path;

use ebipla_core::{DataFacts, Random, gradient};
use tch::{Device, Kind};

use super::*;

fn golden(file: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(file)
}

/// The network of the golden files, with PyTorch's weights.
fn loaded(config: ConvDecoder) -> Box<dyn Generator> {
    let mut random = Random::new(1);
    let mut scope = Scope {
        data: DataFacts {
            count: 1,
            shape: vec![3, 16, 16],
        },
        ..Scope::on_cpu(&mut random)
    };
    let config = ConvDecoder {
        latent_dim: 5,
        layers: vec![
            ConvLayer::opening(6, 4),
            ConvLayer::doubling(4),
            ConvLayer::keeping(5),
            ConvLayer::doubling(3),
        ],
        ..config
    };
    let generator = config.build(&mut scope).unwrap();
    let weights = golden("conv_decoder_weights.safetensors");
    generator.parameters().load(&weights).unwrap();
    generator
}

/// The output and the gradients of the squared error with respect to x and every parameter, under their golden names.
fn computed(generator: &dyn Generator, x: &Tensor, y: &Tensor) -> Vec<(String, Tensor)> {
    let x = gradient::leaf(x);
    let output = generator.generate(&x);
    let loss = (&output - y).square();
    let parameters = generator.parameters();
    let names = ["x"].into_iter().chain(parameters.named().map(|(name, _)| name));
    let inputs: Vec<_> = std::iter::once(x.shallow_clone())
        .chain(parameters.tensors())
        .collect();
    let gradients = gradient::gradients(&loss, &inputs);
    let gradients = names
        .zip(gradients)
        .map(|(name, gradient)| (format!("gradient.{name}"), gradient));
    std::iter::once(("output".to_owned(), output.detach()))
        .chain(gradients)
        .collect()
}

/// The largest difference, relative to the largest expected number.
fn relative_error(found: &Tensor, expected: &Tensor) -> f64 {
    let largest = |tensor: &Tensor| tensor.abs().max().double_value(&[]);
    largest(&(found - expected)) / largest(expected)
}

/// The largest relative error of the output and all gradients.
fn golden_error(config: ConvDecoder, activation: &str) -> f64 {
    let expected: HashMap<_, _> = Tensor::read_safetensors(golden("conv_decoder.safetensors"))
        .unwrap()
        .into_iter()
        .collect();
    let generator = loaded(config);
    let found = computed(&*generator, &expected["x"], &expected["y"]);
    assert_eq!(found.len(), 1 + 1 + 8);
    let errors = found.into_iter().map(|(name, found)| {
        let expected = &expected[&format!("{activation}.{name}")];
        assert_eq!(
            (found.size(), found.kind()),
            (expected.size(), Kind::Float),
            "{name}"
        );
        relative_error(&found, expected)
    });
    errors.fold(0.0, f64::max)
}

const ACTIVATIONS: [(Activation, &str); 4] = [
    (Activation::LeakyRelu, "leaky_relu"),
    (Activation::Relu, "relu"),
    (Activation::Gelu, "gelu"),
    (Activation::Silu, "silu"),
];

/// A sum of n f32 numbers is off by at most n·2⁻²⁴ of the sum of their absolute values. The longest sums here are the
/// biases' gradients, over 3·256 pixels, so the forward and backward pass through four layers stays well below
/// 8·768·2⁻²⁴ = 4e-4; roundings are random and mostly cancel, which makes it about √768 instead of 768: 1e-5.
#[test]
fn agrees_with_pytorch() {
    for (activation, name) in ACTIVATIONS {
        for memory_layout in [MemoryLayout::ChannelsFirst, MemoryLayout::ChannelsLast] {
            let config = ConvDecoder {
                activation,
                memory_layout,
                ..ConvDecoder::default()
            };
            let error = golden_error(config, name);
            assert!(error < 1e-5, "{name}, {memory_layout:?}: {error}");
        }
    }
}

/// bfloat16 has 8 bits: one rounding is off by up to 2⁻⁹ = 0.2 %, and each of four layers rounds weights, products and
/// activations in the forward and backward pass. Smooth activations only: a kink turns a rounding of z into a jump of
/// its slope. An error below 1e-4 would mean that nothing was rounded at all.
#[test]
fn half_precision_agrees_to_its_precision() {
    for (activation, name) in [(Activation::Gelu, "gelu"), (Activation::Silu, "silu")] {
        let config = ConvDecoder {
            activation,
            precision: Precision::Bf16,
            ..ConvDecoder::default()
        };
        let error = golden_error(config, name);
        assert!(error > 1e-4 && error < 0.05, "{name}: {error}");
    }
}

/// PyTorch's default of 0.01 gives other images than 0.2.
#[test]
fn another_slope_gives_other_images() {
    let x = Random::new(3).stream("x", 0).normal(&[4, 5], Device::Cpu);
    let [one, other] = [0.2, 0.01].map(|slope| {
        let config = ConvDecoder {
            slope,
            ..ConvDecoder::default()
        };
        loaded(config).generate(&x)
    });
    assert!(relative_error(&one, &other) > 0.01);
}
