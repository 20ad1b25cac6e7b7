//! The command line: what a user types, and the exit codes that scripts rely on.

mod arguments;
mod check;
mod complete;
mod describe;
mod list;
mod run;
mod show;

use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::recipe::{RecipeFolders, Request};
use crate::registry::{Registry, RegistryError};
use crate::run::{Diverged, Log};
use crate::{Recipe, RecipeError};
use arguments::{Command, RecipeArguments};

/// The run failed.
const FAILED: u8 = 1;
/// The command line or a recipe is wrong; nothing was written.
const WRONG: u8 = 2;
/// The numbers left the finite.
const DIVERGED: u8 = 3;

/// Where a runner finds its own recipes, and the sources it was built from.
#[derive(Clone, Debug, Default)]
pub struct Home {
    sources: Option<PathBuf>,
}

impl Home {
    /// Nothing but the working folder: recipes are looked up in `./recipes`.
    pub fn here() -> Self {
        Self::default()
    }

    /// A source folder with `recipes/`, used wherever the program is called from:
    /// `Home::sources(env!("CARGO_MANIFEST_DIR"))`.
    pub fn sources(folder: impl Into<PathBuf>) -> Self {
        Self {
            sources: Some(folder.into()),
        }
    }

    fn recipe_folders(&self) -> RecipeFolders {
        let own = self.sources.iter().map(|folder| folder.join("recipes"));
        RecipeFolders(std::iter::once(PathBuf::from("recipes")).chain(own).collect())
    }
}

/// What commands work with.
struct Session {
    home: Home,
    registry: Registry,
    log: Log,
}

impl Session {
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
    let for_completion = home.clone();
    clap_complete::CompleteEnv::with_factory(move || complete::teach(Command::line(), &for_completion))
        .complete();

    let command = Command::parse();
    // libtorch's errors arrive as panics. Say what they say, and nothing of our insides unless asked.
    if std::env::var_os("RUST_BACKTRACE").is_none_or(|value| value == "0") {
        panic::set_hook(Box::new(|_| {}));
    }
    let result = panic::catch_unwind(AssertUnwindSafe(|| dispatch(command, home)));
    let result =
        result.unwrap_or_else(|payload| Err(anyhow::anyhow!("internal error: {}", panic_text(&*payload))));
    match result {
        Ok(code) => code,
        Err(error) => {
            tracing::debug!("{error:?}");
            eprintln!("error: {error:#}");
            ExitCode::from(exit_code(&error))
        }
    }
}

fn dispatch(command: Command, home: Home) -> anyhow::Result<ExitCode> {
    let session = Session {
        home,
        registry: Registry::collect()?,
        log: Log::start(),
    };
    match command {
        Command::Run(arguments) => return run::run(&session, &arguments),
        Command::List(arguments) => list::list(&session, &arguments)?,
        Command::Describe(arguments) => describe::describe(&session, &arguments)?,
        Command::Show(arguments) => show::show(&session, &arguments)?,
        Command::Check(arguments) => check::check(&session, &arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn exit_code(error: &anyhow::Error) -> u8 {
    if error.is::<RecipeError>() || error.is::<RegistryError>() || error.is::<describe::Unknown>() {
        WRONG
    } else if error.is::<Diverged>() {
        DIVERGED
    } else {
        FAILED
    }
}

/// The first lines of a panic, without libtorch's C++ stack.
fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("unknown");
    let end = text
        .find("\\nException raised from")
        .or_else(|| text.find("\nException raised from"));
    text[..end.unwrap_or(text.len())].to_owned()
}

/// Prints to standard output; a reader that went away (`| head`) is not an error.
fn print(text: &str) -> anyhow::Result<()> {
    use std::io::Write;
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}
