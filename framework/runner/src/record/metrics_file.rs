//! Appends numbers to `metrics.jsonl`, the source of truth for every curve.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use ebipla_core::system::files::write_bytes;
use serde_json::{Map, Value};

use super::Moment;

/// What names of numbers begin with that an evaluation found.
pub const EVALUATE: &str = "evaluate/";

/// Which lines of an earlier part of a run are kept.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// Those up to this step.
    pub step: u64,
    /// Whether the evaluation at that step is kept as well, not made again.
    pub evaluation: bool,
}

/// One JSON object a line: step, epoch, then names and numbers.
pub struct MetricsFile {
    file: File,
    path: PathBuf,
}

impl MetricsFile {
    /// Starts the file in `folder`, or continues it: lines that are not kept, and half a line, are dropped.
    pub fn open(folder: &Path, kept: Kept) -> anyhow::Result<Self> {
        let path = folder.join("metrics.jsonl");
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            text => text.with_context(|| format!("reading {}", path.display()))?,
        };
        let is_kept = |line: &&str| match serde_json::from_str(line) {
            Ok(Value::Object(line)) => {
                let is_evaluation = || line.keys().any(|name| name.starts_with(EVALUATE));
                match line.get("step").and_then(Value::as_u64) {
                    Some(step) if step == kept.step => kept.evaluation || !is_evaluation(),
                    step => step.is_some_and(|step| step < kept.step),
                }
            }
            _ => false,
        };
        let text: String = text.split_inclusive('\n').filter(is_kept).collect();
        write_bytes(&path, text)?;
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

    use ebipla_core::testing::fuzzing::survives;

    use super::*;

    fn up_to(step: u64) -> Kept {
        Kept {
            step,
            evaluation: true,
        }
    }

    #[test]
    fn an_evaluation_that_is_made_again_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = MetricsFile::open(folder.path(), up_to(0)).unwrap();
        for step in 1..=3 {
            let moment = Moment { step, epoch: 0 };
            file.write(moment, &[("loss/energy".into(), 1.0)]).unwrap();
            file.write(moment, &[("evaluate/mmd".into(), 2.0)]).unwrap();
        }
        let lines = |step, evaluation| {
            MetricsFile::open(folder.path(), Kept { step, evaluation }).unwrap();
            let text = fs::read_to_string(folder.path().join("metrics.jsonl")).unwrap();
            text.lines().count()
        };
        assert_eq!([lines(3, true), lines(2, true), lines(2, false)], [6, 4, 3]);
    }

    #[test]
    fn fuzz_lines() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = MetricsFile::open(folder.path(), up_to(0)).unwrap();
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
            if MetricsFile::open(folder.path(), up_to(5)).is_ok() {
                let kept = fs::read_to_string(&path).unwrap();
                for line in kept.lines() {
                    let line: Value = serde_json::from_str(line).unwrap();
                    assert!(line["step"].as_u64().unwrap() <= 5);
                }
            }
        });
    }
}
