//! What a sweep's folder says about itself, in `sweep.json`.

use std::path::Path;

use anyhow::Context;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Its name in the sweep's folder.
pub const FILE: &str = "sweep.json";

/// As much of it as a report shows.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct SweepFile {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub title: Option<String>,
    /// Short names of keys; keys of the same short name share an axis.
    #[serde(default)]
    pub names: Map<String, Value>,
    #[serde(default)]
    pub members: Vec<Member>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Member {
    /// Its folder below the sweep's.
    pub name: String,
    /// The stem of its recipe's file.
    #[serde(default)]
    pub recipe: String,
    /// What the sweep set for it.
    #[serde(default)]
    pub values: Map<String, Value>,
}

impl SweepFile {
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(FILE);
        let text = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is damaged", path.display()))
    }

    pub fn member(&self, folder: &Path) -> Option<&Member> {
        self.members.get(self.place(folder)?)
    }

    /// Which of the members a folder is.
    pub fn place(&self, folder: &Path) -> Option<usize> {
        let name = folder.file_name()?.to_str()?;
        self.members.iter().position(|member| member.name == name)
    }
}
