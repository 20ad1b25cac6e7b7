//! Writes particles to an HDF5 file that appears whole or not at all.

use std::path::{Path, PathBuf};

use ebipla_core::system::files::write_whole;
use ebipla_core::{Clouds, Random, interruption_point};
use hdf5::types::VarLenUnicode;
use ndarray::ArrayView3;
use tch::{Device, Kind, Tensor};

use super::{INDICES, PARTICLES, blocks, points_in};
use crate::Recipe;
use crate::recipe::ParticleRecord;
use crate::record::{Moment, plain_numbers};

/// Bytes that a chunk should have about.
const CHUNK_BYTES: usize = 64 << 10;

/// What a dump says of itself.
pub struct DumpFacts<'a> {
    pub moment: Moment,
    pub recipe: &'a Recipe,
}

/// Writes `particles/step_NNNNNNNN.h5` below `folder` and returns its path.
pub fn dump_particles(
    folder: &Path,
    clouds: &dyn Clouds,
    facts: &DumpFacts,
    random: &mut Random,
) -> anyhow::Result<PathBuf> {
    let path = folder.join(format!("particles/step_{:08}.h5", facts.moment.step));
    // HDF5 cannot repair a file whose writer was killed: only a finished one gets the final name.
    write_whole(&path, |unfinished| write(unfinished, clouds, facts, random))?;
    Ok(path)
}

fn write(path: &Path, clouds: &dyn Clouds, facts: &DumpFacts, random: &mut Random) -> anyhow::Result<()> {
    let record = &facts.recipe.record.particles;
    let [all, particles, latent_dim] = clouds.shape();
    let chosen = chosen_points(record, all, random);
    let points = chosen.size()[0] as usize;

    // Metadata of this version have checksums, as the chunks have: damage is seen when the file is read.
    let file = hdf5::FileBuilder::new()
        .with_fapl(|access| access.file_locking(false).libver_v110())
        .create(path)?;
    let chunk = points_in(CHUNK_BYTES, particles * latent_dim).min(points.max(1));
    let mut builder = file
        .new_dataset::<f32>()
        .shape((points, particles, latent_dim))
        .chunk((chunk, particles, latent_dim))
        .fletcher32();
    if record.deflate > 0 {
        builder = builder.shuffle().deflate(record.deflate);
    }
    let dataset = builder.create(PARTICLES)?;
    write_facts(&dataset, clouds, facts, all)?;
    let indices: Vec<i64> = Vec::try_from(&chosen)?;
    file.new_dataset_builder().with_data(&indices).create(INDICES)?;

    for (start, count) in blocks([points, particles, latent_dim]) {
        interruption_point();
        let block = chosen.narrow(0, start as i64, count as i64);
        let values = plain_numbers(&clouds.settled(&block.into(), facts.moment.step));
        let view = ArrayView3::from_shape((count, particles, latent_dim), &values)?;
        dataset.write_slice(view, (start..start + count, .., ..))?;
    }
    // Chunks that are still in HDF5's cache must be written while errors can be heard of.
    file.flush()?;
    drop(dataset);
    file.close()?;
    Ok(())
}

/// The data points whose clouds are written, in their order; the same in all dumps of a run.
fn chosen_points(record: &ParticleRecord, all: usize, random: &mut Random) -> Tensor {
    let all = all as i64;
    match record.points {
        Some(points) if (points as i64) < all => {
            let drawn = random.stream("dumped_points", 0).permutation(all);
            drawn.narrow(0, 0, points as i64).sort(0, false).0
        }
        _ => Tensor::arange(all, (Kind::Int64, Device::Cpu)),
    }
}

fn write_facts(
    dataset: &hdf5::Dataset,
    clouds: &dyn Clouds,
    facts: &DumpFacts,
    all: usize,
) -> anyhow::Result<()> {
    let recipe = facts.recipe;
    let number = |name: &str, value: u64| -> hdf5::Result<()> {
        dataset.new_attr::<u64>().create(name)?.write_scalar(&value)
    };
    number("step", facts.moment.step)?;
    number("epoch", facts.moment.epoch)?;
    number("seed", recipe.run.seed)?;
    number("data_points", all as u64)?;
    let text = |name: &str, value: &str| -> anyhow::Result<()> {
        let value: VarLenUnicode = value.parse()?;
        Ok(dataset
            .new_attr::<VarLenUnicode>()
            .create(name)?
            .write_scalar(&value)?)
    };
    text("recipe_hash", &recipe.hash())?;
    text("recipe_name", &recipe.name)?;
    text("recipe", &recipe.to_yaml())?;
    text("runner_version", env!("CARGO_PKG_VERSION"))?;
    Ok(dataset
        .new_attr::<f64>()
        .create("raw_step_size")?
        .write_scalar(&clouds.raw_step_size())?)
}
