//! `runner eval`: measures a finished run again, with other metrics or another sampler if asked to.

use serde_json::Value;

use super::arguments::{EvalArguments, RecipeArguments};
use super::{Program, print};
use crate::Purpose;
use crate::run::{Experiment, last_checkpoint};

pub fn eval(program: &Program, arguments: &EvalArguments) -> anyhow::Result<()> {
    let checkpoint = last_checkpoint(&arguments.run_dir)?;
    let recipe = program.recipe(&recipe_of(program, arguments)?)?;
    let mut experiment = Experiment::build(recipe, &program.registry, Purpose::Restore, &arguments.run_dir)?;
    experiment.load_for_evaluation(&checkpoint)?;
    let found = experiment.evaluate()?;
    if arguments.json {
        return print(&format!("{:#}\n", Value::Object(found.to_json())));
    }
    print(&format!("{}\n{}", checkpoint.display(), found.to_text()))
}

/// The run's own recipe, its metrics replaced by those asked for; one that the recipe has keeps its options.
fn recipe_of(program: &Program, arguments: &EvalArguments) -> anyhow::Result<RecipeArguments> {
    let mut recipe = RecipeArguments {
        recipe: arguments.run_dir.join("recipe.yaml").display().to_string(),
        set: arguments.set.clone(),
        seed: None,
        device: arguments.device.clone(),
    };
    if !arguments.metrics.is_empty() {
        let own = program.recipe(&recipe)?;
        let own: Vec<_> = own.metrics().map(|(name, _)| name).collect();
        let wanted: Vec<_> = arguments.metrics.iter().map(String::as_str).collect();
        let unwanted = own.iter().filter(|name| !wanted.contains(name));
        let new = wanted.iter().filter(|name| !own.contains(name));
        let changes = unwanted
            .map(|name| (name, "null"))
            .chain(new.map(|name| (name, "{}")));
        let set = changes.map(|(name, value)| (format!("evaluate.metrics.{name}"), value.to_owned()));
        recipe.set.extend(set);
    }
    Ok(recipe)
}
