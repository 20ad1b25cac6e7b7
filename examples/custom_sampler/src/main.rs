//! A runner with its own prior sampler: random-walk Metropolis.

use ebipla_datasets as _;
use ebipla_core::prelude::*;
use ebipla_plugins as _;
use tch::Kind;

/// Random-walk Metropolis: proposes x + sξ, accepts with probability min(1, exp(U(x) − U(x + sξ))).
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct RandomWalk {
    /// Steps of each chain. [steps]
    #[schemars(range(min = 1))]
    steps: u32,
    /// Standard deviation s of a proposal. [latent units]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    scale: f64,
}

impl Default for RandomWalk {
    fn default() -> Self {
        Self {
            steps: 100,
            scale: 0.2,
        }
    }
}

impl Plugin for RandomWalk {
    type Builds = dyn PriorSampler;

    fn build(self, _: &mut Scope) -> anyhow::Result<Box<dyn PriorSampler>> {
        Ok(Box::new(self))
    }
}

impl PriorSampler for RandomWalk {
    fn sample(&self, energy: &dyn Energy, start: Tensor, draws: &mut Draws) -> anyhow::Result<Chains> {
        let _guard = tch::no_grad_guard();
        let (chains, device) = (start.size()[0], start.device());
        let mut x = start;
        let mut u = energy.energy(&x);
        let mut accepted = Tensor::zeros([chains], (Kind::Float, device));
        for _ in 0..self.steps {
            let proposal = &x + draws.normal_like(&x) * self.scale;
            let proposed = energy.energy(&proposal);
            let uniform = draws.uniform(0.0, 1.0, &[chains], device);
            let accept = uniform.log().less_tensor(&(&u - &proposed));
            x = proposal.where_self(&accept.unsqueeze(1), &x);
            u = proposed.where_self(&accept, &u);
            accepted += accept.to_kind(Kind::Float);
        }
        let mut statistics = Scalars::new();
        statistics.add(
            "acceptance",
            &(accepted / f64::from(self.steps)).mean(Kind::Float),
        );
        Ok(Chains { last: x, statistics })
    }

    fn gradient_evaluations(&self) -> u64 {
        0
    }
}

inventory::submit! { Registration::of::<RandomWalk>("random_walk") }

#[cfg(feature = "clash")]
inventory::submit! { Registration::of::<RandomWalk>("ula") }

fn main() -> std::process::ExitCode {
    ebipla_runner::main(ebipla_runner::home!())
}
