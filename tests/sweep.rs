//! Sweeps: plans, runs, failures, and the state after they are stopped.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::outcome::{end, walk};
use support::{Outcome, Scratch};

const SWEEP: [&str; 7] = [
    "sweep",
    "--recipe",
    "small.yaml",
    "--grid",
    "algorithm.particles=1,2",
    "--seeds",
    "2",
];

fn sweep(scratch: &Scratch, arguments: &[&str]) -> Outcome {
    scratch.runner(&[&SWEEP[..], arguments].concat())
}

fn folder(scratch: &Scratch) -> PathBuf {
    scratch.path().join("runs/small-by-particles")
}

/// The states of all members, in order.
fn states(scratch: &Scratch) -> Vec<String> {
    let folder = folder(scratch);
    let status = scratch.runner(&["sweep", "status", folder.to_str().unwrap(), "--json"]);
    let members = status.json()["members"].clone();
    let members = members.as_array().unwrap().iter();
    members
        .map(|member| member["status"]["state"].as_str().unwrap().to_owned())
        .collect()
}

fn member_folders(scratch: &Scratch) -> Vec<PathBuf> {
    let manifest: Value =
        serde_json::from_slice(&fs::read(folder(scratch).join("sweep.json")).unwrap()).unwrap();
    let members = manifest["members"].as_array().unwrap().iter();
    members
        .map(|member| folder(scratch).join(member["name"].as_str().unwrap()))
        .collect()
}

#[test]
fn every_member_equals_a_single_run_of_its_recipe() {
    let scratch = Scratch::with_small();
    let swept = sweep(&scratch, &["--jobs", "2"]);
    assert_eq!(swept.code, 0, "{}", swept.stderr);
    assert_eq!(states(&scratch), ["finished"; 4]);
    assert!(
        swept.stdout.contains("small particles=2 seed=2  finished"),
        "{}",
        swept.stdout
    );
    assert!(swept.stdout.contains("\n4 finished\n"), "{}", swept.stdout);
    let members = member_folders(&scratch);
    let settings = [("1", "1"), ("1", "2"), ("2", "1"), ("2", "2")];
    for (member, (particles, seed)) in members.iter().zip(settings) {
        let particles = format!("algorithm.particles={particles}");
        let alone = scratch.train(&["--out", "alone", "--set", &particles, "--seed", seed]);
        assert_eq!(
            alone.file_name(),
            member.file_name(),
            "the name does not depend on where it runs"
        );
        assert!(end(&alone) == end(member), "{}", member.display());
        let log = fs::read_to_string(member.join("output.txt")).unwrap();
        assert!(log.contains("run folder:"), "{log}");
    }
}

#[test]
fn seeds_can_be_added_without_touching_existing_members() {
    let scratch = Scratch::with_small();
    assert_eq!(sweep(&scratch, &[]).code, 0);
    sweep(&scratch, &[]).refused(&["is there already", "--resume"]);
    let before = member_folders(&scratch);
    let written = |folder: &PathBuf| {
        fs::metadata(folder.join("evaluation.json"))
            .map(|data| data.modified().unwrap())
            .ok()
    };
    let times: Vec<_> = before.iter().map(written).collect();
    let more = sweep(&scratch, &["--seeds", "3", "--resume"]);
    // clap accepts an option once.
    more.refused(&["--seeds"]);
    let mut arguments = SWEEP;
    arguments[6] = "3";
    let more = scratch.runner(&[&arguments[..], &["--resume"]].concat());
    assert_eq!(more.code, 0, "{}", more.stderr);
    assert!(more.stderr.contains("2 of 6 members to run"), "{}", more.stderr);
    assert_eq!(states(&scratch), ["finished"; 6]);
    assert_eq!(before.iter().map(written).collect::<Vec<_>>(), times);
}

#[test]
fn a_failed_member_reports_why_and_does_not_stop_the_others() {
    let scratch = Scratch::with_small();
    // More than the 40 existing points: detected only once the data are loaded.
    let arguments = [
        "sweep",
        "--recipe",
        "small.yaml",
        "--grid",
        "run.batch_size=99,16,20",
        "--jobs",
        "1",
    ];
    let swept = scratch.runner(&arguments);
    assert_eq!(swept.code, 1, "{}", swept.stderr);
    for text in [&swept.stderr, &swept.stdout] {
        assert!(
            text.contains("found 99, expected at most the 40 training points"),
            "{text}"
        );
    }
    assert!(swept.stdout.contains("2 finished, 1 failed"), "{}", swept.stdout);

    let resumed = scratch.runner(&[&arguments[..], &["--resume"]].concat());
    assert!(
        resumed.stderr.contains("0 of 3 members to run"),
        "{}",
        resumed.stderr
    );
    let repeated = scratch.runner(&[&arguments[..], &["--only-failed"]].concat());
    assert_eq!(repeated.code, 1);
    assert!(
        repeated.stderr.contains("1 of 3 members to run"),
        "{}",
        repeated.stderr
    );

    let fast = scratch.runner(&[&arguments[..], &["--fail-fast", "--out", "fast"]].concat());
    assert_eq!(fast.code, 1);
    assert!(fast.stdout.contains("2 waiting, 1 failed"), "{}", fast.stdout);
}

#[test]
fn a_diverged_member_is_recognised_by_its_exit_code() {
    let scratch = Scratch::with_small();
    let swept = scratch.runner(&[
        "sweep",
        "--recipe",
        "small.yaml",
        "--grid",
        "guard.energy=1e4,1e-9",
    ]);
    assert_eq!(swept.code, 3, "{}", swept.stderr);
    assert!(
        swept.stdout.contains("1 finished, 1 diverged"),
        "{}",
        swept.stdout
    );
    assert!(swept.stdout.contains("(guard.energy: 1e-9)"), "{}", swept.stdout);
}

#[test]
fn nothing_is_written_before_all_members_are_valid() {
    let scratch = Scratch::with_small();
    let before = scratch.entries();
    let sweep = |arguments: &[&str]| scratch.runner(&[&["sweep"], arguments].concat());
    let of_small = |arguments: &[&str]| sweep(&[&["--recipe", "small.yaml"], arguments].concat());
    of_small(&["--grid", "algorithm.partcles=1,2"]).refused(&[
        "algorithm.partcles (command line, --grid)",
        "did you mean `particles`",
    ]);
    of_small(&["--grid", "algorithm.particles=1,two"]).refused(&["found `two`, expected integer"]);
    of_small(&["--zip", "run.epochs=1,2", "--zip", "run.batch_size=8"])
        .refused(&["run.epochs has 2, run.batch_size has 1"]);
    of_small(&["--grid", "record.metrics.every=1,2"]).refused(&["the same run", "record"]);
    of_small(&["--grid", "run.epochs=1,1"]).refused(&["the same run"]);
    of_small(&["--grid", "run.epochs=1,2", "--resume"]).refused(&["no sweep in", "to go on with"]);
    sweep(&["--recipe", "smal.yaml"]).refused(&["no such recipe"]);
    sweep(&["--file", "figure7"]).refused(&["no such sweep", "figure1"]);
    sweep(&[]).refused(&["--recipe"]);
    sweep(&["status", "."]).refused(&["no sweep.json"]);
    assert_eq!(scratch.entries(), before);
}

#[test]
fn a_dry_run_prints_members_and_cost_and_writes_nothing() {
    let scratch = Scratch::with_small();
    let before = scratch.entries();
    let dry = sweep(&scratch, &["--dry-run"]);
    assert_eq!(dry.code, 0, "{}", dry.stderr);
    assert_eq!(dry.stdout.matches("6 steps of").count(), 4, "{}", dry.stdout);
    assert!(dry.stdout.contains("4 members"), "{}", dry.stdout);
    let wrong = scratch.runner(&[
        "sweep",
        "--recipe",
        "small.yaml",
        "--grid",
        "run.batch_size=16,99",
        "--dry-run",
    ]);
    wrong.refused(&["1 of 2 members cannot be built"]);
    assert!(wrong.stdout.contains("found 99"), "{}", wrong.stdout);
    assert_eq!(scratch.entries(), before);
}

#[test]
fn a_sweep_file_can_zip_values_and_its_errors_are_located() {
    let scratch = Scratch::with_small();
    scratch.write(
        "pairs.yaml",
        "title: Pairs\nnames: { algorithm.particles: N }\nseeds: [3, 5]\nset: { run.epochs: 1 }\nparts:\n  - recipe: small\n    zip:\n      algorithm.particles: [1, 2]\n      algorithm.step_size: [0.5, 0.25]\n  - recipe: [small.yaml]\n    set: { algorithm.name: lebm }\n    grid: { algorithm.posterior_steps: [2] }\n",
    );
    let swept = scratch.runner(&["sweep", "--file", "pairs.yaml", "--out", "out"]);
    assert_eq!(swept.code, 0, "{}", swept.stderr);
    let manifest: Value =
        serde_json::from_slice(&fs::read(scratch.path().join("out/pairs/sweep.json")).unwrap()).unwrap();
    let values: Vec<_> = manifest["members"]
        .as_array()
        .unwrap()
        .iter()
        .map(|member| format!("{} {}", member["seed"], member["values"]))
        .collect();
    let pair = |seed, n, h| format!("{seed} {{\"algorithm.particles\":{n},\"algorithm.step_size\":{h}}}");
    let expected = [
        pair(3, 1, "0.5"),
        pair(5, 1, "0.5"),
        pair(3, 2, "0.25"),
        pair(5, 2, "0.25"),
        "3 {\"algorithm.posterior_steps\":2}".to_owned(),
        "5 {\"algorithm.posterior_steps\":2}".to_owned(),
    ];
    assert_eq!(values, expected);
    assert_eq!(manifest["names"]["algorithm.particles"], "N");
    assert!(
        swept.stdout.contains("small N=2 step_size=0.25 seed=5"),
        "{}",
        swept.stdout
    );

    let refused = |text: &str, words: &[&str]| {
        scratch.write("wrong.yaml", text);
        scratch.runner(&["sweep", "--file", "wrong.yaml"]).refused(words);
    };
    refused("parts: []\n", &["wrong.yaml", "at least one"]);
    refused(
        "parts:\n  - recipe: small\n    gird: {}\n",
        &["wrong.yaml", "gird", "grid"],
    );
    refused(
        "parts:\n  - recipe: small\n    grid: { run.epochs: 3 }\n",
        &["run.epochs", "wrong.yaml:3", "list"],
    );
    refused(
        "parts:\n  - recipe: small\n    grid: { run.epoch: [3] }\n",
        &["run.epoch (", "wrong.yaml:3", "did you mean `epochs`"],
    );
    refused("parts:\n  - recipe: smal\n", &["no such recipe"]);
    refused("parts: [\n", &["wrong.yaml", "line"]);
}

/// Many steps, with networks that hardly learn and so do not diverge.
const SLOW: [&str; 8] = [
    "--set",
    "run.epochs=400",
    "--set",
    "optimizer.energy.lr=1e-6",
    "--set",
    "optimizer.generator.lr=1e-6",
    "--set",
    "record.checkpoint.every=20",
];

/// A sweep with two members in the middle of their runs, held there until [`Held::resume`]: on a machine of any speed,
/// neither finishes before the test acts on them.
struct Held {
    sweep: Child,
    members: Vec<u32>,
}

impl Held {
    fn resume(&self) {
        for member in &self.members {
            send("-CONT", *member);
        }
    }
}

/// Starts a sweep, two members at a time, and holds each of the first two once it has made some steps.
fn slow_sweep(scratch: &Scratch) -> Held {
    let sweep = scratch
        .command()
        .args(SWEEP)
        .args(["--jobs", "2"])
        .args(SLOW)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait("the plan", || folder(scratch).join("sweep.json").exists());
    let hold = |member: &PathBuf| {
        // Finds its process first, so that it can be stopped at once, more than a thousand steps before its end.
        wait("its process", || process_of(scratch, member).is_some());
        let process = process_of(scratch, member).unwrap();
        wait("a checkpoint", || walk(&member.join("checkpoints")).len() > 3);
        send("-STOP", process);
        process
    };
    let folders = member_folders(scratch);
    let members = thread::scope(|scope| {
        let holding: Vec<_> = folders[..2]
            .iter()
            .map(|member| scope.spawn(|| hold(member)))
            .collect();
        holding.into_iter().map(|held| held.join().unwrap()).collect()
    });
    Held { sweep, members }
}

/// Only for events that never happen: no test depends on how long something takes.
const PATIENCE: Duration = Duration::from_secs(1200);

fn wait(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "timed out waiting for {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

fn send(signal: &str, process: u32) {
    let sent = Command::new("kill")
        .args([signal, &process.to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

/// Whether a signal is pending for a process that is held.
fn is_told(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let waiting = status
        .lines()
        .filter_map(|line| line.strip_prefix("ShdPnd:").or(line.strip_prefix("SigPnd:")));
    waiting
        .map(str::trim)
        .any(|signals| signals.contains(|digit| digit != '0'))
}

/// The process that works in a member's folder: other tests have members of the same name elsewhere.
fn process_of(scratch: &Scratch, member: &Path) -> Option<u32> {
    let name = member.file_name().unwrap().to_str().unwrap();
    let is_it = |process: &Path| {
        let here = fs::read_link(process.join("cwd")).is_ok_and(|folder| folder == scratch.path());
        let command = fs::read(process.join("cmdline")).unwrap_or_default();
        here && String::from_utf8_lossy(&command).contains(name)
    };
    let mut processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let found = processes.find(|process| is_it(process))?;
    found.file_name()?.to_str()?.parse().ok()
}

/// Resumes to the end, and compares each member with an undisturbed run.
fn ends_like_an_undisturbed_sweep(scratch: &Scratch) {
    let resumed = sweep(scratch, &[&["--jobs", "2", "--resume"][..], &SLOW].concat());
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert_eq!(states(scratch), ["finished"; 4]);
    for (member, setting) in
        member_folders(scratch)
            .iter()
            .zip([("1", "1"), ("1", "2"), ("2", "1"), ("2", "2")])
    {
        let whole = whole(scratch, setting);
        assert!(end(&whole) == end(member), "{}", member.display());
    }
}

fn whole(scratch: &Scratch, (particles, seed): (&str, &str)) -> PathBuf {
    let particles = format!("algorithm.particles={particles}");
    let own = ["--out", "whole", "--set", &particles, "--seed", seed];
    scratch.train(&[&own[..], &SLOW].concat())
}

#[test]
fn members_of_a_killed_sweep_end_and_can_be_resumed() {
    let scratch = Scratch::with_small();
    let mut held = slow_sweep(&scratch);
    // Before the kill, since the system sends SIGHUP to stopped processes whose parent has gone.
    held.resume();
    send("-KILL", held.sweep.id());
    held.sweep.wait().unwrap();
    let running =
        |folder: &Path| fs::File::open(folder.join(".lock")).is_ok_and(|lock| lock.try_lock().is_err());
    wait("members to stop", || {
        !member_folders(&scratch).iter().any(|folder| running(folder))
    });
    let states = states(&scratch);
    assert!(states.contains(&"interrupted".to_owned()), "{states:?}");
    assert!(states.contains(&"waiting".to_owned()), "{states:?}");
    ends_like_an_undisturbed_sweep(&scratch);
}

#[test]
fn an_interrupted_sweep_stops_after_checkpoints_and_resumes() {
    let scratch = Scratch::with_small();
    let mut held = slow_sweep(&scratch);
    let second = sweep(&scratch, &[&["--resume"], &SLOW[..]].concat());
    second.refused(&["another process runs the sweep"]);
    send("-INT", held.sweep.id());
    wait("the members to receive it", || {
        held.members.iter().all(|member| is_told(*member))
    });
    held.resume();
    assert_eq!(held.sweep.wait().unwrap().code(), Some(130));
    let states = states(&scratch);
    assert_eq!(
        states.iter().filter(|state| *state == "interrupted").count(),
        2,
        "{states:?}"
    );
    ends_like_an_undisturbed_sweep(&scratch);
}

#[test]
fn a_killed_member_is_shown_at_once_and_the_others_continue() {
    let scratch = Scratch::with_small();
    let mut held = slow_sweep(&scratch);
    send("-KILL", held.members.remove(0));
    wait("the killed member", || states(&scratch)[0] == "killed");
    held.resume();
    assert_eq!(held.sweep.wait().unwrap().code(), Some(1));
    assert_eq!(states(&scratch), ["killed", "finished", "finished", "finished"]);
    ends_like_an_undisturbed_sweep(&scratch);
}

#[test]
fn every_sweep_in_the_repository_composes() {
    let scratch = Scratch::new();
    let sweeps = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/recipes/sweeps")).unwrap();
    let mut names: Vec<_> = sweeps
        .map(|entry| {
            entry
                .unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    names.sort();
    assert_eq!(names.len(), 13);
    for name in names {
        // There is no sweep to resume, but that is checked only after all members are valid.
        let composed = scratch.runner(&["sweep", "--file", &name, "--resume"]);
        composed.refused(&["there is no sweep in", &name, "to go on with"]);
    }
}

#[test]
fn small_sweeps_that_need_no_data_run() {
    let scratch = Scratch::new();
    for (name, members) in [("runtime_small", 4), ("samplers_small", 5)] {
        let few = [
            "--seeds",
            "1",
            "--set",
            "run.max_steps=1",
            "--set",
            "evaluate={metrics: {sliced_w2: null, mmd: null, log_likelihood: null, mse: null}}",
        ];
        let swept = scratch.runner(&[&["sweep", "--file", name], &few[..]].concat());
        assert_eq!(swept.code, 0, "{}{}", swept.stderr, swept.stdout);
        assert!(
            swept.stdout.contains(&format!("\n{members} finished\n")),
            "{}",
            swept.stdout
        );
    }
}
