//! `runner check`: a dry run.

use std::path::Path;

use super::arguments::CheckArguments;
use super::{Program, print};
use crate::Purpose;
use crate::run::{Experiment, report_step_sizes};

pub fn check(program: &Program, arguments: &CheckArguments) -> anyhow::Result<()> {
    let recipe = program.recipe(&arguments.recipe)?;
    let name = recipe.name.clone();
    let mut experiment = Experiment::build(recipe, &program.registry, Purpose::Trial, Path::new(""))?;
    let numbers = experiment.step(0)?.read();
    if let Some((quantity, value)) = numbers.iter().find(|(_, value)| !value.is_finite()) {
        anyhow::bail!("recipe {name}: after one step {quantity} is {value}");
    }
    experiment.evaluate()?;
    report_step_sizes(&experiment, 1)?;
    print(&format!("{name}: right; built everything and took a step\n"))
}
