//! Says that a test checks nothing here, or not all of it, and why. Unit tests of other crates include this file too.

use std::fs::OpenOptions;
use std::io::{Write, stderr};

/// Where `cargo xtask test` collects them, to list them at its end.
const LIST: &str = "EBIPLA_SKIPPED_TESTS";

/// Called by a test that lacks what it needs.
pub fn skip(why: &str) {
    // Past the test harness, which shows only what failing tests print.
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
