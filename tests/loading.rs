//! Data read back equal the data written: checkpoints of trained runs, data files, records of resumed runs.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use support::events::points;
use support::outcome::{outcome, walk};
use support::{Outcome, Scratch};

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The commands on a trained run, with the arguments they need.
const COMMANDS: [&[&str]; 6] = [
    &["eval", "RUN"],
    &["sample", "RUN", "--out", "s.npy"],
    &["reconstruct", "RUN", "--out", "r.npy", "--map-steps", "1"],
    &[
        "interpolate",
        "RUN",
        "--pairs",
        "1",
        "--out",
        "i.npy",
        "--map-steps",
        "1",
    ],
    &["score", "RUN", "--map-steps", "1", "--out", "scores"],
    &["compose", "RUN", "RUN", "--out", "c.npy"],
];

fn look(scratch: &Scratch, command: &[&str], run: &Path) -> Outcome {
    let run = run.to_str().unwrap();
    let arguments: Vec<_> = command
        .iter()
        .map(|argument| if *argument == "RUN" { run } else { argument })
        .collect();
    scratch.runner(&arguments)
}

/// Overwrites the first numbers of a safetensors file.
fn overwrite(file: &Path, number: f32) {
    let mut bytes = fs::read(file).unwrap();
    let data = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    bytes[data..data + 4].copy_from_slice(&number.to_le_bytes());
    fs::write(file, bytes).unwrap();
}

#[test]
fn every_command_refuses_weights_that_are_not_the_runs() {
    let scratch = Scratch::with_small();
    let run = scratch.train(&["--set", "evaluate.metrics={sliced_w2: {samples: 20}}"]);
    let before = scratch.entries();
    for command in COMMANDS {
        let outcome = look(&scratch, command, &run);
        assert_eq!(outcome.code, 0, "{command:?}: {}", outcome.stderr);
    }
    let after = scratch.entries();
    for file in after.iter().filter(|name| !before.contains(name)) {
        let path = scratch.path().join(file);
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
    }
    for file in ["energy.safetensors", "generator.safetensors"] {
        let path = run.join("checkpoints/step_00000006").join(file);
        let whole = fs::read(&path).unwrap();
        overwrite(&path, 0.123);
        for command in COMMANDS {
            let outcome = look(&scratch, command, &run);
            assert_eq!(outcome.code, 1, "{command:?}: {}", outcome.stdout);
            for word in [file, "is damaged"] {
                assert!(outcome.stderr.contains(word), "{command:?}: {}", outcome.stderr);
            }
            assert_eq!(scratch.entries(), before, "{command:?} wrote something");
        }
        fs::write(&path, whole).unwrap();
    }
}

/// Weights that the run itself left not finite, with a valid checksum.
#[test]
fn weights_that_are_not_finite_are_refused_despite_a_valid_checksum() {
    let scratch = Scratch::with_small();
    let run = scratch.train(&["--set", "evaluate.metrics={sliced_w2: {samples: 20}}"]);
    let checkpoint = run.join("checkpoints/step_00000006");
    let file = checkpoint.join("energy.safetensors");
    let before = sha256(&file);
    overwrite(&file, f32::NAN);
    let state = fs::read_to_string(checkpoint.join("state.json")).unwrap();
    fs::write(
        checkpoint.join("state.json"),
        state.replace(&before, &sha256(&file)),
    )
    .unwrap();
    for command in COMMANDS {
        let outcome = look(&scratch, command, &run);
        assert_eq!(outcome.code, 1, "{command:?}: {}", outcome.stdout);
        for word in ["energy.safetensors", "1 of ", "not finite"] {
            assert!(outcome.stderr.contains(word), "{command:?}: {}", outcome.stderr);
        }
    }
    let resumed = scratch.runner(&["--recipe", "small.yaml", "--resume", "--set", "run.epochs=3"]);
    assert_eq!(resumed.code, 1, "{}", resumed.stderr);
    assert!(resumed.stderr.contains("not finite"), "{}", resumed.stderr);
}

fn sha256(file: &Path) -> String {
    let output = std::process::Command::new("sha256sum")
        .arg(file)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn samples_record_the_hash_of_the_run() {
    let scratch = Scratch::with_small();
    let run = scratch.train(&["--set", "evaluate.metrics={sliced_w2: {samples: 20}}"]);
    let arguments = ["sample", run.to_str().unwrap(), "--n", "4", "--out", "s.h5"];
    let overrides = ["--set", "prior_sampler.steps=4"];
    let outcome = scratch.runner(&[&arguments[..], &overrides].concat());
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let file = hdf5::File::open(scratch.path().join("s.h5")).unwrap();
    let text = |name: &str| {
        let text: hdf5::types::VarLenUnicode = file.attr(name).unwrap().read_scalar().unwrap();
        text.to_string()
    };
    let expected = json(&run.join("provenance.json"))["recipe_hash"].clone();
    assert_eq!(text("recipe_hash"), expected.as_str().unwrap());
    assert_eq!(text("overrides"), "prior_sampler.steps=4");
}

/// A .npy file of `points` in the plane.
fn npy(points: &[[f32; 2]]) -> Vec<u8> {
    let header = format!(
        "{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, 2), }}",
        points.len()
    );
    let header = format!("{header:<117}\n");
    let values: Vec<_> = points
        .iter()
        .flatten()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    [&b"\x93NUMPY\x01\0\x76\0"[..], header.as_bytes(), &values].concat()
}

/// 40 points around (x, x).
fn around(x: f32) -> Vec<[f32; 2]> {
    (0..40).map(|i| [x + i as f32 / 100.0, x]).collect()
}

const FROM_FILE: &str = "dataset={name: npy, path: d.npy}";

/// Trains on `d.npy` in a folder, and returns the run's folder.
fn train_in(scratch: &Scratch, folder: &str) -> PathBuf {
    let mut command = scratch.command();
    let folder = scratch.path().join(folder);
    command.current_dir(&folder);
    command.args([
        "--recipe",
        "../small.yaml",
        "--set",
        FROM_FILE,
        "--set",
        "run.batch_size=16",
    ]);
    let outcome = Outcome::of(command.output().unwrap());
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let line = outcome
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("results: "));
    folder.join(line.unwrap())
}

fn weights(run: &Path) -> Vec<u8> {
    fs::read(run.join("checkpoints/step_00000006/generator.safetensors")).unwrap()
}

/// Two folders have files of the same name, size and time; then one is replaced by the other.
#[test]
fn data_are_identified_by_their_content() {
    let scratch = Scratch::with_small();
    let time = std::time::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
    let put = |folder: &str, x: f32| {
        let path = scratch.path().join(folder).join("d.npy");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, npy(&around(x))).unwrap();
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(time)
            .unwrap();
    };
    put("one", 0.0);
    put("two", 5.0);
    let one = train_in(&scratch, "one");
    let two = train_in(&scratch, "two");
    assert_ne!(
        weights(&one),
        weights(&two),
        "trained on the data of another folder"
    );
    put("one", 5.0);
    let replaced = train_in(&scratch, "one");
    assert_eq!(
        weights(&replaced),
        weights(&two),
        "trained on data that are no longer there"
    );
    let data = |run: &Path| json(&run.join("provenance.json"))["data"].clone();
    assert!(
        data(&one)["train"].as_str().is_some_and(|hash| hash.len() == 64),
        "{}",
        data(&one)
    );
    assert_ne!(data(&one), data(&two));
    assert_eq!(data(&replaced), data(&two));
}

#[test]
fn a_run_is_not_resumed_on_other_data() {
    let scratch = Scratch::with_small();
    scratch.write("d.npy", "");
    fs::write(scratch.path().join("d.npy"), npy(&around(0.0))).unwrap();
    let run = scratch.train(&["--set", FROM_FILE]);
    fs::write(scratch.path().join("d.npy"), npy(&around(5.0))).unwrap();
    let more = [
        "--recipe",
        "small.yaml",
        "--set",
        FROM_FILE,
        "--resume",
        "--set",
        "run.epochs=3",
    ];
    let resumed = scratch.runner(&more);
    assert_eq!(resumed.code, 1, "{}", resumed.stderr);
    for word in ["data", "have changed", run.file_name().unwrap().to_str().unwrap()] {
        assert!(resumed.stderr.contains(word), "no {word} in {}", resumed.stderr);
    }
    let seen = scratch.runner(&["sample", run.to_str().unwrap(), "--out", "s.npy"]);
    assert_eq!(seen.code, 0, "{}", seen.stderr);
    assert!(seen.stderr.contains("have changed"), "{}", seen.stderr);
}

#[test]
fn data_that_are_not_finite_are_reported_with_file_and_row() {
    for bad in [f32::NAN, f32::INFINITY] {
        let scratch = Scratch::with_small();
        let mut points = around(0.0);
        points[17][1] = bad;
        fs::write(scratch.path().join("d.npy"), npy(&points)).unwrap();
        write_hdf5(&scratch.path().join("d.h5"), &points);
        for data in [FROM_FILE, "dataset={name: hdf5, path: d.h5}"] {
            let outcome = scratch.runner(&["--recipe", "small.yaml", "--set", data]);
            assert_eq!(outcome.code, 2, "{}", outcome.stderr);
            for word in ["d.", "row 17", &bad.to_string()] {
                assert!(outcome.stderr.contains(word), "no {word} in {}", outcome.stderr);
            }
        }
    }
}

fn write_hdf5(path: &Path, points: &[[f32; 2]]) {
    let file = hdf5::File::create(path).unwrap();
    let array = file
        .new_dataset::<f32>()
        .shape((points.len(), 2))
        .create("train")
        .unwrap();
    array.write_raw(points.as_flattened()).unwrap();
}

/// A recipe whose end takes a while: an evaluation, figures, particles.
const TO_THE_END: [&str; 8] = [
    "--recipe",
    "small.yaml",
    "--set",
    "evaluate={every: 4, metrics: {sliced_w2: {samples: 2000}, mmd: {}}}",
    "--set",
    "record.checkpoint={every: 2, keep: 2, best: {metric: mmd}}",
    "--set",
    "record.figures.every=3",
];

/// Everything that an interruption must not change.
type Records = (
    (Vec<Value>, Vec<(PathBuf, Vec<u8>)>),
    Vec<(u64, String)>,
    Value,
    Vec<(PathBuf, Vec<u8>)>,
);

fn records(run: &Path) -> Records {
    let mut figures: Vec<_> = walk(&run.join("figures"))
        .into_iter()
        .map(|path| {
            (
                path.strip_prefix(run).unwrap().to_owned(),
                fs::read(&path).unwrap(),
            )
        })
        .collect();
    figures.sort();
    (
        outcome(run),
        points(run),
        json(&run.join("evaluation.json")),
        figures,
    )
}

#[track_caller]
fn assert_same(found: &Records, expected: &Records, after: &str) {
    let ((lines, files), points, evaluation, figures) = found;
    let names = |files: &[(PathBuf, Vec<u8>)]| files.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
    assert_eq!(lines, &expected.0.0, "metrics.jsonl, {after}");
    assert_eq!(names(files), names(&expected.0.1), "{after}");
    assert!(files == &expected.0.1, "checkpoints or particles, {after}");
    assert_eq!(points, &expected.1, "TensorBoard, {after}");
    assert_eq!(evaluation, &expected.2, "evaluation.json, {after}");
    assert!(figures == &expected.3, "figures, {after}");
}

fn resume(scratch: &Scratch, out: &str) -> Outcome {
    let outcome = scratch.runner(&[&TO_THE_END[..], &["--out", out, "--resume"]].concat());
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    outcome
}

/// States in which a kill in the last moments of a run leaves its folder, one after another.
#[test]
fn a_run_killed_in_its_final_evaluation_ends_like_an_undisturbed_one() {
    let scratch = Scratch::with_small();
    let train = |out: &str| {
        let outcome = scratch.runner(&[&TO_THE_END[..], &["--out", out]].concat());
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        outcome.folder(&scratch)
    };
    let expected = records(&train("whole"));
    assert_eq!(
        expected
            .1
            .iter()
            .filter(|(step, tag)| *step == 6 && tag == "evaluate/mmd")
            .count(),
        1
    );

    // Everything was written except how the run ended.
    let run = train("at_the_very_end");
    killed(&run);
    resume(&scratch, "at_the_very_end");
    assert_same(&records(&run), &expected, "killed at the very end");

    // Before the evaluation was complete, twice.
    let run = train("before_the_evaluation");
    for _ in 0..2 {
        killed(&run);
        fs::remove_file(run.join("evaluation.json")).unwrap();
        let lines = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
        let last = lines.trim_end().rfind('\n').unwrap();
        fs::write(run.join("metrics.jsonl"), &lines[..last + 1]).unwrap();
        resume(&scratch, "before_the_evaluation");
        assert_same(&records(&run), &expected, "killed before the evaluation");
    }

    // At any point after its last checkpoint appears.
    for (attempt, delay) in [0, 5, 20, 50, 100].into_iter().enumerate() {
        let out = format!("killed_{attempt}");
        let mut command = scratch.command();
        command.args(TO_THE_END).args(["--out", &out]);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let last = |run: &Path| run.join("checkpoints/step_00000006").exists();
        while !runs(&scratch, &out).iter().any(|run| last(run)) && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(delay));
        let _ = child.kill();
        child.wait().unwrap();
        resume(&scratch, &out);
        assert_same(
            &records(&runs(&scratch, &out)[0]),
            &expected,
            &format!("killed after {delay} ms"),
        );
    }
}

/// Removes the end from the provenance, as after a kill.
fn killed(run: &Path) {
    let mut provenance = json(&run.join("provenance.json"));
    provenance["outcome"] = Value::Null;
    provenance["end"] = Value::Null;
    fs::write(run.join("provenance.json"), provenance.to_string()).unwrap();
}

fn runs(scratch: &Scratch, out: &str) -> Vec<PathBuf> {
    let runs = fs::read_dir(scratch.path().join(out)).into_iter().flatten();
    runs.map(|run| run.unwrap().path()).collect()
}

#[test]
fn resuming_a_finished_run_does_nothing_and_reports_it() {
    let scratch = Scratch::with_small();
    let first = scratch.runner(&[&TO_THE_END[..], &["--out", "runs"]].concat());
    let run = first.folder(&scratch);
    let contents = || {
        let mut files = walk(&run);
        files.sort();
        let contents = files.into_iter().map(|path| (fs::read(&path).unwrap(), path));
        contents.collect::<Vec<_>>()
    };
    let before = contents();
    for _ in 0..2 {
        let resumed = resume(&scratch, "runs");
        assert!(
            resumed
                .stderr
                .contains("finished after 6 steps: nothing to resume"),
            "{}",
            resumed.stderr
        );
        assert_eq!(resumed.folder(&scratch), run);
        assert!(contents() == before, "something was written");
    }
    let more = scratch.runner(&[&TO_THE_END[..], &["--resume", "--set", "run.epochs=3"]].concat());
    assert!(more.stderr.contains("resumed after step 6"), "{}", more.stderr);
    assert_eq!(json(&run.join("evaluation.json"))["step"], 9);
}

/// The metric determines the direction: a higher likelihood is better.
#[test]
fn the_best_checkpoint_is_the_best_by_its_metric() {
    let scratch = Scratch::with_small();
    let set = [
        "--recipe",
        "small.yaml",
        "--set",
        "evaluate={every: 1, metrics: {log_likelihood: {}}}",
        "--set",
    ];
    let best = "record.checkpoint={every: 1, keep: 1, best: {metric: log_likelihood}}";
    let outcome = scratch.runner(&[&set[..], &[best]].concat());
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let run = outcome.folder(&scratch);
    let lines = support::metrics(&run);
    let measured = lines
        .iter()
        .filter_map(|line| line["evaluate/log_likelihood"].as_f64());
    let most = measured.fold(f64::NEG_INFINITY, f64::max);
    assert_eq!(json(&run.join("checkpoints/best.json"))["value"], most);

    let check = |best: &str| {
        let best = format!("record.checkpoint.best={best}");
        scratch.runner(&[&["check"], &set[..], &[&best]].concat())
    };
    check("{metric: log_likelihood, better: lower}").refused(&[
        "record.checkpoint.best.better",
        "higher values of `log_likelihood` are better",
    ]);
    let unknown = "log_likelihood/error";
    check(&format!("{{metric: {unknown}}}")).refused(&[
        "record.checkpoint.best.better",
        unknown,
        "`lower` or `higher`",
    ]);
    assert_eq!(check(&format!("{{metric: {unknown}, better: lower}}")).code, 0);
}

/// A file with the name for all particles contains all of them.
#[test]
fn particles_of_a_checkpoint_cannot_be_mistaken_for_older_ones() {
    let scratch = Scratch::with_small();
    let run = scratch.train(&["--set", "record.checkpoint={every: 1, keep: 9}"]);
    let mut parts = 0;
    for step in 1..=6 {
        let folder = run.join(format!("checkpoints/step_{step:08}"));
        let has = |name: &str| folder.join(format!("{name}.safetensors")).exists();
        assert!(has("particles") != has("particles_before"), "step {step}");
        assert_eq!(has("particles_before"), has("particles_changed"), "step {step}");
        parts += u32::from(has("particles_changed"));
    }
    assert!(0 < parts && parts < 6, "{parts}");
}

#[test]
fn a_member_reports_its_error_once() {
    let scratch = Scratch::with_small();
    let run = scratch.train(&[]);
    let file = run.join("checkpoints/step_00000006/energy.safetensors");
    // Resuming sets the only checkpoint aside; the folder is then in the way.
    overwrite(&file, f32::NAN);
    fs::create_dir(run.join("checkpoints/damaged-step_00000006")).unwrap();
    fs::write(run.join("checkpoints/damaged-step_00000006/x"), "").unwrap();
    let member = scratch.runner(&["member", run.to_str().unwrap()]);
    assert_eq!(member.code, 1, "{}", member.stderr);
    assert_eq!(member.stderr.matches("renaming").count(), 1, "{}", member.stderr);

    fs::write(run.join("recipe.yaml"), "run: { seeds: 1 }").unwrap();
    let member = scratch.runner(&["member", run.to_str().unwrap()]);
    assert_eq!(member.stderr.matches("run.seeds").count(), 1, "{}", member.stderr);
}
