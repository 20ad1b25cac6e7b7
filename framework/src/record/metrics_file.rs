//! Appends numbers to `metrics.jsonl`, the source of truth for every curve.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Map, Value};

use super::{Moment, write_bytes};

/// One JSON object a line: step, epoch, then names and numbers.
pub struct MetricsFile {
    file: File,
    path: PathBuf,
}

impl MetricsFile {
    /// Starts the file in `folder`, or goes on with it after `done` steps: lines of later steps, and half a line, are
    /// dropped.
    pub fn open(folder: &Path, done: u64) -> anyhow::Result<Self> {
        let path = folder.join("metrics.jsonl");
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            text => text.with_context(|| format!("reading {}", path.display()))?,
        };
        let earlier = |line: &&str| {
            let line: Option<Value> = serde_json::from_str(line).ok();
            line.and_then(|line| line["step"].as_u64())
                .is_some_and(|step| step <= done)
        };
        let kept: String = text.split_inclusive('\n').filter(earlier).collect();
        write_bytes(&path, kept)?;
        let file = File::options().append(true).open(&path);
        let file = file.with_context(|| format!("opening {}", path.display()))?;
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::fuzzing::survives;

    #[test]
    fn fuzz_lines() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = MetricsFile::open(folder.path(), 0).unwrap();
        for step in 1..=9 {
            let moment = Moment { step, epoch: 0 };
            file.write(
                moment,
                &[("loss/energy".into(), step as f64), ("nan".into(), f64::NAN)],
            )
            .unwrap();
        }
        let path = folder.path().join("metrics.jsonl");
        let whole = fs::read(&path).unwrap();
        survives(&whole, &path, |_| {
            if MetricsFile::open(folder.path(), 5).is_ok() {
                let kept = fs::read_to_string(&path).unwrap();
                for line in kept.lines() {
                    let line: Value = serde_json::from_str(line).unwrap();
                    assert!(line["step"].as_u64().unwrap() <= 5);
                }
            }
        });
    }
}
