//! Runs the tests in the profile of `./runner`, so that both share one build of the big crates.

use std::env;
use std::ffi::OsString;
use std::process::{Command, ExitCode};

use crate::place;
use crate::problem::Problem;

/// Passes `arguments` on to `cargo test`, and its exit code back.
pub fn run(arguments: &[OsString]) -> Result<ExitCode, Vec<Problem>> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args(["test", "--release", "--workspace"])
        .args(arguments)
        .current_dir(place::root());
    for variable in [place::LIBTORCH, place::CMAKE] {
        // Cargo finds its default again by itself; were it to come from the environment instead,
        // the bindings to libtorch might look changed and be compiled anew.
        if variable.users_own().is_none() {
            cargo.env_remove(variable.name);
        }
    }
    let status = cargo.status().map_err(|error| {
        let trouble = format!("could not start cargo: {error}");
        vec![Problem::new(trouble, "Install Rust from https://rustup.rs.")]
    })?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
