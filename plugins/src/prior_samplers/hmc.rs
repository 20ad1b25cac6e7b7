//! Hamiltonian Monte Carlo.

use ebipla_core::prelude::*;

use super::metropolis::{Metropolis, State, squared_norm};
use super::statistics::statistics;

/// Hamiltonian Monte Carlo: new momenta, leapfrog steps, and accept-or-reject, which makes exp(−U/τ) exactly
/// stationary.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Hmc {
    /// Trajectories of each chain. [steps]
    #[schemars(range(min = 1, max = 1_000_000))]
    steps: u32,
    /// Leapfrog steps per trajectory. [steps]
    #[schemars(range(min = 1, max = 1_000_000))]
    leapfrog_steps: u32,
    /// Size ε of a leapfrog step. [latent units·√mass]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    step_size: f64,
    /// Width of the step size's distribution: each chain and trajectory draws its step size uniformly from
    /// ε(1 ± jitter). Without jitter (0), trajectories of certain lengths return to their start every time and mix
    /// badly or not at all. [1]
    #[schemars(range(min = 0.0, max = 1.0))]
    jitter: f64,
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
            jitter: 0.2,
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
    /// The step size of each chain, `[n, 1]`.
    ///
    /// Drawn independently of the chain's position. Trajectories of any one size leave exp(−U/τ) invariant, so those of
    /// a random size do as well; and a trajectory takes the same number of gradients for any size.
    fn step_sizes(&self, x: &Tensor, draws: &mut Draws) -> Tensor {
        let shape = [x.size()[0], 1];
        if self.jitter == 0.0 {
            return Tensor::full(shape, self.step_size, (x.kind(), x.device()));
        }
        let [low, high] = [1.0 - self.jitter, 1.0 + self.jitter].map(|factor| factor * self.step_size);
        draws.uniform(low, high, &shape, x.device()).to_kind(x.kind())
    }

    /// Leapfrog from (x, p): p −= ε/2 ∇U, x += εp/m, p −= ε/2 ∇U, with neighbouring half steps merged.
    fn leapfrog(
        &self,
        energy: &dyn Energy,
        from: &State,
        momentum: &Tensor,
        step_sizes: &Tensor,
    ) -> (State, Tensor) {
        let half = step_sizes / 2.0;
        let drift = step_sizes / self.mass;
        let mut p = momentum - &from.gradient * &half;
        let mut x = from.x.copy();
        for _ in 1..self.leapfrog_steps {
            x += &p * &drift;
            p -= energy.gradient(&x) * step_sizes;
        }
        x += &p * &drift;
        let state = State::at(energy, x);
        p -= &state.gradient * &half;
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
            let step_sizes = self.step_sizes(&current.x, draws);
            let (proposal, turned) = self.leapfrog(energy, &current, &momentum, &step_sizes);
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
    use ebipla_core::Random;
    use tch::{Device, Kind};

    /// With trajectories of equal length.
    fn hmc(steps: u32, leapfrog_steps: u32, step_size: f64, mass: f64, temperature: f64) -> Hmc {
        Hmc {
            steps,
            leapfrog_steps,
            step_size,
            jitter: 0.0,
            mass,
            temperature,
        }
    }

    /// Exact for any step, mass and temperature, even where the leapfrog's energy error is large, and however the steps
    /// are drawn: with a jitter of 1 some are too large to be stable.
    #[test]
    fn stationary_variance_is_exact() {
        for (step_size, mass, temperature) in [(1.2, 1.0, 1.0), (0.4, 1.0, 1.0), (1.0, 2.5, 0.5)] {
            for jitter in [0.0, 0.2, 1.0] {
                let sampler = Hmc {
                    jitter,
                    ..hmc(60, 3, step_size, mass, temperature)
                };
                assert_moments(&end_of_many(&sampler), temperature);
            }
        }
    }

    /// On N(0, 1) a leapfrog step rotates (x, p) on an ellipse by an angle with cosine 1 − ε²/2. With ε = 2 sin(π/L), L
    /// of them are a full turn: every proposal is the current position, up to rounding. Half a turn maps x to −x and
    /// back.
    ///
    /// With a jitter of 0.2 the rotation is spread over ± 1.26, so a trajectory leaves ½(1 + sin(2.52)/2.52) = 0.62 of
    /// the memory of x², and 0.75 of that of x; half of that spread leaves 0.88 of x² and −0.94 of x. Few proposals are
    /// rejected. After 120 trajectories, the remaining influence of the start is far below the tolerance.
    #[test]
    fn jitter_makes_trajectories_mix_that_never_would() {
        let period: u32 = 10;
        let step_size = 2.0 * (std::f64::consts::PI / f64::from(period)).sin();
        let start = || Tensor::full([100_000, 1], 3.0, (Kind::Float, Device::Cpu));
        for turn in [period, period / 2] {
            let fixed = hmc(120, turn, step_size, 1.0, 1.0);
            let off = (run(&fixed, start()).last.abs() - 3.0).abs().max();
            assert!(off.double_value(&[]) < 1e-3, "{off}");
            let random = Hmc {
                jitter: Hmc::default().jitter,
                ..fixed
            };
            assert_moments(&run(&random, start()).last, 1.0);
        }
    }

    #[test]
    fn every_chain_draws_its_own_step_size() {
        let sampler = Hmc {
            jitter: 0.3,
            ..hmc(1, 1, 0.5, 1.0, 1.0)
        };
        let mut random = Random::new(3);
        let x = Tensor::zeros([10_000, 2], (Kind::Float, Device::Cpu));
        let sizes = sampler.step_sizes(&x, &mut random.stream("test", 0));
        assert_eq!(sizes.size(), [10_000, 1]);
        let [low, high] = [sizes.min(), sizes.max()].map(|size| size.double_value(&[]));
        assert!(
            (0.35..0.351).contains(&low) && (0.649..=0.65).contains(&high),
            "{low} {high}"
        );
        // Uniform with variance 0.3²/12: five standard errors of the mean are 0.0043.
        let mean = sizes.mean(Kind::Double).double_value(&[]);
        assert!((mean - 0.5).abs() < 0.0044, "{mean}");
    }

    /// Leapfrog, momentum reversed, leapfrog again, each chain with its own step: back at the start, up to rounding in
    /// f64.
    #[test]
    fn leapfrog_is_reversible() {
        let sampler = hmc(1, 25, 0.3, 1.7, 1.0);
        let mut random = Random::new(2);
        let mut draws = random.stream("test", 0);
        let mut normal = || draws.normal(&[50, 4], Device::Cpu).to_kind(Kind::Double);
        let (x, p) = (normal(), normal());
        let target = gaussian();
        let sizes = Tensor::linspace(0.1, 0.5, 50, (Kind::Double, Device::Cpu)).view([50, 1]);
        let (there, momentum) = sampler.leapfrog(&target, &State::at(&target, x.copy()), &p, &sizes);
        let (back, momentum) = sampler.leapfrog(&target, &there, &(-momentum), &sizes);
        assert!(!there.x.allclose(&x, 0.1, 0.1, false), "it did not move");
        assert!(back.x.allclose(&x, 1e-10, 1e-10, false));
        assert!((-momentum).allclose(&p, 1e-10, 1e-10, false));
    }

    /// One leapfrog step, since several rotate a Gaussian and may return to where the error is small.
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
