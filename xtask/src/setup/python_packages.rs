//! The Python packages that we compare with: readers of our files, and alternatives for the computation.

use std::path::Path;
use std::process::Command;

use super::component::Component;
use super::{output, pip};
use crate::problem::Problem;

/// TensorBoard still imports pkg_resources, which newer versions of setuptools do not have.
const FOR_TESTS: &str = "tensorboard==2.20.*\nsetuptools<81\nh5py==3.*\nsafetensors==0.*\nnumpy<3";

const FOR_BENCH: &str = include_str!("../../../benches/peers/requirements.txt");

pub struct PythonPackages {
    folder: &'static str,
    description: &'static str,
    /// MiB needed during installation.
    space: u64,
    packages: Vec<String>,
    /// Compiled packages fit only one version of Python; empty if there is no Python, which `pip::problem` reports.
    python: String,
}

impl PythonPackages {
    /// Readers of our files.
    pub fn for_tests() -> Self {
        Self {
            folder: "peers",
            description: "TensorBoard, h5py and safetensors for the tests (about 40 MB)",
            space: 512,
            packages: packages(FOR_TESTS),
            python: python(),
        }
    }

    /// PyTorch and JAX, for `runner bench --peers`.
    pub fn for_bench() -> Self {
        Self {
            folder: "bench",
            description: "PyTorch and JAX for the bench (2.8 GB to download, 5.2 GB kept)",
            space: 10 * 1024,
            packages: packages(FOR_BENCH),
            python: python(),
        }
    }
}

fn packages(requirements: &str) -> Vec<String> {
    let lines = requirements.lines().map(str::trim);
    let packages = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    packages.map(str::to_owned).collect()
}

fn python() -> String {
    let version = "import sys; print('%d.%d' % sys.version_info[:2])";
    let python = output::of(Command::new("python3").args(["-c", version]));
    python.unwrap_or_default().trim().to_owned()
}

impl Component for PythonPackages {
    fn folder(&self) -> &'static str {
        self.folder
    }

    fn description(&self) -> String {
        self.description.into()
    }

    fn space(&self) -> u64 {
        self.space
    }

    fn stamp(&self) -> String {
        let Self { folder, python, .. } = self;
        format!("{folder} {} for Python {python}", self.packages.join(" "))
    }

    fn fill(&self, folder: &Path) -> Result<(), Problem> {
        pip::install(
            &self.packages,
            pip::Dependencies::Install,
            pip::Python::This,
            folder,
        )
    }
}
