//! Plugins with mistakes that are hard to find, to check that they are detected.

use ebipla_datasets as _;
use ebipla_core::prelude::*;
use ebipla_core::{Clouds, Optimizer, OptimizerConfig};
use ebipla_plugins as _;

/// U(x) = ½w‖x‖², which keeps the parameter w itself.
#[derive(Serialize, Deserialize, JsonSchema, Default)]
#[serde(default, deny_unknown_fields)]
struct Stiffness {
    /// Whether Parameters get a copy of w.
    copy: bool,
}

impl Plugin for Stiffness {
    type Builds = dyn Energy;

    fn build(self, scope: &mut Scope) -> anyhow::Result<Box<dyn Energy>> {
        let own = Tensor::ones([1], (tch::Kind::Float, scope.device)).set_requires_grad(true);
        let mut parameters = Parameters::new();
        let given = if self.copy { own.detach().copy() } else { own.shallow_clone() };
        let _ = parameters.add("w", given);
        Ok(Box::new(Stiff { own, parameters }))
    }
}

struct Stiff {
    own: Tensor,
    parameters: Parameters,
}

impl Energy for Stiff {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn energy(&self, x: &Tensor) -> Tensor {
        x.square().sum_dim_intlist(1, false, x.kind()) * &self.own / 2.0
    }
}

inventory::submit! { Registration::of::<Stiffness>("stiffness") }

/// Counts its steps and does nothing else.
#[derive(Serialize, Deserialize, JsonSchema, Default)]
#[serde(default, deny_unknown_fields)]
struct Counting {
    /// Whether it saves the count.
    saves: bool,
    /// Whether it saves the count twice.
    twice: bool,
    /// Whether it asks an optimiser for averages.
    average: bool,
}

impl Plugin for Counting {
    type Builds = dyn Algorithm;

    fn build(self, _: &mut Scope) -> anyhow::Result<Box<dyn Algorithm>> {
        let average = self.average.then_some(0.9);
        let config = OptimizerConfig { average, ..OptimizerConfig::default() };
        Optimizer::new(config, Vec::new())?;
        Ok(Box::new(Counter { config: self, counts: [0, 0] }))
    }
}

struct Counter {
    config: Counting,
    counts: [i64; 2],
}

impl Persistent for Counter {
    fn slots(&mut self) -> Vec<(&'static str, Slot<'_>)> {
        let [first, second] = &mut self.counts;
        let mut slots = Vec::new();
        if self.config.saves {
            slots.push(("count", Slot::Count(first)));
        }
        if self.config.twice {
            slots.push(("count", Slot::Count(second)));
        }
        slots
    }
}

impl Algorithm for Counter {
    fn step(&mut self, _: Step) -> anyhow::Result<Scalars> {
        self.counts[0] += 1;
        let mut scalars = Scalars::new();
        scalars.add_number("latent/count", self.counts[0] as f64);
        Ok(scalars)
    }

    fn clouds(&self) -> Option<&dyn Clouds> {
        None
    }
}

inventory::submit! { Registration::of::<Counting>("counting") }

/// Draws from N(0, I), ignoring the energy.
#[derive(Serialize, Deserialize, JsonSchema, Default)]
#[serde(default, deny_unknown_fields)]
struct Blind {}

impl Plugin for Blind {
    type Builds = dyn PriorSampler;

    fn build(self, _: &mut Scope) -> anyhow::Result<Box<dyn PriorSampler>> {
        Ok(Box::new(self))
    }
}

impl PriorSampler for Blind {
    fn sample(&self, _: &dyn Energy, start: Tensor, draws: &mut Draws) -> anyhow::Result<Chains> {
        let last = draws.normal_like(&start);
        Ok(Chains { last, statistics: Scalars::new() })
    }

    fn gradient_evaluations(&self) -> u64 {
        0
    }
}

inventory::submit! { Registration::of::<Blind>("blind") }

fn main() -> std::process::ExitCode {
    ebipla_runner::main(ebipla_runner::home!())
}
