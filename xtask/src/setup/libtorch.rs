//! The packages that make up libtorch, and the parts of them that a Rust program does not need.

use std::fs;
use std::path::Path;

use super::component::Component;
use super::pip;
use crate::problem::Problem;

/// In a separate file because `./runner` reads it too.
const VERSION: &str = include_str!("torch-version");

/// Even on a CPU, libtorch is linked against these two.
const CPU_REQUIREMENTS: [&str; 2] = ["nvidia-cuda-runtime==13.0.*", "nvidia-cuda-cupti==13.0.*"];

/// The Python bindings are not needed.
const USELESS: [&str; 1] = ["libtorch_python"];

/// These make up half of the space (550 MB), and need the rest of CUDA to load.
const USELESS_ON_CPU: [&str; 3] = ["libtorch_cuda", "libtorch_nvshmem", "libc10_cuda"];

pub struct Libtorch {
    pub cuda: bool,
}

/// The version that the bindings were written for.
pub fn version() -> &'static str {
    VERSION.trim()
}

impl Libtorch {
    fn variant(&self) -> &'static str {
        if self.cuda { "cuda" } else { "cpu" }
    }
}

impl Component for Libtorch {
    fn folder(&self) -> &'static str {
        "libtorch"
    }

    fn description(&self) -> String {
        let size = if self.cuda { "2.5 GB" } else { "540 MB" };
        let variant = self.variant();
        format!("libtorch {} for {variant} (about {size})", version())
    }

    fn space(&self) -> u64 {
        if self.cuda { 7 * 1024 } else { 2 * 1024 }
    }

    fn stamp(&self) -> String {
        format!("torch {} {}", version(), self.variant())
    }

    /// A libtorch with CUDA works on a CPU too.
    fn accepts(&self, stamp: &str) -> bool {
        stamp == self.stamp() || stamp == Libtorch { cuda: true }.stamp()
    }

    fn fill(&self, folder: &Path) -> Result<(), Problem> {
        let torch = format!("torch=={}", version());
        let libraries = folder.join("torch/lib");
        if self.cuda {
            pip::install(&[torch], pip::Dependencies::Skip, pip::Python::None, folder)?;
            // The other dependencies of torch are Python packages.
            let cuda = requirements(folder, &["cuda-toolkit", "nvidia-"])?;
            pip::install(&cuda, pip::Dependencies::Install, pip::Python::None, folder)?;
        } else {
            let mut packages = vec![torch];
            packages.extend(CPU_REQUIREMENTS.map(String::from));
            pip::install(&packages, pip::Dependencies::Skip, pip::Python::None, folder)?;
            remove(&libraries, &USELESS_ON_CPU)?;
        }
        remove(&libraries, &USELESS)
    }
}

/// The packages that torch depends on whose names start with one of `prefixes`.
fn requirements(folder: &Path, prefixes: &[&str]) -> Result<Vec<String>, Problem> {
    let path = folder.join(format!("torch-{}.dist-info/METADATA", version()));
    let metadata = fs::read_to_string(&path).map_err(|error| Problem::io("read", &path, &error))?;
    Ok(metadata
        .lines()
        .filter_map(|line| line.strip_prefix("Requires-Dist: "))
        // The part after the semicolon has conditions on the platform, which are known to hold.
        .filter_map(|requirement| requirement.split(';').next())
        .filter(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)))
        .map(|requirement| requirement.trim().to_owned())
        .collect())
}

/// Removes the files in `folder` whose name starts with one of `prefixes`.
fn remove(folder: &Path, prefixes: &[&str]) -> Result<(), Problem> {
    let files = fs::read_dir(folder).map_err(|error| Problem::io("read", folder, &error))?;
    for file in files.flatten() {
        let name = file.file_name();
        let name = name.to_string_lossy();
        if prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            let path = file.path();
            fs::remove_file(&path).map_err(|error| Problem::io("remove", &path, &error))?;
        }
    }
    Ok(())
}
