//! Sweeps of the small recipe on the tests' own Slurm, with members that can be stopped midway.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::outcome::outcome;
use super::slurm::Slurm;
use super::{Outcome, Scratch};

/// Only for events that never happen: no test depends on how long something takes.
const PATIENCE: Duration = Duration::from_secs(1200);

/// Enough short steps that an interruption comes in the middle of the run, with networks that hardly learn and so do
/// not diverge.
pub const STEPS: usize = 1000;
pub const LONG: [&str; 6] = [
    "run.max_steps=1000",
    "run.epochs=500",
    "optimizer.energy.lr=1e-6",
    "optimizer.generator.lr=1e-6",
    "record.checkpoint={every: 25, keep: 1}",
    "record.particles.every=50",
];

/// A folder with `small.yaml`, and a cluster to submit to.
pub struct Cluster {
    pub slurm: Arc<Slurm>,
    pub scratch: Scratch,
}

impl Cluster {
    pub fn get() -> Option<Self> {
        let slurm = Slurm::get()?;
        let scratch = Scratch::with_small();
        Some(Self { slurm, scratch })
    }

    pub fn runner(&self, arguments: &[&str]) -> Outcome {
        let mut command = self.scratch.command();
        Outcome::of(self.slurm.enter(command.args(arguments)).output().unwrap())
    }

    /// Submits a sweep of `small.yaml` with more arguments, which must succeed.
    #[track_caller]
    pub fn submit(&self, arguments: &[&str]) -> Outcome {
        let sweep = ["sweep", "--recipe", "small.yaml", "--launcher", "slurm"];
        let outcome = self.runner(&[&sweep, arguments].concat());
        assert_eq!(outcome.code, 0, "{}{}", outcome.stdout, outcome.stderr);
        outcome
    }

    /// Submits a sweep with a single member.
    pub fn submit_one(&self, options: &[&str]) -> Member<'_> {
        self.submit(&[&set(&LONG)[..], &set(options)].concat());
        let folder = self.scratch.path().join("runs/small-by-seed");
        let path = folder.join(members(&folder).remove(0));
        Member { cluster: self, path }
    }

    pub fn status(&self, folder: &str) -> String {
        let outcome = self.runner(&["sweep", "status", folder]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        outcome.stdout
    }

    /// Number of members of a sweep that report having finished.
    pub fn finished(&self, folder: &str) -> usize {
        let folder = self.scratch.path().join(folder);
        let finished = |name: &&String| ending(&folder.join(name)).is_some_and(|ending| ending["code"] == 0);
        members(&folder).iter().filter(finished).count()
    }

    #[track_caller]
    pub fn wait(&self, what: &str, holds: impl Fn() -> bool) {
        let held = self.slurm.eventually(PATIENCE, holds);
        assert!(held, "timed out waiting for {what}\n{}", self.slurm.logs());
    }
}

/// The only member of a sweep, submitted as an array of its own.
pub struct Member<'a> {
    cluster: &'a Cluster,
    pub path: PathBuf,
}

impl Member<'_> {
    /// The id of its last task.
    pub fn task(&self) -> String {
        let jobs = fs::read(self.path.with_file_name("slurm").join("jobs.json")).unwrap();
        let jobs: Value = serde_json::from_slice(&jobs).unwrap();
        let last = jobs["arrays"].as_array().unwrap().last().unwrap();
        format!("{}_0", last["job"].as_str().unwrap())
    }

    pub fn lines(&self) -> usize {
        let text = fs::read_to_string(self.path.join("metrics.jsonl"));
        text.map_or(0, |text| text.lines().count())
    }

    /// Waits until it has made some steps, stops it there, and returns its process.
    pub fn freeze(&self) -> String {
        // Finds its process first, so that it can be stopped at once.
        self.cluster.wait("its process", || self.processes().len() == 1);
        let process = self.processes().remove(0);
        while self.lines() < 40 {
            assert!(Path::new("/proc").join(&process).exists(), "it ended before");
            std::thread::sleep(Duration::from_millis(1));
        }
        signal("STOP", &process);
        assert!(self.lines() < STEPS, "it was over too soon");
        process
    }

    /// The ids of its processes.
    fn processes(&self) -> Vec<String> {
        let path = self.path.to_str().unwrap();
        let is_it = |folder: &Path| {
            let line = fs::read(folder.join("cmdline")).unwrap_or_default();
            let words: Vec<_> = line
                .split(|byte| *byte == 0)
                .map(String::from_utf8_lossy)
                .collect();
            words.iter().any(|word| word == "member") && words.iter().any(|word| word == path)
        };
        let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
        let found = processes.filter(|folder| is_it(folder));
        found
            .map(|folder| folder.file_name().unwrap().to_str().unwrap().to_owned())
            .collect()
    }

    /// The state of its last task according to Slurm.
    pub fn state(&self) -> String {
        self.cluster.slurm.state(&self.task())
    }

    /// Number of times its last task was queued again.
    pub fn restarts(&self) -> u32 {
        let told = self
            .cluster
            .slurm
            .call("scontrol", &["show", "job", &self.task()]);
        let restarts = told
            .split_whitespace()
            .find_map(|word| word.strip_prefix("Restarts="));
        restarts.unwrap().parse().unwrap()
    }

    pub fn ending(&self) -> Option<Value> {
        ending(&self.path)
    }

    /// Waits for its end, which must equal that of an undisturbed run.
    #[track_caller]
    pub fn ends_like_an_undisturbed_run(&self) {
        let finished = || self.ending().is_some_and(|ending| ending["code"] == 0);
        self.cluster.wait("its end", finished);
        let options = set(&LONG);
        let whole = self
            .cluster
            .scratch
            .train(&[&options[..], &["--out", "whole"]].concat());
        let (found, files) = outcome(&self.path);
        let (expected, expected_files) = outcome(&whole);
        assert_eq!(found, expected);
        assert!(files == expected_files);
        assert_eq!(found.len(), STEPS);
        assert!(files.len() > 10, "weights, optimisers and dumps are compared");
    }

    /// Number of times its run was resumed, and how the previous parts ended.
    pub fn earlier_parts(&self) -> Vec<String> {
        let provenance = fs::read(self.path.join("provenance.json")).unwrap();
        let provenance: Value = serde_json::from_slice(&provenance).unwrap();
        let parts = provenance["earlier_parts"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        parts.iter().map(|part| part["outcome"].to_string()).collect()
    }
}

/// A member's record of its end.
pub fn ending(folder: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(folder.join("outcome.json")).ok()?).ok()
}

pub fn set<'a>(overrides: &[&'a str]) -> Vec<&'a str> {
    overrides.iter().flat_map(|text| ["--set", text]).collect()
}

pub fn signal(name: &str, process: &str) {
    let sent = Command::new("kill").args(["-s", name, process]).status().unwrap();
    assert!(sent.success());
}

/// The names of a sweep's members, as its manifest has them.
pub fn members(folder: &Path) -> Vec<String> {
    let manifest: Value = serde_json::from_slice(&fs::read(folder.join("sweep.json")).unwrap()).unwrap();
    let members = manifest["members"].as_array().unwrap().iter();
    members
        .map(|member| member["name"].as_str().unwrap().to_owned())
        .collect()
}
