//! Reports that a test is skipped entirely or in part, and why. Unit tests of other crates include this file too.

use std::fs::OpenOptions;
use std::io::{Write, stderr};

/// Names the file in which `cargo xtask test` collects skips, to list them at its end.
const LIST: &str = "EBIPLA_SKIPPED_TESTS";

/// For tests whose requirements are missing.
pub fn skip(why: &str) {
    // Bypasses the test harness, which shows only the output of failing tests.
    let _ = writeln!(stderr(), "skipped: {why}");
    let Some(list) = std::env::var_os(LIST) else {
        return;
    };
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.file_stem().unwrap_or_default().to_string_lossy();
    // Cargo adds a hash to its name.
    let program = program.rsplit_once('-').map_or(&*program, |(name, _)| name);
    let thread = std::thread::current();
    let line = format!("{program}: {}\t{why}\n", thread.name().unwrap_or("?"));
    let file = OpenOptions::new().append(true).create(true).open(list);
    let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
}
