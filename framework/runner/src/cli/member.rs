//! `runner member`: starts, or goes on with, one run of a sweep in its own folder.

use std::process::ExitCode;

use ebipla_core::Purpose;
use ebipla_core::system::panics::caught;
use rustix::process::{Signal, set_parent_process_death_signal};

use super::arguments::MemberArguments;
use super::run::{code_of, train_in};
use super::{FAILED, Program, exit_code};
use crate::Recipe;
use crate::run::{Ending, Experiment, Outcome, RunFolder, last_checkpoint};
use crate::sweep::requeue_this_task;
use crate::system::interrupt::{INTERRUPTED, end_only_by_itself};

const NO_STEP: &str = "not a step was done before the time limit; try a longer slurm.time, or a shorter \
     slurm.checkpoint_before";

/// Whatever happens, the folder says how it ended; unless another process has it, which will.
pub fn member(program: &Program, arguments: &MemberArguments) -> anyhow::Result<ExitCode> {
    let path = &arguments.folder;
    end_only_by_itself();
    if arguments.with_parent {
        set_parent_process_death_signal(Some(Signal::TERM))?;
    }
    let folder = RunFolder::open(path.clone())?;
    Ending::remove(path);
    let before = last_checkpoint(path).ok();
    let mut ending = match caught(|| train(program, &folder)) {
        Ok(outcome) => Ending {
            code: code_of(outcome),
            message: String::new(),
        },
        Err(error) => {
            tracing::error!("{error:#}");
            Ending {
                code: exit_code(&error),
                message: format!("{error:#}"),
            }
        }
    };
    ending.write(path)?;
    if arguments.requeue && ending.code == INTERRUPTED && program.interrupt.time_is_up() {
        if before == last_checkpoint(path).ok() {
            // The next turn would be like this one, and so on for ever.
            ending.code = FAILED;
            ending.message = NO_STEP.to_owned();
        } else if let Err(error) = requeue_this_task() {
            ending.message = format!("Slurm does not queue it again: {error:#}");
        }
        if !ending.message.is_empty() {
            tracing::error!("{}", ending.message);
            ending.write(path)?;
        }
    }
    Ok(ExitCode::from(ending.code))
}

fn train(program: &Program, folder: &RunFolder) -> anyhow::Result<Outcome> {
    let path = folder.path();
    let recipe = Recipe::load_resolved(&path.join("recipe.yaml"), &program.registry)?;
    recipe.log_warnings();
    let purpose = match last_checkpoint(path) {
        Ok(_) => Purpose::Restore,
        Err(_) => Purpose::Start,
    };
    let out = path.parent().unwrap_or(path);
    let experiment = Experiment::build(recipe, &program.registry, purpose, out)?;
    train_in(program, experiment, folder)
}
