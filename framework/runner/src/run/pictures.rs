//! Draws what can be seen of a model: a plane whole, images as grids.

use ebipla_core::{Indices, Split};
use tch::Kind;

use super::Experiment;
use crate::record::{Picture, draw_model, is_image, reconstruction_grid, sample_grid};

/// Points that a picture of the plane shows.
const POINTS: usize = 4000;
/// Images that a grid of samples shows.
const SAMPLES: i64 = 64;
/// Images that are shown beside what their particles make of them.
const RECONSTRUCTIONS: usize = 32;

/// All pictures after `step` steps, each with a name; none for models that cannot be seen.
pub fn pictures(experiment: &Experiment, step: u64) -> anyhow::Result<Vec<(&'static str, Picture)>> {
    let _averages = experiment.averages();
    let shape = experiment.dataset.shape();
    if shape == [2] && experiment.model.generator.latent_dim() == 2 {
        return Ok(plane(experiment)?.into_iter().collect());
    }
    if is_image(shape) {
        let mut all = vec![("samples", samples(experiment)?)];
        all.extend(reconstructions(experiment, step)?);
        return Ok(all);
    }
    Ok(Vec::new())
}

/// Data, samples and energy landscape side by side.
fn plane(experiment: &Experiment) -> anyhow::Result<Option<(&'static str, Picture)>> {
    let (latents, samples) = experiment.sample(POINTS as i64)?;
    if i64::try_from(samples.isfinite().all())? == 0 {
        tracing::warn!("no picture: samples are not finite");
        return Ok(None);
    }
    let data = experiment.dataset.first(Split::Train, POINTS)?;
    let latents = latents.to_kind(Kind::Float);
    let energy = experiment.model.energy.as_ref();
    Ok(Some(("model", draw_model(&data, &samples, &latents, energy)?)))
}

/// What the generator makes of prior samples, without the decoder's noise.
fn samples(experiment: &Experiment) -> anyhow::Result<Picture> {
    let (latents, _) = experiment.sample(SAMPLES)?;
    sample_grid(&experiment.model, &latents)
}

/// The first training images, each above the mean of what its particles make; algorithms without particles have none.
fn reconstructions(experiment: &Experiment, step: u64) -> anyhow::Result<Option<(&'static str, Picture)>> {
    let Some(clouds) = experiment.algorithm.clouds() else {
        return Ok(None);
    };
    let data = experiment.dataset.first(Split::Train, RECONSTRUCTIONS)?;
    let indices = Indices::range(0, data.size()[0] as usize);
    let clouds = clouds.settled(&indices, step);
    let picture = reconstruction_grid(&experiment.model, &data, &clouds)?;
    Ok(Some(("reconstructions", picture)))
}
