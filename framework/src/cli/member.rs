//! `runner member`: starts, or goes on with, one run of a sweep in its own folder.

use std::path::Path;
use std::process::ExitCode;

use rustix::process::{Signal, set_parent_process_death_signal};

use super::arguments::MemberArguments;
use super::run::{code_of, train_in};
use super::{Program, exit_code};
use crate::panics::caught;
use crate::run::{Experiment, Interrupt, Outcome, RunFolder, last_checkpoint};
use crate::sweep::Ending;
use crate::{Purpose, Recipe};

/// Whatever happens, the folder says how it ended.
pub fn member(program: &Program, arguments: &MemberArguments) -> anyhow::Result<ExitCode> {
    let folder = &arguments.folder;
    let interrupt = Interrupt::listen()?;
    if arguments.with_parent {
        set_parent_process_death_signal(Some(Signal::TERM))?;
    }
    Ending::remove(folder);
    let ending = match caught(|| train(program, folder, &interrupt)) {
        Ok(outcome) => Ending {
            code: code_of(outcome),
            message: String::new(),
        },
        Err(error) => {
            eprintln!("error: {error:#}");
            Ending {
                code: exit_code(&error),
                message: format!("{error:#}"),
            }
        }
    };
    ending.write(folder)?;
    Ok(ExitCode::from(ending.code))
}

fn train(program: &Program, path: &Path, interrupt: &Interrupt) -> anyhow::Result<Outcome> {
    let mut recipe = Recipe::load_resolved(&path.join("recipe.yaml"), &program.registry)?;
    recipe.name = recipe_name(path, &recipe);
    let purpose = match last_checkpoint(path) {
        Ok(_) => Purpose::Restore,
        Err(_) => Purpose::Start,
    };
    let folder = RunFolder::open(path.to_owned())?;
    let out = path.parent().unwrap_or(path);
    let experiment = Experiment::build(recipe, &program.registry, purpose, out)?;
    train_in(program, experiment, &folder, interrupt)
}

/// A folder is called NAME-HASH-sSEED.
fn recipe_name(folder: &Path, recipe: &Recipe) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let end = format!("-{}-s{}", recipe.hash(), recipe.run.seed);
    name.strip_suffix(&end).unwrap_or(&name).to_owned()
}
