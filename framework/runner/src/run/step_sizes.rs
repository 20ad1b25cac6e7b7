//! Reports what the step sizes of a run do to its posterior, before they have done it.

use ebipla_core::{Indices, PosteriorStep, Split};
use tch::Tensor;

use super::Experiment;
use crate::run::curvature;

/// Particles at which the curvature is estimated.
const PARTICLES: usize = 16;

/// Shortest and longest distance over which the curvature counts: less is lost to rounding, more leaves the cloud.
const DISTANCES: [f64; 2] = [0.01, 0.1];

/// Logs for each step size how large it is beside the curvature at the particles after `done` steps, and what bias to
/// expect; a warning where it is too large.
///
/// It takes random numbers of its own, and changes nothing.
pub fn report(experiment: &Experiment, done: u64) -> anyhow::Result<()> {
    let steps = experiment.algorithm.posterior_steps();
    if steps.is_empty() {
        return Ok(());
    }
    let (curvature, place) = estimate(experiment, &steps, done)?;
    if !curvature.is_finite() {
        tracing::warn!(
            "the curvature {place} is not finite: what the step sizes do to the posterior is unknown"
        );
        return Ok(());
    }
    // Where no direction is stiff, none is too stiff.
    let curvature = curvature.max(0.0);
    for step in steps {
        let text = step.describe(curvature, &place);
        match step.is_too_large(curvature) {
            true => tracing::warn!("{text}"),
            false => tracing::info!("{text}"),
        }
    }
    Ok(())
}

/// The largest curvature, and where it was looked for.
fn estimate(experiment: &Experiment, steps: &[PosteriorStep], done: u64) -> anyhow::Result<(f64, String)> {
    let mut random = experiment.streams_for("curvature");
    let points = experiment.dataset.len(Split::Train).min(PARTICLES);
    let (x, place) = match experiment.algorithm.clouds() {
        Some(clouds) => {
            let clouds = clouds.settled(&Indices::range(0, points), done);
            let each = clouds.size()[1].min((PARTICLES / points) as i64);
            let particles = points as i64 * each;
            (clouds.narrow(1, 0, each), format!("at {particles} particles"))
        }
        None => {
            let shape = [points as i64, 1, experiment.model.generator.latent_dim()];
            let starts = random.stream("starts", 0).normal(&shape, experiment.device);
            (
                starts,
                format!("at {points} points of N(0, I), where posterior chains start"),
            )
        }
    };
    let y = experiment
        .dataset
        .first(Split::Train, points)?
        .to_device(experiment.device);
    let y: Tensor = y.repeat_interleave_self_int(x.size()[1], 0, None);
    let [shortest, longest] = DISTANCES;
    let distance = steps
        .iter()
        .map(PosteriorStep::reach)
        .fold(longest, f64::min)
        .max(shortest);
    let mut draws = random.stream("directions", 0);
    let found = curvature::largest(&experiment.model, &x.flatten(0, 1), &y, distance, &mut draws);
    Ok((found, place))
}
