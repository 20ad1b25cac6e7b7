//! Compares the metrics with pytorch-fid, and checks caching, facts and refusals.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::rc::Rc;
use std::sync::Mutex;

use ebipla_core::{Chains, Model, Random};
use tch::{Device, Kind};
use tempfile::TempDir;

use super::*;
use crate::metrics::testing::shared;

const INCEPTION: &str = "data/weights/inception_v3_fidnames_f16.safetensors.gz";
const VGG16: &str = "data/weights/vgg16_imagenet_f16.safetensors";

fn read(path: &Path) -> HashMap<String, Tensor> {
    Tensor::read_safetensors(path).unwrap().into_iter().collect()
}

fn network(architecture: Architecture, weights: &Path) -> Box<dyn Network> {
    let weights = WeightsFile::read(weights).unwrap();
    architecture.network(&weights, Device::Cpu, &[3, 32, 32]).unwrap()
}

/// The largest difference, relative to the largest value.
fn relative_error(found: &Tensor, expected: &Tensor) -> f64 {
    let difference = (found - expected).abs().max() / expected.abs().max();
    difference.double_value(&[])
}

/// The first `count` images in array `X` of a MAT file (version 5, 32 × 32 × 3 × n, columns first).
fn svhn(path: &Path, count: i64) -> Tensor {
    let bytes = fs::read(path).unwrap();
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let mut at = 128;
    loop {
        let (kind, length) = (word(&bytes, at), word(&bytes, at + 4));
        let element = &bytes[at + 8..at + 8 + length];
        at += 8 + length;
        let mut array = Vec::new();
        if kind == 15 {
            flate2::read::ZlibDecoder::new(element)
                .read_to_end(&mut array)
                .unwrap();
        } else {
            array.extend([&bytes[..8], element].concat());
        }
        // Its tag, flags, 4 dimensions, and a one-letter name take 56 bytes; then follows the tag of the numbers.
        if array[48..52] == [1, 0, 1, 0] && array[52] == b'X' {
            let numbers = &array[64..64 + count as usize * 3072];
            let images = Tensor::from_slice(numbers).view([count, 3, 32, 32]);
            return images.transpose(2, 3);
        }
    }
}

/// The images of a binary batch, each preceded by its label.
fn cifar(path: &Path, count: i64) -> Tensor {
    let bytes = fs::read(path).unwrap();
    let records = Tensor::from_slice(&bytes[..count as usize * 3073]).view([count, 3073]);
    records.narrow(1, 1, 3072).reshape([count, 3, 32, 32])
}

/// In small batches, which fit into a processor's caches.
fn features(network: &dyn Network, images: &Tensor) -> Tensor {
    let batches: Vec<_> = images
        .split(10, 0)
        .iter()
        .map(|batch| network.features(batch))
        .collect();
    Tensor::cat(&batches, 0)
}

fn moments(features: &Tensor) -> Moments {
    let mut sums = Sums::new(features.size()[1]);
    sums.add(features);
    sums.moments()
}

/// Features and both distances, as computed by pytorch-fid itself with these weights.
#[test]
fn agrees_with_pytorch_fid() {
    let [Some(weights), Some(golden), Some(svhn_file), Some(cifar_file)] = [
        INCEPTION,
        "data/weights/golden_pytorch_fid.safetensors",
        "data/svhn/train_32x32.mat",
        "data/cifar-10-batches-bin/data_batch_1.bin",
    ]
    .map(shared) else {
        return;
    };
    let golden = read(&golden);
    let network = network(Architecture::Inception, &weights);
    let (svhn, cifar) = (svhn(&svhn_file, 600), cifar(&cifar_file, 300));
    let [of_svhn, of_cifar] = [("svhn", svhn), ("cifar", cifar)].map(|(name, images)| {
        assert!(
            images
                .narrow(0, 0, 8)
                .equal(&golden[&format!("{name}_first8_u8_nchw")])
        );
        let features = features(network.as_ref(), &images);
        let expected = &golden[&format!("{name}_first8_features")];
        let error = relative_error(&features.narrow(0, 0, 8), expected);
        assert!(error < 1e-3, "features of {name} are off by {error}");
        features
    });
    let first = moments(&of_svhn.narrow(0, 0, 300));
    let others = [
        ("svhn_300_600", of_svhn.narrow(0, 300, 300)),
        ("cifar_0_300", of_cifar),
    ];
    for (name, features) in others {
        let expected = golden[&format!("fd_svhn_0_300_vs_{name}")].double_value(&[0]);
        let found = squared_distance(&first, &moments(&features)).unwrap();
        assert!(
            (found / expected - 1.0).abs() < 1e-3,
            "{name}: {found}, expected {expected}"
        );
    }
}

/// The golden features were computed with f32 weights: f16 weights are off by 0.9e-3, in PyTorch as well as here.
#[test]
fn agrees_with_pytorchs_vgg16() {
    let [Some(weights), Some(golden)] = [VGG16, "data/weights/golden_vgg16.safetensors"].map(shared) else {
        return;
    };
    let golden = read(&golden);
    let images = golden["vgg16.input_u8_nhwc"].permute([0, 3, 1, 2]);
    let found = network(Architecture::Vgg16, &weights).features(&images);
    let error = relative_error(&found, &golden["vgg16.feat512"]);
    assert!(error < 1e-3, "{error}");
}

/// Three features, the mean of each channel; counts the images that it has seen.
#[derive(Default)]
struct MeanColour(Rc<Cell<i64>>);

impl Network for MeanColour {
    fn dim(&self) -> i64 {
        3
    }

    fn preprocessing(&self) -> &'static str {
        "8-bit, [0, 1]"
    }

    fn features(&self, images: &Tensor) -> Tensor {
        assert_eq!((images.kind(), images.size()[1]), (Kind::Uint8, 3));
        self.0.set(self.0.get() + images.size()[0]);
        (images.to_kind(Kind::Double) / 255.0).mean_dim([2i64, 3].as_slice(), false, Kind::Double)
    }
}

/// A latent of three numbers becomes an image of one colour. There are no parameters, and the prior is N(0, I).
struct Plain {
    parameters: Parameters,
    scale: f64,
}

impl Plain {
    fn new(scale: f64) -> Box<Self> {
        Box::new(Self {
            parameters: Parameters::new(),
            scale,
        })
    }
}

impl Generator for Plain {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn latent_dim(&self) -> i64 {
        3
    }

    fn generate(&self, x: &Tensor) -> Tensor {
        (x * self.scale).view([-1, 3, 1, 1]).expand([-1, 3, 4, 4], false)
    }
}

impl Energy for Plain {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn energy(&self, x: &Tensor) -> Tensor {
        x.square().sum_dim_intlist(1, false, x.kind()) * 0.5
    }
}

/// Chains that stay where they start.
struct Still;

impl PriorSampler for Still {
    fn sample(&self, _: &dyn Energy, start: Tensor, _: &mut Draws) -> anyhow::Result<Chains> {
        Ok(Chains {
            last: start,
            statistics: Scalars::new(),
        })
    }

    fn gradient_evaluations(&self) -> u64 {
        0
    }
}

struct Given(Mutex<Tensor>);

impl Dataset for Given {
    fn shape(&self) -> &[i64] {
        &[3, 4, 4]
    }

    fn len(&self, _: Split) -> usize {
        self.0.lock().unwrap().size()[0] as usize
    }

    fn get(&self, _: Split, indices: &Tensor) -> anyhow::Result<Tensor> {
        Ok(self.0.lock().unwrap().index_select(0, indices))
    }
}

/// More than fit into one block.
const SAMPLES: i64 = 1500;

/// A model, the data set to compare it with, and a separate cache.
struct Setting {
    model: Model,
    dataset: Given,
    cache: TempDir,
}

impl Setting {
    /// The data are the model's own samples, with each level of each channel raised by `shift`.
    ///
    /// At this scale no colour comes near black or white: 0.1·ξ + 10/127.5 < 1 up to nine deviations.
    fn shifted(shift: f64) -> Self {
        // The decoder's noise would show up.
        let model = Model::new(Plain::new(0.1), Plain::new(0.1), 10.0);
        let mut setting = Self {
            dataset: Given(Mutex::new(Tensor::zeros([1, 3, 4, 4], tch::kind::FLOAT_CPU))),
            cache: tempfile::tempdir().unwrap(),
            model,
        };
        let latents = setting.ask(false, |mut subject| {
            let blocks = [(1000, 0), (500, 1)].map(|(n, block)| subject.latents(n, block).unwrap());
            Tensor::cat(&blocks, 0)
        });
        let images = setting.model.generator.generate(&latents) + shift / 127.5;
        setting.dataset = Given(Mutex::new(images));
        setting
    }

    fn ask<T>(&self, quick: bool, ask: impl FnOnce(Subject) -> T) -> T {
        ask(Subject {
            model: &self.model,
            prior_sampler: &Still,
            dataset: &self.dataset,
            device: Device::Cpu,
            random: &mut Random::new(4),
            quick,
        })
    }

    /// A metric as a new run would build it, and a count of the images that it processes.
    fn metric(&self) -> (Frechet, Rc<Cell<i64>>) {
        let network = MeanColour::default();
        let seen = network.0.clone();
        let metric = Frechet {
            name: "frechet_colour",
            options: Comparison {
                samples: SAMPLES as u32,
                batch: 64,
                ..Comparison::default()
            },
            network: Box::new(network),
            weights: ["none".into(), "0123".into()],
            reference: OnceCell::new(),
            cache: self.cache.path().join("moments"),
        };
        (metric, seen)
    }

    fn measure(&self, metric: &Frechet) -> f64 {
        let scalars = self.ask(false, |subject| metric.measure(subject).unwrap());
        let [(name, value)] = &scalars.read()[..] else {
            panic!("one number");
        };
        assert_eq!(name, "frechet_colour");
        *value
    }

    fn cached(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.cache.path().join("moments"));
        entries.map_or(Vec::new(), |entries| {
            entries.map(|entry| entry.unwrap().path()).collect()
        })
    }
}

/// The covariances are the same, and the means differ by 10 of 255 levels in three channels.
#[test]
fn a_shift_of_ten_levels_matches_the_closed_form() {
    let setting = Setting::shifted(10.0);
    let (metric, seen) = setting.metric();
    let expected = 3.0 * (10.0f64 / 255.0).powi(2);
    let found = setting.measure(&metric);
    assert!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
    assert_eq!(seen.get(), 2 * SAMPLES);
    assert_eq!(setting.measure(&metric), found);
    assert_eq!(seen.get(), 3 * SAMPLES, "training images are processed once");
}

#[test]
fn training_images_are_processed_once_for_all_runs() {
    let setting = Setting::shifted(10.0);
    let first = setting.measure(&setting.metric().0);
    let (metric, seen) = setting.metric();
    assert_eq!(setting.measure(&metric), first);
    assert_eq!(seen.get(), SAMPLES);
    let [cached] = &setting.cached()[..] else {
        panic!("one file");
    };

    fs::write(cached, "damaged").unwrap();
    let (metric, seen) = setting.metric();
    assert_eq!(setting.measure(&metric), first);
    assert_eq!(seen.get(), 2 * SAMPLES);

    // Other images, even a few, other weights, or another selection: each has its own moments.
    let _ = setting.dataset.0.lock().unwrap().get(SAMPLES - 1).fill_(0.5);
    let (metric, _) = setting.metric();
    assert_ne!(setting.measure(&metric), first);
    let (mut metric, _) = setting.metric();
    metric.weights[1] = "4567".into();
    setting.measure(&metric);
    let (mut metric, _) = setting.metric();
    metric.options.reference = Some(100);
    setting.measure(&metric);
    assert_eq!(setting.cached().len(), 4);
}

#[test]
fn a_dry_run_is_short_and_leaves_no_files() {
    let setting = Setting::shifted(0.0);
    let (metric, seen) = setting.metric();
    setting.ask(true, |subject| metric.measure(subject).unwrap());
    assert_eq!(seen.get(), SAMPLES + 8);
    assert!(setting.cached().is_empty());
}

#[test]
fn facts_describe_the_comparison() {
    let setting = Setting::shifted(0.0);
    let (mut metric, _) = setting.metric();
    metric.options.reference = Some(100);
    let facts = setting.ask(false, |subject| metric.facts(&subject));
    assert_eq!(facts["samples"], SAMPLES);
    assert_eq!(facts["weights_sha256"], "0123");
    assert_eq!(facts["reference"], "100 of 1500 training images, evenly spread");
}

#[test]
fn samples_that_are_not_finite_give_no_number() {
    let mut setting = Setting::shifted(0.0);
    setting.model.generator = Plain::new(f64::INFINITY);
    assert!(setting.measure(&setting.metric().0).is_nan());
}

/// Other weights must not produce another number under the same name.
#[test]
fn without_the_genuine_weights_there_is_no_fid() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let options = Comparison {
        weights: Some(file.path().display().to_string()),
        ..Comparison::default()
    };
    let mut random = Random::new(0);
    let mut scope = Scope::on_cpu(&mut random);
    scope.data.shape = vec![3, 32, 32];
    let error = Fid(options.clone()).build(&mut scope).err().unwrap().to_string();
    assert!(
        error.contains(GENUINE) && error.contains("`frechet_inception`"),
        "{error}"
    );
    let error = FrechetInception(options.clone()).build(&mut scope).err().unwrap();
    assert!(format!("{error:#}").contains("neither"), "{error:#}");
    scope.data.shape = vec![2];
    let error = FrechetVgg16(options).build(&mut scope).err().unwrap().to_string();
    assert!(error.contains("found data of shape [2]"), "{error}");
}
