//! The Metropolis-adjusted Langevin algorithm.

use ebipla_core::prelude::*;

use super::metropolis::{Metropolis, State, squared_norm};
use super::statistics::statistics;

/// Metropolis-adjusted Langevin chains: Langevin proposals and accept-or-reject, which makes exp(−U/τ) exactly
/// stationary.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Mala {
    /// Steps J of each chain. [steps]
    #[schemars(range(min = 1, max = 1_000_000))]
    steps: u32,
    /// Step size γ of the proposals. [latent units²]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    step_size: f64,
    /// Temperature τ: 1 samples exp(−U). [1]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    temperature: f64,
}

impl Default for Mala {
    fn default() -> Self {
        Self {
            steps: 60,
            step_size: 0.1,
            temperature: 1.0,
        }
    }
}

impl Plugin for Mala {
    type Builds = dyn PriorSampler;

    fn build(self, _: &mut Scope) -> anyhow::Result<Box<dyn PriorSampler>> {
        Ok(Box::new(self))
    }
}

impl PriorSampler for Mala {
    fn sample(&self, energy: &dyn Energy, start: Tensor, draws: &mut Draws) -> anyhow::Result<Chains> {
        let _guard = tch::no_grad_guard();
        let noise_scale = (2.0 * self.step_size * self.temperature).sqrt();
        // log q(to | from), up to a constant: −‖to − from + γ∇U(from)‖²/(4γτ).
        let log_proposal = |from: &State, to: &State| {
            squared_norm(&(&to.x - &from.x + &from.gradient * self.step_size))
                / (-4.0 * self.step_size * self.temperature)
        };
        let mut metropolis = Metropolis::new(start.device());
        let mut current = State::at(energy, start.copy());
        for _ in 0..self.steps {
            let noise = draws.normal_like(&current.x) * noise_scale;
            let proposal = State::at(energy, &current.x - &current.gradient * self.step_size + noise);
            let log_ratio = (&current.energy - &proposal.energy) / self.temperature
                + log_proposal(&proposal, &current)
                - log_proposal(&current, &proposal);
            current = metropolis.step(current, proposal, &log_ratio, draws);
        }
        let mut statistics = statistics(&start, &current.x, &current.energy, &current.gradient);
        statistics.add("acceptance", &metropolis.acceptance());
        Ok(Chains {
            last: current.x,
            statistics,
        })
    }

    fn gradient_evaluations(&self) -> u64 {
        u64::from(self.steps) + 1
    }
}

inventory::submit! { Registration::of::<Mala>("mala") }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prior_samplers::testing::{assert_moments, end_of_many, run, statistic};
    use tch::{Device, Kind};

    fn mala(steps: u32, step_size: f64, temperature: f64) -> Mala {
        Mala {
            steps,
            step_size,
            temperature,
        }
    }

    /// Exact for any step: at γ = 1 unadjusted chains would have variance 2.
    #[test]
    fn stationary_variance_is_exact() {
        for (step_size, temperature) in [(1.0, 1.0), (0.3, 1.0), (0.6, 0.5)] {
            assert_moments(&end_of_many(&mala(150, step_size, temperature)), temperature);
        }
    }

    #[test]
    fn acceptance_falls_with_the_step() {
        let acceptance = |step_size| {
            let start = Tensor::zeros([20_000, 3], (Kind::Float, Device::Cpu));
            statistic(&run(&mala(30, step_size, 1.0), start), "acceptance")
        };
        let [small, middle, large] = [0.05, 0.5, 1.8].map(acceptance);
        assert!(small > 0.97 && small < 1.0, "{small}");
        assert!(
            middle < small - 0.02 && large < middle - 0.2,
            "{small}, {middle}, {large}"
        );
    }
}
