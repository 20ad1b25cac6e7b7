//! How the cost of a step grows with the data, the particles, the chains' length and the batch.

use std::path::Path;

use ebipla_core::Purpose;

use super::Settings;
use super::stopwatch::{Contender, race};
use super::table::Table;
use crate::run::Experiment;

/// Steps of a measurement.
const STEPS: u64 = 10;

/// What grows, the values that it takes, and what else is changed.
struct Axis {
    what: &'static str,
    key: &'static str,
    values: &'static [u64],
    /// Keeps clouds in a mapped file whatever their size.
    mapped: bool,
}

const AXES: [Axis; 4] = [
    Axis {
        what: "data points M, particles in a mapped file",
        key: "dataset.size",
        values: &[10_000, 100_000, 1_000_000, 10_000_000],
        mapped: true,
    },
    Axis {
        what: "particles N",
        key: "algorithm.particles",
        values: &[1, 4, 16, 64, 256],
        mapped: false,
    },
    Axis {
        what: "steps J of the prior chains",
        key: "prior_sampler.steps",
        values: &[50, 100, 200, 400],
        mapped: false,
    },
    Axis {
        what: "batch",
        key: "run.batch_size",
        values: &[125, 250, 500, 1000, 2000],
        mapped: false,
    },
];

/// One table for each axis, all on variations of `quickstart`. The disk of the working folder takes the mapped file.
pub fn measure(settings: &Settings) -> anyhow::Result<Vec<Table>> {
    AXES.iter().map(|axis| table(settings, axis)).collect()
}

fn table(settings: &Settings, axis: &Axis) -> anyhow::Result<Table> {
    let mut runs = Vec::new();
    for value in axis.values {
        let mut changes = vec![
            (axis.key, value.to_string()),
            ("evaluate.metrics.sliced_w2", "null".into()),
        ];
        if axis.mapped {
            changes.push(("run.particles.memory", "0".into()));
        }
        let recipe = settings.recipe("quickstart", &changes)?;
        let run = Experiment::build(recipe, settings.registry, Purpose::Start, Path::new(""))?;
        runs.push(run);
    }
    let mut contenders: Vec<_> = runs.iter_mut().map(steps).collect();
    let seconds = race(&mut contenders, settings.rounds)?;
    let mut table = Table::new(
        format!("A step of quickstart, by {}", axis.what),
        &["ms a step", "× the first", "by so many times"],
    );
    for (value, each) in axis.values.iter().zip(&seconds) {
        table.row(
            value.to_string(),
            vec![
                Some(each / STEPS as f64 * 1e3),
                Some(each / seconds[0]),
                Some(*value as f64 / axis.values[0] as f64),
            ],
        );
    }
    Ok(table)
}

/// Some steps of a run, each time the next ones.
fn steps(run: &mut Experiment) -> Contender<'_> {
    let mut done = 0;
    Contender::new("steps", move || {
        for k in done..done + STEPS {
            run.step(k)?.read();
        }
        done += STEPS;
        Ok(())
    })
}
