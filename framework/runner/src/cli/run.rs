//! `runner run`: trains, and says where the results are.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ebipla_core::Purpose;

use super::arguments::RunArguments;
use super::{Program, exit_code, print};
use crate::run::{Experiment, Outcome, RunFolder, find_run, finished_run, last_checkpoint, train};
use crate::system::interrupt::{INTERRUPTED, end_only_by_itself};
use crate::{Recipe, RecipeError};

pub fn run(program: &Program, arguments: &RunArguments) -> anyhow::Result<ExitCode> {
    let recipe = program.recipe(&arguments.recipe)?;
    recipe.log_warnings();
    let earlier = earlier_run(program, arguments, &recipe)?;
    // A run that was killed early may have nothing yet to restore.
    let purpose = match earlier.as_deref().map(last_checkpoint) {
        Some(Ok(_)) => Purpose::Restore,
        Some(Err(_)) | None => Purpose::Start,
    };
    let experiment = Experiment::build(recipe, &program.registry, purpose, &arguments.out)?;
    let folder = match earlier {
        Some(path) => RunFolder::open(path)?,
        None => RunFolder::create(&arguments.out, &experiment.recipe)?,
    };
    match train_in(program, experiment, &folder) {
        Ok(outcome) => {
            print(&results(folder.path()))?;
            Ok(ExitCode::from(code_of(outcome)))
        }
        Err(error) => {
            // Through the log, so that it is also in log.txt.
            tracing::error!("{error:#}");
            Ok(ExitCode::from(exit_code(&error)))
        }
    }
}

/// The run to go on with, if that is what was asked for.
fn earlier_run(
    program: &Program,
    arguments: &RunArguments,
    recipe: &Recipe,
) -> Result<Option<PathBuf>, RecipeError> {
    if !arguments.resume && !arguments.resume_or_start {
        return Ok(None);
    }
    let found = find_run(&arguments.out, recipe, &program.registry);
    // A run of this very recipe that cannot be read is no reason to start all over.
    let is_there = || {
        let folder = arguments.out.join(recipe.folder_name());
        folder.join("recipe.yaml").exists()
    };
    match found {
        Err(_) if arguments.resume_or_start && !is_there() => Ok(None),
        found => found.map(Some),
    }
}

/// Trains in a folder, if that is not done already.
pub fn train_in(program: &Program, experiment: Experiment, folder: &RunFolder) -> anyhow::Result<Outcome> {
    end_only_by_itself();
    if let Some(steps) = finished_run(folder.path(), &experiment) {
        tracing::info!(
            "{} finished after {steps} steps: nothing to resume (`eval` measures it again, a larger run.epochs \
             continues it)",
            folder.path().display()
        );
        return Ok(Outcome::Finished);
    }
    program.log.write_to(folder.path())?;
    tracing::info!("run folder: {}", folder.path().display());
    train(
        experiment,
        folder,
        &program.home,
        &program.log,
        &program.interrupt,
    )
}

/// The exit code of a run that did not fail.
pub fn code_of(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Finished => 0,
        Outcome::Interrupted => INTERRUPTED,
    }
}

/// Where the results are and how to look at them.
fn results(folder: &Path) -> String {
    let mut text = format!("\nresults: {}\n", folder.display());
    let mut look = |path: &str, how: &str| {
        if folder.join(path).exists() {
            text += &format!("  {path:<16} {how}\n");
        }
    };
    look("figures", "pictures of data, samples and energy landscape");
    look("evaluation.json", "final metrics");
    look("metrics.jsonl", "every recorded number, one JSON object a line");
    look(
        "particles",
        "HDF5 dumps of the particles: h5py.File(path)[\"particles\"]",
    );
    look("checkpoints", "weights as safetensors, which PyTorch loads");
    look(
        "recipe.yaml",
        "the resolved recipe; provenance.json says what ran it",
    );
    text + &format!(
        "  curves           pip install tensorboard && tensorboard --logdir {}\n",
        folder.display()
    )
}
