//! Draws samples and writes them, for `sample` and `compose`.

use std::path::{Path, PathBuf};

use anyhow::ensure;
use ebipla_core::{Energy, Model, Random, Split, Task, require_memory};
use tch::{Device, Kind, Tensor};

use super::arguments::{Decoding, SampleArguments};
use super::output::{Format, Shown};
use crate::record::{self, Array};
use crate::run::Setup;

/// Chains that run at a time.
const CHAINS: i64 = 4096;
/// Latents that are decoded at a time.
const DECODED: i64 = 64;
/// Data points that stand beside samples.
const SHOWN_POINTS: usize = 4000;

/// Latents of `n` chains of the run's evaluation sampler on `energy`, on the CPU.
pub fn draw_latents(
    setup: &Setup,
    energy: &dyn Energy,
    n: i64,
    random: &mut Random,
) -> anyhow::Result<Tensor> {
    let numbers = n as u128 * setup.model.generator.latent_dim() as u128;
    // Blocks of them, and all together.
    require_memory(
        &format!("the latents of {n} samples"),
        numbers * (2 * size_of::<f32>()) as u128,
    )?;
    let mut task = Task::start("sampling", n as u64);
    let mut all = Vec::new();
    for (block, start) in (0..n).step_by(CHAINS as usize).enumerate() {
        let count = CHAINS.min(n - start);
        let mut draws = random.stream("chains", block as u64);
        let noise = draws.normal(&[count, setup.model.generator.latent_dim()], setup.device);
        let chains = ebipla_core::chains::run(setup.sampler.as_ref(), energy, noise, &mut draws)?;
        all.push(chains.last.to_device(Device::Cpu));
        task.advance(count as u64);
    }
    let latents = Tensor::cat(&all, 0);
    let finite = latents.isfinite().all_dim(1, false).sum(Kind::Int64);
    let lost = n - i64::try_from(finite)?;
    ensure!(
        lost == 0,
        "{lost} of {n} chains left the finite numbers; try --set evaluation_sampler.step_size=… with a smaller one, \
         or --set evaluation_sampler.name=tamed_ula"
    );
    Ok(latents)
}

/// Decodes latents with `model` and writes what comes out; `facts` become attributes of an HDF5 file.
pub fn write_samples(
    arguments: &SampleArguments,
    format: Format,
    setup: &Setup,
    model: &Model,
    latents: &Tensor,
    facts: &[(&str, String)],
    random: &mut Random,
) -> anyhow::Result<()> {
    let out = arguments.out.as_path();
    let noisy = match arguments.decoding {
        Decoding::Auto => !record::is_image(setup.dataset.shape()),
        Decoding::Mean => false,
        Decoding::Noisy => true,
    };
    let decode = |(block, x): (usize, Tensor)| {
        let x = x.to_device(setup.device);
        if noisy {
            let mut draws = random.stream("decoder", block as u64);
            Ok(model.decode(&x, &mut draws))
        } else {
            Ok(model.mean(&x))
        }
    };
    let shape = [&latents.size()[..1], setup.dataset.shape()].concat();
    let samples = Array {
        name: "samples",
        shape: shape.iter().map(|&n| n as usize).collect(),
        blocks: Box::new(latents.split(DECODED, 0).into_iter().enumerate().map(decode)),
    };
    match format {
        Format::Picture(shown) => {
            let numbers = samples.shape.iter().map(|&n| n as u128).product::<u128>();
            // Blocks of them, all together, and as pixels.
            let bytes = numbers * (3 * size_of::<f32>()) as u128;
            require_memory(&format!("a picture of {} samples", arguments.n), bytes)?;
            let samples: Vec<_> = samples.blocks.collect::<anyhow::Result<_>>()?;
            let samples = Tensor::cat(&samples, 0);
            let picture = match shown {
                Shown::Images => {
                    let columns = record::square_columns(samples.size()[0] as usize);
                    record::image_grid(&samples, columns)?
                }
                Shown::Points => {
                    let data = setup.dataset.first(Split::Train, SHOWN_POINTS)?;
                    record::draw_side_by_side(("data", &data), ("samples", &samples))?
                }
            };
            picture.write_png(out)?;
        }
        Format::Npy => record::write_npy(out, samples)?,
        Format::Hdf5 => {
            let latents = arguments.latents.then(|| Array::of("latents", latents));
            let arrays = std::iter::once(samples).chain(latents).collect();
            return record::write_hdf5(out, arrays, facts);
        }
    }
    if arguments.latents {
        record::write_npy(&latents_beside(out), Array::of("latents", latents))?;
    }
    Ok(())
}

/// `samples.png` → `samples_latents.npy`.
fn latents_beside(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}_latents.npy"))
}
