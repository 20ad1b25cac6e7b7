//! The commands that look at trained runs.

pub mod arguments;
pub mod compose;
pub mod interpolate;
mod output;
mod points;
pub mod reconstruct;
pub mod sample;
mod samples;
pub mod score;
mod score_report;
mod scorer;

use std::path::{Path, PathBuf};

use anyhow::Context;
use ebipla_core::Purpose;

use self::arguments::Overrides;
use super::arguments::RecipeArguments;
use super::{Misuse, Program};
use crate::Recipe;
use crate::run::{Checkpoint, Setup, last_checkpoint, warn_of_other_data};

/// The resolved recipe in a run's folder.
const RECIPE: &str = "recipe.yaml";

/// A run's model with the weights of its last checkpoint: averages, where the run keeps them.
pub struct Trained {
    pub setup: Setup,
    pub checkpoint: PathBuf,
    /// The hash of the run's own recipe, whatever was overridden.
    pub recipe_hash: String,
}

/// Which metrics of a recipe are built.
pub enum Metrics<'a> {
    /// Those that it has.
    Own,
    /// These, also such as it does not have; one that it has keeps its options.
    Only(&'a [String]),
}

/// Loads a run: the only way to weights, whose checksums are compared. What is wrong with its name is wrong with the
/// command line.
pub fn load(
    program: &Program,
    run_dir: &Path,
    overrides: &Overrides,
    metrics: Metrics,
) -> anyhow::Result<Trained> {
    let mut recipe = recipe_of(run_dir, overrides)?;
    let checkpoint = last_checkpoint(run_dir).map_err(|error| Misuse(format!("{error:#}")))?;
    let checkpoint = Checkpoint::open(checkpoint)
        .context("if the run is resumed, it continues from the checkpoint before the damaged one")?;
    let recipe_hash = Recipe::load_resolved(&run_dir.join(RECIPE), &program.registry)?.hash();
    if let Metrics::Only(wanted) = metrics {
        let own = program.recipe(&recipe)?;
        let own: Vec<_> = own.metrics().map(|(name, _)| name.to_owned()).collect();
        let unwanted = own.iter().filter(|name| !wanted.contains(name));
        let new = wanted.iter().filter(|name| !own.contains(name));
        let changes = unwanted
            .map(|name| (name, "null"))
            .chain(new.map(|name| (name, "{}")));
        let set = changes.map(|(name, value)| (format!("evaluate.metrics.{name}"), value.to_owned()));
        recipe.set.extend(set);
    }
    let recipe = program.recipe(&recipe)?;
    let setup = Setup::build(recipe, &program.registry, Purpose::Restore, run_dir)?;
    setup.load_for_evaluation(&checkpoint)?;
    if !overrides.set.iter().any(|(key, _)| key.starts_with("dataset")) {
        warn_of_other_data(setup.dataset.as_ref(), run_dir);
    }
    Ok(Trained {
        setup,
        checkpoint: checkpoint.path().to_owned(),
        recipe_hash,
    })
}

/// A run's recipe, with overrides.
fn recipe_of(run_dir: &Path, overrides: &Overrides) -> Result<RecipeArguments, Misuse> {
    let recipe = run_dir.join(RECIPE);
    if !recipe.is_file() {
        let message = format!(
            "{} is no run folder: it has no {RECIPE}; give the folder that a run printed as its results",
            run_dir.display()
        );
        return Err(Misuse(message));
    }
    Ok(RecipeArguments {
        recipe: recipe.display().to_string(),
        set: overrides.set.clone(),
        seed: None,
        device: overrides.device.clone(),
    })
}
