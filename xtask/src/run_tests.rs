//! Runs the tests in the profile of `./runner`, so that both share one build of the big crates, and says what came of it.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};

use crate::place;
use crate::problem::Problem;

/// Passes `arguments` on to `cargo test`, and its exit code back. In the end it says which tests were skipped and how
/// many there were of each kind.
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
        // Cargo finds its default again by itself; were it to come from the environment instead,
        // the bindings to libtorch might look changed and be compiled anew.
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

/// Prints what cargo prints as it comes, and returns it.
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
        // A reader that went away does not stop the tests.
        let _ = out.write_all(&block[..count]).and_then(|()| out.flush());
    }
    String::from_utf8_lossy(&said).into_owned()
}

/// How many tests passed and failed over all programs; nothing if none was run.
fn sum(said: &str) -> Option<(usize, usize)> {
    // Such as: test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
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

/// What tests that check nothing here have written down: `tests/support/skip.rs`.
struct Skipped {
    path: PathBuf,
}

impl Skipped {
    const VARIABLE: &str = "EBIPLA_SKIPPED_TESTS";

    /// An empty list.
    fn none() -> Result<Self, Vec<Problem>> {
        let path = env::temp_dir().join(format!("ebipla-skipped-tests-{}", std::process::id()));
        fs::write(&path, "").map_err(|error| {
            let trouble = format!("could not write {}: {error}", path.display());
            vec![Problem::new(
                trouble,
                "Set TMPDIR to a folder that can be written to.",
            )]
        })?;
        Ok(Self { path })
    }

    /// The skipped tests with their reasons, and in a line of its own how many passed, failed and were skipped.
    fn summary(&self, passed: usize, failed: usize) -> String {
        let list = fs::read_to_string(&self.path).unwrap_or_default();
        // A test may lack more than one thing.
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
