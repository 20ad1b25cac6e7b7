//! The CMake that builds the bundled HDF5, since those of many distributions are too old.

use std::path::Path;

use super::component::Component;
use super::pip;
use crate::problem::Problem;

/// The oldest (major, minor) that HDF5 accepts.
pub const OLDEST: (u32, u32) = (3, 26);

/// A version known to work.
const VERSION: &str = "4.4";

pub struct Cmake;

impl Component for Cmake {
    fn folder(&self) -> &'static str {
        "cmake"
    }

    fn description(&self) -> String {
        format!("CMake {VERSION} (about 30 MB)")
    }

    fn space(&self) -> u64 {
        256
    }

    fn stamp(&self) -> String {
        format!("cmake {VERSION}")
    }

    fn fill(&self, folder: &Path) -> Result<(), Problem> {
        let package = format!("cmake=={VERSION}.*");
        pip::install(&[package], pip::Dependencies::Skip, pip::Python::None, folder)
    }
}
