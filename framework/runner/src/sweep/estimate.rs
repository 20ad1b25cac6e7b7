//! Measures a few steps of a member, to tell what a sweep will cost.

use std::path::Path;
use std::time::Instant;

use ebipla_core::{Purpose, Registry};

use crate::Recipe;
use crate::run::Experiment;

/// What a member will cost.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    pub steps: u64,
    pub seconds_per_step: f64,
}

impl Estimate {
    /// Of its training; evaluation and records are not foreseen.
    pub fn seconds(&self) -> f64 {
        self.steps as f64 * self.seconds_per_step
    }
}

/// Steps that are measured.
const MEASURED: u64 = 5;

/// Takes steps from all over the run, since a warm-up costs another time than what comes after it.
pub fn estimate(recipe: Recipe, registry: &Registry, out: &Path) -> anyhow::Result<Estimate> {
    let mut experiment = Experiment::build(recipe, registry, Purpose::Start, out)?;
    let steps = experiment.total_steps();
    let mut time = |k: u64| {
        let start = Instant::now();
        // The numbers are there only when the step is done.
        experiment.step(k)?.read();
        anyhow::Ok(start.elapsed().as_secs_f64())
    };
    // The first step also warms caches.
    if steps > 0 {
        time(0)?;
    }
    let middles = (0..MEASURED).map(|i| (2 * i + 1) * steps / (2 * MEASURED));
    let seconds: f64 = middles
        .filter(|k| *k < steps)
        .map(&mut time)
        .sum::<Result<_, _>>()?;
    Ok(Estimate {
        steps,
        seconds_per_step: seconds / MEASURED as f64,
    })
}
