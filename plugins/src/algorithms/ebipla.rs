//! EBIPLA with mini-batches (the paper's Algorithm 2) and with warm-up (Algorithm 3).

use std::path::PathBuf;

use ebipla_core::prelude::*;
use ebipla_core::{Clouds, DataFacts, Indices, Joint, LazyNoise, ParticleStore, PosteriorStep, Wanted};

use super::parameter_step::update_parameters;
use super::posterior::{StepUnit, joint_of_clouds};

/// Energy-based interacting particle Langevin algorithm: persistent particles, mini-batches.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ebipla {
    /// Particles N for each data point. [particles]
    #[schemars(range(min = 1))]
    particles: usize,
    /// Step size h of the particles, in the unit of step_unit. For curvature λ of U + V and raw step h, the particles
    /// have 1/(1 − hλ/2) times the posterior's variance: 1.05 at hλ = 0.1, 1.25 at 0.4, 2 at 1. They diverge from
    /// hλ = 2 on. `check` and the log of a run report hλ. [step_unit]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    step_size: f64,
    /// Unit of step_size.
    step_unit: StepUnit,
    /// Temperature τ of the particles' noise: 1 samples the posterior, 0 has no noise. [1]
    #[schemars(range(min = 0.0))]
    temperature: f64,
    /// When particles outside the batch receive their noise. In each iteration it has variance 2hτ/L, where L = ⌈M/B⌉ is the number
    /// of iterations between two visits. The paper writes L = M/B, which is the same where B divides M and adds too much
    /// noise elsewhere.
    noise: Noise,
    /// Particles at which the losses are computed.
    losses_at: LossesAt,
    /// Initial phase with few particles and several Langevin steps per iteration; null disables it.
    warmup: Option<WarmUp>,
    /// Particle dump (HDF5) to start the particles from; null draws them from N(0, I).
    init_particles: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Noise {
    /// When they are next needed, all at once: the same distribution, far cheaper.
    Lazy,
    /// In every iteration, as printed in the paper.
    Eager,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum LossesAt {
    /// At Xₖ, where the drift was computed: one pass gives all gradients.
    Previous,
    /// At Xₖ₊₁, after drift and noise: takes a second pass. The particles have had the full drift of h but only 1/L of
    /// the noise until the next one, so the losses see a variance that is smaller by 2h(1 − 1/L): with hλ = 0.25 and
    /// L = 10 iterations between visits, 0.69 times the posterior's, where `previous` sees 1.14.
    Updated,
}

/// The warm-up phase.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct WarmUp {
    /// Length of the warm-up. [steps]
    steps: u64,
    /// Particles N' for each data point during the warm-up; must divide `particles`. [particles]
    #[schemars(range(min = 1))]
    particles: usize,
    /// Raw Euler–Maruyama step size of the inner Langevin steps, with the same bias as step_size. [latent units²]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    step_size: f64,
    /// Langevin steps per iteration. [steps]
    #[schemars(range(min = 1, max = 1_000_000))]
    inner_steps: u32,
}

impl Default for Ebipla {
    fn default() -> Self {
        Self {
            particles: 10,
            step_size: 0.1,
            step_unit: StepUnit::Sigma2,
            temperature: 1.0,
            noise: Noise::Lazy,
            losses_at: LossesAt::Previous,
            warmup: None,
            init_particles: None,
        }
    }
}

impl Default for WarmUp {
    fn default() -> Self {
        Self {
            steps: 10_000,
            particles: 1,
            step_size: 0.005,
            inner_steps: 10,
        }
    }
}

impl Plugin for Ebipla {
    type Builds = dyn Algorithm;

    fn check(&self) -> Vec<Complaint> {
        let few = self.warmup.as_ref().map_or(1, |warmup| warmup.particles);
        if self.particles.is_multiple_of(few) {
            return Vec::new();
        }
        vec![Complaint {
            option: "particles",
            message: format!(
                "found {}, expected a multiple of warmup.particles ({few}), since each cloud is replicated",
                self.particles
            ),
        }]
    }

    fn build(self, scope: &mut Scope) -> anyhow::Result<Box<dyn Algorithm>> {
        let raw_step = self.step_unit.raw(self.step_size, scope.sigma);
        let first = self.warmup.as_ref().filter(|warmup| warmup.steps > 0);
        let few = first.map_or(self.particles, |warmup| warmup.particles);
        let DataFacts { count, .. } = scope.data;
        let shape = [count, self.particles, scope.latent_dim as usize];
        let store = scope.initial_particles(few, shape, self.init_particles.as_deref())?;
        let between_visits = count.div_ceil(scope.batch_size) as u64;
        // No noise is due during warm-up.
        let first_noisy = first.map_or(0, |warmup| warmup.steps);
        let lazy_noise = LazyNoise::new(count, first_noisy, between_visits, "lazy_noise", scope.random);
        Ok(Box::new(Particles {
            config: self,
            raw_step,
            between_visits,
            store,
            lazy_noise,
        }))
    }
}

struct Particles {
    config: Ebipla,
    /// h as a raw Euler–Maruyama step.
    raw_step: f64,
    /// L, the number of iterations between two visits to a data point: ⌈M/|B|⌉, since an epoch's last batch may be
    /// smaller.
    between_visits: u64,
    store: ParticleStore,
    /// The noise that is due.
    lazy_noise: LazyNoise,
}

impl Algorithm for Particles {
    fn step(&mut self, mut step: Step) -> anyhow::Result<Scalars> {
        let warmup = self.config.warmup.clone();
        let joint = match warmup.filter(|warmup| step.number < warmup.steps) {
            Some(warmup) => self.warm_up(&warmup, &mut step),
            None => {
                // The clouds themselves show whether they have grown: a cost estimate takes steps out of order.
                if self.store.shape()[1] < self.config.particles {
                    self.store.replicate();
                }
                self.move_particles(&mut step)
            }
        };

        let mut scalars = Scalars::new();
        let prior = step.sample_prior(&joint, &mut scalars)?;
        update_parameters(&mut step, &joint, &prior, &mut scalars);
        Ok(scalars)
    }

    fn clouds(&self) -> Option<&dyn Clouds> {
        Some(self)
    }

    /// Where losses are computed after the move, the clouds have had the full drift but only 1/L of the noise between
    /// two drifts: the variance they see is smaller by 2hτ(1 − 1/L).
    fn posterior_steps(&self) -> Vec<PosteriorStep> {
        let Ebipla {
            step_size,
            temperature,
            losses_at,
            ..
        } = self.config;
        let missing = 1.0 - 1.0 / self.between_visits as f64;
        let step = match losses_at {
            LossesAt::Updated if temperature > 0.0 => {
                let variance = move |step: f64, curvature: f64| {
                    let product = step * curvature;
                    PosteriorStep::langevin_variance(product) - 2.0 * product * missing
                };
                PosteriorStep::new("algorithm.step_size", step_size, self.raw_step, 1, variance)
            }
            _ => PosteriorStep::langevin("algorithm.step_size", step_size, self.raw_step, temperature),
        };
        let warmup = self.config.warmup.iter().filter(|warmup| warmup.steps > 0);
        let warmup = warmup.map(|WarmUp { step_size, .. }| {
            PosteriorStep::langevin("algorithm.warmup.step_size", *step_size, *step_size, temperature)
        });
        std::iter::once(step).chain(warmup).collect()
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("raw step size of the particles", self.raw_step),
            ("iterations between visits", self.between_visits as f64),
        ]
    }
}

impl Particles {
    /// Standard deviation of the noise that every particle receives in one iteration: √(2hτ/L).
    fn noise_scale(&self) -> f64 {
        (2.0 * self.raw_step * self.config.temperature / self.between_visits as f64).sqrt()
    }

    /// Drifts the batch and adds noise to all particles. Returns φ at the particles at which the losses are computed.
    fn move_particles(&mut self, step: &mut Step) -> Joint {
        let k = step.number;
        let mut x = self.store.gather(step.indices);
        if self.config.noise == Noise::Lazy {
            self.settle(&mut x, step.indices, k);
        }
        let wanted = match self.config.losses_at {
            LossesAt::Previous => Wanted::LatentsAndParameters,
            LossesAt::Updated => Wanted::Latents,
        };
        let joint = joint_of_clouds(step.model, &x, step.data, wanted);
        x -= joint.latent.view_as(&x) * self.raw_step;
        match (self.config.noise, self.config.losses_at) {
            // The noise of this iteration stays due.
            (Noise::Lazy, LossesAt::Previous) => {}
            (Noise::Lazy, LossesAt::Updated) => self.settle(&mut x, step.indices, k + 1),
            (Noise::Eager, _) => {}
        }
        self.store.scatter(step.indices, &x);
        if self.config.noise == Noise::Eager {
            self.store
                .add_noise(self.noise_scale(), step.random.stream("particles", k));
            x = self.store.gather(step.indices);
        }
        match self.config.losses_at {
            LossesAt::Previous => joint,
            LossesAt::Updated => joint_of_clouds(step.model, &x, step.data, Wanted::LatentsAndParameters),
        }
    }

    /// Takes several full Langevin steps on the batch alone, updating the particles in place.
    fn warm_up(&mut self, warmup: &WarmUp, step: &mut Step) -> Joint {
        let mut draws = step
            .random
            .stream_of_points("particles", step.number, step.indices);
        let noise_scale = (2.0 * warmup.step_size * self.config.temperature).sqrt();
        let mut x = self.store.gather(step.indices);
        let mut first = None;
        for i in 0..warmup.inner_steps {
            let wanted = if i == 0 && self.config.losses_at == LossesAt::Previous {
                Wanted::LatentsAndParameters
            } else {
                Wanted::Latents
            };
            let joint = joint_of_clouds(step.model, &x, step.data, wanted);
            x -= joint.latent.view_as(&x) * warmup.step_size;
            draws.add_normal(&mut x, noise_scale);
            first.get_or_insert(joint);
        }
        self.store.scatter(step.indices, &x);
        match (self.config.losses_at, first) {
            (LossesAt::Previous, Some(joint)) => joint,
            _ => joint_of_clouds(step.model, &x, step.data, Wanted::LatentsAndParameters),
        }
    }

    /// Adds all noise that is due by iteration `now` to the clouds `x` of `indices`.
    fn settle(&mut self, x: &mut Tensor, indices: &Indices, now: u64) {
        *x += self.missed_noise(x, indices, now);
        self.lazy_noise.settle(indices, now);
    }

    /// The noise that the clouds `x` of `indices` have missed by iteration `now`.
    fn missed_noise(&self, x: &Tensor, indices: &Indices, now: u64) -> Tensor {
        let noise = self.lazy_noise.missed(indices, now, &x.size());
        noise.to_device(x.device()) * self.noise_scale()
    }
}

impl Persistent for Particles {
    fn slots(&mut self) -> Vec<(&'static str, Slot<'_>)> {
        vec![
            ("particles", Slot::Clouds(&mut self.store)),
            ("noise_applied", Slot::Tensor(self.lazy_noise.state())),
        ]
    }
}

impl Clouds for Particles {
    fn shape(&self) -> [usize; 3] {
        self.store.shape()
    }

    fn settled(&self, indices: &Indices, now: u64) -> Tensor {
        let clouds = self.store.gather(indices);
        match self.config.noise {
            Noise::Eager => clouds,
            Noise::Lazy => &clouds + self.missed_noise(&clouds, indices, now),
        }
    }

    fn raw_step_size(&self) -> f64 {
        self.raw_step
    }
}

inventory::submit! { Registration::of::<Ebipla>("ebipla") }

#[cfg(test)]
mod tests;
