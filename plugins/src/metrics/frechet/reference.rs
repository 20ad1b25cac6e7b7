//! Caches the moments of training images on disk, since they take long to compute and do not depend on the model.

use std::path::Path;

use anyhow::{Context, ensure};
use ebipla_core::prelude::*;
use tch::Kind;
use tempfile::NamedTempFile;

use super::moments::Moments;

/// Reads the file that [`write`] wrote, if it exists and is complete.
pub fn read(path: &Path, dim: i64) -> anyhow::Result<Option<Moments>> {
    if !path.exists() {
        return Ok(None);
    }
    let read = Tensor::read_safetensors(path)?;
    let take = |wanted: &str, shape: &[i64]| {
        let found = read.iter().find(|(name, _)| name == wanted);
        let (_, tensor) = found.with_context(|| format!("it has no `{wanted}`"))?;
        ensure!(
            (tensor.kind(), &tensor.size()[..]) == (Kind::Double, shape),
            "`{wanted}` is {:?} {:?}",
            tensor.kind(),
            tensor.size()
        );
        anyhow::Ok(tensor.shallow_clone())
    };
    Ok(Some(Moments {
        mean: take("mean", &[dim])?,
        covariance: take("covariance", &[dim, dim])?,
    }))
}

/// Writes moments; several processes may call it concurrently.
pub fn write(path: &Path, moments: &Moments) -> anyhow::Result<()> {
    let folder = path.parent().context("no folder")?;
    std::fs::create_dir_all(folder)?;
    let unfinished = NamedTempFile::new_in(folder)?;
    let tensors = [("mean", &moments.mean), ("covariance", &moments.covariance)];
    Tensor::write_safetensors(&tensors, unfinished.path())?;
    unfinished.as_file().sync_all()?;
    unfinished.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn moments_survive_a_round_trip_and_damage_is_detected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/key.safetensors");
        assert!(read(&path, 2).unwrap().is_none());
        let moments = Moments {
            mean: Tensor::from_slice(&[1.0, 2.0]),
            covariance: Tensor::from_slice(&[1.0, 0.5, 0.5, 2.0]).view([2, 2]),
        };
        write(&path, &moments).unwrap();
        let again = read(&path, 2).unwrap().unwrap();
        assert!(again.mean.equal(&moments.mean) && again.covariance.equal(&moments.covariance));
        assert!(read(&path, 3).is_err());
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        assert!(read(&path, 2).is_err());
    }
}
