//! Stores one cloud of particles per data point, gathered and scattered by data index.

use tch::{Device, Kind, Tensor};

use crate::Draws;

/// The clouds X^{1:M, 1:N}: `[data points, particles, latent]`.
pub struct ParticleStore {
    clouds: Tensor,
}

impl ParticleStore {
    /// Clouds drawn from N(0, I).
    pub fn standard_normal(
        points: usize,
        particles: usize,
        latent_dim: i64,
        draws: &mut Draws,
        device: Device,
    ) -> Self {
        Self {
            clouds: draws.normal(&[points as i64, particles as i64, latent_dim], device),
        }
    }

    /// Data points, particles of each, latent dimensions.
    pub fn shape(&self) -> [usize; 3] {
        [self.points(), self.particles(), self.latent_dim()]
    }

    /// Number of data points M.
    pub fn points(&self) -> usize {
        self.clouds.size()[0] as usize
    }

    /// Particles per data point N.
    pub fn particles(&self) -> usize {
        self.clouds.size()[1] as usize
    }

    /// Dimension of the latent space.
    pub fn latent_dim(&self) -> usize {
        self.clouds.size()[2] as usize
    }

    /// Copies the clouds of the data points `indices`: `[n, particles, latent]`.
    pub fn gather(&self, indices: &Tensor) -> Tensor {
        self.clouds
            .index_select(0, &indices.to_device(self.clouds.device()))
    }

    /// Puts clouds back.
    pub fn scatter(&mut self, indices: &Tensor, clouds: &Tensor) {
        let _ = self
            .clouds
            .index_copy_(0, &indices.to_device(self.clouds.device()), clouds);
    }

    /// Copies the clouds of the data points `start..start + count`.
    pub fn block(&self, start: usize, count: usize) -> Tensor {
        self.clouds.narrow_copy(0, start as i64, count as i64)
    }

    /// Adds `scale`·ξ to every particle.
    pub fn add_noise(&mut self, scale: f64, draws: &mut Draws) {
        let noise = draws.normal_like(&self.clouds);
        let _ = self.clouds.g_add_(&(noise * scale));
    }

    /// Multiplies every coordinate by `factor`.
    pub fn scale(&mut self, factor: f64) {
        let _ = self.clouds.g_mul_scalar_(factor);
    }

    /// Repeats each cloud `times` times, so that it has that many times the particles.
    pub fn replicate(&mut self, times: usize) {
        self.clouds = self.clouds.repeat([1, times as i64, 1]);
    }
}

/// For each data point, the iteration up to which its noise has been applied.
///
/// A particle outside the batch receives nothing but Gaussian increments, so that the sum of what it missed can be
/// added once, when it is next needed: same law, a fraction of the random numbers.
pub struct NoiseLedger {
    applied: Tensor,
}

impl NoiseLedger {
    /// All noise up to iteration `now` has been applied to all `points`.
    pub fn settled(points: usize, now: u64, device: Device) -> Self {
        Self {
            applied: Tensor::full([points as i64], now as i64, (Kind::Int64, device)),
        }
    }

    /// How many iterations' noise each of `indices` has missed by `now`, shaped to scale clouds: `[n, 1, 1]`.
    pub fn missed(&self, indices: &Tensor, now: u64) -> Tensor {
        let applied = self
            .applied
            .index_select(0, &indices.to_device(self.applied.device()));
        (now as i64 - applied).to_kind(Kind::Float).view([-1, 1, 1])
    }

    /// Notes that `indices` have all their noise up to `now`.
    pub fn settle(&mut self, indices: &Tensor, now: u64) {
        let _ = self
            .applied
            .index_fill_(0, &indices.to_device(self.applied.device()), now as i64);
    }
}
