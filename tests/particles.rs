//! Particle dumps of all or some particles, their contents, and runs that start from them.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::Scratch;

/// `[point][particle][dimension]` of a dump.
fn clouds(path: &Path) -> Vec<Vec<[f64; 2]>> {
    let particles = hdf5::File::open(path).unwrap().dataset("particles").unwrap();
    let count = particles.shape()[1];
    let numbers = particles.read_raw::<f32>().unwrap();
    let rows: Vec<_> = numbers
        .chunks(2)
        .map(|x| [f64::from(x[0]), f64::from(x[1])])
        .collect();
    rows.chunks(count).map(<[_]>::to_vec).collect()
}

fn dumps(run: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(run.join("particles")).unwrap();
    let mut dumps: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    dumps.sort();
    dumps
}

fn names(paths: &[PathBuf]) -> Vec<&str> {
    paths
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap())
        .collect()
}

fn set(key: &str, path: &Path) -> String {
    format!("{key}={}", path.display())
}

#[test]
fn dumps_come_after_steps_or_epochs_and_hold_the_requested_points() {
    let scratch = Scratch::with_small();
    let by_epoch = scratch.train(&["--set", "record.particles={every_epochs: 1, points: 9}"]);
    // 40 points in batches of 16 are three steps an epoch.
    assert_eq!(names(&dumps(&by_epoch)), ["step_00000003.h5", "step_00000006.h5"]);
    let indices = |path: &Path| {
        hdf5::File::open(path)
            .unwrap()
            .dataset("indices")
            .unwrap()
            .read_raw::<i64>()
            .unwrap()
    };
    let [first, last] = &dumps(&by_epoch)[..] else {
        panic!()
    };
    assert_eq!(indices(first), indices(last), "the same points in all dumps");
    let all = scratch.train(&["--set", "record.particles.every=4"]);
    assert_eq!(names(&dumps(&all)), ["step_00000004.h5", "step_00000006.h5"]);
    assert_eq!(clouds(last).len(), 9);
    assert_eq!(clouds(&dumps(&all)[1]).len(), 40);
}

/// Compares the output of `runner particles` with the numbers in the files.
#[test]
fn spread_and_drift_match_the_files() {
    let scratch = Scratch::with_small();
    let run = scratch.train(&["--set", "record.particles.every=3"]);
    let summary = scratch
        .runner(&["particles", run.to_str().unwrap(), "--json"])
        .json();
    let [before, after] = [0, 1].map(|i| clouds(&dumps(&run)[i]));
    let mean = |cloud: &[[f64; 2]], d: usize| cloud.iter().map(|x| x[d]).sum::<f64>() / cloud.len() as f64;
    let mut drift = 0.0;
    let mut spread = 0.0;
    for (old, new) in before.iter().zip(&after) {
        for d in 0..2 {
            drift += (mean(new, d) - mean(old, d)).powi(2);
            // With two particles, the variance is half the squared distance.
            spread += (new[0][d] - new[1][d]).powi(2) / 2.0;
        }
    }
    let close = |found: &serde_json::Value, expected: f64| {
        let found = found.as_f64().unwrap();
        assert!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
    };
    close(&summary[1]["drift"], (drift / 80.0).sqrt());
    close(&summary[1]["spread"][1], (spread / 80.0).sqrt());
    assert!(summary[0]["drift"].is_null());
    let table = scratch.runner(&["particles", run.to_str().unwrap()]).stdout;
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(table.contains("spread") && table.contains("drift"));
}

#[test]
fn a_run_starts_from_a_dump() {
    let scratch = Scratch::with_small();
    let dump = dumps(&scratch.train(&[])).pop().unwrap();
    let from = set("algorithm.init_particles", &dump);
    let start = |more: &[&str]| {
        let run = scratch.train(&[&["--set", &from[..], "--set", "run.max_steps=0"], more].concat());
        clouds(&run.join("particles/step_00000000.h5"))
    };
    let given = clouds(&dump);
    assert_eq!(start(&[]), given);
    assert_eq!(
        start(&[
            "--set",
            "algorithm.name=ebipla_underdamped",
            "--set",
            "algorithm.particles=2",
            "--set",
            &from
        ]),
        given
    );
    // Fewer particles are the first of each cloud; more of them are replicas.
    let fewer = start(&["--set", "algorithm.particles=1"]);
    assert!(fewer.iter().zip(&given).all(|(new, old)| new[..] == old[..1]));
    let more = start(&["--set", "algorithm.particles=4"]);
    assert!(
        more.iter()
            .zip(&given)
            .all(|(new, old)| new[..2] == old[..] && new[2..] == old[..])
    );
    let checked = scratch.runner(&["check", "--recipe", "small.yaml", "--set", &from]);
    assert_eq!(checked.code, 0, "{}", checked.stderr);

    // A resumed run no longer needs the dump.
    scratch.train(&["--set", &from, "--set", "run.max_steps=2", "--out", "resumed"]);
    fs::remove_file(&dump).unwrap();
    scratch.train(&["--set", &from, "--out", "resumed", "--resume"]);
}

#[test]
fn dumps_that_do_not_fit_are_refused_with_the_reason() {
    let scratch = Scratch::with_small();
    let dump = dumps(&scratch.train(&[])).pop().unwrap();
    let some = dumps(&scratch.train(&["--set", "record.particles.points=5"]))
        .pop()
        .unwrap();
    let refused = |dump: &Path, more: &str, words: &[&str]| {
        let from = set("algorithm.init_particles", dump);
        let outcome = scratch.runner(&["--recipe", "small.yaml", "--set", &from, "--set", more]);
        outcome.refused(&[words, &[dump.to_str().unwrap()]].concat());
    };
    refused(
        &dump,
        "algorithm.particles=3",
        &["2 particles cannot be replicated to 3"],
    );
    refused(
        &dump,
        "dataset.size=50",
        &["clouds of 40 data points, expected all 50"],
    );
    refused(
        &dump,
        "generator.latent_dim=3",
        &["it has 2 latent dimensions, expected 3"],
    );
    refused(&some, "run.seed=1", &["clouds of 5 data points, expected all 40"]);
    refused(Path::new("nowhere.h5"), "run.seed=1", &["no such file"]);

    let mut bytes = fs::read(&dump).unwrap();
    let middle = bytes.len() / 2;
    bytes.truncate(middle);
    let damaged = scratch.path().join("damaged.h5");
    fs::write(&damaged, bytes).unwrap();
    refused(&damaged, "run.seed=1", &["is no dump of particles"]);
    let looked = scratch.runner(&["particles", damaged.to_str().unwrap()]);
    assert_eq!(looked.code, 1);
    assert!(
        looked.stderr.contains("damaged.h5 is no dump of particles"),
        "{}",
        looked.stderr
    );
    scratch
        .runner(&["particles", "."])
        .refused(&["has no particle dumps"]);
    let run = dump.parent().unwrap().parent().unwrap().to_str().unwrap();
    scratch
        .runner(&["particles", run, "--export", "x.csv"])
        .refused(&["ends in .npy"]);
    scratch
        .runner(&["particles", run, "--step", "99"])
        .refused(&["no dump of step 99"]);
}
