//! `runner sample`: draws samples from a run's model.

use ebipla_core::Random;

use super::arguments::SampleCommand;
use super::output::Format;
use super::samples::{draw_latents, write_samples};
use super::{Metrics, Trained, load};
use crate::cli::{Program, print};

pub fn sample(program: &Program, command: &SampleCommand) -> anyhow::Result<()> {
    let arguments = &command.samples;
    let run_dir = &command.run.run_dir;
    let overrides = &command.run.overrides;
    let Trained {
        setup,
        checkpoint,
        recipe_hash,
    } = load(program, run_dir, overrides, Metrics::Only(&[]))?;
    let format = Format::of(&arguments.out, setup.dataset.shape())?;
    let seed = arguments.seed.unwrap_or(setup.recipe.run.seed);
    let mut random = Random::new(seed).fork("sample");
    let model = &setup.model;
    let latents = draw_latents(&setup, model.energy.as_ref(), arguments.n.into(), &mut random)?;
    let facts = [
        ("checkpoint", checkpoint.display().to_string()),
        ("recipe_hash", recipe_hash),
        ("overrides", overrides.to_text()),
        ("seed", seed.to_string()),
    ];
    write_samples(arguments, format, &setup, model, &latents, &facts, &mut random)?;
    print(&format!("{} samples: {}\n", arguments.n, arguments.out.display()))
}
