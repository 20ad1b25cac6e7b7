//! A run that was interrupted, killed or extended ends bit for bit like an undisturbed one.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use support::outcome::{outcome, walk};
use support::{ENDLESS, Scratch, metrics};

/// Options under which state could be lost: each algorithm, sampler, noise mode and warm-up phase, chains and averages.
const VARIATIONS: [&[&str]; 9] = [
    &["algorithm.noise=lazy", "optimizer.energy.average=0.9"],
    &[
        "algorithm.noise=eager",
        "optimizer.energy.name=rmsprop",
        "prior_sampler.name=mala",
    ],
    &[
        "algorithm.warmup={steps: 2}",
        "algorithm.losses_at=updated",
        "prior_sampler.name=tamed_ula",
    ],
    &["algorithm.warmup={steps: 5, inner_steps: 2}"],
    &["algorithm.name=ebipla_full", "run.batch_size=40", "run.epochs=6"],
    &[
        "algorithm.name=ebipla_underdamped",
        "algorithm.parameters=momentum",
    ],
    &[
        "algorithm.name=lebm",
        "optimizer.generator={name: sgd, momentum: 0.5}",
    ],
    &[
        "prior_chains={start: persistent, restarts: 0.2}",
        "prior_sampler.name=hmc",
    ],
    &[
        "prior_chains.start=posterior",
        "prior_sampler.name=underdamped",
        "run.particles.memory=0",
    ],
];

fn set<'a>(overrides: &[&'a str]) -> Vec<&'a str> {
    overrides.iter().flat_map(|text| ["--set", text]).collect()
}

#[test]
fn an_extended_run_equals_an_uninterrupted_one() {
    for variation in VARIATIONS {
        let scratch = Scratch::with_small();
        let mut options = set(variation);
        options.extend(["--set", "record.checkpoint={every: 2, keep: 1}"]);
        let whole = scratch.train(&[&options[..], &["--out", "whole"]].concat());
        for stop in ["1", "4"] {
            let stop = format!("run.max_steps={stop}");
            let out = format!("parts_{stop}");
            let first = scratch.train(&[&options[..], &["--out", &out, "--set", &stop]].concat());
            let resumed = scratch.train(&[&options[..], &["--out", &out, "--resume"]].concat());
            assert_eq!(first, resumed, "it continues in place");
            // The line that ends the first part is extra.
            let (mut found, files) = outcome(&resumed);
            let (expected, expected_files) = outcome(&whole);
            found.dedup();
            found.retain(|line| expected.contains(line));
            assert_eq!(found, expected, "{variation:?}, {stop}");
            for expected in &expected_files {
                // The first part has also written the records of its own end.
                let found = files.iter().find(|found| found.0 == expected.0);
                assert!(
                    found == Some(expected),
                    "{variation:?}, {stop}: {}",
                    expected.0.display()
                );
            }
        }
    }
}

#[test]
fn a_changed_recipe_is_refused_key_by_key() {
    let scratch = Scratch::with_small();
    scratch.train(&["--set", "run.max_steps=2"]);
    let resume = |change: &str| scratch.runner(&["--recipe", "small.yaml", "--resume", "--set", change]);
    resume("algorithm.step_size=0.4").refused(&["algorithm.step_size", "was 0.5, is 0.4"]);
    resume("prior_sampler.name=mala").refused(&["prior_sampler.name", "was \"ula\", is \"mala\""]);
    assert_eq!(resume("run.epochs=3").code, 0);
    scratch
        .runner(&["--recipe", "small.yaml", "--resume", "--seed", "5"])
        .refused(&["no run of small with seed 5"]);
}

#[test]
fn one_command_starts_and_resumes_a_run() {
    let scratch = Scratch::with_small();
    let start_or_resume = |more: &[&str]| scratch.train(&[&["--resume-or-start"], more].concat());
    let whole = scratch.train(&["--out", "whole"]);
    let first = start_or_resume(&["--set", "run.max_steps=2"]);
    assert_eq!(start_or_resume(&[]), first, "it continues in place");
    assert_eq!(metrics(&first).last(), metrics(&whole).last());
    // Another recipe is another run.
    let other = start_or_resume(&["--set", "algorithm.step_size=0.4"]);
    assert_ne!(other, first);
    assert_eq!(runs(&scratch).len(), 2);
    let nothing = scratch.runner(&["--recipe", "small.yaml", "--resume", "--out", "nowhere"]);
    nothing.refused(&["--resume-or-start starts one"]);
    // A run that exists but cannot be read does not restart.
    let damaged = start_or_resume(&["--seed", "7"]);
    fs::write(damaged.join("recipe.yaml"), "run: {").unwrap();
    scratch
        .runner(&["--recipe", "small.yaml", "--seed", "7", "--resume-or-start"])
        .refused(&["recipe.yaml:1", "never closed"]);
}

/// It must start from its particles, as if it had never been started.
#[test]
fn a_run_killed_before_its_first_checkpoint_restarts() {
    let scratch = Scratch::with_small();
    let dump = scratch
        .train(&["--out", "before"])
        .join("particles/step_00000006.h5");
    let init = format!("algorithm.init_particles={}", dump.display());
    let options = ["--set", &init, "--set", "record.checkpoint.every=2"];
    let whole = scratch.train(&[&options[..], &["--out", "whole"]].concat());
    for damaged in [false, true] {
        let out = format!("killed_{damaged}");
        let arguments = [&options[..], &["--out", &out]].concat();
        let killed = scratch.train(&[&arguments[..], &["--set", "run.max_steps=1"]].concat());
        let resume = [&["--recipe", "small.yaml", "--resume"], &arguments[..]].concat();
        if damaged {
            fs::write(killed.join("checkpoints/step_00000001/state.safetensors"), "").unwrap();
            let refused = scratch.runner(&resume);
            assert_eq!(refused.code, 1, "{}", refused.stderr);
            assert!(refused.stderr.contains("no checkpoint in"), "{}", refused.stderr);
        } else {
            fs::remove_dir_all(killed.join("checkpoints")).unwrap();
        }
        let resumed = scratch.runner(&resume);
        assert_eq!(resumed.code, 0, "{}", resumed.stderr);
        assert_eq!(metrics(&killed), metrics(&whole), "{damaged}");
    }
}

#[test]
fn a_damaged_checkpoint_is_reported_and_the_previous_one_used() {
    let scratch = Scratch::with_small();
    let every = ["--set", "record.checkpoint={every: 2, keep: 3}"];
    let whole = scratch.train(&[&every[..], &["--out", "whole"]].concat());
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 5] = [
        ("energy.safetensors", |bytes| bytes.truncate(20)),
        ("state.safetensors", |bytes| *bytes.last_mut().unwrap() ^= 1),
        ("particles.safetensors", |bytes| bytes[3] = 0xff),
        ("state.json", |bytes| bytes.truncate(5)),
        ("generator.safetensors", Vec::clear),
    ];
    for (file, damage) in damages {
        let out = format!("damaged_{file}");
        let first = scratch.train(&[&every[..], &["--out", &out, "--set", "run.max_steps=5"]].concat());
        let path = first.join("checkpoints/step_00000005").join(file);
        let mut bytes = fs::read(&path).unwrap();
        damage(&mut bytes);
        fs::write(&path, bytes).unwrap();
        let resumed =
            scratch.runner(&[&["--recipe", "small.yaml", "--resume", "--out", &out], &every[..]].concat());
        assert_eq!(resumed.code, 0, "{}", resumed.stderr);
        assert!(resumed.stderr.contains(file), "{}", resumed.stderr);
        assert!(
            resumed.stderr.contains("resumed after step 4"),
            "{}",
            resumed.stderr
        );
        assert_eq!(metrics(&first), metrics(&whole), "{file}");
    }
}

#[test]
fn two_processes_cannot_share_a_run_folder() {
    let scratch = Scratch::with_small();
    let arguments = [&["--recipe", "small.yaml"], &ENDLESS[..]].concat();
    let mut first = scratch.start(&arguments);
    first.wait_until(|| runs(&scratch).iter().any(|run| lines(run) > 0));
    let second = scratch.runner(&[&arguments[..], &["--resume"]].concat());
    assert_eq!(second.code, 1);
    assert!(
        second.stderr.contains("another process is running in"),
        "{}",
        second.stderr
    );
    first.kill();
}

/// Kills without warning at fifty random moments, and at more if necessary until some kills hit a checkpoint and some a
/// dump being written, and resumes each time. Writing takes most of the time here.
#[test]
fn a_run_killed_fifty_times_equals_an_undisturbed_one() {
    const KILLS: u32 = 50;
    let scratch = Scratch::with_small();
    let options = [
        &["--recipe", "small.yaml"],
        &ENDLESS[..],
        &set(&[
            "record.checkpoint={every: 1, keep: 1}",
            "record.particles.every=3",
        ]),
    ]
    .concat();
    let recorded = || runs(&scratch).iter().map(|run| lines(run)).max().unwrap_or(0);
    let mut moments = Moments(7);
    let (mut kills, mut in_checkpoint, mut in_dump) = (0, 0, 0);
    while kills < KILLS || in_checkpoint == 0 || in_dump == 0 {
        let before = recorded();
        let more: &[&str] = if before > 0 { &["--resume"] } else { &[] };
        let mut run = scratch.start(&[&options[..], more].concat());
        // Counted from its first step, since it must make progress.
        run.wait_until(|| recorded() > before);
        std::thread::sleep(Duration::from_micros(moments.next() % 20_000));
        run.kill();
        kills += 1;
        let unfinished = unfinished(&runs(&scratch)[0]);
        in_checkpoint += u32::from(unfinished.iter().any(|path| path.contains("checkpoints")));
        in_dump += u32::from(unfinished.iter().any(|path| path.contains("particles/")));
    }
    println!("{kills} kills, {in_checkpoint} while a checkpoint was written, {in_dump} while a dump was");
    let end = format!("run.max_steps={}", recorded() + 3);
    let to_the_end = |more: &[&str]| {
        let outcome = scratch.runner(&[&options[..], &["--set", &end], more].concat());
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        outcome.folder(&scratch)
    };
    let folder = to_the_end(&["--resume"]);
    let whole = to_the_end(&["--out", "whole"]);
    let (found, files) = outcome(&folder);
    let (expected, expected_files) = outcome(&whole);
    assert_eq!(found, expected);
    assert!(files == expected_files);
    assert_eq!(unfinished(&folder), Vec::<String>::new());
}

/// Files with a temporary name.
fn unfinished(folder: &Path) -> Vec<String> {
    let all = walk(folder).into_iter().map(|path| path.display().to_string());
    all.filter(|path| path.contains(".unfinished")).collect()
}

/// A sequence of moments, the same each time (xorshift).
struct Moments(u64);

impl Moments {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn the_best_checkpoint_survives_an_interruption() {
    let scratch = Scratch::with_small();
    let options = set(&[
        "record.checkpoint={every: 1, keep: 1, best: {metric: mmd}}",
        "evaluate={every: 1, metrics: {mmd: {}}}",
    ]);
    let whole = scratch.train(&[&options[..], &["--out", "whole"]].concat());
    scratch.train(&[&options[..], &["--set", "run.max_steps=3"]].concat());
    let resumed = scratch.train(&[&options[..], &["--resume"]].concat());
    let best = |folder: &Path| fs::read_to_string(folder.join("checkpoints/best.json")).unwrap();
    assert_eq!(best(&whole), best(&resumed));
    let found: Value = serde_json::from_str(&best(&whole)).unwrap();
    let measured: Vec<_> = metrics(&whole)
        .iter()
        .filter_map(|line| Some((line["step"].as_u64()?, line.get("evaluate/mmd")?.as_f64()?)))
        .collect();
    let least = measured.iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    assert_eq!(
        (found["step"].as_u64(), found["value"].as_f64()),
        (Some(least.0), Some(least.1))
    );
    let mut kept = vec![format!("step_{:08}", least.0), "step_00000006".to_owned()];
    kept.dedup();
    for step in kept {
        assert!(
            resumed
                .join("checkpoints")
                .join(&step)
                .join("state.json")
                .exists(),
            "{step}"
        );
    }
    scratch
        .runner(&[
            "check",
            "--recipe",
            "small.yaml",
            "--set",
            "record.checkpoint.best={metric: fid}",
        ])
        .refused(&[
            "record.checkpoint.best.metric",
            "`fid` is not among evaluate.metrics",
        ]);
}

#[test]
fn provenance_keeps_the_earlier_parts_of_a_run() {
    let scratch = Scratch::with_small();
    for steps in ["2", "4"] {
        let steps = format!("run.max_steps={steps}");
        let more = if steps.ends_with('4') {
            vec!["--resume"]
        } else {
            vec![]
        };
        scratch.train(&[&["--set", &steps[..]], &more[..]].concat());
    }
    let resumed = scratch.train(&["--resume"]);
    let provenance: Value =
        serde_json::from_slice(&fs::read(resumed.join("provenance.json")).unwrap()).unwrap();
    let earlier = provenance["earlier_parts"].as_array().unwrap();
    assert_eq!(earlier.len(), 2);
    for (part, steps) in earlier.iter().zip(["run.max_steps=2", "run.max_steps=4"]) {
        assert_eq!(part["outcome"], "finished");
        assert!(part["command_line"].to_string().contains(steps));
    }
}

fn runs(scratch: &Scratch) -> Vec<PathBuf> {
    let runs = fs::read_dir(scratch.path().join("runs")).into_iter().flatten();
    runs.map(|run| run.unwrap().path()).collect()
}

fn lines(run: &Path) -> usize {
    let text = fs::read_to_string(run.join("metrics.jsonl"));
    text.map_or(0, |text| text.lines().count())
}
