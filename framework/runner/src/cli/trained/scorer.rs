//! Scores data points by their energy and by how well they are reconstructed.

use ebipla_core::{Dataset, Located, MapSearch, Random, Split, Task};
use tch::{Device, Kind, Tensor};

use super::arguments::{Latents, ScoreCommand};
use crate::run::Setup;
use crate::trained::PosteriorMean;

/// What points of a data set scored; higher is less likely.
#[derive(Clone, Debug, Default)]
pub struct Scores {
    /// Which points.
    pub indices: Vec<i64>,
    /// U(x).
    pub energy: Vec<f64>,
    /// ‖y − g(x)‖²/(2σ²).
    pub reconstruction: Vec<f64>,
}

impl Scores {
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Each kind of score under its name; `total` is the sum of the other two.
    pub fn columns(&self) -> [(&'static str, Vec<f64>); 3] {
        let sums = self.energy.iter().zip(&self.reconstruction).map(|(u, v)| u + v);
        [
            ("energy", self.energy.clone()),
            ("reconstruction", self.reconstruction.clone()),
            ("total", sums.collect()),
        ]
    }

    /// Those for which `wanted` says yes, and the others.
    pub fn partition(self, wanted: impl Fn(i64) -> bool) -> (Self, Self) {
        let mut parts = (Self::default(), Self::default());
        for (i, &index) in self.indices.iter().enumerate() {
            let part = if wanted(index) { &mut parts.0 } else { &mut parts.1 };
            part.indices.push(index);
            part.energy.push(self.energy[i]);
            part.reconstruction.push(self.reconstruction[i]);
        }
        parts
    }
}

/// How latents are found that points are scored at.
pub struct Scorer<'a> {
    setup: &'a Setup,
    search: MapSearch,
    chain: Option<PosteriorMean>,
    batch: i64,
    limit: Option<u32>,
}

impl<'a> Scorer<'a> {
    pub fn new(setup: &'a Setup, command: &ScoreCommand) -> Self {
        let chain = PosteriorMean {
            steps: command.chain_steps,
            step_size: command.chain_step_size * setup.model.sigma * setup.model.sigma,
        };
        Self {
            setup,
            search: command.map.search(),
            chain: (command.latents == Latents::Posterior).then_some(chain),
            batch: command.batch.into(),
            limit: command.limit,
        }
    }

    /// Scores a split, or a random part of it. `name` sets its random numbers apart from those of others.
    pub fn score(
        &self,
        name: &str,
        dataset: &dyn Dataset,
        split: Split,
        random: &Random,
    ) -> anyhow::Result<Scores> {
        let mut random = random.fork(name);
        let count = dataset.len(split) as i64;
        let chosen = match self.limit {
            Some(limit) => random.stream("subset", 0).subset(count, limit.into()),
            None => Tensor::arange(count, (Kind::Int64, Device::Cpu)),
        };
        let mut task = Task::start(format!("scoring {name}"), chosen.size()[0] as u64);
        let mut scores = Scores::default();
        for indices in chosen.split(self.batch, 0) {
            let y = dataset.get(split, &indices)?.to_device(self.setup.device);
            let first = scores.len() as u64;
            let at = self.locate(&y, first, &mut random);
            scores.indices.extend(Vec::<i64>::try_from(&indices)?);
            scores.energy.extend(numbers(&at.energy)?);
            scores.reconstruction.extend(numbers(&at.reconstruction)?);
            task.advance(indices.size()[0] as u64);
        }
        Ok(scores)
    }

    fn locate(&self, y: &Tensor, first: u64, random: &mut Random) -> Located {
        let model = &self.setup.model;
        let found = self.search.search(model, y, first, random);
        match &self.chain {
            None => found,
            Some(chain) => {
                let mut draws = random.stream("posterior_chain", first);
                let mean = chain.estimate(model, y, &found.latents, &mut draws);
                Located::at(model, mean, y)
            }
        }
    }
}

fn numbers(tensor: &Tensor) -> anyhow::Result<Vec<f64>> {
    let tensor = tensor.to_device(Device::Cpu).to_kind(Kind::Double);
    Ok(Vec::try_from(&tensor)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_their_scores() {
        let scores = Scores {
            indices: vec![4, 7, 9],
            energy: vec![1.0, 2.0, 3.0],
            reconstruction: vec![10.0, 20.0, 30.0],
        };
        let (odd, even) = scores.partition(|index| index % 2 == 1);
        assert_eq!((odd.indices.clone(), even.indices.clone()), (vec![7, 9], vec![4]));
        assert_eq!(odd.columns()[2], ("total", vec![22.0, 33.0]));
        assert_eq!(even.columns()[2], ("total", vec![11.0]));
    }
}
