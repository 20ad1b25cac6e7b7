//! Remembers which checkpoint is the best by a metric, also over interruptions.

use std::fs;
use std::path::Path;

use anyhow::bail;
use ebipla_core::Better;
use ebipla_core::system::files::write_bytes;
use serde::{Deserialize, Serialize};

const NAME: &str = "best.json";

/// What makes a checkpoint the best.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BestBy {
    /// A number that `evaluate` gives.
    pub metric: String,
    pub better: Better,
}

/// The contents of `checkpoints/best.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Best {
    step: u64,
    metric: String,
    value: f64,
}

/// Notes the checkpoint after `step` steps if it is better than all before; says whether it is.
pub fn note(folder: &Path, wanted: &BestBy, step: u64, numbers: &[(String, f64)]) -> anyhow::Result<bool> {
    let Some((_, value)) = numbers.iter().find(|(name, _)| *name == wanted.metric) else {
        let names: Vec<_> = numbers.iter().map(|(name, _)| name.as_str()).collect();
        bail!(
            "record.checkpoint.best.metric is `{}`, but what was measured is {}",
            wanted.metric,
            names.join(", ")
        );
    };
    let better = |than: f64| match wanted.better {
        Better::Lower => *value < than,
        Better::Higher => *value > than,
    };
    let before = read(folder).filter(|best| best.metric == wanted.metric);
    // What was measured again at the same step, after an interruption, is the same.
    let is_best = before.is_none_or(|best| best.step == step || better(best.value)) && !value.is_nan();
    if is_best {
        let best = Best {
            step,
            metric: wanted.metric.clone(),
            value: *value,
        };
        write_bytes(&folder.join(NAME), serde_json::to_string_pretty(&best)? + "\n")?;
    }
    Ok(is_best)
}

/// After how many steps the best checkpoint was taken, if one is noted.
pub fn step(folder: &Path) -> Option<u64> {
    Some(read(folder)?.step)
}

fn read(folder: &Path) -> Option<Best> {
    serde_json::from_slice(&fs::read(folder.join(NAME)).ok()?).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_what_is_better_than_all_before_is_noted() {
        let folder = tempfile::tempdir().unwrap();
        let mut wanted = BestBy {
            metric: "mmd".into(),
            better: Better::Lower,
        };
        let look = |wanted: &BestBy, step: u64, value: f64| {
            note(
                folder.path(),
                wanted,
                step,
                &[("x".into(), 0.0), ("mmd".into(), value)],
            )
            .unwrap()
        };
        assert_eq!(step(folder.path()), None);
        assert!(!look(&wanted, 1, f64::NAN));
        assert!(look(&wanted, 2, 0.5));
        assert!(!look(&wanted, 3, 0.6) && !look(&wanted, 4, f64::NAN));
        assert!(look(&wanted, 5, 0.4) && look(&wanted, 5, 0.4));
        assert_eq!(step(folder.path()), Some(5));
        wanted.better = Better::Higher;
        assert!(look(&wanted, 6, 0.45) && !look(&wanted, 7, 0.42));
        wanted.metric = "other".into();
        let error = note(folder.path(), &wanted, 8, &[("mmd".into(), 0.0)]).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("`other`, but what was measured is mmd"),
            "{error}"
        );
    }
}
