//! `runner reconstruct`: shows data points beside what the model makes of their latents.

use ebipla_core::{Random, Split};
use tch::{Device, Kind, Tensor};

use super::arguments::ReconstructCommand;
use super::output::{Format, Shown};
use super::points::{cloud_of, count_of, data_of, map_latents, particles_of};
use super::{Metrics, Trained, load};
use crate::cli::{Program, print};
use crate::record::{self, Array};

pub fn reconstruct(program: &Program, command: &ReconstructCommand) -> anyhow::Result<()> {
    let run_dir = &command.run.run_dir;
    let trained = load(program, run_dir, &command.run.overrides, Metrics::Only(&[]))?;
    let Trained {
        setup, checkpoint, ..
    } = trained;
    let format = Format::of(&command.out, setup.dataset.shape())?;
    let count = count_of(&setup, command.split)?;
    let particles = match command.split {
        Split::Train => particles_of(&setup, run_dir)?,
        Split::Validation => None,
    };
    // A dump may have the particles of some points only.
    let indices: Vec<usize> = match &particles {
        Some(dump) => dump.indices().iter().map(|&index| index as usize).collect(),
        None => (0..count).collect(),
    };
    let indices = &indices[..indices.len().min(command.n as usize)];
    let data = data_of(&setup, command.split, indices)?;
    let (clouds, how) = match particles {
        Some(dump) => {
            let clouds = indices.iter().map(|index| cloud_of(&dump, *index));
            let clouds: Vec<_> = clouds.collect::<anyhow::Result<_>>()?;
            let clouds = Tensor::stack(&clouds, 0).to_device(setup.device);
            (clouds, "the mean over their particles")
        }
        None => {
            let seed = command.map.seed.unwrap_or(setup.recipe.run.seed);
            let mut random = Random::new(seed).fork("reconstruct");
            let latents = map_latents(&setup, &command.map.search(), &data, 0, &mut random);
            (latents.unsqueeze(1), "from MAP latents")
        }
    };
    let reconstructions = record::cloud_means(&setup.model, &clouds);
    let data = data.to_device(Device::Cpu);
    let mse = mean_square(&(&data - &reconstructions));
    match format {
        Format::Picture(Shown::Images) => {
            record::pair_grid(&data, &reconstructions)?.write_png(&command.out)?
        }
        Format::Picture(Shown::Points) => {
            let picture = record::draw_side_by_side(("data", &data), ("reconstructions", &reconstructions))?;
            picture.write_png(&command.out)?;
        }
        Format::Npy => record::write_npy(&command.out, Array::of("reconstructions", &reconstructions))?,
        Format::Hdf5 => {
            let arrays = vec![
                Array::of("data", &data),
                Array::of("reconstructions", &reconstructions),
                Array::of("latents", &clouds),
            ];
            let facts = [("checkpoint", checkpoint.display().to_string())];
            record::write_hdf5(&command.out, arrays, &facts)?;
        }
    }
    print(&format!(
        "{} points of the split {}, {how}: {}\nmse {mse:.6}\n",
        indices.len(),
        command.split,
        command.out.display()
    ))
}

/// Mean over all points and coordinates.
fn mean_square(differences: &Tensor) -> f64 {
    differences.square().mean(Kind::Double).double_value(&[])
}
