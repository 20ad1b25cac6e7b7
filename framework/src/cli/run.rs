//! `runner run`: trains, and says where the results are.

use std::path::Path;
use std::process::ExitCode;

use super::arguments::RunArguments;
use super::{Program, exit_code, print};
use crate::Purpose;
use crate::interrupt::{Guard, INTERRUPTED};
use crate::run::{Experiment, Outcome, RunFolder, find_run, train};

pub fn run(program: &Program, arguments: &RunArguments) -> anyhow::Result<ExitCode> {
    let recipe = program.recipe(&arguments.recipe)?;
    let earlier = match arguments.resume {
        true => Some(find_run(&arguments.out, &recipe, &program.registry)?),
        false => None,
    };
    let purpose = match earlier {
        Some(_) => Purpose::Restore,
        None => Purpose::Start,
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
        // It has been told of already.
        Err(error) => Ok(ExitCode::from(exit_code(&error))),
    }
}

/// Trains in a folder; what goes wrong is in its log.
pub fn train_in(program: &Program, experiment: Experiment, folder: &RunFolder) -> anyhow::Result<Outcome> {
    let _patience = Guard::patience();
    program.log.write_to(folder.path())?;
    tracing::info!("run folder: {}", folder.path().display());
    let sources = program.home.sources.as_deref();
    let trained = train(experiment, folder, sources, &program.log, &program.interrupt);
    if let Err(error) = &trained {
        // Through the log, so that it is also in log.txt.
        tracing::error!("{error:#}");
    }
    trained
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
