//! A crate outside the workspace registers a plugin and builds its own runner.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::{Outcome, Scratch, metrics};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Copies the example out of the repository and builds it there, with the compiled dependencies of this build.
fn build(scratch: &Scratch, features: &[&str]) -> PathBuf {
    let example = Path::new(ROOT).join("examples/custom_sampler");
    for file in ["build.rs", "src/main.rs", "src/bin/bare.rs"] {
        scratch.write(file, &fs::read_to_string(example.join(file)).unwrap());
    }
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

/// One test, since all of it shares one build.
#[test]
fn a_plugin_from_outside() {
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

    call(&programs.join("bare"), &scratch, &["list"])
        .refused(&["no algorithm is registered", "use ebipla_plugins as _;"]);
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
