//! Reads dumps of particles back, block by block, and trusts no size that a file states.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use ndarray::{Ix3, s};
use tch::{Device, Kind, Tensor};

use super::{INDICES, PARTICLES, blocks};

/// A cloud that is larger is none of ours.
const LARGEST_CLOUD: usize = 1 << 28;

/// A dump that is open for reading.
pub struct ParticleDump {
    path: PathBuf,
    particles: hdf5::Dataset,
    shape: [usize; 3],
    indices: Vec<i64>,
}

impl ParticleDump {
    /// Opens a file, and makes sure that it holds clouds.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        Self::try_open(path).with_context(|| format!("{} is no dump of particles", path.display()))
    }

    fn try_open(path: &Path) -> anyhow::Result<Self> {
        // HDF5's own words for this are a page long.
        ensure!(path.is_file(), "there is no such file");
        let file = hdf5::FileBuilder::new()
            .with_fapl(|access| access.file_locking(false))
            .open_as(path, hdf5::OpenMode::Read)?;
        let particles = file.dataset(PARTICLES)?;
        let shape = particles.shape();
        let &[points, count, latent_dim] = &shape[..] else {
            bail!("`{PARTICLES}` has the shape {shape:?}, expected [data points, particles, latent]");
        };
        let numbers = count
            .checked_mul(latent_dim)
            .filter(|cloud| *cloud <= LARGEST_CLOUD);
        ensure!(
            numbers.is_some_and(|numbers| numbers > 0),
            "it has clouds of {count} particles in {latent_dim} dimensions"
        );
        let indices = file.dataset(INDICES)?;
        ensure!(
            indices.shape() == [points],
            "`{INDICES}` does not belong to {points} data points"
        );
        Ok(Self {
            path: path.to_owned(),
            particles,
            shape: [points, count, latent_dim],
            indices: indices.read_raw()?,
        })
    }

    /// Data points, particles of each, latent dimensions.
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// The data points that the clouds belong to.
    pub fn indices(&self) -> &[i64] {
        &self.indices
    }

    /// After how many steps it was taken.
    pub fn step(&self) -> anyhow::Result<u64> {
        let read = || self.particles.attr("step")?.read_scalar();
        read().with_context(|| format!("{} does not say its step", self.path.display()))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The cloud of one data point, `[particles, latent]`, on the CPU; `None` where the dump does not have it.
    pub fn cloud(&self, data_point: i64) -> anyhow::Result<Option<Tensor>> {
        let Some(position) = self.indices.iter().position(|index| *index == data_point) else {
            return Ok(None);
        };
        let read = self
            .particles
            .read_slice::<f32, _, Ix3>(s![position..position + 1, .., ..]);
        let cloud = read.with_context(|| format!("{} is damaged", self.path.display()))?;
        let numbers: Vec<f32> = cloud.into_iter().collect();
        self.ensure_finite(position, &numbers)?;
        let [_, particles, latent_dim] = self.shape.map(|n| n as i64);
        Ok(Some(
            Tensor::f_from_slice(&numbers)?.f_view([particles, latent_dim])?,
        ))
    }

    /// All clouds, some data points at a time, each with the position of its first one.
    pub fn blocks(&self) -> impl Iterator<Item = anyhow::Result<(usize, Tensor)>> {
        blocks(self.shape).map(|(start, count)| {
            let slice = s![start..start + count, .., ..];
            let read = self.particles.read_slice::<f32, _, Ix3>(slice);
            let block = read.with_context(|| format!("{} is damaged", self.path.display()))?;
            let size: Vec<_> = block.shape().iter().map(|n| *n as i64).collect();
            let numbers = block.as_standard_layout();
            let numbers = numbers.as_slice().context("a block without numbers")?;
            self.ensure_finite(start, numbers)?;
            let block = Tensor::f_from_slice(numbers)?.f_view(&size[..])?;
            Ok((start, block.to_kind(Kind::Float).to_device(Device::Cpu)))
        })
    }

    /// `numbers` are those of the clouds from position `start` on.
    fn ensure_finite(&self, start: usize, numbers: &[f32]) -> anyhow::Result<()> {
        let [_, particles, latent_dim] = self.shape;
        if let Some(i) = numbers.iter().position(|number| !number.is_finite()) {
            let position = start + i / (particles * latent_dim);
            bail!(
                "{}: the cloud of data point {} has a number that is not finite ({})",
                self.path.display(),
                self.indices[position],
                numbers[i]
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use ebipla_core::testing::fuzzing::survives;

    use super::*;

    /// A file like those that dumps are written to.
    fn dump(path: &Path, deflate: bool) {
        let file = hdf5::FileBuilder::new()
            .with_fapl(|access| access.file_locking(false).libver_v110())
            .create(path)
            .unwrap();
        let mut builder = file
            .new_dataset::<f32>()
            .shape((20, 3, 2))
            .chunk((5, 3, 2))
            .fletcher32();
        if deflate {
            builder = builder.shuffle().deflate(3);
        }
        let particles = builder.create(PARTICLES).unwrap();
        let numbers: Vec<f32> = (0..120u8).map(f32::from).collect();
        let view = ndarray::ArrayView3::from_shape((20, 3, 2), &numbers).unwrap();
        particles.write(view).unwrap();
        particles
            .new_attr::<u64>()
            .create("step")
            .unwrap()
            .write_scalar(&7u64)
            .unwrap();
        let indices: Vec<i64> = (0..20).collect();
        file.new_dataset_builder()
            .with_data(&indices)
            .create(INDICES)
            .unwrap();
    }

    fn numbers(path: &Path) -> anyhow::Result<Vec<f32>> {
        let dump = ParticleDump::open(path)?;
        dump.step()?;
        let mut all = Vec::new();
        for block in dump.blocks() {
            all.extend(crate::record::plain_numbers(&block?.1));
        }
        Ok(all)
    }

    #[test]
    fn a_cloud_that_is_not_finite_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("step_00000007.h5");
        dump(&path, false);
        let file = hdf5::File::open_rw(&path).unwrap();
        let particles = file.dataset(PARTICLES).unwrap();
        particles
            .write_slice(&ndarray::arr3(&[[[0.0f32, f32::NAN]]]), s![13..14, 1..2, ..])
            .unwrap();
        drop((particles, file));
        let error = format!("{:#}", numbers(&path).unwrap_err());
        assert!(
            error.contains("step_00000007.h5: the cloud of data point 13"),
            "{error}"
        );
        let dump = ParticleDump::open(&path).unwrap();
        assert!(dump.cloud(13).is_err() && dump.cloud(12).is_ok());
    }

    /// No damage to the numbers goes unnoticed: chunks and metadata have checksums.
    #[test]
    fn fuzz_dumps() {
        for deflate in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("step_00000007.h5");
            dump(&path, deflate);
            let expected = numbers(&path).unwrap();
            assert_eq!(expected.len(), 120);
            let whole = std::fs::read(&path).unwrap();
            let mut refused = 0;
            survives(&whole, &path, |path| match numbers(path) {
                Ok(found) => assert_eq!(found, expected),
                Err(error) => {
                    refused += 1;
                    assert!(format!("{error:#}").contains("step_00000007.h5"), "{error:#}");
                }
            });
            assert!(refused > 50, "{refused}");
        }
    }
}
