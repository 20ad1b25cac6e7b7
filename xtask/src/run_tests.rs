//! Runs the tests in the profile of `./runner`, so that both share one build of the big crates, and prints a summary.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};

use crate::place;
use crate::problem::Problem;

/// Passes `arguments` to `cargo test` and returns its exit code. Finally prints which tests were skipped, and the
/// number of tests that passed, failed and were skipped.
pub fn run(arguments: &[OsString]) -> Result<ExitCode, Vec<Problem>> {
    let list = Skipped::none()?;
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args(["test", "--release", "--workspace"])
        .args(arguments)
        .current_dir(place::root())
        .env(Skipped::VARIABLE, &list.path)
        .stdout(Stdio::piped());
    for variable in [place::LIBTORCH, place::CMAKE] {
        // Cargo finds its default again by itself. If it came from the environment instead,
        // the libtorch bindings might look changed and be recompiled.
        if variable.users_own().is_none() {
            cargo.env_remove(variable.name);
        }
    }
    let started = |error: io::Error| {
        let trouble = format!("could not start cargo: {error}");
        vec![Problem::new(trouble, "Install Rust from https://rustup.rs.")]
    };
    let mut child = cargo.spawn().map_err(started)?;
    let said = pass_on(&mut child);
    let status = child.wait().map_err(started)?;
    if let Some((passed, failed)) = sum(&said) {
        println!("{}", list.summary(passed, failed));
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Prints cargo's output as it arrives, and returns it.
fn pass_on(child: &mut Child) -> String {
    let mut said = Vec::new();
    let mut block = [0; 4096];
    while let Some(count) = child
        .stdout
        .as_mut()
        .and_then(|stdout| stdout.read(&mut block).ok())
        .filter(|count| *count > 0)
    {
        said.extend(&block[..count]);
        let mut out = io::stdout();
        // A reader that has gone away does not stop the tests.
        let _ = out.write_all(&block[..count]).and_then(|()| out.flush());
    }
    String::from_utf8_lossy(&said).into_owned()
}

/// Number of tests that passed and failed in all programs; `None` if none was run.
fn sum(said: &str) -> Option<(usize, usize)> {
    // For example: test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
    let results = said.lines().filter(|line| line.starts_with("test result: "));
    let number = |line: &str, what: &str| {
        let before = line.split_once(what).map_or("", |(before, _)| before);
        let number = before.trim_end().rsplit(' ').next().unwrap_or_default();
        number.parse::<usize>().unwrap_or(0)
    };
    results
        .map(|line| (number(line, " passed;"), number(line, " failed;")))
        .reduce(|sum, more| (sum.0 + more.0, sum.1 + more.1))
}

/// The list of skipped tests, written by the tests themselves: `tests/support/skip.rs`.
struct Skipped {
    path: PathBuf,
}

impl Skipped {
    const VARIABLE: &str = "EBIPLA_SKIPPED_TESTS";

    /// Creates an empty list.
    fn none() -> Result<Self, Vec<Problem>> {
        let path = env::temp_dir().join(format!("ebipla-skipped-tests-{}", std::process::id()));
        fs::write(&path, "").map_err(|error| {
            let trouble = format!("could not write {}: {error}", path.display());
            vec![Problem::new(trouble, "Set TMPDIR to a writable folder.")]
        })?;
        Ok(Self { path })
    }

    /// The skipped tests with their reasons, then a line with the number of tests that passed, failed and were skipped.
    fn summary(&self, passed: usize, failed: usize) -> String {
        let list = fs::read_to_string(&self.path).unwrap_or_default();
        // A test may be missing more than one thing.
        let tests: BTreeMap<_, _> = list.lines().filter_map(|line| line.split_once('\t')).collect();
        let mut text = String::new();
        if !tests.is_empty() {
            text += "\nskipped:\n";
        }
        for (test, why) in &tests {
            text += &format!("  {test}: {why}\n");
        }
        let skipped = tests.len();
        let passed = passed.saturating_sub(skipped);
        text + &format!("\n{passed} passed, {failed} failed, {skipped} skipped")
    }
}

impl Drop for Skipped {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
