//! Looks, before anything is trained, for what would go wrong without a word.

use anyhow::{Context, ensure};
use ebipla_core::{Parameters, gradient};
use tch::Tensor;

use super::Experiment;
use super::checkpoint::Checkpoints;

/// Latents that are enough to see whether a network depends on its parameters.
const LATENTS: i64 = 8;

/// What is said of each network that does not depend on its parameters, and so never trains.
pub fn untrained(experiment: &Experiment) -> Vec<String> {
    let model = &experiment.model;
    let mut random = experiment.streams_for("trial");
    let latent_dim = model.generator.latent_dim();
    let x = random
        .stream("latents", 0)
        .normal(&[LATENTS, latent_dim], experiment.device);
    let (energy, data) = tch::with_grad(|| (model.energy.energy(&x), model.generator.generate(&x)));
    let networks = [
        ("energy", energy, model.energy.parameters()),
        ("generator", data, model.generator.parameters()),
    ];
    let untrained = networks
        .into_iter()
        .filter(|(_, output, parameters)| !depends(output, parameters));
    let message = |(name, _, parameters): (&str, Tensor, &Parameters)| {
        format!(
            "the gradients of the {name} for all its {} parameters are exactly zero: it computes with other tensors \
             than those in its Parameters, and will not be trained",
            parameters.count()
        )
    };
    untrained.map(message).collect()
}

/// Whether some gradient is not zero; a network without parameters has none that could be.
fn depends(output: &Tensor, parameters: &Parameters) -> bool {
    if parameters.count() == 0 {
        return true;
    }
    let is_zero = |gradient: &Tensor| gradient.count_nonzero(None).int64_value(&[]) == 0;
    output.requires_grad()
        && !gradient::gradients(output, &parameters.tensors())
            .iter()
            .all(is_zero)
}

/// Writes a checkpoint of an experiment that has taken `done` steps, restores `fresh` from it, and says how the next
/// step of the two differs, if it does.
pub fn round_trip(
    experiment: &mut Experiment,
    fresh: &mut Experiment,
    done: u64,
) -> anyhow::Result<Option<String>> {
    let folder = tempfile::tempdir().context("making a folder for a checkpoint")?;
    let checkpoints = |of: &Experiment| Checkpoints::of(of, folder.path());
    checkpoints(experiment).save(experiment, done, &[])?;
    let restored = checkpoints(fresh)
        .restore(fresh)
        .context("a checkpoint was written, but could not be restored")?;
    ensure!(
        restored.is_some_and(|(step, _)| step == done),
        "a checkpoint was written, but could not be restored"
    );
    let expected = experiment.step(done)?.read();
    let found = fresh.step(done)?.read();
    let differs = |((_, a), (_, b)): &(&(String, f64), &(String, f64))| a.to_bits() != b.to_bits();
    let different = expected.iter().zip(&found).find(differs);
    Ok(different.map(|((name, expected), (_, found))| {
        format!(
            "restored from a checkpoint, the next step gives another {name}, {found:e} in place of {expected:e}: a \
             resumed run will not be the same. Does the algorithm list all of its state in `slots`, and draw only \
             from the streams that it is given?"
        )
    }))
}
