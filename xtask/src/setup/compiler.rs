//! Checks for a C++ compiler early, since the build would fail without it only after minutes.

use std::env;

use super::output;
use crate::problem::Problem;

pub fn problem() -> Option<Problem> {
    if let Some(chosen) = env::var("CXX").ok().filter(|value| !value.is_empty()) {
        // It may be followed by options, or be a launcher that is followed by the compiler.
        let runs = chosen.split_whitespace().next().is_some_and(output::runs);
        return (!runs).then(|| {
            Problem::new(
                format!("the C++ compiler that CXX names, {chosen}, does not run"),
                "Set CXX to a C++ compiler, or unset it to use c++.",
            )
        });
    }
    // The build's default.
    if output::runs("c++") {
        return None;
    }
    let other = ["g++", "clang++"].into_iter().find(|name| output::runs(name));
    Some(match other {
        Some(other) => Problem::new(
            format!("c++ is not on the PATH, only {other} is"),
            format!("Select it for the build: export CXX={other}"),
        ),
        None => Problem::new(
            "found no C++ compiler (looked for c++, g++ and clang++)",
            "Install one, for example with `apt install g++` (Debian, Ubuntu) or \
             `dnf install gcc-c++` (Fedora), or set CXX to yours.",
        ),
    })
}
