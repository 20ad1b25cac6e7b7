//! Holds a network's trainable tensors under unique names.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use tch::Tensor;

use crate::record::write_whole;

/// Trainable tensors in the order in which they were added.
#[derive(Debug, Default)]
pub struct Parameters {
    entries: Vec<(String, Tensor)>,
}

impl Parameters {
    /// No parameters yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tensor and returns a handle to it that shares its storage.
    ///
    /// # Panics
    /// If the name is taken: two tensors under one name would be lost on saving.
    pub fn add(&mut self, name: impl Into<String>, initial: Tensor) -> Tensor {
        let name = name.into();
        assert!(
            self.entries.iter().all(|(taken, _)| *taken != name),
            "two parameters are called `{name}`"
        );
        let tensor = initial.detach().set_requires_grad(true);
        self.entries.push((name, tensor.shallow_clone()));
        tensor
    }

    /// Handles to all tensors.
    pub fn tensors(&self) -> Vec<Tensor> {
        self.entries
            .iter()
            .map(|(_, tensor)| tensor.shallow_clone())
            .collect()
    }

    /// Names and tensors.
    pub fn named(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.entries.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// How many numbers there are in all.
    pub fn count(&self) -> usize {
        self.entries.iter().map(|(_, tensor)| tensor.numel()).sum()
    }

    /// Reads a safetensors file that has exactly these tensors.
    pub fn load(&self, path: &Path) -> anyhow::Result<()> {
        let read = Tensor::read_safetensors(path).with_context(|| format!("reading {}", path.display()))?;
        let mut read: BTreeMap<_, _> = read.into_iter().collect();
        let mut all = Vec::new();
        for (name, own) in self.named() {
            let Some(value) = read.remove(name) else {
                bail!("{} has no tensor `{name}`", path.display());
            };
            ensure!(
                (value.size(), value.kind()) == (own.size(), own.kind()),
                "{}: tensor `{name}` is {:?} {:?}, expected {:?} {:?}",
                path.display(),
                value.kind(),
                value.size(),
                own.kind(),
                own.size(),
            );
            all.push((own.detach(), value));
        }
        if let Some(name) = read.keys().next() {
            bail!(
                "{} has a tensor `{name}` that the network does not know",
                path.display()
            );
        }
        for (mut own, value) in all {
            own.copy_(&value);
        }
        Ok(())
    }

    /// Writes a safetensors file that PyTorch loads.
    pub fn save(&self, path: &Path) -> anyhow::Result<()> {
        let on_cpu: Vec<_> = self
            .named()
            .map(|(name, tensor)| (name, tensor.detach().to_device(tch::Device::Cpu).contiguous()))
            .collect();
        write_whole(path, |unfinished| {
            Ok(Tensor::write_safetensors(&on_cpu, unfinished)?)
        })
    }
}
