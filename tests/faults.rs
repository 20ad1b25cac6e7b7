//! A disk that is full, read-only or gone costs a run at most the steps since its last checkpoint.
#![allow(clippy::unwrap_used)]

#[path = "support/small_disk.rs"]
mod small_disk;
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use small_disk::SmallDisk;
use support::{ENDLESS, Scratch, metrics};

/// Enough steps for something to happen in between, with something to write after each of them.
const OPTIONS: [&str; 8] = [
    "--set",
    "run.epochs=100",
    "--set",
    "run.max_steps=60",
    "--set",
    "record.checkpoint={every: 1, keep: 2}",
    "--set",
    "record.particles.every=1",
];

fn arguments<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["--recipe", "small.yaml", "--out", out], &OPTIONS[..], more].concat()
}

/// Checks that the run resumed from `out` ends like an undisturbed one.
fn resumes_like_an_undisturbed_run(scratch: &Scratch, out: &str) {
    let resumed = scratch.runner(&arguments(out, &["--resume"]));
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    let whole = scratch.runner(&arguments("whole", &[]));
    let (resumed, whole) = (resumed.folder(scratch), whole.folder(scratch));
    assert_eq!(metrics(&resumed), metrics(&whole));
    for file in ["energy.safetensors", "generator.safetensors", "state.safetensors"] {
        let file = Path::new("checkpoints/step_00000060").join(file);
        assert!(fs::read(resumed.join(&file)).unwrap() == fs::read(whole.join(&file)).unwrap());
    }
}

/// Checks that every dump with its final name can be read.
fn no_dump_is_cut_short(scratch: &Scratch, run: &Path) {
    let dumps = scratch
        .runner(&["particles", run.to_str().unwrap(), "--json"])
        .json();
    assert!(!dumps.as_array().unwrap().is_empty());
}

#[test]
fn a_full_disk_is_reported_and_the_last_checkpoint_stays() {
    let scratch = Scratch::with_small();
    // A checkpoint takes about 30 KiB and a dump 10: some steps fit, 60 do not.
    let Some(disk) = SmallDisk::mount(scratch.path(), 400) else {
        return;
    };
    let out = disk.path().to_str().unwrap();
    let full = scratch.runner(&arguments(out, &[]));
    assert_eq!(full.code, 1, "{}", full.stderr);
    assert!(
        full.stderr.contains("No space left on device") || full.stderr.contains("no space left"),
        "{}",
        full.stderr
    );
    assert!(
        full.stderr.contains(out),
        "the folder is missing: {}",
        full.stderr
    );
    let run = only_run(disk.path());
    assert!(metrics_lines(&run) >= 2, "some steps were taken");
    no_dump_is_cut_short(&scratch, &run);

    // Still full: the error is the same, and nothing is lost.
    let again = scratch.runner(&arguments(out, &["--resume"]));
    assert_eq!(again.code, 1, "{}", again.stderr);
    disk.remount("size=16m");
    resumes_like_an_undisturbed_run(&scratch, out);
}

/// Linux makes no disk read-only while a file on it is being written: this happens between two parts of a run.
#[test]
fn a_disk_that_became_read_only_is_reported_and_the_last_checkpoint_stays() {
    let scratch = Scratch::with_small();
    let Some(disk) = SmallDisk::mount(scratch.path(), 16 << 10) else {
        return;
    };
    let out = disk.path().to_str().unwrap();
    let first = scratch.runner(&arguments(out, &["--set", "run.max_steps=5"]));
    assert_eq!(first.code, 0, "{}", first.stderr);
    disk.remount("ro");
    for more in [&[][..], &["--resume"]] {
        let refused = scratch.runner(&arguments(out, more));
        assert_eq!(refused.code, 1, "{}", refused.stderr);
        for word in ["Read-only file system", out] {
            assert!(refused.stderr.contains(word), "{}", refused.stderr);
        }
    }
    disk.remount("rw");
    no_dump_is_cut_short(&scratch, &only_run(disk.path()));
    resumes_like_an_undisturbed_run(&scratch, out);
}

#[test]
fn a_run_does_not_start_in_a_read_only_folder() {
    let scratch = Scratch::with_small();
    for out in ["/proc/runs", "small.yaml/runs"] {
        let refused = scratch.runner(&arguments(out, &[]));
        assert_eq!(refused.code, 1, "{}", refused.stderr);
        assert!(refused.stderr.contains(out), "{}", refused.stderr);
    }
}

#[test]
fn a_folder_that_vanishes_is_reported_and_not_recreated() {
    let scratch = Scratch::with_small();
    let mut child = scratch.start(&endless("runs"));
    let out = scratch.path().join("runs");
    child.wait_until(|| steps(&out) >= 3);
    let run = only_run(&out);
    fs::rename(&run, scratch.path().join("elsewhere")).unwrap();
    let stopped = child.end();
    assert_eq!(stopped.code, 1, "{}", stopped.stderr);
    let name = run.file_name().unwrap().to_str().unwrap();
    assert!(stopped.stderr.contains(name), "{}", stopped.stderr);
    // At most what the current step was writing.
    assert!(!run.join("recipe.yaml").exists());
    assert!(scratch.path().join("elsewhere/metrics.jsonl").exists());
}

#[test]
fn a_signal_ends_a_run_with_a_checkpoint_and_a_second_one_immediately() {
    for signal in ["-INT", "-TERM", "-USR2"] {
        let scratch = Scratch::with_small();
        let mut child = scratch.start(&endless("runs"));
        child.wait_until(|| steps(&scratch.path().join("runs")) >= 2);
        child.send(signal);
        let stopped = child.end();
        assert_eq!(stopped.code, 130, "{signal}: {}", stopped.stderr);
        let run = only_run(&scratch.path().join("runs"));
        let step = metrics_lines(&run);
        assert!(
            run.join(format!("checkpoints/step_{step:08}/state.json"))
                .exists()
        );
        let few_more = format!("run.max_steps={}", step + 2);
        let more = ["--resume", "--set", &few_more];
        let resumed = scratch.runner(&[&endless("runs")[..], &more].concat());
        assert_eq!(resumed.code, 0, "{}", resumed.stderr);
        assert!(
            resumed.stderr.contains(&format!("resumed after step {step}")),
            "{}",
            resumed.stderr
        );
    }
    // A step of many seconds does not delay the second signal.
    let scratch = Scratch::with_small();
    let slow = [
        "--set",
        "prior_sampler.steps=1000000",
        "--set",
        "energy.hidden=1024",
        "--set",
        "record.checkpoint.every=1",
    ];
    let mut child = scratch.start(&arguments("runs", &slow));
    child.wait_until(|| {
        let run = only_run_or_none(&scratch.path().join("runs"));
        run.is_some_and(|run| run.join("metrics.jsonl").exists())
    });
    // A signal sent before the previous one was handled is lost; but the step must not end.
    while child.is_running() {
        child.send("-INT");
        std::thread::sleep(Duration::from_millis(20));
    }
    let stopped = child.end();
    assert_eq!(stopped.code, 130);
    assert!(
        !stopped.stderr.contains("interrupted after"),
        "{}",
        stopped.stderr
    );
}

fn endless(out: &str) -> Vec<&str> {
    [&arguments(out, &ENDLESS)[..], &["--set", "run.max_steps=null"]].concat()
}

fn only_run(out: &Path) -> PathBuf {
    only_run_or_none(out).unwrap()
}

fn only_run_or_none(out: &Path) -> Option<PathBuf> {
    let mut runs = fs::read_dir(out).ok()?.map(|run| run.unwrap().path());
    runs.find(|run| run.file_name().unwrap().to_str().unwrap().starts_with("small-"))
}

fn metrics_lines(run: &Path) -> usize {
    fs::read_to_string(run.join("metrics.jsonl")).map_or(0, |text| text.lines().count())
}

/// Number of steps that the run in `out` has recorded.
fn steps(out: &Path) -> usize {
    only_run_or_none(out).map_or(0, |run| metrics_lines(&run))
}
