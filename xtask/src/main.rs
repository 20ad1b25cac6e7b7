//! The entry of `cargo xtask`, which takes a fresh checkout to where cargo alone can go on.

mod cli;
mod place;
mod problem;
mod run_tests;
mod setup;

fn main() -> std::process::ExitCode {
    cli::run(std::env::args_os().skip(1).collect())
}
