//! The kernels that training spends its time in, one by one: `cargo bench`. `runner bench` has whole chains and steps.
#![allow(clippy::unwrap_used)]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ebipla_core::prelude::*;
use ebipla_core::{DataFacts, Model, Random, Registry, Wanted};
use ebipla_datasets as _;
use ebipla_plugins as _;
use serde_json::{Value, json};
use tch::Device;

const POINTS: i64 = 1024;
const IMAGES: i64 = 64;

fn normal(shape: &[i64]) -> Tensor {
    Random::new(1).stream("bench", 0).normal(shape, Device::Cpu)
}

fn energy(options: &Value, latent_dim: i64) -> Box<dyn Energy> {
    let mut random = Random::new(0);
    let mut scope = Scope {
        latent_dim,
        ..Scope::on_cpu(&mut random)
    };
    Registry::collect()
        .unwrap()
        .build("mlp", options, &mut scope)
        .unwrap()
}

fn svhn(memory_layout: &str) -> Model {
    let mut random = Random::new(0);
    let mut scope = Scope {
        data: DataFacts {
            count: 1,
            shape: vec![3, 32, 32],
        },
        ..Scope::on_cpu(&mut random)
    };
    let options = json!({ "memory_layout": memory_layout });
    let generator: Box<dyn Generator> = Registry::collect()
        .unwrap()
        .build("svhn_generator", &options, &mut scope)
        .unwrap();
    let latent_dim = generator.latent_dim();
    Model::new(energy(&json!({ "tilt": 1.0 }), latent_dim), generator, 0.3)
}

/// U and ∇U on one thread: the tiles, and libtorch without autograd.
fn perceptrons(criterion: &mut Criterion) {
    tch::set_num_threads(1);
    for (experiment, latent_dim, hidden, layers) in [("synthetic", 2, 128, 3), ("images", 100, 200, 2)] {
        let mut group = criterion.benchmark_group(format!("perceptron/{experiment}"));
        let x = normal(&[POINTS, latent_dim]);
        let points = Vec::<f32>::try_from(x.view(-1)).unwrap();
        for activation in ["silu", "relu", "leaky_relu", "gelu"] {
            let options = json!({ "hidden": hidden, "layers": layers, "activation": activation });
            let energy = energy(&options, latent_dim);
            let multiplications = energy.multiplications().unwrap();
            group.throughput(Throughput::Elements(4 * multiplications * POINTS as u64));
            let frozen = energy.frozen().unwrap();
            let (mut values, mut gradients) = (vec![0.0; POINTS as usize], points.clone());
            group.bench_function(BenchmarkId::new("tiles", activation), |bench| {
                bench.iter(|| frozen.evaluate(&points, &mut values, &mut gradients));
            });
            group.bench_function(BenchmarkId::new("libtorch", activation), |bench| {
                bench.iter(|| energy.gradient(&x));
            });
        }
    }
}

/// φ and its gradients at images of SVHN's size on all cores: for the latents alone, and for parameters as well.
fn generators(criterion: &mut Criterion) {
    tch::set_num_threads(std::thread::available_parallelism().map_or(1, |cores| cores.get() as i32));
    let mut group = criterion.benchmark_group("svhn_generator");
    group
        .sample_size(20)
        .throughput(Throughput::Elements(IMAGES as u64));
    for memory_layout in ["channels_first", "channels_last"] {
        let model = svhn(memory_layout);
        let x = normal(&[IMAGES, model.generator.latent_dim()]);
        let y = normal(&[IMAGES, 3, 32, 32]);
        for (name, wanted) in [
            ("latents", Wanted::Latents),
            ("latents_and_parameters", Wanted::LatentsAndParameters),
        ] {
            group.bench_function(BenchmarkId::new(name, memory_layout), |bench| {
                bench.iter(|| model.joint(&x, &y, wanted));
            });
        }
    }
}

criterion_group!(kernels, perceptrons, generators);
criterion_main!(kernels);
