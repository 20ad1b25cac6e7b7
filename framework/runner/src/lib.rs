//! Trains latent energy-based models with interacting particles: recipes, runs, records, sweeps, reports, and the command
//! line for them.
//!
//! Plugins are written against `ebipla_core`. A program of your own links them and calls [`main`]:
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     ebipla_runner::main(ebipla_runner::home!())
//! }
//! ```

mod bench;
mod cli;
mod fetch;
mod home;
mod recipe;
mod record;
mod report;
mod run;
mod sweep;
mod system;
mod trained;

pub use cli::main;
pub use home::Home;
pub use recipe::{Origin, Problem, Recipe, RecipeError};
