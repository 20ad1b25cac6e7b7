//! Appends numbers to `metrics.jsonl`, the source of truth for every curve.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Map, Value};

use super::Moment;

/// One JSON object a line: step, epoch, then names and numbers.
pub struct MetricsFile {
    file: File,
    path: PathBuf,
}

impl MetricsFile {
    /// Starts the file in `folder`.
    pub fn create(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join("metrics.jsonl");
        let file = File::create_new(&path).with_context(|| format!("creating {}", path.display()))?;
        Ok(Self { file, path })
    }

    /// Appends one line. Numbers that JSON has no word for become null.
    pub fn write(&mut self, moment: Moment, numbers: &[(String, f64)]) -> anyhow::Result<()> {
        let mut line = Map::new();
        line.insert("step".into(), moment.step.into());
        line.insert("epoch".into(), moment.epoch.into());
        for (name, number) in numbers {
            line.insert(name.clone(), Value::from(*number));
        }
        // One write call, so that a killed process leaves whole lines.
        let text = format!("{}\n", Value::Object(line));
        self.file
            .write_all(text.as_bytes())
            .with_context(|| format!("writing {}", self.path.display()))
    }
}
