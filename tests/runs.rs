//! The files of a run, its reproducibility, and how it ends.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;

use serde_json::Value;
use support::{ENDLESS, Scratch, metrics};

/// Frozen networks give the same value in every evaluation, although it is computed from a few random samples; another
/// seed gives another value.
#[test]
fn all_evaluations_of_a_run_draw_the_same_random_numbers() {
    let values = |seed: &str| {
        let scratch = Scratch::with_small();
        let still = [
            "evaluate={every: 2, metrics: {sliced_w2: {samples: 20}}}",
            "optimizer={energy: {lr: 1e-30}, generator: {lr: 1e-30}}",
        ];
        let set = still.iter().flat_map(|text| ["--set", text]);
        let folder = scratch.train(&[&["--seed", seed][..], &set.collect::<Vec<_>>()].concat());
        let lines = metrics(&folder);
        let values = lines
            .iter()
            .filter_map(|line| line["evaluate/sliced_w2"].as_f64());
        values.collect::<Vec<_>>()
    };
    let one = values("1");
    assert_eq!(one, [one[0]; 3]);
    assert_ne!(one[0], values("2")[0]);
}

#[test]
fn a_run_folder_has_the_files_that_scripts_rely_on() {
    let scratch = Scratch::with_small();
    let folder = scratch.train(&["--set", "evaluate.metrics={sliced_w2: {samples: 20}}"]);
    let shown = scratch
        .runner(&[
            "show",
            "--recipe",
            "small.yaml",
            "--json",
            "--set",
            "evaluate.metrics={sliced_w2: {samples: 20}}",
        ])
        .json();
    let name = format!("small-{}-s1", shown["hash"].as_str().unwrap());
    assert_eq!(folder, scratch.path().join("runs").join(name));

    // 40 points in batches of 16 are 3 steps per epoch, the last one ragged.
    let lines = metrics(&folder);
    let steps: Vec<_> = lines.iter().map(|line| line["step"].as_u64().unwrap()).collect();
    assert_eq!(
        steps,
        [1, 2, 3, 4, 5, 6, 6],
        "one line per step, one for the evaluation"
    );
    assert_eq!(lines[2]["epoch"], 0);
    assert_eq!(lines[3]["epoch"], 1);
    assert!(lines[0]["loss/energy"].is_f64() && lines[0]["loss/generator"].is_f64());

    let evaluation: Value =
        serde_json::from_str(&fs::read_to_string(folder.join("evaluation.json")).unwrap()).unwrap();
    assert_eq!(evaluation["step"], 6);
    assert_eq!(evaluation["sliced_w2"], lines[6]["evaluate/sliced_w2"]);

    let png = fs::read(folder.join("figures/step_00000006_model.png")).unwrap();
    assert_eq!(png[..8], [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a]);
    for file in ["energy.safetensors", "generator.safetensors"] {
        assert!(folder.join("checkpoints/step_00000006").join(file).is_file());
    }
    let log = fs::read_to_string(folder.join("log.txt")).unwrap();
    assert!(
        log.contains("run folder") && log.contains("40 data points"),
        "{log}"
    );
    let leftovers: Vec<_> = walk(&folder)
        .into_iter()
        .filter(|name| name.contains("unfinished"))
        .collect();
    assert!(leftovers.is_empty(), "{leftovers:?}");
}

#[test]
fn provenance_records_what_ran() {
    let scratch = Scratch::with_small();
    let folder = scratch.train(&["--seed", "5"]);
    let provenance: Value =
        serde_json::from_str(&fs::read_to_string(folder.join("provenance.json")).unwrap()).unwrap();
    assert_eq!(provenance["versions"]["tch"], "0.26.0");
    assert!(
        provenance["versions"]["libtorch"]
            .as_str()
            .unwrap()
            .starts_with("2.13")
    );
    assert!(provenance["versions"]["hdf5"].as_str().unwrap().contains('.'));
    assert_eq!(provenance["device"], "cpu");
    assert_eq!(provenance["threads"], 1);
    assert_eq!(provenance["seed"], 5);
    assert_eq!(provenance["outcome"], "finished");
    assert!(provenance["git"].is_null() || provenance["git"]["commit"].as_str().unwrap().len() >= 40);
    let arguments: Vec<_> = provenance["command_line"]
        .as_array()
        .unwrap()
        .iter()
        .skip(1)
        .collect();
    assert_eq!(arguments, ["--recipe", "small.yaml", "--seed", "5"]);
    assert!(provenance["start"].as_str() <= provenance["end"].as_str());
    for key in ["host", "start", "end"] {
        assert!(!provenance[key].as_str().unwrap().is_empty(), "{key}");
    }
}

#[test]
fn a_run_folder_is_never_overwritten() {
    let scratch = Scratch::with_small();
    let first = scratch.train(&[]);
    let before = fs::read(first.join("provenance.json")).unwrap();
    let second = scratch.train(&[]);
    assert_eq!(format!("{}-2", first.display()), second.display().to_string());
    assert_eq!(before, fs::read(first.join("provenance.json")).unwrap());
}

#[test]
fn the_resolved_recipe_reproduces_the_run() {
    let scratch = Scratch::with_small();
    let first = scratch.train(&[
        "--set",
        "optimizer.energy.lr=0.003",
        "--set",
        "algorithm.warmup={steps: 2}",
    ]);
    let recipe = first.join("recipe.yaml");
    let again = scratch.runner(&["--recipe", recipe.to_str().unwrap()]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    let again = again.folder(&scratch);
    assert_eq!(
        fs::read(&recipe).unwrap(),
        fs::read(again.join("recipe.yaml")).unwrap()
    );
    assert_eq!(metrics(&first), metrics(&again));
    let hash = |folder: &Path| {
        folder
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .split('-')
            .nth(1)
            .unwrap()
            .to_owned()
    };
    assert_eq!(hash(&first), hash(&again));
}

/// The weights after training, as bytes.
fn weights(folder: &Path) -> Vec<Vec<u8>> {
    let checkpoint = folder.join("checkpoints/step_00000006");
    ["energy", "generator"]
        .map(|name| fs::read(checkpoint.join(format!("{name}.safetensors"))).unwrap())
        .into()
}

fn particles(folder: &Path) -> Vec<f32> {
    let file = hdf5::File::open(folder.join("particles/step_00000006.h5")).unwrap();
    file.dataset("particles").unwrap().read_raw().unwrap()
}

#[test]
fn recording_does_not_change_a_run() {
    for noise in [
        "algorithm.noise=lazy",
        "algorithm.noise=eager",
        "algorithm.warmup={steps: 3}",
    ] {
        let scratch = Scratch::with_small();
        let quiet = scratch.train(&[
            "--set",
            noise,
            "--set",
            "record.metrics.every=0",
            "--set",
            "record.tensorboard.every=0",
        ]);
        let busy = scratch.train(&[
            "--set",
            noise,
            "--set",
            "record.particles.every=1",
            "--set",
            "record.figures.every=2",
            "--set",
            "evaluate={every: 1, metrics: {sliced_w2: {samples: 30}}}",
        ]);
        assert!(busy.join("particles/step_00000003.h5").is_file());
        assert_eq!(weights(&quiet), weights(&busy), "{noise}");
        assert_eq!(particles(&quiet), particles(&busy), "{noise}");

        let other_seed = scratch.train(&["--set", noise, "--seed", "2"]);
        assert_ne!(weights(&quiet), weights(&other_seed), "{noise}");
    }
}

#[test]
fn longer_chains_get_separate_numbers() {
    let scratch = Scratch::with_small();
    let metrics =
        "evaluate.metrics={sliced_w2: {samples: 20, chain_lengths: [1, 4]}, mmd: {chain_lengths: [2]}}";
    let folder = scratch.train(&["--set", metrics]);
    let text = fs::read_to_string(folder.join("evaluation.json")).unwrap();
    let numbers: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
    let names: Vec<_> = numbers.keys().collect();
    assert_eq!(
        names,
        ["step", "mmd/chains_x2", "sliced_w2", "sliced_w2/chains_x4"]
    );
}

#[test]
fn eval_reproduces_metrics_and_computes_others() {
    let scratch = Scratch::with_small();
    for average in ["null", "0.9"] {
        let average = format!("optimizer.energy.average={average}");
        let folder = scratch.train(&[
            "--set",
            &average,
            "--set",
            "evaluate.metrics={sliced_w2: {samples: 50}}",
        ]);
        let text = fs::read_to_string(folder.join("evaluation.json")).unwrap();
        let recorded: Value = serde_json::from_str(&text).unwrap();
        let folder = folder.to_str().unwrap();
        let again = scratch.runner(&["eval", folder, "--json"]).json();
        assert_eq!(again["sliced_w2"], recorded["sliced_w2"]);
        let longer = scratch.runner(&["eval", folder, "--json", "--set", "evaluation_sampler.steps=40"]);
        assert_ne!(longer.json()["sliced_w2"], recorded["sliced_w2"]);
        let lengths = "evaluate.metrics.sliced_w2.chain_lengths=[1, 2]";
        let arguments = [
            "eval",
            folder,
            "--json",
            "--metrics",
            "sliced_w2",
            "--set",
            lengths,
        ];
        let both = scratch.runner(&arguments).json();
        assert_eq!(both["sliced_w2"], recorded["sliced_w2"]);
        assert!(both["sliced_w2/chains_x2"].is_f64());
        let other = scratch
            .runner(&["eval", folder, "--json", "--metrics", "mmd"])
            .json();
        assert_eq!(other.as_object().unwrap().keys().collect::<Vec<_>>(), ["mmd"]);
        let unfitting = scratch.runner(&["eval", folder, "--set", "energy.hidden=9"]);
        assert_eq!(unfitting.code, 1);
        assert!(
            unfitting
                .stderr
                .contains("tensor `layers.0.weight` is Float [8, 2], expected Float [9, 2]"),
            "{}",
            unfitting.stderr
        );
    }
    scratch.runner(&["eval", "nowhere"]).refused(&["no run folder"]);
}

#[test]
fn the_storage_of_particles_does_not_affect_results() {
    for algorithm in [
        "algorithm.noise=lazy",
        "algorithm.noise=eager",
        "algorithm.warmup={steps: 3}",
        "algorithm.name=ebipla_underdamped",
    ] {
        let scratch = Scratch::with_small();
        let in_memory = scratch.train(&["--set", algorithm]);
        let in_file = scratch.train(&[
            "--set",
            algorithm,
            "--set",
            "run.particles={memory: 0, device: cpu}",
        ]);
        let said = |folder: &Path| {
            let log = fs::read_to_string(folder.join("log.txt")).unwrap();
            log.contains("of particles in a file in")
        };
        assert_eq!((said(&in_memory), said(&in_file)), (false, true), "{algorithm}");
        assert_eq!(metrics(&in_memory), metrics(&in_file), "{algorithm}");
        assert_eq!(weights(&in_memory), weights(&in_file), "{algorithm}");
        assert_eq!(particles(&in_memory), particles(&in_file), "{algorithm}");
        assert_eq!(
            format!("{}-2", in_memory.display()),
            in_file.display().to_string(),
            "it is the same experiment"
        );
        assert_eq!(scratch.entries(), ["runs", "small.yaml"]);
        assert_eq!(fs::read_dir(scratch.path().join("runs")).unwrap().count(), 2);
    }
}

#[test]
fn particles_that_do_not_fit_anywhere_are_refused_before_anything_is_written() {
    let scratch = Scratch::with_small();
    let outcome = scratch.runner(&[
        "--recipe",
        "small.yaml",
        "--set",
        "run.particles.memory=0",
        "--set",
        "algorithm.particles=1e6",
        "--set",
        "dataset.size=100000",
        "--set",
        "generator.latent_dim=1000",
    ]);
    outcome.refused(&["algorithm", "363.80 TiB", "--out", "run.particles.memory"]);
    assert_eq!(scratch.entries(), ["small.yaml"]);
}

#[test]
fn particle_dumps_have_the_documented_layout() {
    let scratch = Scratch::with_small();
    let folder = scratch.train(&[]);
    let file = hdf5::File::open(folder.join("particles/step_00000006.h5")).unwrap();
    let dataset = file.dataset("particles").unwrap();
    assert_eq!(dataset.shape(), [40, 2, 2]);
    let chunk = dataset.chunk().unwrap();
    assert_eq!(chunk[1..], [2, 2], "chunks hold whole data points");
    let number = |name: &str| dataset.attr(name).unwrap().read_scalar::<u64>().unwrap();
    assert_eq!((number("step"), number("epoch"), number("seed")), (6, 1, 1));
    let raw = dataset
        .attr("raw_step_size")
        .unwrap()
        .read_scalar::<f64>()
        .unwrap();
    assert!((raw - 0.5 * 0.04).abs() < 1e-12, "h in units of σ²");
    let hash: hdf5::types::VarLenUnicode = dataset.attr("recipe_hash").unwrap().read_scalar().unwrap();
    assert!(folder.display().to_string().contains(hash.as_str()));
    assert!(particles(&folder).iter().all(|value| value.is_finite()));
}

#[test]
fn zero_steps_initialise_and_write() {
    let scratch = Scratch::with_small();
    let folder = scratch.train(&["--set", "run.max_steps=0"]);
    assert!(metrics(&folder).is_empty());
    for file in [
        "particles/step_00000000.h5",
        "checkpoints/step_00000000/energy.safetensors",
        "figures/step_00000000_model.png",
    ] {
        assert!(folder.join(file).is_file(), "{file}");
    }
}

/// The event file is a sequence of records: length (8 bytes), checksum (4), data, checksum (4).
#[test]
fn tensorboard_gets_every_scalar() {
    let scratch = Scratch::with_small();
    let folder = scratch.train(&[]);
    // The end of a run has a file of its own.
    let files = fs::read_dir(folder.join("tensorboard")).unwrap();
    let files: Vec<_> = files
        .map(|file| fs::read(file.unwrap().path()).unwrap())
        .collect();
    for bytes in &files {
        // Complete records only: length, its checksum, that many bytes, their checksum.
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let length = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
            rest = &rest[8 + 4 + length + 4..];
        }
    }
    let bytes = files.concat();
    for name in metrics(&folder)[0].as_object().unwrap().keys().skip(2) {
        let tags = bytes
            .windows(name.len())
            .filter(|window| *window == name.as_bytes());
        assert!(tags.count() >= 6, "{name} in each of six steps");
    }
}

#[test]
fn a_metric_without_the_points_that_it_needs_is_refused_before_anything_is_trained() {
    for metric in ["sliced_w2", "mmd", "log_likelihood", "mse"] {
        let scratch = Scratch::with_small();
        let metrics = format!("evaluate.metrics={{{metric}: {{}}}}");
        let outcome = scratch.runner(&[
            "--recipe",
            "small.yaml",
            "--set",
            "dataset.validation=0",
            "--set",
            &metrics,
        ]);
        assert_eq!(outcome.code, 2, "{metric}: {}", outcome.stderr);
        let key = format!("evaluate.metrics.{metric}");
        assert!(
            outcome.stderr.contains(&key) && outcome.stderr.contains("held-out"),
            "{metric}: {}",
            outcome.stderr
        );
        assert!(!scratch.path().join("runs").exists());
    }
}

#[test]
fn divergence_ends_with_exit_code_3_and_reports_where() {
    let scratch = Scratch::with_small();
    let outcome = scratch.runner(&["--recipe", "small.yaml", "--set", "optimizer.generator.lr=1e6"]);
    assert_eq!(outcome.code, 3, "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("diverged: ") && outcome.stderr.contains("at step"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn exploding_chains_are_detected_before_they_overflow() {
    let scratch = Scratch::with_small();
    let mut arguments = vec!["--recipe", "small.yaml", "--set", "prior_sampler.step_size=1e6"];
    arguments.extend(["--set", "guard={every: 1, energy: null}"]);
    arguments.extend(["--set", "record.checkpoint.every=1"]);
    let outcome = scratch.runner(&arguments);
    assert_eq!(outcome.code, 3, "{}", outcome.stderr);
    for said in [
        "latent/prior",
        "at step 1 (guard.latent: 1e3)",
        "prior_sampler.step_size",
    ] {
        assert!(outcome.stderr.contains(said), "{said}: {}", outcome.stderr);
    }
    let folders: Vec<_> = fs::read_dir(scratch.path().join("runs")).unwrap().collect();
    let folder = folders[0].as_ref().unwrap().path();
    assert!(!folder.join("checkpoints").exists(), "a diverged state was saved");
}

#[test]
fn advice_against_divergence_names_options_that_exist() {
    let scratch = Scratch::with_small();
    let advice = |more: &[&str]| {
        let steps = ["--recipe", "small.yaml", "--set", "prior_sampler.step_size=1e6"];
        let outcome = scratch.runner(&[&steps, more].concat());
        assert_eq!(outcome.code, 3, "{}", outcome.stderr);
        let (_, advice) = outcome.stderr.split_once("; try ").unwrap();
        advice.lines().next().unwrap().to_owned()
    };
    assert_eq!(
        advice(&[]),
        "a smaller prior_sampler.step_size, prior_sampler.name=tamed_ula or mala, a smaller optimizer.energy.lr or \
         optimizer.energy.decay, optimizer.energy.clip_norm, energy.tilt, or loss.energy_l2"
    );
    // An energy without a tilt, and an algorithm that does not use the optimisers.
    assert_eq!(
        advice(&[
            "--set",
            "energy.name=quadratic",
            "--set",
            "algorithm={name: ebipla_full, particles: 2}",
            "--set",
            "run.batch_size=40",
        ]),
        "a smaller prior_sampler.step_size, prior_sampler.name=tamed_ula or mala, a smaller algorithm.step_size, or \
         loss.energy_l2"
    );
}

#[test]
fn evaluation_options_do_not_affect_training() {
    let scratch = Scratch::with_small();
    let measured = "evaluate.metrics={sliced_w2: {samples: 200}}";
    let train = |more: &[&str]| {
        let folder = scratch.train(&[&["--set", measured, "--set", "evaluate.every=2"], more].concat());
        let (mut evaluated, trained): (Vec<_>, Vec<_>) = metrics(&folder)
            .into_iter()
            .partition(|line| line.get("evaluate/sliced_w2").is_some());
        (
            trained,
            evaluated.remove(0)["evaluate/sliced_w2"].as_f64().unwrap(),
        )
    };
    let (trained, plain) = train(&[]);
    for change in [
        "evaluation_sampler.steps=300",
        "evaluation_sampler.name=hmc",
        "optimizer.energy.average=0.9",
    ] {
        let (same, other) = train(&["--set", change]);
        assert_eq!(same, trained, "{change}");
        assert_ne!(other, plain, "{change}");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_finishes_the_step_checkpoints_and_exits_with_130() {
    let scratch = Scratch::with_small();
    let mut run = scratch.start(&[&["--recipe", "small.yaml"], &ENDLESS[..]].concat());
    run.wait_until(|| has_metrics(scratch.path()));
    run.send("-INT");
    let outcome = run.end();
    assert_eq!(outcome.code, 130, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("interrupted after"), "{}", outcome.stderr);
    let folder = outcome.folder(&scratch);
    let last = metrics(&folder).last().unwrap()["step"].as_u64().unwrap();
    assert!(
        folder
            .join(format!("checkpoints/step_{last:08}/state.json"))
            .is_file()
    );
    let provenance = fs::read_to_string(folder.join("provenance.json")).unwrap();
    assert!(provenance.contains("\"outcome\": \"interrupted\""));
}

fn has_metrics(scratch: &Path) -> bool {
    let Ok(runs) = fs::read_dir(scratch.join("runs")) else {
        return false;
    };
    let mut files = runs.map(|run| run.unwrap().path().join("metrics.jsonl"));
    files.any(|file| fs::metadata(file).is_ok_and(|facts| facts.len() > 0))
}

#[test]
fn the_log_follows_the_environment_filter() {
    let scratch = Scratch::with_small();
    let outcome = scratch.runner_with_env(&["--recipe", "small.yaml"], &[("RUST_LOG", "error")]);
    assert_eq!(outcome.code, 0);
    assert_eq!(outcome.stderr, "");
    let log = fs::read_to_string(outcome.folder(&scratch).join("log.txt")).unwrap();
    assert_eq!(log, "");
}

fn walk(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names.extend(walk(&path));
        }
        names.push(path.display().to_string());
    }
    names
}
