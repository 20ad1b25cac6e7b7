//! The list of a sweep's members, written before the first of them starts.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ebipla_core::system::files::write_bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::SweepError;

/// Its name in the sweep's folder.
const FILE: &str = "sweep.json";

/// The contents of `sweep.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    pub version: u32,
    pub name: String,
    pub title: Option<String>,
    /// Short names of keys.
    pub names: BTreeMap<String, String>,
    pub members: Vec<ManifestMember>,
}

/// One member. Its resolved recipe is in its folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ManifestMember {
    /// Of its folder.
    pub name: String,
    /// The name of the recipe that it is a variation of.
    pub recipe: String,
    pub seed: u64,
    /// What the sweep has set.
    pub values: Map<String, Value>,
}

impl Manifest {
    pub const VERSION: u32 = 1;

    /// Whether a folder is a sweep's.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(FILE).is_file()
    }

    pub fn read(folder: &Path) -> Result<Self, SweepError> {
        let path = folder.join(FILE);
        let wrong = |message: String| SweepError(format!("{}: {message}", path.display()));
        if !path.exists() {
            let message = format!("{} is no sweep's folder: it has no {FILE}", folder.display());
            return Err(SweepError(message));
        }
        let text = fs::read(&path).map_err(|error| wrong(error.to_string()))?;
        let manifest: Self = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        if manifest.version != Self::VERSION {
            let found = manifest.version;
            let expected = Self::VERSION;
            return Err(wrong(format!("found version {found}, expected {expected}")));
        }
        // Names become paths.
        let leads_away = |member: &&ManifestMember| {
            member.name.contains(['/', '\\']) || matches!(&member.name[..], "" | "." | "..")
        };
        if let Some(member) = manifest.members.iter().find(leads_away) {
            return Err(wrong(format!("`{}` is no name of a folder", member.name)));
        }
        Ok(manifest)
    }

    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        write_bytes(&folder.join(FILE), serde_json::to_string_pretty(self)? + "\n")
    }

    /// Which of the members a folder is, by its name.
    pub fn place(&self, folder: &Path) -> Option<usize> {
        let name = folder.file_name()?.to_str()?;
        self.members.iter().position(|member| member.name == name)
    }

    /// Adds the members of `earlier` that are not in this one.
    pub fn keep(&mut self, earlier: Self) {
        let known = |member: &ManifestMember| self.members.iter().any(|own| own.name == member.name);
        let others: Vec<_> = earlier
            .members
            .into_iter()
            .filter(|member| !known(member))
            .collect();
        self.members.splice(0..0, others);
    }

    /// A member in short: its recipe, what the sweep has set, and its seed where there are several.
    pub fn label(&self, member: &ManifestMember) -> String {
        let mut words = vec![member.recipe.clone()];
        for (key, value) in &member.values {
            let short = key.rsplit('.').next().unwrap_or(key);
            let name = self.names.get(key).map_or(short, String::as_str);
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            words.push(format!("{name}={value}"));
        }
        if self.members.iter().any(|other| other.seed != member.seed) {
            words.push(format!("seed={}", member.seed));
        }
        words.join(" ")
    }
}
