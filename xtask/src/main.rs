//! Entry point of `cargo xtask`, which prepares a fresh checkout for cargo.

mod cli;
mod place;
mod problem;
mod run_tests;
mod setup;

fn main() -> std::process::ExitCode {
    cli::run(std::env::args_os().skip(1).collect())
}
