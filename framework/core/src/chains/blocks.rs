//! Runs chains on the CPU in blocks: one for each thread, which takes it through all steps without waiting for others.

use tch::Tensor;

use super::{Chains, PriorSampler, worker_threads};
use crate::model::Thawed;
use crate::{Draws, FrozenEnergy, Scalars};

/// Chains that are worth a thread: with fewer, the calls that a step takes are more than its work.
const FEWEST: i64 = 64;

/// Runs one chain per row of `start`. Where the chains go does not depend on the number of threads.
pub fn sample(
    sampler: &dyn PriorSampler,
    energy: &dyn FrozenEnergy,
    start: &Tensor,
    draws: &mut Draws,
) -> anyhow::Result<Chains> {
    let key = draws.branch();
    let rows = start.size()[0];
    let threads = i64::from(tch::get_num_threads()).clamp(1, (rows / FEWEST).max(1));
    let block = (rows + threads - 1) / threads;
    let found = worker_threads::run(start.split(block.max(1), 0), |i, start| {
        let _guard = tch::no_grad_guard();
        let mut draws = Draws::of_chains(key, i as u64 * block as u64);
        let rows = start.size()[0] as f64;
        let chains = sampler.sample(&Thawed::new(energy), start, &mut draws)?;
        Ok((rows, chains))
    })?;
    let last: Vec<_> = found
        .iter()
        .map(|(_, chains)| chains.last.shallow_clone())
        .collect();
    let statistics = found.into_iter().map(|(rows, chains)| (rows, chains.statistics));
    Ok(Chains {
        last: Tensor::cat(&last, 0),
        statistics: Scalars::averaged(statistics),
    })
}
