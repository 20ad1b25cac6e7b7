//! The command line: what a user types, and the exit codes that scripts rely on.

mod arguments;
mod bench;
mod check;
mod complete;
mod describe;
mod eval;
mod fetch;
mod list;
mod member;
mod misuse;
mod names;
mod particles;
mod report;
mod run;
mod show;
mod submit;
mod sweep;
mod trained;

use std::process::ExitCode;

use arguments::{Command, RecipeArguments};
use ebipla_core::registry::{Registry, RegistryError};
use ebipla_core::system::interrupt::Interrupted;
use ebipla_core::system::panics::{self, caught};
use misuse::Misuse;

use crate::recipe::Request;
use crate::run::{Diverged, Log};
use crate::sweep::SweepError;
use crate::system::allocator;
use crate::system::interrupt::{INTERRUPTED, Interrupt, end_only_by_itself};
use crate::{Home, Recipe, RecipeError};

/// The run failed.
const FAILED: u8 = 1;
/// The command line or a recipe is wrong; nothing was written.
const WRONG: u8 = 2;
/// The numbers left the finite.
const DIVERGED: u8 = 3;

/// What commands work with.
struct Program {
    home: Home,
    registry: Registry,
    log: Log,
    interrupt: Interrupt,
}

impl Program {
    fn recipe(&self, arguments: &RecipeArguments) -> Result<Recipe, RecipeError> {
        let request = Request {
            recipe: arguments.recipe.clone(),
            set: arguments.overrides(),
            folders: self.home.recipe_folders(),
        };
        Recipe::load(&request, &self.registry)
    }
}

/// The whole program: parses the command line, runs, and returns the exit code.
pub fn main(home: Home) -> ExitCode {
    allocator::keep_freed_memory();
    let for_completion = home.clone();
    clap_complete::CompleteEnv::with_factory(move || complete::teach(Command::line(), &for_completion))
        .complete();

    let command = Command::parse();
    panics::silence();
    let result = caught(|| dispatch(command, home));
    // What is left to do is to end.
    end_only_by_itself();
    match result {
        Ok(code) => code,
        Err(error) => {
            tracing::debug!("{error:?}");
            match error.is::<Interrupted>() {
                true => eprintln!("interrupted"),
                false => eprintln!("error: {error:#}"),
            }
            ExitCode::from(exit_code(&error))
        }
    }
}

fn dispatch(command: Command, home: Home) -> anyhow::Result<ExitCode> {
    let program = Program {
        home,
        registry: Registry::collect()?,
        log: Log::start(),
        interrupt: Interrupt::listen()?,
    };
    match command {
        Command::Run(arguments) => return run::run(&program, &arguments),
        Command::Member(arguments) => return member::member(&program, &arguments),
        Command::Sweep(arguments) => return sweep::sweep(&program, &arguments),
        Command::List(arguments) => list::list(&program, &arguments)?,
        Command::Describe(arguments) => describe::describe(&program, &arguments)?,
        Command::Show(arguments) => show::show(&program, &arguments)?,
        Command::Eval(arguments) => eval::eval(&program, &arguments)?,
        Command::Sample(command) => trained::sample::sample(&program, &command)?,
        Command::Reconstruct(command) => trained::reconstruct::reconstruct(&program, &command)?,
        Command::Interpolate(command) => trained::interpolate::interpolate(&program, &command)?,
        Command::Score(command) => trained::score::score(&program, &command)?,
        Command::Compose(command) => trained::compose::compose(&program, &command)?,
        Command::Fetch(arguments) => fetch::fetch(&arguments)?,
        Command::Check(arguments) => check::check(&program, &arguments)?,
        Command::Particles(arguments) => particles::particles(&arguments)?,
        Command::Report(arguments) => report::report(&program, &arguments)?,
        Command::Bench(arguments) => bench::bench(&program, &arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn exit_code(error: &anyhow::Error) -> u8 {
    if error.is::<RecipeError>()
        || error.is::<RegistryError>()
        || error.is::<describe::Unknown>()
        || error.is::<Misuse>()
        || error.is::<SweepError>()
    {
        WRONG
    } else if error.is::<Diverged>() {
        DIVERGED
    } else if error.is::<Interrupted>() {
        INTERRUPTED
    } else {
        FAILED
    }
}

/// Prints to standard output; a reader that went away (`| head`) is not an error.
fn print(text: &str) -> anyhow::Result<()> {
    use std::io::Write;
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}
