//! Commands on a trained run: samples, reconstructions, interpolations, scores, compositions.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;

use serde_json::Value;
use support::{Scratch, data};

/// Width and height of a PNG file, from the bytes at its start.
fn png_size(path: &Path) -> (u32, u32) {
    let png = fs::read(path).unwrap();
    assert_eq!(png[..8], [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a]);
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

/// Shape and numbers of a .npy file with f32 numbers.
fn read_npy(path: &Path) -> (Vec<usize>, Vec<f32>) {
    let bytes = fs::read(path).unwrap();
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..10 + length]).unwrap();
    assert!(header.contains("'descr': '<f4'") && header.contains("'fortran_order': False"));
    let shape = header.split(['(', ')']).nth(1).unwrap();
    let shape = shape.split(',').filter_map(|n| n.trim().parse().ok()).collect();
    let numbers = bytes[10 + length..].chunks_exact(4);
    let numbers = numbers.map(|four| f32::from_le_bytes(four.try_into().unwrap()));
    (shape, numbers.collect())
}

fn read_hdf5(path: &Path, name: &str) -> (Vec<usize>, Vec<f32>) {
    let dataset = hdf5::File::open(path).unwrap().dataset(name).unwrap();
    (dataset.shape(), dataset.read_raw().unwrap())
}

/// A run in a scratch folder.
struct Trained {
    scratch: Scratch,
    folder: String,
}

impl Trained {
    fn new(arguments: &[&str]) -> Self {
        let scratch = Scratch::with_small();
        let folder = scratch.train(arguments).display().to_string();
        Self { scratch, folder }
    }

    /// The small model of points in the plane.
    fn points() -> Self {
        Self::new(&[])
    }

    /// A Gaussian model that can be solved by hand: U(x) = ½‖x − start‖², g(x) = x.
    fn gaussian(start: &str) -> Self {
        let scratch = Scratch::with_small();
        let folder = gaussian_in(&scratch, start, 2);
        Self { scratch, folder }
    }

    /// A small model of images.
    fn images() -> Self {
        Self::new(&[
            "--set",
            "dataset={name: blobs, size: 40, validation: 20, image_size: 28, channels: 1}",
            "--set",
            "generator={name: small_generator, width: 2, latent_dim: 4}",
        ])
    }

    /// Runs `command RUN_DIR arguments`, which must succeed, and returns its output.
    #[track_caller]
    fn run(&self, command: &str, arguments: &[&str]) -> String {
        let outcome = self
            .scratch
            .runner(&[&[command, &self.folder], arguments].concat());
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        outcome.stdout
    }

    /// The same with an invalid command line.
    #[track_caller]
    fn refuses(&self, command: &str, arguments: &[&str], words: &[&str]) {
        let before = self.scratch.entries();
        let outcome = self
            .scratch
            .runner(&[&[command, &self.folder], arguments].concat());
        outcome.refused(words);
        assert_eq!(self.scratch.entries(), before, "something was written");
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.scratch.path().join(name)
    }
}

fn gaussian_in(scratch: &Scratch, start: &str, dim: u32) -> String {
    let start = format!("energy={{name: quadratic, start: {start}}}");
    let data = format!("dataset={{name: gaussian, size: 40, validation: 50, dim: {dim}}}");
    let folder = scratch.train(&[
        "--set",
        &start,
        "--set",
        &data,
        "--set",
        "generator.name=identity",
        "--set",
        "run.max_steps=0",
    ]);
    folder.display().to_string()
}

#[test]
fn samples_are_equal_in_every_format() {
    let run = Trained::points();
    let said = run.run("sample", &["--n", "100", "--out", "s.png"]);
    assert!(said.contains("100 samples: s.png"), "{said}");
    assert_eq!(png_size(&run.path("s.png")), (1120, 560));

    run.run("sample", &["--n", "100", "--out", "new/s.npy", "--latents"]);
    run.run("sample", &["--n", "100", "--out", "s.h5", "--latents"]);
    let samples = read_npy(&run.path("new/s.npy"));
    assert_eq!(samples.0, [100, 2]);
    assert!(samples.1.iter().all(|number| number.is_finite()));
    assert_eq!(samples, read_hdf5(&run.path("s.h5"), "samples"));
    assert_eq!(
        read_npy(&run.path("new/s_latents.npy")),
        read_hdf5(&run.path("s.h5"), "latents")
    );

    run.run("sample", &["--n", "100", "--out", "other.npy", "--seed", "9"]);
    let longer = "evaluation_sampler.steps=50";
    run.run("sample", &["--n", "100", "--out", "longer.npy", "--set", longer]);
    for other in ["other.npy", "longer.npy"] {
        assert_ne!(samples.1, read_npy(&run.path(other)).1, "{other}");
    }
}

/// Without noise the samples of an identity generator are their latents; with noise they are not.
#[test]
fn decoder_noise_is_optional() {
    let run = Trained::gaussian("0.0");
    for (decoding, same) in [("mean", true), ("noisy", false), ("auto", false)] {
        run.run("sample", &["--out", "s.h5", "--latents", "--decoding", decoding]);
        let [samples, latents] = ["samples", "latents"].map(|name| read_hdf5(&run.path("s.h5"), name));
        assert_eq!(samples == latents, same, "{decoding}");
    }
}

/// The product of N(2, I) and N(−1, I)^½ has precision 1.5 and mean (2 − 0.5)/1.5 = 1 in each coordinate.
///
/// 4000 chains of two coordinates: the mean has standard error √(1/1.5/8000) = 0.0091, the variance √(2/8000)/1.5 =
/// 0.0105. HMC from N(0, I) forgets its start in far fewer than 60 trajectories, and has no bias.
#[test]
fn a_composition_of_gaussians_is_their_product() {
    let scratch = Scratch::with_small();
    let [a, b] = ["2.0", "-1.0"].map(|start| gaussian_in(&scratch, start, 2));
    let outcome = scratch.runner(&[
        "compose",
        &a,
        &b,
        "--weights",
        "1,0.5",
        "--n",
        "4000",
        "--out",
        "product.npy",
        "--decoding",
        "mean",
        "--set",
        "evaluation_sampler={name: hmc, steps: 60, step_size: 0.3, leapfrog_steps: 5}",
    ]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(
        outcome.stdout.contains("4000 samples of 1 * "),
        "{}",
        outcome.stdout
    );
    let (shape, samples) = read_npy(&scratch.path().join("product.npy"));
    assert_eq!(shape, [4000, 2]);
    let n = samples.len() as f64;
    let mean = samples.iter().map(|x| f64::from(*x)).sum::<f64>() / n;
    let variance = samples
        .iter()
        .map(|x| (f64::from(*x) - mean).powi(2))
        .sum::<f64>()
        / n;
    assert!((mean - 1.0).abs() < 5.0 * 0.0091, "{mean}");
    assert!((variance - 1.0 / 1.5).abs() < 5.0 * 0.0105, "{variance}");
}

#[test]
fn refuses_incompatible_compositions() {
    let scratch = Scratch::with_small();
    let [a, b] = [2, 3].map(|dim| gaussian_in(&scratch, "0.0", dim));
    let compose = |more: &[&str]| scratch.runner(&[&["compose"], more, &["--out", "x.png"]].concat());
    compose(&[&a, &b]).refused(&["3 latent dimensions", "has 2", "same latent space"]);
    compose(&[&a, &a, "--weights", "1"]).refused(&["--weights", "[1.0]", "each of the 2 runs"]);
    compose(&[&a, &a, "--generator-of", "3"]).refused(&["--generator-of", "found 3", "from 1 to 2"]);
    compose(&[&a, "nowhere"]).refused(&["nowhere is no run folder"]);
    assert_eq!(scratch.entries(), ["runs", "small.yaml"]);
    let negated = compose(&[&a, &a, "--weights", "1,-0.5", "--generator-of", "2"]);
    assert_eq!(negated.code, 0, "{}", negated.stderr);
}

/// In the Gaussian model the MAP latent of y is (y/σ² + 0)/(1/σ² + 1) = y/(1 + σ²), with σ = 0.2.
///
/// 300 steps find it to about 5e-3, and the mean square error, (σ²/(1 + σ²))²·E y² = 0.0015, to a tenth.
#[test]
fn held_out_points_are_reconstructed_from_map_latents() {
    let run = Trained::gaussian("0.0");
    let said = run.run(
        "reconstruct",
        &["--out", "r.h5", "--n", "50", "--map-steps", "300"],
    );
    assert!(
        said.contains("50 points of the split validation, from MAP latents"),
        "{said}"
    );
    let [data, made, latents] =
        ["data", "reconstructions", "latents"].map(|name| read_hdf5(&run.path("r.h5"), name));
    assert_eq!((&data.0[..], &latents.0[..]), (&[50, 2][..], &[50, 1, 2][..]));
    assert_eq!(made.1, latents.1);
    for (y, x) in data.1.iter().zip(&made.1) {
        assert!((y / 1.04 - x).abs() < 0.01, "{x}, expected {y}");
    }
    let mean = |numbers: Vec<f64>| numbers.iter().sum::<f64>() / numbers.len() as f64;
    let square = mean(data.1.iter().map(|y| f64::from(y * y)).collect());
    let expected = (0.04f64 / 1.04).powi(2) * square;
    let line = said.lines().find_map(|line| line.strip_prefix("mse ")).unwrap();
    let mse: f64 = line.parse().unwrap();
    assert!((mse / expected - 1.0).abs() < 0.1, "{mse}, expected {expected}");

    run.run("reconstruct", &["--out", "r.npy"]);
    assert_eq!(read_npy(&run.path("r.npy")).0, [16, 2]);
    run.run("reconstruct", &["--out", "r.png"]);
    assert_eq!(png_size(&run.path("r.png")), (1120, 560));
}

/// With an identity generator, the reconstruction of a point is the mean of its particles.
#[test]
fn training_points_are_reconstructed_from_their_particles() {
    let run = Trained::gaussian("0.0");
    let said = run.run("reconstruct", &["--split", "train", "--n", "3", "--out", "r.npy"]);
    assert!(said.contains("the mean over their particles"), "{said}");
    let dump = Path::new(&run.folder).join("particles/step_00000000.h5");
    let (shape, particles) = read_hdf5(&dump, "particles");
    assert_eq!(shape, [40, 2, 2]);
    let (shape, made) = read_npy(&run.path("r.npy"));
    assert_eq!(shape, [3, 2]);
    for (i, made) in made.iter().enumerate() {
        let first = 4 * (i / 2) + i % 2;
        let mean = (particles[first] + particles[first + 2]) / 2.0;
        assert!((made - mean).abs() < 1e-6, "{made}, expected {mean}");
    }

    let without = Trained::new(&["--set", "algorithm.name=lebm"]);
    let said = without.run("reconstruct", &["--split", "train", "--n", "3", "--out", "r.npy"]);
    assert!(said.contains("from MAP latents"), "{said}");
}

#[test]
fn interpolations_begin_at_a_particle_and_end_at_a_map_latent() {
    let run = Trained::gaussian("0.0");
    let ends = [
        "--from",
        "train:3",
        "--to",
        "validation:7",
        "--from",
        "validation:1",
        "--to",
        "train:0",
    ];
    let more = ["--steps", "5", "--map-steps", "300", "--out", "i.h5"];
    let said = run.run("interpolate", &[&ends[..], &more].concat());
    assert!(said.contains("train:3 → validation:7"), "{said}");
    let (shape, latents) = read_hdf5(&run.path("i.h5"), "latents");
    assert_eq!(shape, [2, 5, 2]);
    assert_eq!(latents, read_hdf5(&run.path("i.h5"), "interpolations").1);
    let dump = Path::new(&run.folder).join("particles/step_00000000.h5");
    let particles = read_hdf5(&dump, "particles").1;
    assert_eq!(latents[..2], particles[12..14], "the first particle of train:3");
    assert_eq!(latents[18..], particles[..2], "and of train:0");
    let to = read_hdf5(&run.path("i.h5"), "to").1;
    for i in 0..2 {
        let halfway = (latents[i] + latents[8 + i]) / 2.0;
        assert!((latents[4 + i] - halfway).abs() < 1e-6);
        assert!(
            (latents[8 + i] - to[i] / 1.04).abs() < 0.01,
            "MAP of validation:7"
        );
    }
    let said = run.run("interpolate", &["--pairs", "3", "--out", "i.png"]);
    assert_eq!(said.matches("validation:").count(), 6, "{said}");
    assert_eq!(png_size(&run.path("i.png")), (1120, 560));
}

#[test]
fn wrong_command_lines_are_refused_before_anything_is_written() {
    let run = Trained::points();
    run.refuses("sample", &["--out", "a.jpg"], &["a.jpg", ".png, .npy or .h5"]);
    run.refuses("sample", &["--out", "a.png", "--n", "0"], &["--n"]);
    run.refuses(
        "reconstruct",
        &["--out", "a.png", "--split", "test"],
        &["test", "validation"],
    );
    run.refuses(
        "reconstruct",
        &["--out", "a.png", "--set", "dataset.validation=0"],
        &["no points in its split `validation`"],
    );
    let to = ["--to", "train:0", "--out", "a.png"];
    run.refuses(
        "interpolate",
        &[&["--from", "train:40"], &to[..]].concat(),
        &["train:40", "from 0 to 39"],
    );
    run.refuses(
        "interpolate",
        &[&["--from", "test:1"], &to[..]].concat(),
        &["test:1", "validation:INDEX"],
    );
    run.refuses("interpolate", &["--out", "a.png"], &["--from", "--pairs K"]);
    run.refuses(
        "interpolate",
        &[&["--from", "train:1", "--from", "train:2"], &to[..]].concat(),
        &["2 times --from but 1 times --to"],
    );
    run.refuses(
        "score",
        &["--data", "swiss_rol"],
        &["swiss_rol", "did you mean `swiss_roll`?"],
    );
    run.refuses(
        "score",
        &["--data-set", "siz=3"],
        &["siz", "did you mean `size`?"],
    );
    run.refuses(
        "score",
        &["--data", "gaussian", "--data-set", "dim=3"],
        &["`gaussian` has points of shape [3]", "trained on [2]"],
    );
    run.refuses("score", &["--anomaly-labels", "9"], &["no labels", "--against"]);
    assert!(!Path::new(&run.folder).join("scores").exists());

    let scratch = Scratch::new();
    for command in ["sample", "reconstruct"] {
        let outcome = scratch.runner(&[command, "nowhere", "--out", "a.png"]);
        outcome.refused(&["nowhere is no run folder", "recipe.yaml"]);
    }
    let outcome = scratch.runner(&["interpolate", "nowhere", "--pairs", "1", "--out", "a.png"]);
    outcome.refused(&["no run folder"]);
    scratch.runner(&["score", "nowhere"]).refused(&["no run folder"]);
    scratch.runner(&["eval", "nowhere"]).refused(&["no run folder"]);
}

/// In the Gaussian model of σ = 0.2, φ at the MAP latent of y is ‖y‖²/(2(1 + σ²)): it increases with the distance.
///
/// Data from N(0, I) against N(4·1, 0.1²I), whose points all lie farther out than 5: one of 50 normal points does so
/// with probability exp(−5²/2) < 4e-6.
#[test]
fn far_points_score_higher() {
    let run = Trained::gaussian("0.0");
    let far = [
        "--against",
        "gaussian",
        "--against-set",
        "mean=4",
        "--against-set",
        "std=0.1",
    ];
    let more = ["--map-steps", "200", "--json"];
    let summary: Value = serde_json::from_str(&run.run("score", &[&far[..], &more].concat())).unwrap();
    let total = &summary["scores"]["total"];
    assert_eq!(
        (total["auroc"].as_f64(), total["auprc"].as_f64()),
        (Some(1.0), Some(1.0))
    );
    assert_eq!(summary["scores"]["energy"]["auroc"].as_f64(), Some(1.0));
    assert_eq!(summary["normal"]["points"], 50);
    assert_eq!(summary["anomaly_share"], 0.5);

    let folder = Path::new(&run.folder).join("scores/gaussian-validation-against-gaussian");
    let written: Value =
        serde_json::from_str(&fs::read_to_string(folder.join("summary.json")).unwrap()).unwrap();
    assert_eq!(written, summary);
    assert_eq!(png_size(&folder.join("histogram.png")), (1680, 420));
    let csv = fs::read_to_string(folder.join("scores.csv")).unwrap();
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines[0], "set,index,anomaly,energy,reconstruction,total");
    assert_eq!(lines.len(), 1 + 100);
    run.run(
        "reconstruct",
        &["--out", "r.h5", "--n", "50", "--map-steps", "200"],
    );
    let data = read_hdf5(&run.path("r.h5"), "data").1;
    for (line, y) in lines[1..51].iter().zip(data.chunks(2)) {
        let numbers: Vec<f32> = line.split(',').skip(3).map(|n| n.parse().unwrap()).collect();
        let phi = (y[0] * y[0] + y[1] * y[1]) / 2.08;
        assert!((numbers[0] + numbers[1] - numbers[2]).abs() < 1e-3);
        assert!((numbers[2] - phi).abs() < 0.01, "{line}, expected {phi}");
    }
}

/// 45 images with the labels 0 to 9 in turn; the nines were excluded from training.
#[test]
fn held_out_labels_are_anomalies() {
    let scratch = Scratch::with_small();
    data::write(&scratch.path().join("data/mnist"), "mnist");
    let folder = scratch.train(&[
        "--set",
        "dataset={name: mnist, exclude_labels: [9]}",
        "--set",
        "generator={name: small_generator, width: 2, latent_dim: 4}",
    ]);
    let folder = folder.display().to_string();
    let score = |more: &[&str]| scratch.runner(&[&["score", &folder, "--json"], more].concat());
    let summary = score(&["--anomaly-labels", "8,9"]).json();
    assert_eq!(
        (&summary["normal"]["points"], &summary["anomalies"]["points"]),
        (&37.into(), &8.into())
    );
    assert_eq!(summary["anomalies"]["name"], "mnist labels 8 9");
    for kind in ["energy", "reconstruction", "total"] {
        let scores = &summary["scores"][kind];
        let [auroc, auprc] = ["auroc", "auprc"].map(|name| scores[name].as_f64().unwrap());
        assert!(
            (0.0..=1.0).contains(&auroc) && auprc > 0.0 && auprc <= 1.0,
            "{scores}"
        );
    }
    let csv = Path::new(&folder).join("scores/mnist-validation-labels-8-9/scores.csv");
    for line in fs::read_to_string(csv).unwrap().lines().skip(1) {
        let cells: Vec<_> = line.split(',').collect();
        let index: usize = cells[1].parse().unwrap();
        assert_eq!(cells[2] == "1", index % 10 >= 8, "{line}");
    }
    score(&["--anomaly-labels", "9", "--split", "train"]).refused(&[
        "no point of data set `mnist`, split `train`, has the label 9",
        "--data-set",
        "0, 1, 2, 3, 4, 5, 6, 7, 8",
    ]);
    let all = [
        "--data-set",
        "exclude_labels=[]",
        "--data",
        "mnist",
        "--split",
        "train",
    ];
    let summary = score(&[&["--anomaly-labels", "9"], &all[..]].concat()).json();
    assert_eq!(summary["anomalies"]["points"], 4);
    score(&["--anomaly-labels", "0,1,2,3,4,5,6,7,8,9"]).refused(&["every point"]);
}

/// The posterior of y is N(y/(1 + σ²), …): its mean is the MAP latent, up to the noise of a short chain.
#[test]
fn scores_at_posterior_means_are_near_those_at_map_latents() {
    let run = Trained::gaussian("0.0");
    let score = |latents: &str| {
        let arguments = [
            "--latents",
            latents,
            "--chain-steps",
            "2000",
            "--json",
            "--out",
            latents,
            "--limit",
            "20",
            "--batch",
            "8",
        ];
        let summary: Value = serde_json::from_str(&run.run("score", &arguments)).unwrap();
        assert_eq!(summary["normal"]["points"], 20);
        assert_eq!(summary["latents"], latents);
        assert!(summary["scores"]["energy"].get("auroc").is_none());
        summary["scores"]["energy"]["normal"]["mean"].as_f64().unwrap()
    };
    let (map, posterior) = (score("map"), score("posterior"));
    // 1000 steps of 0.1σ² average to a standard deviation of √(2/100)σ ≈ 0.03 in x, for energies of about 1.
    assert!((map - posterior).abs() < 0.1, "{map} and {posterior}");
    assert_ne!(map, posterior);
    assert!(run.path("map/scores.csv").is_file());
}

#[test]
fn the_mean_square_error_is_a_metric() {
    let run = Trained::gaussian("0.0");
    let mse = |more: &[&str]| {
        let said = run.run("eval", &[&["--metrics", "mse", "--json"], more].concat());
        let found: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(found["facts"]["mse"]["steps"], 300);
        found["mse"].as_f64().unwrap()
    };
    let all = mse(&["--set", "evaluate.metrics.mse.steps=300"]);
    // (σ²/(1 + σ²))²·E y² with E y² = 1 ± 5·√(2/100).
    let expected = (0.04f64 / 1.04).powi(2);
    assert!((all / expected - 1.0).abs() < 0.75, "{all}, expected {expected}");
    let some = mse(&["--set", "evaluate.metrics.mse={points: 10, steps: 300}"]);
    assert!(some != all && (some / expected - 1.0).abs() < 2.0, "{some}");
}

#[test]
fn averages_are_used_if_a_run_keeps_them() {
    let run = Trained::new(&["--set", "optimizer.energy={average: 0.5, lr: 0.05}"]);
    run.run("sample", &["--out", "average.npy"]);
    run.run(
        "sample",
        &["--out", "plain.npy", "--set", "optimizer.energy.average=null"],
    );
    let [average, plain] = ["average.npy", "plain.npy"].map(|name| read_npy(&run.path(name)).1);
    assert_ne!(average, plain);
}

/// 28 pixels and 2 of padding for each image, and 2 more at the end.
fn cells(count: u32) -> u32 {
    30 * count + 2
}

#[test]
fn images_are_shown_in_grids() {
    let run = Trained::images();
    run.run("sample", &["--n", "10", "--out", "s.png"]);
    assert_eq!(png_size(&run.path("s.png")), (cells(4), cells(3)));
    run.run("sample", &["--n", "70", "--out", "s.h5"]);
    let (shape, samples) = read_hdf5(&run.path("s.h5"), "samples");
    assert_eq!(shape, [70, 1, 28, 28]);
    let bounded = samples.iter().all(|pixel| (-1.0..=1.0).contains(pixel));
    assert!(bounded, "images have no noise by default");

    for (split, how) in [("validation", "from MAP latents"), ("train", "their particles")] {
        let said = run.run("reconstruct", &["--split", split, "--n", "20", "--out", "r.png"]);
        assert!(said.contains(how) && said.contains("mse "), "{said}");
        // Rows of 16 and 4, each with its partners below.
        assert_eq!(png_size(&run.path("r.png")), (cells(16), cells(4)));
    }
    run.run("interpolate", &["--pairs", "3", "--steps", "6", "--out", "i.png"]);
    assert_eq!(png_size(&run.path("i.png")), (cells(6 + 2), cells(3)));
    run.run("compose", &[&run.folder, "--n", "4", "--out", "c.png"]);
    assert_eq!(png_size(&run.path("c.png")), (cells(2), cells(2)));
}

/// MAP latents from a run on images: `reconstruct` and the metric agree on their mean square error.
#[test]
fn reconstruct_and_the_metric_measure_the_same() {
    let run = Trained::images();
    let said = run.run(
        "reconstruct",
        &["--n", "20", "--out", "r.npy", "--map-starts", "8"],
    );
    let line = said.lines().find_map(|line| line.strip_prefix("mse ")).unwrap();
    let shown: f64 = line.parse().unwrap();
    let starts = "evaluate.metrics.mse.starts=8";
    let said = run.run("eval", &["--metrics", "mse", "--json", "--set", starts]);
    let measured = serde_json::from_str::<Value>(&said).unwrap()["mse"]
        .as_f64()
        .unwrap();
    // From other random starts the search ends at other points of similar quality.
    assert!((shown / measured - 1.0).abs() < 0.1, "{shown} and {measured}");
}
