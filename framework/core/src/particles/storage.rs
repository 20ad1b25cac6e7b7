//! Decides where clouds of particles are kept: in memory, or beyond a budget in a file that is mapped.

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use indicatif::BinaryBytes;
use tch::{Device, Kind, TchError, Tensor};

use crate::system::device;
use crate::system::disk::reserve;
use crate::system::memory::require_memory;
use crate::system::panics::without_stack;

/// Where clouds are kept. All that are made with one storage count against its budget together.
pub struct Storage {
    model: Device,
    device: Device,
    /// Bytes that clouds may still take on `device`.
    left: u64,
    /// For the files of clouds that would take more.
    folder: PathBuf,
}

impl Storage {
    /// On the model's device, however large the clouds are.
    pub fn on(model: Device) -> Self {
        Self {
            model,
            device: model,
            left: u64::MAX,
            folder: PathBuf::new(),
        }
    }

    /// In main memory, wherever the model is.
    pub fn in_main_memory(self) -> Self {
        Self {
            device: Device::Cpu,
            ..self
        }
    }

    /// Clouds beyond `gib` GiB live in files on the disk that has, or will have, the folder `out`.
    pub fn with_budget(self, gib: f64, out: &Path) -> Self {
        let out = std::path::absolute(out).unwrap_or_default();
        let existing = out.ancestors().find(|folder| folder.is_dir());
        Self {
            left: (gib * f64::from(1 << 30)) as u64,
            folder: existing.unwrap_or(Path::new(".")).to_path_buf(),
            ..self
        }
    }

    /// Where clouds come from and go to.
    pub(crate) fn model_device(&self) -> Device {
        self.model
    }

    /// Room for clouds `[data points, particles, latent]`; nobody knows what is in it.
    pub(crate) fn room(&mut self, shape: [usize; 3]) -> anyhow::Result<Tensor> {
        let [points, particles, latent_dim] = shape;
        let Some(bytes) = bytes_of(shape) else {
            bail!("{points} clouds of {particles} particles in {latent_dim} dimensions are too many");
        };
        let room = if bytes <= self.left {
            self.left -= bytes;
            self.in_memory(bytes)
        } else {
            self.in_file(bytes)
        };
        Ok(room?.view(shape.map(|n| n as i64)))
    }

    fn in_memory(&self, bytes: u64) -> anyhow::Result<Tensor> {
        let enough = match self.device {
            // The system promises more memory than there is, until it is touched.
            Device::Cpu => require_memory("particles", bytes.into()),
            _ => Ok(()),
        };
        enough
            .and_then(|()| Tensor::f_empty([numbers(bytes)], (Kind::Float, self.device)).map_err(of_libtorch))
            .with_context(|| {
                format!(
                    "no memory for {} of particles on {}; a lower run.particles.memory keeps them in a file",
                    BinaryBytes(bytes),
                    device::name(self.device)
                )
            })
    }

    fn in_file(&self, bytes: u64) -> anyhow::Result<Tensor> {
        let what = format!(
            "{} of particles in a file in {}",
            BinaryBytes(bytes),
            self.folder.display()
        );
        let file = map_new_file(&self.folder, bytes).with_context(|| {
            format!(
                "cannot keep {what}; --out chooses another disk, a higher run.particles.memory keeps them \
                 in memory"
            )
        })?;
        tracing::info!(
            "keeping {what}, since run.particles.memory has {} left",
            BinaryBytes(self.left)
        );
        Ok(file)
    }
}

/// `None` where it is more than libtorch can count.
fn bytes_of(shape: [usize; 3]) -> Option<u64> {
    let count = |bytes: i64, n: usize| bytes.checked_mul(i64::try_from(n).ok()?);
    let bytes = shape.into_iter().try_fold(size_of::<f32>() as i64, count)?;
    u64::try_from(bytes).ok()
}

fn numbers(bytes: u64) -> i64 {
    bytes as i64 / size_of::<f32>() as i64
}

/// A file without a name, so that nothing is left of it when the program ends, however it ends.
fn map_new_file(folder: &Path, bytes: u64) -> anyhow::Result<Tensor> {
    let file = tempfile::tempfile_in(folder)?;
    reserve(&file, bytes)?;
    // libtorch opens what it maps by name.
    let name = format!("/dev/fd/{}", file.as_raw_fd());
    Tensor::f_from_file(&name, true, numbers(bytes), (Kind::Float, Device::Cpu)).map_err(of_libtorch)
}

fn of_libtorch(error: TchError) -> anyhow::Error {
    anyhow::anyhow!("{}", without_stack(&error.to_string()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;

    fn mapped_count(folder: &Path) -> usize {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let folder = folder.to_str().unwrap();
        maps.lines().filter(|line| line.contains(folder)).count()
    }

    #[test]
    fn clouds_count_against_the_budget_together() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = 4 * 5 * 3 * 2;
        let gib = f64::from(2 * bytes) / f64::from(1 << 30);
        let mut storage = Storage::on(Device::Cpu).with_budget(gib, folder.path());
        let mut rooms = Vec::new();
        for mapped in [0, 0, 1] {
            rooms.push(storage.room([5, 3, 2]).unwrap());
            assert_eq!(mapped_count(folder.path()), mapped);
        }
        drop(rooms);
        assert_eq!(mapped_count(folder.path()), 0);
    }

    #[test]
    fn a_file_stands_where_the_run_will_and_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("not/yet/there");
        let mut storage = Storage::on(Device::Cpu).with_budget(0.0, &out);
        let room = storage.room([1, 1, 1]).unwrap();
        assert_eq!(mapped_count(folder.path()), 1);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        drop(room);
    }

    #[test]
    fn what_fits_nowhere_is_refused_with_a_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let refusal = |gib: f64, points: usize| {
            let mut storage = Storage::on(Device::Cpu).with_budget(gib, folder.path());
            format!("{:#}", storage.room([points, 1 << 20, 1 << 20]).unwrap_err())
        };
        let (terabytes, path) = (1 << 8, folder.path().display().to_string());
        let on_disk = refusal(0.0, terabytes);
        for part in ["1.00 PiB", &path, "free there", "--out", "run.particles.memory"] {
            assert!(on_disk.contains(part), "{on_disk}");
        }
        let in_memory = refusal(1e9, terabytes);
        for part in ["no memory for 1.00 PiB", "run.particles.memory"] {
            assert!(in_memory.contains(part), "{in_memory}");
        }
        assert!(!in_memory.contains("frame #"), "{in_memory}");
        assert!(refusal(0.0, usize::MAX).contains("too many"));
    }

    #[test]
    fn a_folder_that_takes_no_file_is_named() {
        let mut storage = Storage::on(Device::Cpu).with_budget(0.0, Path::new("/proc/runs"));
        let refusal = format!("{:#}", storage.room([1, 1, 1]).unwrap_err());
        assert!(refusal.contains("in a file in /proc"), "{refusal}");
    }
}
