//! Installs the build dependencies that cargo does not provide: libtorch and a recent CMake.

mod cmake;
mod compiler;
mod component;
mod disk;
mod install;
mod libtorch;
mod lock;
mod output;
mod own;
mod pip;
mod platform;
mod python_packages;
mod system_packages;

use std::path::{Path, PathBuf};

use crate::place;
use crate::problem::Problem;
use cmake::Cmake;
use component::Component;
use libtorch::Libtorch;
use python_packages::PythonPackages;
pub use system_packages::install_for_tests as install_system_packages;

#[derive(Default)]
pub struct Options {
    /// Whether libtorch must support GPUs.
    pub cuda: bool,
    /// Whether to install PyTorch and JAX for Python, which `runner bench --peers` compares with.
    pub peers: bool,
    /// The folder to use in place of `.deps`.
    pub into: Option<PathBuf>,
}

/// Installs what is missing; returns immediately if nothing is.
pub fn run(options: &Options) -> Result<(), Vec<Problem>> {
    let deps = options.into.clone().unwrap_or_else(place::deps);
    check(options, &deps)?;
    if missing(options, &deps).is_empty() {
        return Ok(());
    }
    install_missing(options, &deps).map_err(|problem| vec![problem])
}

/// Installs the Python packages with which tests read output files.
pub fn run_for_tests() -> Result<(), Problem> {
    if let Some(problem) = pip::problem() {
        return Err(problem);
    }
    let deps = place::deps();
    let packages = PythonPackages::for_tests();
    if install::is_complete(&packages, &deps) {
        return Ok(());
    }
    let _lock = lock::take(&deps)?;
    install::install(&packages, &deps)
}

/// Checks all requirements up front, so that the user sees all problems at once.
fn check(options: &Options, deps: &Path) -> Result<(), Vec<Problem>> {
    let mut problems: Vec<Problem> = Vec::new();
    problems.extend(own::libtorch_problem(options.cuda));
    problems.extend(own::cmake_problem());
    problems.extend(compiler::problem());

    let missing = missing(options, deps);
    if !missing.is_empty() {
        problems.extend(platform::problem());
        problems.extend(pip::problem());
        let mebibytes = missing.iter().map(|component| component.space()).sum();
        problems.extend(disk::problem(deps, mebibytes));
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

/// The components that neither the user provides nor an earlier set-up has installed.
fn missing(options: &Options, deps: &Path) -> Vec<Box<dyn Component>> {
    let mut components: Vec<Box<dyn Component>> = Vec::new();
    if place::LIBTORCH.users_own().is_none() {
        components.push(Box::new(Libtorch { cuda: options.cuda }));
    }
    if place::CMAKE.users_own().is_none() {
        components.push(Box::new(Cmake));
    }
    if options.peers {
        components.push(Box::new(PythonPackages::for_bench()));
    }
    components.retain(|component| !install::is_complete(&**component, deps));
    components
}

fn install_missing(options: &Options, deps: &Path) -> Result<(), Problem> {
    let _lock = lock::take(deps)?;
    // Checked again: another set-up may have done the work while this one waited.
    for component in missing(options, deps) {
        install::install(&*component, deps)?;
    }
    Ok(())
}
