//! Refuses unsupported platforms before anything is downloaded.

use std::process::Command;

use super::{output, own};
use crate::problem::Problem;

/// The (major, minor) of glibc that the packages need.
pub const OLDEST_GLIBC: (u32, u32) = (2, 28);

pub fn problem() -> Option<Problem> {
    let system = output::of(Command::new("uname").arg("-sm"));
    let system = system.as_deref().map_or("unknown", str::trim);
    let found = if system != "Linux x86_64" {
        system.to_owned()
    } else {
        match output::of(Command::new("getconf").arg("GNU_LIBC_VERSION")) {
            Some(glibc) if is_recent(&glibc) => return None,
            Some(glibc) => format!("{system} with {}", glibc.trim()),
            None => format!("{system} without glibc"),
        }
    };
    let (major, minor) = OLDEST_GLIBC;
    Some(Problem::new(
        format!(
            "libtorch and CMake can only be installed on Linux x86_64 with glibc {major}.{minor} \
             or newer, but this is {found}"
        ),
        format!("Provide both yourself: {}.", own::advice()),
    ))
}

/// Parses the output of getconf, such as "glibc 2.36".
fn is_recent(glibc: &str) -> bool {
    let version = glibc.trim().strip_prefix("glibc ");
    version.and_then(output::major_minor) >= Some(OLDEST_GLIBC)
}
