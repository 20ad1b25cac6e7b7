//! A crate outside the workspace registers a plugin and builds its own runner.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::{Outcome, Scratch, metrics};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Copies the example out of the repository and builds it there, with the compiled dependencies of this build.
fn build(scratch: &Scratch, features: &[&str]) -> PathBuf {
    let example = Path::new(ROOT).join("examples/custom_sampler");
    for file in ["build.rs", "src/main.rs", "src/bin/bare.rs"] {
        scratch.write(file, &fs::read_to_string(example.join(file)).unwrap());
    }
    let faulty = Path::new(ROOT).join("tests/custom_plugin/faulty.rs");
    scratch.write("src/bin/faulty.rs", &fs::read_to_string(faulty).unwrap());
    let manifest = fs::read_to_string(example.join("Cargo.toml")).unwrap();
    scratch.write("Cargo.toml", &manifest.replace("../..", ROOT));
    fs::copy(
        Path::new(ROOT).join("Cargo.lock"),
        scratch.path().join("Cargo.lock"),
    )
    .unwrap();

    let binary = Path::new(env!("CARGO_BIN_EXE_runner"));
    let (profile_folder, target) = (binary.parent().unwrap(), binary.ancestors().nth(2).unwrap());
    let deps = Path::new(ROOT).join(".deps");
    let or = |name: &str, default: PathBuf| std::env::var_os(name).unwrap_or(default.into_os_string());
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(scratch.path())
        .args(["build", "--offline", "--quiet", "--features", &features.join(",")])
        .env("CARGO_TARGET_DIR", target)
        .env("LIBTORCH", or("LIBTORCH", deps.join("libtorch/torch")))
        .env("CMAKE", or("CMAKE", deps.join("cmake/cmake/data/bin/cmake")));
    if profile_folder.ends_with("release") {
        cargo.arg("--release");
    }
    let outcome = Outcome::of(cargo.output().unwrap());
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    profile_folder.to_owned()
}

fn call(program: &Path, scratch: &Scratch, arguments: &[&str]) -> Outcome {
    let mut command = Command::new(program);
    command
        .current_dir(scratch.path())
        .args(arguments)
        .env_remove("RUST_BACKTRACE");
    Outcome::of(command.output().unwrap())
}

/// One test, since all parts share one build.
#[test]
fn a_plugin_from_another_crate() {
    let scratch = Scratch::with_small();

    let programs = build(&scratch, &["clash"]);
    call(&programs.join("custom-sampler"), &scratch, &["list"]).refused(&[
        "two plugins are called prior_sampler `ula`",
        "crate `custom_sampler`",
        "crate `ebipla_plugins`",
    ]);

    let programs = build(&scratch, &[]);
    let runner = programs.join("custom-sampler");
    let described = call(&runner, &scratch, &["describe", "prior_sampler", "random_walk"]);
    assert!(
        described.stdout.contains("crate custom_sampler"),
        "{}",
        described.stdout
    );
    assert!(
        described
            .stdout
            .contains("scale  (number > 0 and ≤ 1e6; default 0.2; unit: latent units)")
    );
    let trained = call(
        &runner,
        &scratch,
        &[
            "--recipe",
            "small.yaml",
            "--set",
            "prior_sampler.name=random_walk",
        ],
    );
    assert_eq!(trained.code, 0, "{}", trained.stderr);
    let lines = metrics(&trained.folder(&scratch));
    let acceptance = lines[0]["prior_sampler/acceptance"].as_f64().unwrap();
    assert!(acceptance > 0.5 && acceptance <= 1.0, "{acceptance}");

    let provenance = fs::read_to_string(trained.folder(&scratch).join("provenance.json")).unwrap();
    let provenance: Value = serde_json::from_str(&provenance).unwrap();
    assert_eq!(provenance["program"], "custom-sampler");
    assert_eq!(provenance["versions"]["runner"], "0.1.0");
    assert!(provenance["git"].is_null(), "it is outside any repository");
    // Neither the working folder nor the crate has recipes; some of the embedded ones extend others.
    for recipe in ["quickstart", "swiss_roll_hmc.yaml"] {
        let shown = call(&runner, &scratch, &["show", "--recipe", recipe, "--json"]).json();
        let origin = shown["origins"]["dataset.name"].as_str().unwrap().to_owned();
        assert!(origin.starts_with("built-in/"), "{origin}");
    }
    scratch.write("mine.yaml", "extends: quickstart\nrun: { epochs: 1 }\n");
    let shown = call(&runner, &scratch, &["show", "--recipe", "mine.yaml", "--json"]).json();
    assert_eq!(shown["origins"]["run.epochs"], "mine.yaml:2");
    let planned = call(&runner, &scratch, &["sweep", "--file", "nowhere"]);
    planned.refused(&["no such sweep", "built-in/sweeps", "samplers_small"]);

    call(&programs.join("bare"), &scratch, &["list"])
        .refused(&["no algorithm is registered", "use ebipla_plugins as _;"]);
    mistakes_are_noticed(&programs.join("faulty"), &scratch);
}

fn mistakes_are_noticed(faulty: &Path, scratch: &Scratch) {
    let check = |set: &[&str]| {
        let set = set.iter().flat_map(|text| ["--set", text]);
        let arguments: Vec<_> = ["check", "--recipe", "small.yaml"]
            .into_iter()
            .chain(set)
            .collect();
        call(faulty, scratch, &arguments)
    };
    // Correct plugins raise no complaint: a network may keep its own handles.
    for right in ["energy={name: mlp, hidden: 8}", "energy={name: stiffness}"] {
        let found = check(&[right]);
        assert_eq!(found.code, 0, "{}", found.stderr);
        assert!(!found.stderr.contains("WARN"), "{}", found.stderr);
    }
    let warned = |set: &str, words: &[&str]| {
        let found = check(&[set]);
        assert_eq!(found.code, 0, "{}", found.stderr);
        for word in words {
            assert!(found.stderr.contains(word), "no `{word}` in {}", found.stderr);
        }
    };
    warned(
        "energy={name: stiffness, copy: true}",
        &["gradients of the energy for all its 1 parameters are exactly zero"],
    );
    warned(
        "algorithm={name: counting}",
        &[
            "the next step gives another latent/count, 1e0 in place of 2e0",
            "guard.latent has nothing to watch",
        ],
    );
    let saved = check(&["algorithm={name: counting, saves: true}"]);
    assert!(!saved.stderr.contains("latent/count"), "{}", saved.stderr);
    let refused = |set: &str, word: &str| {
        let found = check(&[set]);
        assert_ne!(found.code, 0);
        assert!(found.stderr.contains(word), "no `{word}` in {}", found.stderr);
    };
    refused(
        "algorithm={name: counting, saves: true, twice: true}",
        "two slots of the state of algorithm are called `count`",
    );
    refused("algorithm={name: counting, average: true}", "average: only");

    let train = ["--recipe", "small.yaml", "--set", "prior_sampler.name=blind"];
    let run = call(faulty, scratch, &train).folder(scratch);
    let run = run.to_str().unwrap();
    call(
        faulty,
        scratch,
        &["compose", run, run, "--n", "4", "--out", "both.npy"],
    )
    .refused(&["draws without looking at the energy"]);
}

/// The page on writing plugins shows the example as it is, without its module comment and its `clash`.
#[test]
fn the_documentation_shows_the_example() {
    let read = |name: &str| fs::read_to_string(Path::new(ROOT).join(name)).unwrap();
    let code = |text: &str| -> Vec<String> {
        let lines = text
            .lines()
            .map(|line| line.split(" // ").next().unwrap_or_default().trim_end());
        let kept = lines.filter(|line| !line.is_empty() && !line.starts_with("//!"));
        kept.map(str::to_owned).collect()
    };
    let page = read("docs/plugins.md");
    let shown = page
        .split("```rust")
        .find(|block| block.contains("struct RandomWalk"))
        .unwrap();
    let shown = code(shown.split("```").next().unwrap());
    let mut example = code(&read("examples/custom_sampler/src/main.rs"));
    let clash = example.iter().position(|line| line.contains("clash")).unwrap();
    example.drain(clash..clash + 2);
    assert_eq!(shown, example);
}

/// The page tells authors to implement every trait method that has no default.
#[test]
fn the_documentation_lists_every_required_method() {
    let read = |name: &str| fs::read_to_string(Path::new(ROOT).join(name)).unwrap();
    let page = read("docs/plugins.md");
    for (name, files) in [
        ("PriorSampler", &["chains/prior_sampler"][..]),
        ("Energy", &["model/energy"]),
        ("Generator", &["model/generator"]),
        ("Dataset", &["dataset"]),
        ("Metric", &["metric"]),
        ("Algorithm", &["algorithm", "state"]),
    ] {
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| `dyn {name}` |")))
            .unwrap();
        for file in files {
            let text = read(&format!("framework/core/src/{file}.rs"));
            let body = text
                .split("pub trait ")
                .nth(1)
                .unwrap()
                .split("\n}")
                .next()
                .unwrap();
            let required = body
                .lines()
                .filter(|line| line.starts_with("    fn ") && line.ends_with(';'));
            let mut methods = required.map(|line| line[7..].split('(').next().unwrap());
            assert!(methods.clone().count() > 0, "{name}");
            let missing = methods.find(|method| !row.contains(&format!("`{method}`")));
            assert_eq!(missing, None, "{name}: {row}");
        }
    }
}
