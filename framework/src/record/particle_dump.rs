//! Writes all particles to an HDF5 file that appears whole or not at all.

use std::path::{Path, PathBuf};

use ndarray::ArrayView3;
use tch::Tensor;

use super::{Moment, write_whole};
use crate::{Clouds, Random};

/// What a dump says of itself.
pub struct DumpFacts {
    pub moment: Moment,
    pub seed: u64,
    pub recipe_hash: String,
}

/// Bytes that a chunk and a written block should have about.
const CHUNK_BYTES: usize = 64 << 10;
const BLOCK_BYTES: usize = 32 << 20;

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
    let [points, particles, latent_dim] = clouds.shape();
    let bytes_per_point = (particles * latent_dim * size_of::<f32>()).max(1);
    let points_of = |bytes: usize| (bytes / bytes_per_point).clamp(1, points.max(1));

    let file = hdf5::FileBuilder::new()
        .with_fapl(|access| access.file_locking(false))
        .create(path)?;
    let dataset = file
        .new_dataset::<f32>()
        .shape((points, particles, latent_dim))
        .chunk((points_of(CHUNK_BYTES), particles, latent_dim))
        .create("particles")?;
    let attribute = |name: &str, value: u64| -> hdf5::Result<()> {
        dataset.new_attr::<u64>().create(name)?.write_scalar(&value)
    };
    attribute("step", facts.moment.step)?;
    attribute("epoch", facts.moment.epoch)?;
    attribute("seed", facts.seed)?;
    let hash: hdf5::types::VarLenUnicode = facts.recipe_hash.parse()?;
    dataset
        .new_attr::<hdf5::types::VarLenUnicode>()
        .create("recipe_hash")?
        .write_scalar(&hash)?;
    dataset
        .new_attr::<f64>()
        .create("raw_step_size")?
        .write_scalar(&clouds.raw_step_size())?;

    let block = points_of(BLOCK_BYTES);
    for start in (0..points).step_by(block) {
        let count = block.min(points - start);
        let values = to_vec(&clouds.settled(start, count, facts.moment.step, random));
        let view = ArrayView3::from_shape((count, particles, latent_dim), &values)?;
        dataset.write_slice(view, (start..start + count, .., ..))?;
    }
    // Chunks that are still in HDF5's cache must be written while errors can be heard of.
    file.flush()?;
    drop(dataset);
    file.close()?;
    Ok(())
}

fn to_vec(tensor: &Tensor) -> Vec<f32> {
    let tensor = tensor.to_device(tch::Device::Cpu).contiguous();
    let mut values = vec![0f32; tensor.numel()];
    tensor.copy_data(&mut values, tensor.numel());
    values
}
