//! Clouds of particles: where they are kept, and the noise that they have yet to receive.

mod lazy_noise;
mod storage;
mod store;

pub use lazy_noise::LazyNoise;
pub use storage::Storage;
pub use store::ParticleStore;
