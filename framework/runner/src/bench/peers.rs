//! Asks PyTorch and JAX to do the same work, by scripts in `benches/peers` with packages that a set-up installs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::Value;

use super::stopwatch::median;
use super::table::Table;

/// Where scripts and packages are.
pub struct Peers {
    scripts: PathBuf,
    packages: PathBuf,
}

/// What one peer found: seconds for each repetition, or why there are none.
#[derive(Deserialize)]
struct Answer {
    peer: String,
    #[serde(default)]
    seconds: Vec<f64>,
    #[serde(default)]
    version: String,
    error: Option<String>,
}

impl Answer {
    fn name(&self) -> String {
        format!("{} {}", self.version, self.peer).trim().to_owned()
    }

    fn median(&self) -> Result<f64, &str> {
        match &self.error {
            Some(error) => Err(error),
            None => Ok(median(self.seconds.clone())),
        }
    }
}

impl Peers {
    /// In the folder that the program was built from.
    pub fn find(sources: &Path) -> anyhow::Result<Self> {
        let peers = Self {
            scripts: sources.join("benches/peers"),
            packages: sources.join(".deps/bench"),
        };
        if !peers.packages.is_dir() {
            bail!(
                "--peers needs PyTorch and JAX for Python: `./runner setup --peers` installs them into {}",
                peers.packages.display()
            );
        }
        Ok(peers)
    }

    /// Has all peers do `task`, and adds a row of what `numbers` makes of its seconds for each to `table`.
    pub fn add_to(
        &self,
        table: &mut Table,
        script: &str,
        task: &Value,
        numbers: impl Fn(f64) -> Vec<Option<f64>>,
    ) -> anyhow::Result<()> {
        for answer in self.ask(script, task)? {
            match answer.median() {
                Ok(seconds) => table.row(answer.name(), numbers(seconds)),
                Err(why) => table.note(format!("{}: {why}", answer.name())),
            }
        }
        Ok(())
    }

    /// What all peers answer; what they print besides goes where ours does.
    fn ask(&self, script: &str, task: &Value) -> anyhow::Result<Vec<Answer>> {
        let path = self.scripts.join(script);
        let output = Command::new("python3")
            .arg(&path)
            .arg(task.to_string())
            .env("PYTHONPATH", &self.packages)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("starting python3 {}", path.display()))?;
        if !output.status.success() {
            bail!("python3 {} failed: {}", path.display(), output.status);
        }
        let answers = String::from_utf8_lossy(&output.stdout);
        let answer = |line: &str| {
            serde_json::from_str(line).with_context(|| format!("{} printed `{line}`", path.display()))
        };
        answers.lines().map(answer).collect()
    }
}
