//! A Gaussian cloud, for checks against closed forms.

use ebipla_framework::Random;
use ebipla_framework::prelude::*;
use tch::Device;

use crate::in_memory::InMemory;

/// Points from N(mean·1, std²I) in any dimension.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Gaussian {
    /// Training points M. [points]
    #[schemars(range(min = 1))]
    size: usize,
    /// Held-out points, drawn apart. [points]
    validation: usize,
    /// Dimension of a point. [dimensions]
    #[schemars(range(min = 1))]
    dim: u32,
    /// Every coordinate of the mean. [data units]
    mean: f64,
    /// Standard deviation of each coordinate. [data units]
    #[schemars(range(min = 0.0))]
    std: f64,
    /// Seed of the points, apart from run.seed: all runs see the same data. [any integer]
    seed: u64,
}

impl Default for Gaussian {
    fn default() -> Self {
        Self {
            size: 1000,
            validation: 1000,
            dim: 2,
            mean: 0.0,
            std: 1.0,
            seed: 0,
        }
    }
}

impl Plugin for Gaussian {
    type Builds = dyn Dataset;

    fn build(self, _: &mut Scope) -> anyhow::Result<Box<dyn Dataset>> {
        let mut random = Random::new(self.seed);
        let mut points = |split: &str, count: usize| {
            let shape = [count as i64, self.dim.into()];
            let mut draws = random.stream(&format!("gaussian/{split}"), 0);
            draws.normal(&shape, Device::Cpu) * self.std + self.mean
        };
        let (train, validation) = (points("train", self.size), points("validation", self.validation));
        Ok(Box::new(InMemory::new(train, validation)))
    }
}

inventory::submit! { Registration::of::<Gaussian>("gaussian") }
