//! Hamiltonian Monte Carlo.

use ebipla_framework::prelude::*;

use super::metropolis::{Metropolis, State, squared_norm};
use super::statistics::statistics;

/// Hamiltonian Monte Carlo: fresh momenta, leapfrog steps, accepted so that exp(−U/τ) is exactly stationary.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Hmc {
    /// Trajectories of each chain. [steps]
    #[schemars(range(min = 1, max = 1_000_000))]
    steps: u32,
    /// Leapfrog steps in a trajectory. [steps]
    #[schemars(range(min = 1, max = 1_000_000))]
    leapfrog_steps: u32,
    /// Size ε of a leapfrog step. [latent units·√mass]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    step_size: f64,
    /// Mass of each coordinate. [1]
    #[schemars(range(min = 1e-6))]
    mass: f64,
    /// Temperature τ: 1 samples exp(−U). [1]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    temperature: f64,
}

impl Default for Hmc {
    fn default() -> Self {
        Self {
            steps: 6,
            leapfrog_steps: 10,
            step_size: 0.1,
            mass: 1.0,
            temperature: 1.0,
        }
    }
}

impl Plugin for Hmc {
    type Builds = dyn PriorSampler;

    fn build(self, _: &mut Scope) -> anyhow::Result<Box<dyn PriorSampler>> {
        Ok(Box::new(self))
    }
}

impl Hmc {
    /// Leapfrog from (x, p): p −= ε/2 ∇U, x += εp/m, p −= ε/2 ∇U, with neighbouring half steps joined.
    fn leapfrog(&self, energy: &dyn Energy, from: &State, momentum: &Tensor) -> (State, Tensor) {
        let mut p = momentum - &from.gradient * (self.step_size / 2.0);
        let mut x = from.x.copy();
        for _ in 1..self.leapfrog_steps {
            x += &p * (self.step_size / self.mass);
            p -= energy.gradient(&x) * self.step_size;
        }
        x += &p * (self.step_size / self.mass);
        let state = State::at(energy, x);
        p -= &state.gradient * (self.step_size / 2.0);
        (state, p)
    }

    fn kinetic(&self, momentum: &Tensor) -> Tensor {
        squared_norm(momentum) / (2.0 * self.mass)
    }
}

impl PriorSampler for Hmc {
    fn sample(&self, energy: &dyn Energy, start: Tensor, draws: &mut Draws) -> anyhow::Result<Chains> {
        let _guard = tch::no_grad_guard();
        let mut metropolis = Metropolis::new(start.device());
        let mut current = State::at(energy, start.copy());
        for _ in 0..self.steps {
            let momentum = draws.normal_like(&current.x) * (self.mass * self.temperature).sqrt();
            let (proposal, turned) = self.leapfrog(energy, &current, &momentum);
            let before = &current.energy + self.kinetic(&momentum);
            let after = &proposal.energy + self.kinetic(&turned);
            let log_ratio = (before - after) / self.temperature;
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
        u64::from(self.steps) * u64::from(self.leapfrog_steps) + 1
    }
}

inventory::submit! { Registration::of::<Hmc>("hmc") }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prior_samplers::testing::{assert_moments, end_of_many, gaussian, run, statistic};
    use ebipla_framework::Random;
    use tch::{Device, Kind};

    fn hmc(steps: u32, leapfrog_steps: u32, step_size: f64, mass: f64, temperature: f64) -> Hmc {
        Hmc {
            steps,
            leapfrog_steps,
            step_size,
            mass,
            temperature,
        }
    }

    /// Exact at any step, mass and temperature, also where the leapfrog's own energy is far off.
    #[test]
    fn stationary_variance_is_exact() {
        for (step_size, mass, temperature) in [(1.2, 1.0, 1.0), (0.4, 1.0, 1.0), (1.0, 2.5, 0.5)] {
            let sampler = hmc(60, 3, step_size, mass, temperature);
            assert_moments(&end_of_many(&sampler), temperature);
        }
    }

    /// Leapfrog, momentum turned round, leapfrog again: back at the start, up to rounding in f64.
    #[test]
    fn leapfrog_is_reversible() {
        let sampler = hmc(1, 25, 0.3, 1.7, 1.0);
        let mut random = Random::new(2);
        let mut draws = random.stream("test", 0);
        let mut normal = || draws.normal(&[50, 4], Device::Cpu).to_kind(Kind::Double);
        let (x, p) = (normal(), normal());
        let target = gaussian();
        let (there, momentum) = sampler.leapfrog(&target, &State::at(&target, x.copy()), &p);
        let (back, momentum) = sampler.leapfrog(&target, &there, &(-momentum));
        assert!(!there.x.allclose(&x, 0.1, 0.1, false), "it did not move");
        assert!(back.x.allclose(&x, 1e-10, 1e-10, false));
        assert!((-momentum).allclose(&p, 1e-10, 1e-10, false));
    }

    /// One leapfrog step, since several turn round a Gaussian and may come back to where the error is small.
    #[test]
    fn acceptance_falls_with_the_step() {
        let acceptance = |step_size| {
            let start = Tensor::zeros([20_000, 3], (Kind::Float, Device::Cpu));
            statistic(&run(&hmc(30, 1, step_size, 1.0, 1.0), start), "acceptance")
        };
        let [small, middle, large] = [0.2, 1.0, 1.9].map(acceptance);
        assert!(small > 0.99, "{small}");
        assert!(
            middle < small - 0.02 && large < middle - 0.1,
            "{small}, {middle}, {large}"
        );
    }
}
