//! `runner check`: a dry run.

use std::path::Path;

use ebipla_core::Purpose;

use super::arguments::CheckArguments;
use super::{Program, print};
use crate::run::{Experiment, report_step_sizes, round_trip, untrained};

pub fn check(program: &Program, arguments: &CheckArguments) -> anyhow::Result<()> {
    let recipe = program.recipe(&arguments.recipe)?;
    recipe.log_warnings();
    let name = recipe.name.clone();
    let build = || Experiment::build(recipe.clone(), &program.registry, Purpose::Trial, Path::new(""));
    let mut experiment = build()?;
    for message in untrained(&experiment) {
        tracing::warn!("{message}");
    }
    let numbers = experiment.step(0)?.read();
    if let Some((quantity, value)) = numbers.iter().find(|(_, value)| !value.is_finite()) {
        anyhow::bail!("recipe {name}: after one step {quantity} is {value}");
    }
    experiment.evaluate()?;
    report_step_sizes(&experiment, 1)?;
    if let Some(message) = round_trip(&mut experiment, &mut build()?, 1)? {
        tracing::warn!("{message}");
    }
    print(&format!(
        "{name}: right; built everything, took a step, and restored a checkpoint\n"
    ))
}
