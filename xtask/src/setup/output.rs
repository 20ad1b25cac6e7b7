//! Runs other programs of which only success and output matter.

use std::process::{Command, Stdio};

/// The output of `command`, or `None` if it is missing or fails.
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

/// Whether this program exists, on the PATH or at the path.
pub fn runs(program: &str) -> bool {
    of(Command::new(program).arg("--version")).is_some()
}

/// The first two numbers of a version such as "3.26.4".
pub fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.trim().split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}
