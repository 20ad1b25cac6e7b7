//! Stores one cloud of particles per data point, gathered and scattered by data index.

use anyhow::ensure;
use tch::{Device, Kind, Tensor};

use crate::{Draws, Indices, Storage};

/// Numbers that are drawn or moved at once.
const BLOCK: usize = 1 << 22;

/// The clouds X^{1:M, 1:N}: `[data points, particles, latent]`.
///
/// They are kept where the [`Storage`] says, and are handed out and taken back on the model's device. The random numbers
/// of a cloud belong to its data point, so that where it is kept changes none.
pub struct ParticleStore {
    /// Has place for all particles, also while there are few.
    room: Tensor,
    /// The particles that there are, at the front of `room`.
    clouds: Tensor,
    model: Device,
    /// Which data points' clouds have changed since they were last called saved.
    changed: Vec<bool>,
}

impl ParticleStore {
    /// Clouds drawn from N(0, I).
    pub fn standard_normal(shape: [usize; 3], draws: Draws, storage: &mut Storage) -> anyhow::Result<Self> {
        Self::few_standard_normal(shape[1], shape, draws, storage)
    }

    /// The same with `few` particles in each cloud, and room for it to grow to `shape` by [`Self::replicate`].
    ///
    /// The room is taken now, so that a lack of it is known before the run starts.
    pub fn few_standard_normal(
        few: usize,
        shape: [usize; 3],
        draws: Draws,
        storage: &mut Storage,
    ) -> anyhow::Result<Self> {
        let [points, particles, latent_dim] = shape;
        ensure!(
            particles.is_multiple_of(few),
            "{few} particles cannot be replicated to {particles}"
        );
        let room = storage.room(shape)?;
        let size = [points, few, latent_dim].map(|n| n as i64);
        let front = room.view([-1]).narrow(0, 0, size.iter().product());
        let mut store = Self {
            room,
            clouds: front.view(size),
            model: storage.model_device(),
            changed: vec![true; points],
        };
        for (first, mut block) in store.blocks() {
            block.copy_(&draws.normal_block(first, &block.size(), Device::Cpu));
        }
        Ok(store)
    }

    /// Data points, particles of each, latent dimensions.
    pub fn shape(&self) -> [usize; 3] {
        let size = self.clouds.size();
        [size[0], size[1], size[2]].map(|n| n as usize)
    }

    /// Copies the clouds of the data points `indices`: `[n, particles, latent]`.
    pub fn gather(&self, indices: &Indices) -> Tensor {
        self.clouds
            .index_select(0, indices.on(self.clouds.device()))
            .to_device(self.model)
    }

    /// Puts clouds back.
    pub fn scatter(&mut self, indices: &Indices, clouds: &Tensor) {
        for index in indices.numbers() {
            self.changed[index as usize] = true;
        }
        let device = self.clouds.device();
        let _ = self
            .clouds
            .index_copy_(0, indices.on(device), &clouds.to_device(device));
    }

    /// Copies the clouds of the data points `start..start + count`.
    pub fn block(&self, start: usize, count: usize) -> Tensor {
        self.clouds
            .narrow_copy(0, start as i64, count as i64)
            .to_device(self.model)
    }

    /// Adds `scale`·ξ to every particle.
    pub fn add_noise(&mut self, scale: f64, draws: Draws) {
        for (first, mut block) in self.blocks() {
            let noise = draws.normal_block(first, &block.size(), block.device());
            let _ = block.g_add_(&(noise * scale));
        }
    }

    /// Multiplies every coordinate by `factor`.
    pub fn scale(&mut self, factor: f64) {
        self.changed.fill(true);
        let _ = self.clouds.g_mul_scalar_(factor);
    }

    /// Repeats the particles of each cloud until it has all that there is room for.
    pub fn replicate(&mut self) {
        let times = self.room.size()[1] / self.clouds.size()[1];
        let few = std::mem::replace(&mut self.clouds, self.room.shallow_clone());
        let all = self.blocks();
        let few = few.split(all[0].1.size()[0], 0);
        // From the last: what a block grows over has been moved by then.
        for (few, (_, mut all)) in few.iter().zip(all).rev() {
            all.copy_(&few.repeat([1, times, 1]));
        }
    }

    /// The first data point whose cloud has a number that is not finite, and the cloud's sum.
    pub fn not_finite(&self) -> Option<(usize, f64)> {
        // In double precision the sum of finite numbers of single precision is finite.
        let sum = |clouds: &Tensor| clouds.sum(Kind::Double).double_value(&[]);
        let mut blocks = self.views().into_iter();
        let (first, block) = blocks.find(|(_, block)| !sum(block).is_finite())?;
        let mut clouds = (0..block.size()[0]).map(|point| (point, sum(&block.get(point))));
        let (point, sum) = clouds.find(|(_, sum)| !sum.is_finite())?;
        Some((first + point as usize, sum))
    }

    /// The data points whose clouds have changed since [`Self::call_saved`].
    pub fn changed(&self) -> Vec<i64> {
        let changed = self.changed.iter().enumerate();
        changed
            .filter_map(|(index, changed)| changed.then_some(index as i64))
            .collect()
    }

    /// Notes that all clouds are saved.
    pub fn call_saved(&mut self) {
        self.changed.fill(false);
    }

    /// Gives each cloud `particles` particles: the first few, or all that there is room for. Their values are undefined until
    /// they are overwritten.
    pub fn reshape(&mut self, particles: usize) -> anyhow::Result<()> {
        let [points, _, latent_dim] = self.shape().map(|n| n as i64);
        let (particles, most) = (particles as i64, self.room.size()[1]);
        ensure!(
            particles > 0 && particles <= most && most % particles == 0,
            "found clouds of {particles} particles, expected {most} or a part of them"
        );
        let front = self.room.view([-1]).narrow(0, 0, points * particles * latent_dim);
        self.clouds = front.view([points, particles, latent_dim]);
        self.changed.fill(true);
        Ok(())
    }

    /// Views of all clouds in blocks, as [`Self::views`], for a change to every cloud.
    fn blocks(&mut self) -> Vec<(usize, Tensor)> {
        self.changed.fill(true);
        self.views()
    }

    /// Views of all clouds in blocks of some data points, each with the number of its first point.
    fn views(&self) -> Vec<(usize, Tensor)> {
        let [_, particles, latent_dim] = self.shape();
        let points = (BLOCK / (particles * latent_dim)).max(1);
        let blocks = self.clouds.split(points as i64, 0).into_iter().enumerate();
        blocks.map(|(i, block)| (i * points, block)).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::Random;

    /// Three blocks, the last of them ragged.
    const SHAPE: [usize; 3] = [7, 12, 116_508];

    /// The same work on clouds in memory and in a file must leave the same bits.
    #[track_caller]
    fn same_in_memory_and_file(work: impl Fn(&mut Storage, &mut Random) -> Vec<Tensor>) {
        let folder = tempfile::tempdir().unwrap();
        let mut in_file = Storage::on(Device::Cpu).with_budget(0.0, folder.path());
        let [memory, file] =
            [&mut Storage::on(Device::Cpu), &mut in_file].map(|storage| work(storage, &mut Random::new(5)));
        assert_eq!(memory.len(), file.len());
        for (memory, file) in memory.iter().zip(&file) {
            assert!(memory.equal(file));
        }
    }

    #[test]
    fn clouds_are_drawn_and_moved_alike_in_memory_and_in_a_file() {
        same_in_memory_and_file(|storage, random| {
            let start = random.stream("clouds", 0);
            let mut store = ParticleStore::standard_normal(SHAPE, start, storage).unwrap();
            assert_eq!(store.blocks().len(), 3);
            let start = store.block(0, 7);
            store.scale(0.5);
            store.add_noise(0.1, random.stream("noise", 0));
            let indices = Tensor::from_slice(&[6i64, 0, 3]).into();
            let batch = store.gather(&indices);
            store.scatter(&indices, &(&batch * 2.0));
            vec![start, batch, store.block(0, 7)]
        });
    }

    #[test]
    fn noise_reaches_every_block_with_its_scale() {
        let mut random = Random::new(6);
        let mut store =
            ParticleStore::standard_normal(SHAPE, random.stream("clouds", 0), &mut Storage::on(Device::Cpu))
                .unwrap();
        let before = store.block(0, 7);
        store.add_noise(0.1, random.stream("noise", 0));
        let noise = store.block(0, 7) - before;
        for point in 0..7 {
            // 1.4 million numbers: five standard errors of their standard deviation are 5/√(2·1.4e6) = 0.3 %.
            let found = noise.get(point).std(true).double_value(&[]) / 0.1;
            assert!((found - 1.0).abs() < 0.003, "{found}");
        }
    }

    #[test]
    fn the_first_cloud_that_is_not_finite_is_found() {
        let mut random = Random::new(9);
        let start = random.stream("clouds", 0);
        let mut storage = Storage::on(Device::Cpu);
        // Two blocks.
        let mut store = ParticleStore::standard_normal([3, 2, 1_200_000], start, &mut storage).unwrap();
        assert!(store.not_finite().is_none());
        for (point, value) in [(2, f64::NAN), (1, f64::NEG_INFINITY)] {
            let cloud = store.block(point, 1);
            let _ = cloud.get(0).get(1).get(7).fill_(value);
            store.scatter(&Indices::range(point, 1), &cloud.copy());
            let (found, sum) = store.not_finite().unwrap();
            assert_eq!((found, sum.is_nan()), (point, value.is_nan()));
        }
    }

    #[test]
    fn batches_come_and_go_by_data_index() {
        let mut random = Random::new(7);
        let start = random.stream("clouds", 0);
        let mut store =
            ParticleStore::standard_normal([5, 2, 3], start, &mut Storage::on(Device::Cpu)).unwrap();
        let before = store.block(0, 5);
        let indices: Indices = Tensor::from_slice(&[4i64, 1]).into();
        assert!(
            store
                .gather(&indices)
                .equal(&before.index_select(0, indices.on_cpu()))
        );
        store.scatter(
            &Indices::range(2, 1),
            &Tensor::ones([1, 2, 3], tch::kind::FLOAT_CPU),
        );
        assert!(
            store
                .block(2, 1)
                .equal(&Tensor::ones([1, 2, 3], tch::kind::FLOAT_CPU))
        );
        let others: Indices = Tensor::from_slice(&[0i64, 1, 3, 4]).into();
        assert!(
            store
                .gather(&others)
                .equal(&before.index_select(0, others.on_cpu()))
        );
    }

    #[test]
    fn few_particles_are_repeated_in_place() {
        same_in_memory_and_file(|storage, random| {
            let start = random.stream("clouds", 0);
            let mut store = ParticleStore::few_standard_normal(4, SHAPE, start, storage).unwrap();
            let few = store.block(0, 7);
            assert_eq!(few.size()[1], 4);
            store.replicate();
            assert_eq!(store.shape(), SHAPE);
            let all = store.block(0, 7);
            assert!(all.equal(&few.repeat([1, 3, 1])));
            vec![few, all]
        });
    }

    #[test]
    fn few_particles_must_divide_all() {
        let mut random = Random::new(8);
        let start = random.stream("clouds", 0);
        let mut storage = Storage::on(Device::Cpu);
        assert!(ParticleStore::few_standard_normal(4, [1, 6, 1], start, &mut storage).is_err());
    }
}
