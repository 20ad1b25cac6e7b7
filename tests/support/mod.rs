//! Runs the real program in a scratch folder.
#![allow(dead_code)]

pub mod cluster;
pub mod data;
pub mod events;
pub mod outcome;
pub mod skip;
pub mod slurm;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// A small recipe that trains in well under a second.
pub const SMALL: &str = "\
run: { seed: 1, epochs: 2, batch_size: 16, device: cpu, threads: 1 }
dataset: { name: swiss_roll, size: 40, validation: 50 }
energy: { name: mlp, hidden: 8, layers: 2, activation: silu }
generator: { name: linear }
decoder: { sigma: 0.2 }
prior_sampler: { name: ula, steps: 3, step_size: 0.01 }
algorithm: { name: ebipla, particles: 2, step_size: 0.5 }
record: { metrics: { every: 1 }, tensorboard: { every: 1 } }
";

/// With these, the small recipe runs for days: networks that hardly learn do not diverge. Events in such a run happen
/// in its middle, however fast the machine is.
pub const ENDLESS: [&str; 6] = [
    "--set",
    "run.epochs=100000000",
    "--set",
    "optimizer.energy.lr=1e-6",
    "--set",
    "optimizer.generator.lr=1e-6",
];

/// A process that ends with the test, however the test ends.
pub struct Running(Option<Child>);

/// A separate folder for one test.
pub struct Scratch {
    folder: TempDir,
}

/// Output and exit code of a call.
pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Scratch {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// A folder with `small.yaml` in it.
    pub fn with_small() -> Self {
        let scratch = Self::new();
        scratch.write("small.yaml", SMALL);
        scratch
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
        command
            .current_dir(self.path())
            .env("EBIPLA_CACHE", self.path().join("cache"))
            .env_remove("RUST_LOG")
            .env_remove("RUST_BACKTRACE");
        command
    }

    pub fn runner(&self, arguments: &[&str]) -> Outcome {
        Outcome::of(self.command().args(arguments).output().unwrap())
    }

    pub fn runner_with_env(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Outcome {
        let mut command = self.command();
        command.args(arguments).envs(environment.iter().copied());
        Outcome::of(command.output().unwrap())
    }

    /// Starts a call that runs in parallel with the test.
    pub fn start(&self, arguments: &[&str]) -> Running {
        let mut command = self.command();
        command.args(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running(Some(command.spawn().unwrap()))
    }

    /// Trains `small.yaml` with more arguments, which must succeed, and returns the run's folder.
    pub fn train(&self, arguments: &[&str]) -> PathBuf {
        let outcome = self.runner(&[&["--recipe", "small.yaml"], arguments].concat());
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        outcome.folder(self)
    }

    /// Everything in the folder except what the test itself wrote.
    pub fn entries(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Running {
    pub fn id(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    /// Waits as long as it takes until a condition holds; panics if the process ends first.
    #[track_caller]
    pub fn wait_until(&mut self, holds: impl Fn() -> bool) {
        while !holds() {
            if self.0.as_mut().unwrap().try_wait().unwrap().is_some() && !holds() {
                let outcome = self.end();
                panic!("it ended with {}: {}", outcome.code, outcome.stderr);
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn is_running(&mut self) -> bool {
        self.0.as_mut().unwrap().try_wait().unwrap().is_none()
    }

    pub fn send(&self, signal: &str) {
        let id = self.id().to_string();
        let status = Command::new("kill").args([signal, &id]).status();
        assert!(status.unwrap().success());
    }

    pub fn kill(&mut self) {
        self.0.as_mut().unwrap().kill().unwrap();
        self.end();
    }

    /// Its output until it ends by itself.
    pub fn end(&mut self) -> Outcome {
        Outcome::of(self.0.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(process) = &mut self.0 {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Outcome {
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The run folder that it printed.
    pub fn folder(&self, scratch: &Scratch) -> PathBuf {
        let line = self
            .stdout
            .lines()
            .find_map(|line| line.strip_prefix("results: "));
        scratch
            .path()
            .join(line.unwrap_or_else(|| panic!("no results in {}", self.stdout)))
    }

    pub fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{}", self.stderr);
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// Checks for exit code 2, and that the message contains all of `words`.
    #[track_caller]
    pub fn refused(&self, words: &[&str]) {
        assert_eq!(self.code, 2, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "no `{word}` in:\n{}", self.stderr);
        }
    }
}

/// The lines of a run's metrics.jsonl.
pub fn metrics(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
