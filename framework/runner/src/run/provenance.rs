//! Notes beside the results where they came from.

use std::path::Path;
use std::process::Command;

use ebipla_core::system::device;
use ebipla_core::{Dataset, Split};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Experiment;
use crate::Home;

/// The contents of `provenance.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Provenance {
    /// The crate that the program was built from.
    program: &'static str,
    git: Option<Git>,
    /// Where the framework comes from, if not from there too.
    #[serde(skip_serializing_if = "Option::is_none")]
    framework_git: Option<Git>,
    versions: Versions,
    device: String,
    threads: i32,
    host: String,
    cpu: Option<String>,
    command_line: Vec<String>,
    folder: String,
    recipe_hash: String,
    seed: u64,
    /// The contents of the files that the data were read from; absent where they were made up.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<DataIdentity>,
    start: String,
    pub end: Option<String>,
    /// How it ended; absent while it runs, or if it was killed.
    pub outcome: Option<String>,
    /// The parts of the run before it was resumed, the first one first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    earlier_parts: Vec<Value>,
}

/// Its name in the run's folder.
const FILE: &str = "provenance.json";

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Git {
    commit: String,
    /// Whether the sources differed from that commit.
    dirty: bool,
}

/// Hashes of the contents of the files that the points of each split were read from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataIdentity {
    train: String,
    validation: Option<String>,
}

impl DataIdentity {
    pub fn of(dataset: &dyn Dataset) -> Option<Self> {
        Some(Self {
            train: dataset.identity(Split::Train)?,
            validation: dataset.identity(Split::Validation),
        })
    }

    /// Those that the run in a folder notes.
    fn noted(folder: &Path) -> Option<Self> {
        let text = std::fs::read(folder.join(FILE)).ok()?;
        let provenance: Value = serde_json::from_slice(&text).ok()?;
        serde_json::from_value(provenance.get("data")?.clone()).ok()
    }
}

/// Whether the files of a data set have changed since the run in `folder` read them. Runs that do not note their data
/// count as unchanged.
pub fn data_have_changed(dataset: &dyn Dataset, folder: &Path) -> bool {
    match (DataIdentity::noted(folder), DataIdentity::of(dataset)) {
        (Some(noted), Some(found)) => noted != found,
        _ => false,
    }
}

/// For those who look at a run with other data than it was trained on.
pub fn warn_of_other_data(dataset: &dyn Dataset, run_dir: &Path) {
    if data_have_changed(dataset, run_dir) {
        tracing::warn!(
            "the files of the data set have changed since {} was trained on them ({FILE}, `data`)",
            run_dir.display()
        );
    }
}

#[derive(Clone, Debug, Serialize)]
struct Versions {
    /// Of the program's crate.
    runner: &'static str,
    framework: &'static str,
    tch: &'static str,
    libtorch: &'static str,
    hdf5: String,
}

impl Provenance {
    /// Takes note at the start of a run of the program that `home` is.
    pub fn at_start(home: &Home, experiment: &Experiment) -> Self {
        let (major, minor, patch) = hdf5::library_version();
        let own = git(home.sources());
        Self {
            program: home.name(),
            framework_git: git(Path::new(env!("CARGO_MANIFEST_DIR"))).filter(|git| own.as_ref() != Some(git)),
            git: own,
            versions: Versions {
                runner: home.version(),
                framework: env!("CARGO_PKG_VERSION"),
                tch: TCH_VERSION,
                libtorch: env!("LIBTORCH_VERSION"),
                hdf5: format!("{major}.{minor}.{patch}"),
            },
            device: device::name(experiment.device),
            threads: tch::get_num_threads(),
            host: host(),
            cpu: device::cpu(),
            command_line: std::env::args().collect(),
            folder: std::env::current_dir().map_or_else(|_| String::new(), |path| path.display().to_string()),
            recipe_hash: experiment.recipe.hash(),
            seed: experiment.recipe.run.seed,
            data: DataIdentity::of(experiment.dataset.as_ref()),
            start: now(),
            end: None,
            outcome: None,
            earlier_parts: Vec::new(),
        }
    }

    /// Keeps what the folder says of earlier parts of the run.
    pub fn after_those_in(&mut self, folder: &Path) {
        let text = std::fs::read(folder.join(FILE)).unwrap_or_default();
        let Ok(Value::Object(mut last)) = serde_json::from_slice(&text) else {
            return;
        };
        if let Some(Value::Array(earlier)) = last.shift_remove("earlier_parts") {
            self.earlier_parts = earlier;
        }
        self.earlier_parts.push(Value::Object(last));
    }

    /// Notes the end.
    pub fn ended(&mut self, outcome: impl Into<String>) {
        self.end = Some(now());
        self.outcome = Some(outcome.into());
    }

    pub fn to_json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

/// Pinned in the workspace's Cargo.toml; a test keeps the two together.
const TCH_VERSION: &str = "0.26.0";

fn now() -> String {
    let now = jiff::Timestamp::now();
    format!("{now:.0}")
}

/// What git says of a crate's folder; nothing where the crate is none of the repository's, as below a home folder that
/// is under version control.
fn git(folder: &Path) -> Option<Git> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .arg("-C")
            .arg(folder)
            .args(arguments)
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    Some(Git {
        commit: git(&["rev-parse", "HEAD"])?,
        dirty: !git(&["status", "--porcelain"])?.is_empty(),
    })
}

fn host() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let name = kernel.or_else(|_| std::env::var("HOSTNAME"));
    name.map_or_else(|_| "unknown".into(), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_version_of_tch_is_the_one_in_the_lock_file() {
        let manifest = include_str!("../../../../Cargo.toml");
        assert!(manifest.contains(&format!("tch = \"={}\"", super::TCH_VERSION)));
    }
}
