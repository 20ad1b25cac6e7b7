//! `runner check`: a dry run.

use super::arguments::CheckArguments;
use super::{Session, print};
use crate::run::{Experiment, Size};

pub fn check(session: &Session, arguments: &CheckArguments) -> anyhow::Result<()> {
    let recipe = session.recipe(&arguments.recipe)?;
    let name = recipe.name.clone();
    let mut experiment = Experiment::build(recipe, &session.registry, Size::Tiny)?;
    let numbers = experiment.step(0)?.read();
    if let Some((quantity, value)) = numbers.iter().find(|(_, value)| !value.is_finite()) {
        anyhow::bail!("recipe {name}: after one step {quantity} is {value}");
    }
    experiment.evaluate()?;
    print(&format!("{name}: right; built everything and took a step\n"))
}
