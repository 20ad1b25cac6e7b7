//! Signals end every long operation, and interrupted operations are repeated on resume, as in an uninterrupted run.
//!
//! The interrupted operations would take days, so that no test depends on when its signal arrives.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::outcome::end;
use support::{Outcome, Scratch};

/// Long enough on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn start(scratch: &Scratch, arguments: &[&str]) -> Child {
    scratch
        .command()
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Sends SIGINT once the program listens and `ready` holds, and returns its outcome.
fn interrupt(mut child: Child, ready: impl Fn() -> bool) -> Outcome {
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let listens = || {
        let status = fs::read_to_string(&status).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        caught.is_some_and(|mask| mask & 0b10 != 0)
    };
    let id = child.id().to_string();
    let mut ended = || child.try_wait().unwrap().is_some();
    wait("the program to listen", || ended() || (listens() && ready()));
    if !ended() {
        let sent = Command::new("kill").args(["-INT", &id]).status();
        assert!(sent.unwrap().success());
    }
    let outcome = Outcome::of(child.wait_with_output().unwrap());
    assert_eq!(outcome.code, 130, "{}", outcome.stderr);
    outcome
}

fn run_folder(out: &Path) -> Option<PathBuf> {
    let mut runs = fs::read_dir(out).ok()?;
    runs.find_map(|run| Some(run.ok()?.path()).filter(|path| path.join("metrics.jsonl").exists()))
}

fn last_step(out: &Path) -> Option<u64> {
    let text = fs::read_to_string(run_folder(out)?.join("metrics.jsonl")).ok()?;
    let last: Value = serde_json::from_str(text.lines().last()?).ok()?;
    last["step"].as_u64()
}

const OPTIONS: [&str; 6] = [
    "--set",
    "run.max_steps=6",
    "--set",
    "record={figures: {every: 4}, particles: {every: 4}, checkpoint: {every: 100, keep: 1}}",
    "--set",
    "evaluate.every=4",
];
/// With these, evaluations and figures are quick.
const QUICK: [&str; 4] = [
    "--set",
    "evaluate.metrics.mse={points: 4, starts: 1, steps: 3}",
    "--set",
    "evaluation_sampler.steps=2",
];
const DAYS_OF_SEARCH: [&str; 4] = [
    "--set",
    "evaluate.metrics.mse={points: 50, starts: 10000, steps: 1000000}",
    "--set",
    "evaluation_sampler.steps=2",
];
const DAYS_OF_CHAINS: [&str; 4] = [
    "--set",
    "evaluate.metrics.mse={points: 4, starts: 1, steps: 3}",
    "--set",
    "evaluation_sampler.steps=1000000",
];

/// Interrupts a run after `step` steps with `slow` records, and again where they are `slow` after resuming; then
/// continues with quick ones. The result must equal that of an uninterrupted run.
fn interrupted_after(step: u64, more: &[&str], slow: &[&str], due: &[&str]) {
    let scratch = Scratch::with_small();
    let common = [&["--recipe", "small.yaml"], &OPTIONS[..], more].concat();
    let whole = scratch.runner(&[&common, &QUICK[..], &["--out", "whole"]].concat());
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    let whole = whole.folder(&scratch);

    let out = scratch.path().join("runs");
    let first = [&common, slow].concat();
    let again = [&first[..], &["--resume"]].concat();
    for arguments in [&first, &again] {
        let outcome = interrupt(start(&scratch, arguments), || last_step(&out) == Some(step));
        assert!(
            outcome
                .stderr
                .contains(&format!("interrupted after {step} of 6 steps")),
            "{}",
            outcome.stderr
        );
        let folder = run_folder(&out).unwrap();
        let state = fs::read(folder.join(format!("checkpoints/step_{step:08}/state.json"))).unwrap();
        let state: Value = serde_json::from_slice(&state).unwrap();
        // Earlier records may be missing as well. The end of a run is written atomically or not at all.
        let found = state["due"].as_array().cloned().unwrap_or_default();
        let due: Vec<_> = due.iter().map(|name| Value::from(*name)).collect();
        assert!(
            found.ends_with(&due) && found.is_empty() == due.is_empty(),
            "{found:?}"
        );
        let provenance = fs::read_to_string(folder.join("provenance.json")).unwrap();
        assert!(
            provenance.contains("\"outcome\": \"interrupted\""),
            "{provenance}"
        );
    }

    let outcome = scratch.runner(&[&common, &QUICK[..], &["--resume"]].concat());
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let folder = outcome.folder(&scratch);
    assert_eq!(end(&folder), end(&whole));
    assert_eq!(figures(&folder), figures(&whole));
    let evaluation = |folder: &Path| fs::read_to_string(folder.join("evaluation.json")).unwrap();
    assert_eq!(evaluation(&folder), evaluation(&whole));
}

fn figures(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(folder.join("figures")).unwrap();
    let mut all: Vec<_> = files
        .map(|file| file.unwrap().path())
        .map(|path| {
            (
                path.file_name().unwrap().to_string_lossy().into(),
                fs::read(&path).unwrap(),
            )
        })
        .collect();
    all.sort();
    all
}

#[test]
fn an_interrupted_evaluation_is_repeated() {
    interrupted_after(4, &[], &DAYS_OF_SEARCH, &["evaluation", "particles", "figures"]);
}

#[test]
fn an_interrupted_last_evaluation_is_repeated() {
    interrupted_after(6, &["--set", "evaluate.every=0"], &DAYS_OF_SEARCH, &[]);
}

#[test]
fn an_interrupted_figure_is_drawn_again() {
    interrupted_after(4, &[], &DAYS_OF_CHAINS, &["figures"]);
}

#[test]
fn chains_of_an_energy_without_kernels_can_be_interrupted() {
    interrupted_after(
        6,
        &[
            "--set",
            "record={figures: {every: 0}, particles: {every: 0}, checkpoint: {every: 100, keep: 1}}",
            "--set",
            "evaluate.every=0",
            "--set",
            "energy.engine=libtorch",
        ],
        &DAYS_OF_CHAINS,
        &[],
    );
}

#[test]
fn commands_end_with_130_and_leave_no_file() {
    let scratch = Scratch::with_small();
    let folder = scratch.train(&[]);
    let run = folder.to_str().unwrap();
    let chains = ["--set", "evaluation_sampler.steps=1000000"];
    let search = ["--map-starts", "10000", "--map-steps", "1000000"];
    let commands: [Vec<&str>; 5] = [
        [&["sample", run, "--n", "4000", "--out", "a.npy"], &chains[..]].concat(),
        [&["reconstruct", run, "--out", "b.npy"], &search[..]].concat(),
        [
            &["interpolate", run, "--pairs", "3", "--out", "c.npy"],
            &search[..],
        ]
        .concat(),
        [&["score", run, "--out", "d"], &search[..]].concat(),
        [&["eval", run, "--metrics", "sliced_w2"], &chains[..]].concat(),
    ];
    let before = scratch.entries();
    for command in commands {
        let outcome = interrupt(start(&scratch, &command), || true);
        assert!(
            outcome.stderr.contains("interrupted"),
            "{command:?}: {}",
            outcome.stderr
        );
        assert_eq!(scratch.entries(), before, "{command:?}");
    }
}
