//! Holds a network's trainable tensors under unique names.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use tch::{Kind, Tensor};

use crate::system::files::write_whole;

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

    /// Adds a tensor and returns a handle to it.
    ///
    /// A leaf stays the leaf that it is: a network may keep its own handle to it. What has been computed from other
    /// leaves is cut off from them.
    ///
    /// # Panics
    /// If the name is taken: two tensors under one name would be lost on saving.
    pub fn add(&mut self, name: impl Into<String>, initial: Tensor) -> Tensor {
        let name = name.into();
        assert!(
            self.entries.iter().all(|(taken, _)| *taken != name),
            "two parameters are called `{name}`"
        );
        let leaf = if initial.is_leaf() {
            initial
        } else {
            initial.detach()
        };
        let tensor = leaf.set_requires_grad(true);
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
            let finite = i64::try_from(value.isfinite().sum(Kind::Int64))?;
            let lost = value.numel() as i64 - finite;
            ensure!(
                lost == 0,
                "{}: {lost} of {} numbers of tensor `{name}` are not finite: the run that wrote it had diverged",
                path.display(),
                value.numel()
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::gradient;
    use crate::testing::fuzzing::survives;

    fn parameters() -> Parameters {
        let mut parameters = Parameters::new();
        let _ = parameters.add("layers.0.weight", Tensor::ones([3, 2], tch::kind::FLOAT_CPU));
        let _ = parameters.add("layers.0.bias", Tensor::zeros([3], tch::kind::FLOAT_CPU));
        parameters
    }

    /// θ² has the gradient 2θ = 6 for the one tensor that there is, whichever handle θ² is computed from.
    #[test]
    fn a_network_may_keep_its_own_handle() {
        for grad in [false, true] {
            let own = Tensor::from_slice(&[3f32]).set_requires_grad(grad);
            let mut parameters = Parameters::new();
            let returned = parameters.add("theta", own.shallow_clone());
            for handle in [&own, &returned] {
                let gradient = gradient::gradients(&handle.square(), &parameters.tensors()).remove(0);
                assert_eq!(gradient.double_value(&[0]), 6.0, "{grad}");
            }
        }
        // What is computed becomes a parameter of its own.
        let base = Tensor::from_slice(&[3f32]).set_requires_grad(true);
        let mut parameters = Parameters::new();
        let computed = parameters.add("theta", &base * 2.0);
        let gradient = gradient::gradients(&computed.square(), &parameters.tensors()).remove(0);
        assert_eq!(gradient.double_value(&[0]), 12.0);
    }

    #[test]
    fn fuzz_weights() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights.safetensors");
        let own = parameters();
        own.save(&path).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let mut refused = 0;
        survives(&whole, &path, |path| {
            if let Err(error) = own.load(path) {
                refused += 1;
                assert!(format!("{error:#}").contains("weights.safetensors"), "{error:#}");
            }
        });
        assert!(refused > 50, "{refused}");
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights.safetensors");
        let ones = |shape: &[i64]| Tensor::ones(shape, tch::kind::FLOAT_CPU);
        let refusal = |tensors: &[(&str, Tensor)]| {
            Tensor::write_safetensors(tensors, &path).unwrap();
            parameters().load(&path).unwrap_err().to_string()
        };
        let bias = || ("layers.0.bias", ones(&[3]));
        assert!(refusal(&[bias()]).contains("has no tensor `layers.0.weight`"));
        let broadcast = refusal(&[bias(), ("layers.0.weight", ones(&[1, 2]))]);
        assert!(
            broadcast.contains("`layers.0.weight` is Float [1, 2], expected Float [3, 2]"),
            "{broadcast}"
        );
        let double = ones(&[3, 2]).to_kind(Kind::Double);
        assert!(refusal(&[bias(), ("layers.0.weight", double)]).contains("is Double"));
        let infinite = Tensor::from_slice(&[1f32, f32::NAN, 0.0, f32::INFINITY, 2.0, 3.0]).view([3, 2]);
        let lost = refusal(&[bias(), ("layers.0.weight", infinite)]);
        assert!(
            lost.contains("2 of 6 numbers of tensor `layers.0.weight`"),
            "{lost}"
        );
        let more = [
            bias(),
            ("layers.0.weight", ones(&[3, 2])),
            ("layers.1.bias", ones(&[1])),
        ];
        assert!(refusal(&more).contains("`layers.1.bias` that the network does not know"));
    }
}
