//! Programs that users open our files with read what we wrote: TensorBoard, h5py, NumPy, safetensors.
//!
//! `cargo xtask test` installs them into `.deps/peers`.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::skip::skip;
use support::{Scratch, metrics};

/// The output of a script in `tests/peers`; reports a skip and returns `None` if the packages are not installed.
fn ask(script: &str, arguments: &[&Path]) -> Option<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let packages = root.join(".deps/peers");
    if !packages.join("tensorboard").is_dir() {
        assert!(
            std::env::var_os("CI").is_none(),
            ".deps/peers, which `cargo xtask test` installs, is missing"
        );
        skip(".deps/peers, which `cargo xtask test` installs, is missing");
        return None;
    }
    let output = Command::new("python3")
        .arg(root.join("tests/peers").join(script))
        .args(arguments)
        .env("PYTHONPATH", packages)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// Steps of a curve.
fn steps(points: &Value) -> Vec<u64> {
    let points = points.as_array().unwrap();
    points.iter().map(|point| point[0].as_u64().unwrap()).collect()
}

#[test]
fn tensorboard_shows_every_kind_of_record() {
    let scratch = Scratch::with_small();
    let folder = scratch.train(&[
        "--set",
        "record.figures.every=3",
        "--set",
        "evaluate={every: 3, metrics: {mmd: {}}}",
    ]);
    let Some(seen) = ask("read_tensorboard.py", &[&folder]) else {
        return;
    };

    // Curves equal those in metrics.jsonl, up to TensorBoard's single precision.
    let lines = metrics(&folder);
    let mut compared = 0;
    for line in &lines {
        for (name, value) in line.as_object().unwrap().iter().skip(2) {
            let curve = seen["scalars"][name].as_array().unwrap();
            let point = curve.iter().find(|point| point[0] == line["step"]).unwrap();
            assert_eq!(
                point[1].as_f64().unwrap() as f32,
                value.as_f64().unwrap() as f32,
                "{name}"
            );
            compared += 1;
        }
    }
    assert!(compared > 60, "{compared}");
    for name in [
        "speed/steps_per_second",
        "memory/resident_gib",
        "learning_rate/energy",
    ] {
        assert_eq!(steps(&seen["scalars"][name]), [1, 2, 3, 4, 5, 6], "{name}");
    }
    let raw = seen["scalars"]["constant/raw_step_size_of_the_particles"][0][1].as_f64();
    assert_eq!(raw, Some(f64::from((0.5f64 * 0.2 * 0.2) as f32)));

    // Batches have 16, 16 and 8 points with 2 particles each; the mean over them is the scalar of that name.
    for (step, samples) in [(1, 32.0), (3, 16.0)] {
        let at = &seen["histograms"]["distribution/energy/posterior"][step - 1][1];
        let number = |name: &str| at[name].as_f64().unwrap();
        assert_eq!((number("num"), number("counted")), (samples, samples));
        assert_eq!(number("last_limit"), number("max"));
        let mean = lines[step - 1]["energy/posterior"].as_f64().unwrap();
        // Both are sums of at most 32 single-precision numbers.
        assert!((number("sum") / samples - mean).abs() < 1e-5 * (1.0 + mean.abs()));
        assert!(number("min") <= mean && mean <= number("max"));
    }
    assert_eq!(
        steps(&seen["histograms"]["distribution/latent/posterior_norm"]).len(),
        6
    );
    assert_eq!(steps(&seen["histograms"]["distribution/energy/prior"]).len(), 6);

    let pictures = seen["images"]["model"].as_array().unwrap();
    assert_eq!(pictures.len(), 2, "{pictures:?}");
    for picture in pictures {
        assert_eq!(picture["size"], serde_json::json!([1680, 560]));
        assert_eq!(
            (&picture["size_is_stated"], &picture["same_as_file"]),
            (&true.into(), &true.into())
        );
    }

    let recipe = fs::read_to_string(folder.join("recipe.yaml")).unwrap();
    assert_eq!(seen["text"]["recipe"], format!("```yaml\n{recipe}```"));
    let parameters = &seen["start"]["sessionStartInfo"]["hparams"];
    assert_eq!(parameters["algorithm.particles"], 2.0);
    assert_eq!(parameters["prior_sampler.name"], "ula");
    assert_eq!(seen["end"]["sessionEndInfo"]["status"], "STATUS_SUCCESS");
}

#[test]
fn runs_appear_in_the_hyper_parameters_tab() {
    let scratch = Scratch::with_small();
    for particles in ["2", "4"] {
        let set = format!("algorithm.particles={particles}");
        scratch.train(&["--set", &set, "--set", "evaluate={metrics: {mmd: {}}}"]);
    }
    let Some(seen) = ask("read_hparams.py", &[&scratch.path().join("runs")]) else {
        return;
    };
    let groups = seen["sessionGroups"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    let mut particles: Vec<_> = groups
        .iter()
        .map(|group| group["hparams"]["algorithm.particles"].as_f64().unwrap())
        .collect();
    particles.sort_by(f64::total_cmp);
    assert_eq!(particles, [2.0, 4.0]);
    for group in groups {
        let metrics = group["metricValues"].as_array().unwrap();
        let mmd = metrics
            .iter()
            .find(|metric| metric["name"]["tag"] == "evaluate/mmd");
        assert_eq!(mmd.unwrap()["trainingStep"], 6, "{metrics:?}");
    }
}

/// The last checkpoint is lost, so the steps after the one before it are repeated.
#[test]
fn curves_of_a_resumed_run_have_neither_gaps_nor_overlaps() {
    let scratch = Scratch::with_small();
    let options = [
        "--set",
        "record.checkpoint.every=2",
        "--set",
        "record.figures.every=2",
    ];
    let first = scratch.train(&[&options[..], &["--set", "run.max_steps=5"]].concat());
    fs::remove_dir_all(first.join("checkpoints/step_00000005")).unwrap();
    let resumed = scratch.train(&[&options[..], &["--resume"]].concat());
    assert_eq!(first, resumed);
    let Some(seen) = ask("read_tensorboard.py", &[&resumed]) else {
        return;
    };
    for name in ["loss/energy", "speed/steps_per_second"] {
        assert_eq!(steps(&seen["scalars"][name]), [1, 2, 3, 4, 5, 6], "{name}");
    }
    assert_eq!(
        steps(&seen["histograms"]["distribution/energy/prior"]),
        [1, 2, 3, 4, 5, 6]
    );
    let pictures = seen["images"]["model"].as_array().unwrap();
    let pictured: Vec<_> = pictures
        .iter()
        .map(|picture| picture["step"].as_u64().unwrap())
        .collect();
    assert_eq!(pictured, [2, 4, 6]);
}

#[test]
fn h5py_numpy_and_safetensors_read_the_files_of_a_run() {
    let scratch = Scratch::with_small();
    let folder = scratch.train(&[
        "--set",
        "record.particles={points: 7, deflate: 4}",
        "--set",
        "algorithm.particles=3",
    ]);
    let dump = folder.join("particles/step_00000006.h5");
    let export = scratch.path().join("particles.npy");
    let run = folder.to_str().unwrap();
    let exported = scratch.runner(&["particles", run, "--export", export.to_str().unwrap()]);
    assert_eq!(exported.code, 0, "{}", exported.stderr);
    let summary = scratch.runner(&["particles", run, "--json"]).json();
    let weights = folder.join("checkpoints/step_00000006/energy.safetensors");
    let Some(seen) = ask("read_dump.py", &[&dump, &export, &weights]) else {
        return;
    };

    assert_eq!(seen["shape"], serde_json::json!([7, 3, 2]));
    assert_eq!(seen["chunks"], serde_json::json!([7, 3, 2]));
    assert_eq!(
        (&seen["type"], &seen["compression"]),
        (&"float32".into(), &"gzip".into())
    );
    assert_eq!(
        (&seen["shuffle"], &seen["checksum"]),
        (&true.into(), &true.into())
    );
    assert_eq!(seen["export_is_the_same"], true);
    let indices: Vec<u64> = serde_json::from_value(seen["indices"].clone()).unwrap();
    assert!(
        indices.is_sorted_by(|a, b| a < b) && indices[6] < 40,
        "{indices:?}"
    );
    let attributes = &seen["attributes"];
    for (name, expected) in [("step", 6), ("epoch", 1), ("seed", 1), ("data_points", 40)] {
        assert_eq!(attributes[name], expected, "{name}");
    }
    assert_eq!(attributes["recipe_name"], "small");
    assert_eq!(
        attributes["recipe"].as_str().unwrap(),
        fs::read_to_string(folder.join("recipe.yaml")).unwrap()
    );
    let hash = attributes["recipe_hash"].as_str().unwrap();
    assert!(folder.file_name().unwrap().to_str().unwrap().contains(hash));

    // `runner particles` computes in double precision, as NumPy is asked to here.
    let close = |found: &Value, expected: &Value| {
        let (found, expected) = (found.as_f64().unwrap(), expected.as_f64().unwrap());
        assert!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
    };
    close(&summary[0]["mean"], &seen["mean"]);
    close(&summary[0]["standard_deviation"], &seen["std"]);
    close(&summary[0]["spread"][1], &seen["spread"]);

    let weights = seen["weights"].as_object().unwrap();
    let shapes: Vec<_> = weights.values().map(|weight| weight[1].to_string()).collect();
    assert_eq!(
        shapes.len(),
        6,
        "two hidden layers and the output layer: {weights:?}"
    );
    assert!(weights.values().all(|weight| weight[0] == "float32"));
}
