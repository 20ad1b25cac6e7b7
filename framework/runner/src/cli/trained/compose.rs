//! `runner compose`: samples from the sum of several runs' energies.
//!
//! The sum of energies over the *same* latent space is the energy of the product of their priors. That two runs have
//! latents of the same dimension can be checked here; that these mean the same cannot: runs that were trained apart
//! share them only if their generators agree.

use anyhow::ensure;
use ebipla_core::Random;

use super::arguments::{ComposeCommand, Overrides};
use super::output::Format;
use super::samples::{draw_latents, write_samples};
use super::{Metrics, Trained, load};
use crate::cli::{Misuse, Program, print};
use crate::trained::EnergySum;

pub fn compose(program: &Program, command: &ComposeCommand) -> anyhow::Result<()> {
    let arguments = &command.samples;
    let weights = weights(command)?;
    let generator = decoding_run(command)?;

    let runs = load_all(program, command)?;
    let first = &runs[0].setup;
    let decoding = &runs[generator].setup;
    let format = Format::of(&arguments.out, decoding.dataset.shape())?;
    let seed = arguments.seed.unwrap_or(first.recipe.run.seed);
    let mut random = Random::new(seed).fork("compose");
    let energies = runs.iter().map(|run| run.setup.model.energy.as_ref());
    let sum = EnergySum::of(weights.iter().copied().zip(energies));
    let latents = draw_latents(first, &sum, arguments.n.into(), &mut random)?;
    ensure!(
        sum.is_used(),
        Misuse(format!(
            "the sampler of {} draws without looking at the energy, so that it cannot sample from a sum of energies; \
             choose one that does, such as --set evaluation_sampler.name=ula",
            command.run_dirs[0].display()
        ))
    );
    let checkpoints: Vec<_> = runs
        .iter()
        .zip(&weights)
        .map(|(run, weight)| format!("{weight} * {}", run.checkpoint.display()))
        .collect();
    let facts = [
        ("energy", checkpoints.join(" + ")),
        ("generator", runs[generator].checkpoint.display().to_string()),
        ("seed", seed.to_string()),
    ];
    let model = &decoding.model;
    write_samples(arguments, format, decoding, model, &latents, &facts, &mut random)?;
    print(&format!(
        "{} samples of {}: {}\n",
        arguments.n,
        checkpoints.join(" + "),
        arguments.out.display()
    ))
}

fn weights(command: &ComposeCommand) -> anyhow::Result<Vec<f64>> {
    let (runs, weights) = (command.run_dirs.len(), &command.weights);
    if weights.is_empty() {
        return Ok(vec![1.0; runs]);
    }
    ensure!(
        weights.len() == runs && weights.iter().all(|weight| weight.is_finite()),
        Misuse(format!(
            "--weights: found {weights:?}, expected a number for each of the {runs} runs"
        ))
    );
    Ok(weights.clone())
}

/// The index of the run that decodes.
fn decoding_run(command: &ComposeCommand) -> Result<usize, Misuse> {
    let runs = command.run_dirs.len();
    match command.generator_of {
        i if (1..=runs).contains(&i) => Ok(i - 1),
        i => Err(Misuse(format!(
            "--generator-of: found {i}, expected a number from 1 to {runs}, as there are runs"
        ))),
    }
}

/// All runs, on the device of the first.
fn load_all(program: &Program, command: &ComposeCommand) -> anyhow::Result<Vec<Trained>> {
    let mut runs: Vec<Trained> = Vec::new();
    let mut overrides = command.overrides.clone();
    for run_dir in &command.run_dirs {
        let run = load(program, run_dir, &overrides, Metrics::Only(&[]))?;
        let first = runs.first().unwrap_or(&run);
        let [expected, found] = [first, &run].map(|run| run.setup.model.generator.latent_dim());
        ensure!(
            found == expected,
            Misuse(format!(
                "{} has {found} latent dimensions, but {} has {expected}: energies add up only over the same latent \
                 space",
                run_dir.display(),
                command.run_dirs[0].display()
            ))
        );
        overrides = Overrides {
            set: Vec::new(),
            device: Some(first.setup.recipe.run.device.clone()),
        };
        runs.push(run);
    }
    Ok(runs)
}
