//! Which Python packages the tests compare our files with: what users will open them with.

use std::path::Path;
use std::process::Command;

use super::component::Component;
use super::{output, pip};
use crate::problem::Problem;

/// TensorBoard still imports pkg_resources, which newer versions of setuptools do not have.
const PACKAGES: [&str; 5] = [
    "tensorboard==2.20.*",
    "setuptools<81",
    "h5py==3.*",
    "safetensors==0.*",
    "numpy<3",
];

pub struct Peers {
    /// Compiled packages fit one version of Python only.
    python: String,
}

impl Peers {
    /// For the Python on the PATH; `None` where there is none.
    pub fn for_this_python() -> Option<Self> {
        let version = "import sys; print('%d.%d' % sys.version_info[:2])";
        let python = output::of(Command::new("python3").args(["-c", version]))?;
        Some(Self { python })
    }
}

impl Component for Peers {
    fn folder(&self) -> &'static str {
        "peers"
    }

    fn description(&self) -> String {
        "TensorBoard, h5py and safetensors for the tests (about 40 MB)".into()
    }

    fn space(&self) -> u64 {
        512
    }

    fn stamp(&self) -> String {
        format!("peers {} for Python {}", PACKAGES.join(" "), self.python.trim())
    }

    fn fill(&self, folder: &Path) -> Result<(), Problem> {
        let packages = PACKAGES.map(String::from);
        pip::install(&packages, pip::Dependencies::Install, pip::Python::This, folder)
    }
}
