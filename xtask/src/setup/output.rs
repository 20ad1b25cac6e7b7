//! Asks other programs, where all that matters is whether they ran and what they printed.

use std::process::{Command, Stdio};

/// What `command` printed, or nothing if it is not there or fails.
pub fn of(command: &mut Command) -> Option<String> {
    let output = command
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let succeeded = output.status.success();
    succeeded.then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether there is such a program, on the PATH or at the path.
pub fn runs(program: &str) -> bool {
    of(Command::new(program).arg("--version")).is_some()
}

/// The first two numbers of a version such as "3.26.4".
pub fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.trim().split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}
