//! Checks libtorch and CMake if users provide their own, since a wrong version would show as an obscure build error.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::path::Path;
use std::process::Command;

use super::{cmake, libtorch, output};
use crate::place;
use crate::problem::Problem;

/// Advice for users for whom the set-up can install nothing.
pub fn advice() -> String {
    let (major, minor) = cmake::OLDEST;
    format!(
        "set LIBTORCH to the folder of a libtorch {} and CMAKE to a cmake {major}.{minor} or newer",
        libtorch::version()
    )
}

/// The problem with the user's own libtorch, if any.
pub fn libtorch_problem(cuda: bool) -> Option<Problem> {
    let own = place::LIBTORCH.users_own()?;
    let own = Path::new(&own);
    let wanted = libtorch::version();
    let library = |name| format!("lib/{DLL_PREFIX}{name}{DLL_SUFFIX}");
    let lacks = |name| !own.join(library(name)).exists();
    let trouble = if own.is_relative() {
        "is not an absolute path".to_owned()
    } else if lacks("torch_cpu") {
        format!("has no {}", library("torch_cpu"))
    } else if cuda && lacks("torch_cuda") {
        format!("has no {}, hence no CUDA", library("torch_cuda"))
    } else {
        match libtorch_version(own) {
            Some(version) if version == wanted => return None,
            Some(version) => format!("is version {version}, not {wanted}"),
            None => "does not state its version".to_owned(),
        }
    };
    Some(Problem::new(
        format!("LIBTORCH={} {trouble}", own.display()),
        format!("Set it to the folder of a libtorch {wanted}, or unset it to have one installed."),
    ))
}

/// The problem with the user's own CMake, if any.
pub fn cmake_problem() -> Option<Problem> {
    let own = place::CMAKE.users_own()?;
    let (major, minor) = cmake::OLDEST;
    let trouble = match output::of(Command::new(&own).arg("--version")) {
        None => "does not run".to_owned(),
        Some(text) => {
            let version = text.lines().next().unwrap_or_default();
            let version = version.trim_start_matches("cmake version ");
            if output::major_minor(version) >= Some(cmake::OLDEST) {
                return None;
            }
            format!("is version {version}, older than {major}.{minor}")
        }
    };
    Some(Problem::new(
        format!("CMAKE={} {trouble}", own.display()),
        format!("Set it to a cmake {major}.{minor} or newer, or unset it to have one installed."),
    ))
}

/// The version without the suffix after the plus, such as "+cpu".
fn libtorch_version(libtorch: &Path) -> Option<String> {
    let read = |file| fs::read_to_string(libtorch.join(file)).ok();
    let version = read("build-version")
        .or_else(|| read("version.py").and_then(|text| python_version(&text)))
        .or_else(|| read("include/torch/headeronly/version.h").and_then(|text| c_version(&text)))
        .or_else(|| {
            read("include/torch/csrc/api/include/torch/version.h").and_then(|text| c_version(&text))
        })?;
    let version = version.split('+').next()?;
    Some(version.trim().to_owned())
}

fn python_version(text: &str) -> Option<String> {
    let mut lines = text.lines();
    let quoted = lines.find_map(|line| line.strip_prefix("__version__ = "))?;
    Some(quoted.trim().trim_matches(['\'', '"']).to_owned())
}

fn c_version(text: &str) -> Option<String> {
    let number = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix("#define ")?.strip_prefix(name))
            .map(str::trim)
    };
    let major = number("TORCH_VERSION_MAJOR ")?;
    let minor = number("TORCH_VERSION_MINOR ")?;
    let patch = number("TORCH_VERSION_PATCH ")?;
    Some(format!("{major}.{minor}.{patch}"))
}
