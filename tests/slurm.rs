//! Sweeps on a real Slurm: members are submitted as arrays; cancelled, killed, preempted or timed out, they end like
//! undisturbed ones.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use support::cluster::{Cluster, LONG, ending, members, set, signal};
use support::slurm::MAX_ARRAY_SIZE;
use support::{Outcome, Scratch};

#[test]
fn a_sweep_is_submitted_in_arrays_and_completes() {
    let Some(cluster) = Cluster::get() else { return };
    // More tasks than an array takes, and one with other requirements; in a folder whose name needs quoting.
    let sweep = [
        "--zip",
        "algorithm.particles=1,2,3,4,5",
        "--zip",
        "slurm.cpus=1,1,1,1,2",
        "--set",
        "slurm.directives=[--hold]",
        "--jobs",
        "2",
        "--out",
        "it's 100% \"odd\" #1 $HOME",
    ];
    let folder = "it's 100% \"odd\" #1 $HOME/small-by-particles-cpus";
    let submitted = cluster.submit(&sweep);
    let ids: Vec<_> = submitted
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("submitted job ")?.split(' ').next())
        .collect();
    assert_eq!(ids.len(), 3, "{}", submitted.stdout);
    assert_eq!(MAX_ARRAY_SIZE, 3, "assumed below");
    let tasks = |id: &str| cluster.slurm.call("scontrol", &["show", "job", id]);
    assert!(tasks(ids[0]).contains("ArrayTaskId=0-2%2"), "{}", tasks(ids[0]));
    assert!(tasks(ids[1]).contains("ArrayTaskId=0%2"), "{}", tasks(ids[1]));
    assert!(tasks(ids[2]).contains("CPUs/Task=2"), "{}", tasks(ids[2]));

    let held = cluster.status(folder);
    assert_eq!(held.matches("pending, JobHeldUser").count(), 5, "{held}");
    assert!(held.ends_with("5 waiting\n"), "{held}");
    let again = cluster.submit(&[&sweep[..], &["--resume"]].concat());
    assert!(again.stdout.contains("nothing to submit"), "{}", again.stdout);
    assert!(
        again.stderr.contains("5 members are running or queued"),
        "{}",
        again.stderr
    );

    for id in ids {
        cluster.slurm.call("scontrol", &["release", id]);
    }
    cluster.wait("all members to finish", || cluster.finished(folder) == 5);
    let finished = cluster.status(folder);
    assert!(finished.ends_with("5 finished\n"), "{finished}");
    for name in members(&cluster.scratch.path().join(folder)) {
        let output =
            fs::read_to_string(cluster.scratch.path().join(folder).join(name).join("output.txt")).unwrap();
        assert!(output.contains("6 steps"), "{output}");
    }
    let after = cluster.submit(&[&sweep[..], &["--resume"]].concat());
    assert!(after.stdout.contains("nothing to submit"), "{}", after.stdout);

    // Other machines have no Slurm to ask, but the files are the same.
    let elsewhere = cluster
        .scratch
        .runner_with_env(&["sweep", "status", folder], &[("PATH", "/nowhere")]);
    assert!(elsewhere.stdout.ends_with("5 finished\n"), "{}", elsewhere.stdout);
    assert!(
        elsewhere.stderr.contains("by the files alone"),
        "{}",
        elsewhere.stderr
    );
}

#[test]
fn a_member_that_hits_its_time_limit_continues_in_another_turn() {
    let Some(cluster) = Cluster::get() else { return };
    // A minute is the shortest limit, and Slurm checks about twice a minute whether to send the signal.
    let member = cluster.submit_one(&["slurm.time=1", "slurm.checkpoint_before=59"]);
    // As if its steps were slow. Slurm's signal wakes it.
    member.freeze();
    let running = cluster.status("runs/small-by-seed");
    assert!(
        running.contains("running") && running.contains(&format!("Slurm {}: running", member.task())),
        "{running}"
    );
    cluster.wait("its second turn", || member.restarts() > 0);
    member.ends_like_an_undisturbed_run();
    // The limit is so short that it may be hit again.
    let parts = member.earlier_parts();
    assert!(
        !parts.is_empty() && parts.iter().all(|part| part == "\"interrupted\""),
        "{parts:?}"
    );
    cluster.wait("its task's end", || member.state() == "COMPLETED");
    let output = fs::read_to_string(member.path.join("output.txt")).unwrap();
    assert!(
        output.contains("resumed after step"),
        "the first turn's output is kept too: {output}"
    );
    assert!(output.contains("interrupted after"), "{output}");
}

#[test]
fn a_killed_member_is_reported_and_queued_again() {
    let Some(cluster) = Cluster::get() else { return };
    let member = cluster.submit_one(&[]);
    let process = member.freeze();
    signal("KILL", &process);
    cluster.wait("Slurm to notice", || member.state() == "FAILED");
    let killed = cluster.status("runs/small-by-seed");
    assert!(killed.contains("killed"), "{killed}");
    let reported = format!(
        "Slurm {}: ended, failed; see slurm/array-1-task-0.txt",
        member.task()
    );
    assert!(killed.contains(&reported), "{killed}");
    cluster.slurm.call("scontrol", &["requeue", &member.task()]);
    let queued = cluster.status("runs/small-by-seed");
    assert!(
        queued.contains("waiting") && queued.contains("pending"),
        "{queued}"
    );
    member.ends_like_an_undisturbed_run();
    assert_eq!(member.restarts(), 1);
    // It had no time to record how it ended.
    assert_eq!(member.earlier_parts(), ["null"]);
}

#[test]
fn a_cancelled_member_stays_cancelled_until_it_is_submitted_again() {
    let Some(cluster) = Cluster::get() else { return };
    let member = cluster.submit_one(&[]);
    member.freeze();
    let first = member.task();
    cluster.slurm.call("scancel", &[&first]);
    cluster.wait("its task's end", || member.state() == "CANCELLED");
    assert_eq!(member.ending().unwrap()["code"], 130);
    let cancelled = cluster.status("runs/small-by-seed");
    assert!(
        cancelled.contains("interrupted") && cancelled.contains("ended, cancelled"),
        "{cancelled}"
    );

    let options = set(&LONG);
    let again = cluster.submit(&[&options[..], &["--resume"]].concat());
    assert!(again.stdout.contains("with 1 task: "), "{}", again.stdout);
    assert_ne!(member.task(), first);
    member.ends_like_an_undisturbed_run();
    assert_eq!(member.earlier_parts(), ["\"interrupted\""]);
}

#[test]
fn a_preempted_member_continues_when_there_is_room() {
    let Some(cluster) = Cluster::get() else { return };
    let member = cluster.submit_one(&["slurm.partition=low", "slurm.cpus=2"]);
    member.freeze();
    let more_important = [
        "--parsable",
        "--partition=high",
        "--cpus-per-task=2",
        "--output=/dev/null",
        "--wrap=true",
    ];
    cluster.slurm.call("sbatch", &more_important);
    cluster.wait("its second turn", || member.restarts() > 0);
    member.ends_like_an_undisturbed_run();
    assert_eq!(member.earlier_parts(), ["\"interrupted\""]);
}

#[test]
fn slurms_refusal_is_quoted_and_other_jobs_stay_submitted() {
    let Some(cluster) = Cluster::get() else { return };
    let sweep = |partitions: &str, more: &[&str]| {
        let partitions = format!("slurm.partition={partitions}");
        let command = ["sweep", "--recipe", "small.yaml", "--launcher", "slurm"];
        let axes = ["--zip", "algorithm.particles=1,2", "--zip", &partitions];
        cluster.runner(&[&command, &axes[..], more].concat())
    };
    let half = sweep("main,nowhere", &[]);
    assert_eq!(half.code, 1, "{}", half.stderr);
    assert!(half.stdout.contains("submitted job"), "{}", half.stdout);
    for word in ["array-2.sh", "sbatch refused", "invalid partition"] {
        assert!(half.stderr.contains(word), "no `{word}` in {}", half.stderr);
    }
    let folder = "runs/small-by-particles-partition";
    cluster.wait("the first one's end", || cluster.finished(folder) == 1);
    let status = cluster.status(folder);
    assert!(status.ends_with("1 finished, 1 waiting\n"), "{status}");
    let rest = sweep("main,main", &["--resume"]);
    assert_eq!(rest.code, 0, "{}", rest.stderr);
    assert!(rest.stdout.contains("with 1 task: "), "{}", rest.stdout);
    cluster.wait("the second one's end", || cluster.finished(folder) == 2);
}

/// Starts the only member below `runs/`, and lets its time run out before it can begin its first step.
fn turn_without_a_step(scratch: &Scratch) -> Value {
    let folder = scratch.path().join("runs/small-by-seed");
    let member = folder.join(members(&folder).remove(0));
    let lock = member.join(".lock");
    let _ = fs::remove_file(&lock);
    let mut child = scratch
        .command()
        .args(["member", "--requeue"])
        .arg(&member)
        .env("PATH", scratch.path().join("stubs"))
        .envs([
            ("SLURM_JOB_ID", "78"),
            ("SLURM_ARRAY_JOB_ID", "77"),
            ("SLURM_ARRAY_TASK_ID", "0"),
        ])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It handles signals even before it takes the lock. Then it has 2000000 points to generate.
    while !lock.exists() {
        assert_eq!(child.try_wait().unwrap(), None);
        std::thread::sleep(Duration::from_micros(100));
    }
    signal("USR2", &child.id().to_string());
    let code = child.wait().unwrap().code();
    let ending = ending(&member).unwrap();
    assert_eq!(ending["code"].as_i64(), code.map(i64::from));
    ending
}

/// A sweep of one member, which takes a while to set up.
const ONE_MEMBER: [&str; 7] = [
    "sweep",
    "--recipe",
    "small.yaml",
    "--launcher",
    "slurm",
    "--set",
    "dataset.size=2000000",
];

/// An environment in which the stubs are the only Slurm.
fn runner_with_stubs(scratch: &Scratch, arguments: &[&str]) -> Outcome {
    let stubs = scratch.path().join("stubs");
    scratch.runner_with_env(arguments, &[("PATH", stubs.to_str().unwrap())])
}

#[test]
fn a_turn_without_progress_is_the_last() {
    let scratch = Scratch::with_small();
    stub(
        &scratch,
        "scontrol",
        "case $1 in show) echo 'MaxArraySize = 9' ;; *) echo \"$*\" >>requeued ;; esac",
    );
    stub(&scratch, "sbatch", "echo '77;somewhere'");
    let submitted = runner_with_stubs(&scratch, &ONE_MEMBER);
    assert!(
        submitted.stdout.contains("submitted job 77 with 1 task"),
        "{}",
        submitted.stderr
    );
    let requeued = || fs::read_to_string(scratch.path().join("requeued")).unwrap_or_default();

    // It has a checkpoint now, which counts as progress.
    let first = turn_without_a_step(&scratch);
    assert_eq!(
        (first["code"].as_i64(), requeued().as_str()),
        (Some(130), "requeue 77_0\n")
    );
    let second = turn_without_a_step(&scratch);
    assert_eq!(
        (second["code"].as_i64(), requeued().as_str()),
        (Some(1), "requeue 77_0\n")
    );
    assert!(
        second["message"].as_str().unwrap().contains("slurm.time"),
        "{second}"
    );
}

#[test]
fn a_member_that_is_not_queued_again_reports_it() {
    let scratch = Scratch::with_small();
    stub(
        &scratch,
        "scontrol",
        "case $1 in show) echo 'MaxArraySize = 9' ;; *) echo Requeue is off >&2; exit 1 ;; esac",
    );
    stub(&scratch, "sbatch", "echo 77");
    assert_eq!(runner_with_stubs(&scratch, &ONE_MEMBER).code, 0);
    let ending = turn_without_a_step(&scratch);
    assert_eq!(ending["code"], 130);
    assert!(
        ending["message"].as_str().unwrap().contains("Requeue is off"),
        "{ending}"
    );
    stub(&scratch, "squeue", "echo '77|0|CANCELLED|None'");
    let status = runner_with_stubs(&scratch, &["sweep", "status", "runs/small-by-seed"]);
    assert!(status.stdout.contains("interrupted"), "{}", status.stdout);
    assert!(status.stdout.contains("Requeue is off"), "{}", status.stdout);
    // Without knowing what is queued, it submits nothing.
    stub(&scratch, "squeue", "echo out of order >&2; exit 1");
    let again = runner_with_stubs(&scratch, &[&ONE_MEMBER[..], &["--resume"]].concat());
    assert_eq!(again.code, 1);
    assert!(
        again.stderr.contains("squeue refused: out of order"),
        "{}",
        again.stderr
    );
}

/// A stub for one of Slurm's programs. Another process writes it: Linux runs no file that a child of this process,
/// started by another test in the meantime, still has open.
fn stub(scratch: &Scratch, name: &str, script: &str) {
    let write = "mkdir -p stubs && printf '#!/bin/sh\\n%s\\n' \"$2\" >\"stubs/$1\" && chmod +x \"stubs/$1\"";
    let mut command = Command::new("sh");
    let written = command
        .args(["-c", write, "sh", name, script])
        .current_dir(scratch.path())
        .status();
    assert!(written.unwrap().success());
}

#[test]
fn nothing_is_written_without_slurm() {
    let scratch = Scratch::with_small();
    let sweep = ["sweep", "--recipe", "small.yaml", "--launcher", "slurm"];
    let outcome = scratch.runner_with_env(&sweep, &[("PATH", "/nowhere")]);
    assert_eq!(outcome.code, 1);
    assert!(
        outcome.stderr.contains("there is no scontrol here"),
        "{}",
        outcome.stderr
    );
    scratch
        .runner(&[&sweep[..], &["--set", "slurm.time=soon"]].concat())
        .refused(&["slurm.time", "found `soon`, expected minutes, minutes:seconds"]);
    scratch
        .runner(&[&sweep[..], &["--fail-fast"]].concat())
        .refused(&["--fail-fast"]);
    assert_eq!(scratch.entries(), ["small.yaml"]);
}
