//! Writes clouds of particles into a checkpoint without rewriting all of them each time, and reads them back.
//!
//! A checkpoint has all clouds as they are (`NAME.safetensors`). Where that is less to write, it has those of an earlier
//! checkpoint instead (`NAME_before.safetensors`, which is a hard link) and those that have changed since
//! (`NAME_changed.safetensors`). So a file under the plain name is never out of date.

use std::fs::{self, File};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use ebipla_core::{Indices, ParticleStore};
use serde_json::{Value, json};
use tch::{Device, Kind, Tensor};

use super::Checkpoint;
use crate::record::{blocks, plain_numbers};

/// A header that is longer is none of ours.
const LONGEST_HEADER: u64 = 1 << 16;

/// Writes the clouds of `store` to `folder`; `before` has those of the checkpoint before, if there is one.
pub fn save(
    name: &str,
    store: &mut ParticleStore,
    folder: &Path,
    before: Option<&Path>,
) -> anyhow::Result<()> {
    let changed = store.changed();
    let [all, earlier, since] = files(name).map(|file| folder.join(file));
    let linked = |before: &Path| {
        let mut whole = files(name).map(|file| before.join(file)).into_iter().take(2);
        whole.any(|whole| fs::hard_link(whole, &earlier).is_ok())
    };
    if 2 * changed.len() <= store.shape()[0] && before.is_some_and(linked) {
        return save_some(store, &changed, &since);
    }
    save_all(store, &all)?;
    store.call_saved();
    Ok(())
}

/// Puts back what [`save`] wrote.
pub fn load(name: &str, store: &mut ParticleStore, checkpoint: &Checkpoint) -> anyhow::Result<()> {
    let [all, earlier, since] = files(name);
    let whole = if checkpoint.has(&earlier) { earlier } else { all };
    let whole = checkpoint.file(&whole)?;
    load_all(store, &whole).with_context(|| format!("reading {}", whole.display()))?;
    store.call_saved();
    if checkpoint.has(&since) {
        let since = checkpoint.file(&since)?;
        load_some(store, &since).with_context(|| format!("reading {}", since.display()))?;
    }
    Ok(())
}

/// All clouds; or all as they were earlier, and those that have changed since.
fn files(name: &str) -> [String; 3] {
    ["", "_before", "_changed"].map(|part| format!("{name}{part}.safetensors"))
}

/// Writes a safetensors file block by block: the library for it wants all tensors at once.
fn save_all(store: &ParticleStore, path: &Path) -> anyhow::Result<()> {
    let shape = store.shape();
    let bytes = shape.iter().product::<usize>() * size_of::<f32>();
    let header = json!({ "clouds": { "dtype": "F32", "shape": shape, "data_offsets": [0, bytes] } });
    // Padded with spaces, so that the numbers are aligned.
    let header = header.to_string();
    let header = format!("{header:<width$}", width = header.len().next_multiple_of(8));
    let mut file = BufWriter::new(File::create(path)?);
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    for (start, count) in blocks(shape) {
        let numbers = plain_numbers(&store.block(start, count));
        file.write_all(bytemuck::cast_slice(&numbers))?;
    }
    file.flush()?;
    Ok(())
}

fn load_all(store: &mut ParticleStore, path: &Path) -> anyhow::Result<()> {
    let mut file = File::open(path)?;
    let mut length = [0; 8];
    file.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    ensure!(length <= LONGEST_HEADER, "its header is damaged");
    let mut header = vec![0; length as usize];
    file.read_exact(&mut header)?;
    let header: Value = serde_json::from_slice(&header).context("its header is damaged")?;
    let shape: Vec<usize> =
        serde_json::from_value(header["clouds"]["shape"].clone()).context("it has no shape of clouds")?;
    let [points, _, latent_dim] = store.shape();
    let &[found_points, particles, found_dim] = &shape[..] else {
        bail!("it has clouds of the shape {shape:?}");
    };
    ensure!(
        (found_points, found_dim) == (points, latent_dim),
        "it has {found_points} clouds in {found_dim} dimensions, expected {points} in {latent_dim}"
    );
    store.reshape(particles)?;
    let shape = store.shape();
    let expected = 8 + length + (shape.iter().product::<usize>() * size_of::<f32>()) as u64;
    let found = file.seek(SeekFrom::End(0))?;
    ensure!(found == expected, "it has {found} bytes, expected {expected}");
    file.seek(SeekFrom::Start(8 + length))?;
    for (start, count) in blocks(shape) {
        let mut numbers = vec![0f32; count * shape[1] * shape[2]];
        file.read_exact(bytemuck::cast_slice_mut(&mut numbers))?;
        ensure!(
            numbers.iter().all(|number| number.is_finite()),
            "it has particles that are not finite: the run that wrote it had diverged"
        );
        let size = [count, shape[1], shape[2]].map(|n| n as i64);
        store.scatter(
            &Indices::range(start, count),
            &Tensor::from_slice(&numbers).view(size),
        );
    }
    Ok(())
}

fn save_some(store: &ParticleStore, changed: &[i64], path: &Path) -> anyhow::Result<()> {
    let indices = Tensor::from_slice(changed);
    let clouds = store
        .gather(&indices.shallow_clone().into())
        .to_device(Device::Cpu);
    Ok(Tensor::write_safetensors(
        &[("indices", indices), ("clouds", clouds)],
        path,
    )?)
}

fn load_some(store: &mut ParticleStore, path: &Path) -> anyhow::Result<()> {
    let mut indices = None;
    let mut clouds = None;
    for (name, tensor) in Tensor::read_safetensors(path)? {
        match name.as_str() {
            "indices" if tensor.kind() == Kind::Int64 && tensor.dim() == 1 => indices = Some(tensor),
            "clouds" if tensor.kind() == Kind::Float => clouds = Some(tensor),
            _ => bail!("it has an unexpected tensor `{name}`"),
        }
    }
    let (Some(indices), Some(clouds)) = (indices, clouds) else {
        bail!("it has no clouds");
    };
    let [points, particles, latent_dim] = store.shape().map(|n| n as i64);
    ensure!(
        clouds.size() == [indices.size()[0], particles, latent_dim],
        "it has clouds of the shape {:?}",
        clouds.size()
    );
    ensure!(
        i64::try_from(clouds.isfinite().all())? != 0,
        "it has particles that are not finite: the run that wrote it had diverged"
    );
    let inside = indices.ge(0).logical_and(&indices.lt(points)).all();
    ensure!(
        i64::try_from(inside)? != 0,
        "it has clouds of data points that are not there"
    );
    store.scatter(&indices.into(), &clouds);
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use ebipla_core::testing::fuzzing::survives;
    use ebipla_core::{Random, Storage};

    use super::*;
    use crate::run::checkpoint::manifest::Manifest;

    fn store(seed: u64) -> ParticleStore {
        let mut random = Random::new(seed);
        let draws = random.stream("clouds", 0);
        ParticleStore::standard_normal([9, 4, 3], draws, &mut Storage::on(Device::Cpu)).unwrap()
    }

    #[test]
    fn fuzz_clouds() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
        fs::create_dir(&one).unwrap();
        fs::create_dir(&two).unwrap();
        let mut own = store(1);
        save("particles", &mut own, &one, None).unwrap();
        let some = Tensor::from_slice(&[2i64, 5]);
        own.scatter(&some.into(), &Tensor::ones([2, 4, 3], (Kind::Float, Device::Cpu)));
        save("particles", &mut own, &two, Some(&one)).unwrap();
        assert!(one.join("particles.safetensors").exists() && !two.join("particles.safetensors").exists());
        Manifest::write(&two, 2, &[], Some(&one)).unwrap();
        let checkpoint = Checkpoint::open(two.clone()).unwrap();
        let mut other = store(2);
        load("particles", &mut other, &checkpoint).unwrap();
        assert!(other.block(0, 9).equal(&own.block(0, 9)));

        // Damage that checksums would see, after they were compared.
        for file in ["particles_changed.safetensors", "particles_before.safetensors"] {
            let path = two.join(file);
            let whole = fs::read(&path).unwrap();
            // The two folders share a file, which is not to be damaged in both.
            fs::remove_file(&path).unwrap();
            let mut refused = 0;
            survives(&whole, &path, |path| {
                if let Err(error) = load("particles", &mut other, &checkpoint) {
                    refused += 1;
                    let name = path.file_name().unwrap().to_str().unwrap();
                    assert!(format!("{error:#}").contains(name), "{error:#}");
                }
            });
            assert!(refused > 50, "{file}: {refused}");
            fs::write(&path, whole).unwrap();
        }
    }
}
