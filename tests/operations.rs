//! The libtorch operations of steps and prior chains, counted by libtorch's own profiler in the real program: none that
//! would make the host wait for a GPU, and no new tensor where one can be reused.
//!
//! Two runs that differ only in the number of steps show what a step takes. The chains run in libtorch, as they would
//! on a GPU.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::skip::skip;
use support::{Outcome, Scratch};

const RECIPE: &str = "\
run: { seed: 1, epochs: 1000, batch_size: 16, device: cpu, threads: 1 }
dataset: { name: blobs, size: 64, image_size: 28, channels: 1 }
energy: { name: mlp, hidden: 8, layers: 2, tilt: 1.0, engine: libtorch }
generator: { name: small_generator, width: 4 }
decoder: { sigma: 0.3 }
prior_sampler: { name: ula, steps: 5, step_size: 0.01 }
algorithm: { name: ebipla, particles: 2, step_size: 0.1 }
guard: { every: 0 }
record: { metrics: { every: 0 }, tensorboard: { every: 0 }, checkpoint: { every: 0 } }
";

/// Operations that make the host wait for a GPU: to read a number, or to learn the size of a result.
const WAITS: [&str; 6] = [
    "aten::_local_scalar_dense",
    "aten::item",
    "aten::nonzero",
    "aten::masked_select",
    "aten::is_nonzero",
    "aten::unique",
];

/// Number of calls of each operation.
type Counts = BTreeMap<String, i64>;

struct Profiler {
    library: PathBuf,
    scratch: Scratch,
}

impl Profiler {
    /// Builds the library that counts; reports a skip and returns `None` if that is impossible.
    fn new() -> Option<Self> {
        let scratch = Scratch::new();
        scratch.write("images.yaml", RECIPE);
        let library = scratch.path().join("operations.so");
        let Some(libtorch) = std::env::var_os("LIBTORCH").map(PathBuf::from) else {
            skip("LIBTORCH, the folder of libtorch's headers, is not set");
            return None;
        };
        let compiled = Command::new(std::env::var_os("CXX").unwrap_or_else(|| "c++".into()))
            .args(["-std=c++20", "-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/profiler/operations.cpp"))
            .arg("-I")
            .arg(libtorch.join("include"))
            .arg("-L")
            .arg(libtorch.join("lib"))
            .args(["-ltorch_cpu", "-lc10"])
            .output();
        match compiled {
            Ok(output) if output.status.success() => Some(Self { library, scratch }),
            other => {
                skip(&format!("cannot build the profiler: {other:?}"));
                None
            }
        }
    }

    fn counts(&self, changes: &[&str]) -> Counts {
        let file = self.scratch.path().join("operations.txt");
        let mut command = self.scratch.command();
        command.args(["--recipe", "images.yaml"]);
        for change in changes {
            command.args(["--set", change]);
        }
        command
            .env("LD_PRELOAD", &self.library)
            .env("EBIPLA_OPERATIONS", &file);
        let outcome = Outcome::of(command.output().unwrap());
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let text = std::fs::read_to_string(&file).unwrap();
        let line = |line: &str| {
            let (count, name) = line.split_once(' ').unwrap();
            (name.to_owned(), count.parse().unwrap())
        };
        text.lines().map(line).collect()
    }

    /// The operations that a run with `more` takes in addition to those of a run with `fewer`.
    fn difference(&self, fewer: &[&str], more: &[&str]) -> Counts {
        let (fewer, mut more) = (self.counts(fewer), self.counts(more));
        for (name, count) in fewer {
            *more.entry(name).or_default() -= count;
        }
        more.retain(|_, count| *count != 0);
        more
    }
}

fn of(counts: &Counts, prefixes: &[&str]) -> i64 {
    let chosen = counts
        .iter()
        .filter(|(name, _)| prefixes.iter().any(|prefix| name.starts_with(prefix)));
    chosen.map(|(_, count)| count).sum()
}

#[test]
fn steps_never_wait_for_the_device() {
    let Some(profiler) = Profiler::new() else { return };
    for algorithm in ["ebipla", "lebm", "ebipla_underdamped"] {
        for sampler in ["ula", "tamed_ula", "mala", "hmc", "underdamped"] {
            let changes = [
                format!("algorithm.name={algorithm}"),
                format!("prior_sampler.name={sampler}"),
            ];
            let with_steps = |steps| {
                let mut all: Vec<_> = changes.iter().map(String::as_str).collect();
                all.push(steps);
                all
            };
            // Eight steps are two epochs: the order of the data is drawn as often as in the long run.
            let step = profiler.difference(&with_steps("run.max_steps=8"), &with_steps("run.max_steps=16"));
            assert!(
                of(&step, &["aten::convolution"]) > 0,
                "nothing was counted: {step:?}"
            );
            assert_eq!(of(&step, &WAITS), 0, "{algorithm}, {sampler}: {step:?}");
        }
    }
    // Checks the test itself: reading the losses in each step is detected.
    let read = |every: &str| profiler.counts(&["run.max_steps=8", every]);
    let [never, always] = ["record.metrics.every=0", "record.metrics.every=1"].map(read);
    assert!(
        of(&always, &["aten::cat"]) > of(&never, &["aten::cat"]),
        "{always:?}"
    );
}

/// A step of Langevin chains on a perceptron: forward and backward pass through two layers without autograd, no
/// conversion or transfer, and one new tensor, the gradient, which the caller may keep.
#[test]
fn chains_reuse_their_tensors() {
    let Some(profiler) = Profiler::new() else { return };
    // Their ends are read once in training and once for the last figure.
    let twice = 2;
    let steps = 10;
    let step = profiler.difference(
        &["run.max_steps=1", "prior_sampler.steps=5"],
        &["run.max_steps=1", "prior_sampler.steps=15"],
    );
    let each = |prefixes: &[&str]| of(&step, prefixes) as f64 / f64::from(twice * steps);
    assert_eq!(each(&["aten::addmm.out"]), 2.0, "{step:?}");
    assert_eq!(each(&["aten::mm"]), 2.0, "{step:?}");
    assert_eq!(each(&["autograd"]), 0.0, "{step:?}");
    assert_eq!(each(&["aten::to", "aten::_to_copy"]), 0.0, "{step:?}");
    assert_eq!(of(&step, &WAITS), 0, "{step:?}");
    assert_eq!(
        each(&["aten::empty", "aten::zeros", "aten::clone"]),
        0.0,
        "{step:?}"
    );
}
