//! Reads the particles that a run starts from.

use std::path::Path;

use anyhow::ensure;
use ebipla_core::{Indices, ParticleSource, ParticleStore, Purpose};

use crate::record::ParticleDump;

/// Reads particle dumps.
pub struct Dumps;

impl ParticleSource for Dumps {
    /// Takes the clouds of a dump: the first particles of each, or all of them again and again.
    fn read(&self, path: &Path, store: &mut ParticleStore, purpose: Purpose) -> anyhow::Result<()> {
        let dump = ParticleDump::open(path)?;
        let wrong = || format!("{} does not fit this run", path.display());
        let [points, particles, latent_dim] = store.shape();
        let [found_points, found_particles, found_dim] = dump.shape();
        ensure!(
            found_dim == latent_dim,
            "{}: it has {found_dim} latent dimensions, expected {latent_dim}",
            wrong()
        );
        let fits = match purpose {
            Purpose::Trial => found_points >= points,
            Purpose::Start | Purpose::Restore => found_points == points,
        };
        ensure!(
            fits && dump.indices().iter().copied().eq(0..found_points as i64),
            "{}: it has the clouds of {found_points} data points, expected all {points}",
            wrong()
        );
        ensure!(
            found_particles >= particles || particles.is_multiple_of(found_particles),
            "{}: {found_particles} particles cannot be replicated to {particles}",
            wrong()
        );
        for block in dump.blocks() {
            let (start, block) = block?;
            let count = (block.size()[0]).min(points.saturating_sub(start) as i64);
            if count == 0 {
                break;
            }
            let clouds = block.narrow(0, 0, count);
            let clouds = match particles / found_particles {
                0 | 1 => clouds.narrow(1, 0, particles as i64),
                times => clouds.repeat([1, times as i64, 1]),
            };
            store.scatter(&Indices::range(start, count as usize), &clouds);
        }
        Ok(())
    }
}
