//! Names data points on the command line, and finds latents that stand for them.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use anyhow::ensure;
use ebipla_core::{MapSearch, Random, Split, Task};
use tch::Tensor;

use crate::cli::Misuse;
use crate::record::{ParticleDump, dumps_in_folder};
use crate::run::Setup;

/// One data point: `train:3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub split: Split,
    pub index: usize,
}

impl FromStr for Point {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let point = text.split_once(':').and_then(|(split, index)| {
            Some(Self {
                split: crate::cli::names::split_of(split)?,
                index: index.parse().ok()?,
            })
        });
        point.ok_or_else(|| "expected train:INDEX or validation:INDEX, counted from 0".into())
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}:{}", self.split, self.index)
    }
}

/// Refuses a split without points.
pub fn count_of(setup: &Setup, split: Split) -> Result<usize, Misuse> {
    match setup.dataset.len(split) {
        0 => Err(Misuse(format!(
            "the run's data set has no points in its split `{split}`; take the other one, or --set an option of the \
             data set that gives it some"
        ))),
        count => Ok(count),
    }
}

/// The data of some points, on the run's device.
pub fn data_of(setup: &Setup, split: Split, indices: &[usize]) -> anyhow::Result<Tensor> {
    let count = setup.dataset.len(split);
    for &index in indices {
        let point = Point { split, index };
        ensure!(
            index < count,
            Misuse(match count {
                0 => format!("{point}: the run's data set has no points in its split `{split}`"),
                _ => format!("{point}: expected an index from 0 to {}", count - 1),
            })
        );
    }
    let indices: Vec<_> = indices.iter().map(|&index| index as i64).collect();
    let data = setup.dataset.get(split, &Tensor::from_slice(&indices))?;
    Ok(data.to_device(setup.device))
}

/// The particles of a run's training points, if it wrote some; they must fit its model.
pub fn particles_of(setup: &Setup, run_dir: &Path) -> anyhow::Result<Option<ParticleDump>> {
    let Some(last) = dumps_in_folder(&run_dir.join("particles")).pop() else {
        return Ok(None);
    };
    let dump = ParticleDump::open(&last)?;
    let [expected, found] = [setup.model.generator.latent_dim() as usize, dump.shape()[2]];
    ensure!(
        found == expected,
        "{} has particles in {found} dimensions, expected {expected}",
        dump.path().display()
    );
    Ok(Some(dump))
}

/// The cloud of one training point.
pub fn cloud_of(dump: &ParticleDump, index: usize) -> anyhow::Result<Tensor> {
    let cloud = dump.cloud(index as i64)?;
    let missing = || {
        let some: Vec<_> = dump
            .indices()
            .iter()
            .take(5)
            .map(|i| format!("train:{i}"))
            .collect();
        Misuse(format!(
            "train:{index} has no particles in {}, which has those of {} points: {}, …",
            dump.path().display(),
            dump.indices().len(),
            some.join(", ")
        ))
    };
    Ok(cloud.ok_or_else(missing)?)
}

/// Points that are searched for at a time.
const BATCH: i64 = 64;

/// MAP latents of `data`, whose points have the numbers `first`, `first + 1`, …
pub fn map_latents(
    setup: &Setup,
    search: &MapSearch,
    data: &Tensor,
    first: u64,
    random: &mut Random,
) -> Tensor {
    let mut task = Task::start("MAP latents", data.size()[0] as u64);
    let mut found = Vec::new();
    let mut number = first;
    for batch in data.split(BATCH, 0) {
        found.push(search.search(&setup.model, &batch, number, random).latents);
        number += batch.size()[0] as u64;
        task.advance(batch.size()[0] as u64);
    }
    Tensor::cat(&found, 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn points_are_read_and_printed() {
        let point = Point {
            split: Split::Validation,
            index: 7,
        };
        assert_eq!("validation:7".parse(), Ok(point));
        assert_eq!(point.to_string(), "validation:7");
        for wrong in ["7", "test:7", "train:", "train:-1", "train:x"] {
            let error = wrong.parse::<Point>().unwrap_err();
            assert!(error.contains("train:INDEX"), "{wrong}: {error}");
        }
    }
}
