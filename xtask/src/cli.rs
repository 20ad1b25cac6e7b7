//! The command line: every command ends with an exit code, never with a panic.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::problem::Problem;
use crate::{run_tests, setup};

const USAGE: &str = "\
Usage:
  cargo xtask setup [--cuda] [--peers]
                               install libtorch and CMake into .deps; with CUDA; and PyTorch and
                               JAX for `runner bench --peers`
  cargo xtask test [ARGS]      set up, then run `cargo test` with ARGS";

enum Command {
    Setup(setup::Options),
    Test(Vec<OsString>),
}

/// Runs the command that `arguments` name; returns 0 for success, 1 for a failure, 2 for a wrong command line.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let outcome = match parse(arguments) {
        Some(Command::Setup(options)) => setup::run(&options).map(|()| {
            println!("The set-up is complete.");
            ExitCode::SUCCESS
        }),
        Some(Command::Test(arguments)) => setup::run(&setup::Options::default()).and_then(|()| {
            if let Err(problem) = setup::run_for_tests() {
                report(&[problem]);
                eprintln!("Tests that read output files in Python will be skipped.");
            }
            setup::install_system_packages();
            run_tests::run(&arguments)
        }),
        None => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    outcome.unwrap_or_else(|problems| {
        report(&problems);
        ExitCode::FAILURE
    })
}

fn parse(arguments: Vec<OsString>) -> Option<Command> {
    let mut arguments = arguments.into_iter();
    match arguments.next()?.to_str()? {
        "setup" => parse_setup(arguments).map(Command::Setup),
        "test" => Some(Command::Test(arguments.collect())),
        _ => None,
    }
}

fn parse_setup(mut arguments: impl Iterator<Item = OsString>) -> Option<setup::Options> {
    let mut options = setup::Options::default();
    while let Some(argument) = arguments.next() {
        match argument.to_str()? {
            "--cuda" => options.cuda = true,
            "--peers" => options.peers = true,
            // For tests of the set-up, which must not touch the checkout's `.deps`.
            "--into" => options.into = Some(arguments.next()?.into()),
            _ => return None,
        }
    }
    Some(options)
}

fn report(problems: &[Problem]) {
    for problem in problems {
        eprintln!("{problem}");
    }
}
