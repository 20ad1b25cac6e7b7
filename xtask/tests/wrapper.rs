//! Runs `./runner` in a scratch checkout against a stub of cargo, to check what it calls and prints.

#![allow(clippy::unwrap_used)]

mod stubs;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// Logs where and how it was called, prints as much as the real one, and builds a stub of the program.
const CARGO: &str = r#"#!/bin/sh
echo "$(basename "$PWD"): $*" >>"$LOG"
echo "cargo to stdout"
echo "cargo to stderr" >&2
case $1 in
xtask)
    mkdir -p .deps/libtorch .deps/cmake
    echo "torch $(cat xtask/src/setup/torch-version) cpu" >.deps/libtorch/.complete
    echo "cmake" >.deps/cmake/.complete
    exit "${XTASK_CODE-0}"
    ;;
build)
    cat >/dev/null # What it could read would be missing later.
    mkdir -p "${CARGO_TARGET_DIR-target}/release"
    cp program "${CARGO_TARGET_DIR-target}/release/runner"
    exit "${BUILD_CODE-0}"
    ;;
esac
"#;

const PROGRAM: &str = r#"#!/bin/sh
pwd
printf '<%s>' "$@"
echo "$COMPLETE"
cat
exit 42
"#;

struct Checkout {
    scratch: TempDir,
    variables: Vec<(&'static str, PathBuf)>,
}

impl Checkout {
    fn new() -> Self {
        let checkout = Self {
            scratch: tempfile::tempdir().unwrap(),
            variables: Vec::new(),
        };
        let real = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for file in ["runner", "xtask/src/setup/torch-version"] {
            let text = fs::read_to_string(real.join(file)).unwrap();
            checkout.script(&format!("the checkout/{file}"), &text);
        }
        fs::create_dir_all(checkout.path("elsewhere")).unwrap();
        checkout.script("bin/cargo", CARGO);
        checkout.script("the checkout/program", PROGRAM);
        checkout
    }

    fn path(&self, name: &str) -> PathBuf {
        // Without symbolic links, for comparison with the output of `pwd`.
        self.scratch.path().canonicalize().unwrap().join(name)
    }

    fn script(&self, name: &str, script: &str) {
        stubs::write(&self.path(name), script);
    }

    /// Calls `runner` from another folder.
    fn run_as(&self, runner: &Path, arguments: &[&str]) -> Output {
        let input = self.path("input");
        fs::write(&input, "input\n").unwrap();
        let path = format!("{}:/usr/bin:/bin", self.path("bin").display());
        let mut command = Command::new(runner);
        command
            .args(arguments)
            .current_dir(self.path("elsewhere"))
            .stdin(fs::File::open(input).unwrap())
            .env_clear()
            .env("PATH", path)
            .env("LOG", self.path("log"))
            .envs(self.variables.clone());
        stubs::output(&mut command)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.run_as(&self.path("the checkout/runner"), arguments)
    }

    /// The calls of cargo since the last time this was called.
    fn calls(&self) -> Vec<String> {
        let log = fs::read_to_string(self.path("log")).unwrap_or_default();
        let _ = fs::remove_file(self.path("log"));
        log.lines().map(String::from).collect()
    }

    fn elsewhere(&self) -> String {
        self.path("elsewhere").to_str().unwrap().to_owned()
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn sets_up_builds_and_runs_then_only_builds_and_runs() {
    let checkout = Checkout::new();
    let output = checkout.run(&["train", "two words", "", "*"]);
    let expected = format!("{}\n<train><two words><><*>\ninput\n", checkout.elsewhere());
    assert_eq!(stdout(&output), expected);
    assert_eq!(output.status.code(), Some(42));
    assert_eq!(
        checkout.calls(),
        ["the checkout: xtask setup", "the checkout: build --release"]
    );

    checkout.run(&[]);
    assert_eq!(checkout.calls(), ["the checkout: build --release --quiet"]);
}

#[test]
fn only_the_program_writes_to_stdout() {
    let mut checkout = Checkout::new();
    checkout.variables.push(("COMPLETE", "bash".into()));
    let output = checkout.run(&[]);
    let expected = format!("{}\n<>bash\ninput\n", checkout.elsewhere());
    assert_eq!(stdout(&output), expected);
    assert!(stderr(&output).contains("cargo to stderr"));
}

#[test]
fn works_through_a_symbolic_link() {
    let checkout = Checkout::new();
    let link = checkout.path("link");
    symlink(checkout.path("the checkout/runner"), &link).unwrap();
    let output = checkout.run_as(&link, &["a"]);
    assert_eq!(output.status.code(), Some(42), "{}", stderr(&output));
}

#[test]
fn setup_only_runs_the_set_up() {
    let mut checkout = Checkout::new();
    checkout.variables.push(("XTASK_CODE", "1".into()));
    let output = checkout.run(&["setup", "--cuda"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(checkout.calls(), ["the checkout: xtask setup --cuda"]);
}

#[test]
fn a_set_up_for_another_version_is_repeated() {
    let checkout = Checkout::new();
    checkout.run(&[]);
    checkout.calls();
    let stamp = checkout.path("the checkout/.deps/libtorch/.complete");
    fs::write(stamp, "torch 2.12.0 cpu\n").unwrap();
    checkout.run(&[]);
    assert_eq!(checkout.calls()[0], "the checkout: xtask setup");
}

#[test]
fn the_users_own_libtorch_is_checked_and_an_empty_variable_is_ignored() {
    let mut checkout = Checkout::new();
    checkout.run(&[]);
    checkout.calls();

    checkout.variables = vec![("LIBTORCH", "".into()), ("CMAKE", "".into())];
    checkout.run(&[]);
    assert_eq!(checkout.calls(), ["the checkout: build --release --quiet"]);

    checkout.variables = vec![("LIBTORCH", "/own".into())];
    checkout.run(&[]);
    assert_eq!(checkout.calls()[0], "the checkout: xtask setup");
}

#[test]
fn stops_when_the_set_up_or_the_build_fails() {
    let mut checkout = Checkout::new();
    checkout.variables = vec![("BUILD_CODE", "101".into())];
    let output = checkout.run(&[]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");

    fs::remove_dir_all(checkout.path("the checkout/.deps")).unwrap();
    checkout.calls();
    checkout.variables = vec![("XTASK_CODE", "1".into())];
    let output = checkout.run(&[]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    assert_eq!(checkout.calls(), ["the checkout: xtask setup"]);
}

#[test]
fn respects_the_target_folder() {
    for target in ["relative", "/absolute"] {
        let mut checkout = Checkout::new();
        let target = match target.strip_prefix('/') {
            Some(name) => checkout.path(name),
            None => target.into(),
        };
        checkout.variables.push(("CARGO_TARGET_DIR", target));
        let output = checkout.run(&[]);
        assert_eq!(output.status.code(), Some(42), "{}", stderr(&output));
        assert!(!checkout.path("the checkout/target").exists());
    }
}

#[test]
fn reports_where_to_get_cargo() {
    let checkout = Checkout::new();
    let bin = checkout.path("bin");
    fs::remove_file(bin.join("cargo")).unwrap();
    // A PATH that certainly contains no cargo.
    for tool in ["sh", "dirname", "readlink"] {
        symlink(Path::new("/bin").join(tool), bin.join(tool)).unwrap();
    }
    let mut command = Command::new(checkout.path("the checkout/runner"));
    let output = stubs::output(command.env_clear().env("PATH", bin));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    assert!(stderr(&output).contains("Install Rust from https://rustup.rs"));
}
