//! EBIPLA with momentum: particles, and optionally parameters, follow underdamped Langevin dynamics.

use std::path::PathBuf;

use ebipla_core::prelude::*;
use ebipla_core::{Clouds, DataFacts, Indices, Joint, ParticleStore, PosteriorStep, Wanted};

use super::parameter_step::{Gradients, PriorTerm, record, update_parameters};
use super::posterior::joint_of_clouds;
use crate::kinetic::{Integrator, Kinetic, Phase};

/// EBIPLA with momentum: the clouds of the batch take one underdamped Langevin step and keep their velocities.
///
/// Unlike in `ebipla`, nothing moves outside the batch: a cloud receives the full noise of a step when it takes the
/// step.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EbiplaUnderdamped {
    /// Particles N for each data point. [particles]
    #[schemars(range(min = 1))]
    particles: usize,
    /// Step size h, in the unit of step_unit. For curvature λ of U + V and raw step h, OBABO's particles have 1/(1 −
    /// h²λ/4) times the posterior's variance (1.07 at h√λ = 0.5), BAOAB's exactly the posterior's as far as U + V is
    /// quadratic. Both diverge from h²λ = 4 on and take two gradients per visit to a data point, where `ebipla` takes
    /// one. The exponential integrator takes one as well; its variance is 1.14 times the posterior's at h√λ = 0.5 and a
    /// friction of 2√λ. `check` and the log of a run report h²λ. [step_unit]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    step_size: f64,
    /// Unit of step_size, and of the inverse of friction.
    step_unit: TimeUnit,
    /// Friction c. [1/step_unit]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    friction: f64,
    /// Integrator of the particles' steps.
    integrator: Integrator,
    /// Temperature τ of all noise: 1 samples the posterior, 0 has none. [1]
    #[schemars(range(min = 0.0))]
    temperature: f64,
    /// How the parameters are updated.
    parameters: ParameterStep,
    /// Particle dump (HDF5) to start the particles from; null draws them from N(0, I).
    init_particles: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TimeUnit {
    /// Units of the latent space.
    Raw,
    /// Multiples of the decoder's σ; in this unit, the posterior's curvature is about 1.
    Sigma,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ParameterStep {
    /// By the optimisers of the recipe, without noise.
    Optimizer,
    /// With momentum, like the particles, by the exponential integrator; noise is scaled by 1/√(MN).
    Momentum,
}

impl Default for EbiplaUnderdamped {
    fn default() -> Self {
        Self {
            particles: 10,
            step_size: 0.5,
            step_unit: TimeUnit::Sigma,
            friction: 2.0,
            integrator: Integrator::Obabo,
            temperature: 1.0,
            parameters: ParameterStep::Optimizer,
            init_particles: None,
        }
    }
}

impl Plugin for EbiplaUnderdamped {
    type Builds = dyn Algorithm;

    fn unused(&self) -> &'static [&'static str] {
        match self.parameters {
            ParameterStep::Optimizer => &[],
            ParameterStep::Momentum => &["optimizer"],
        }
    }

    fn build(self, scope: &mut Scope) -> anyhow::Result<Box<dyn Algorithm>> {
        let unit = match self.step_unit {
            TimeUnit::Raw => 1.0,
            TimeUnit::Sigma => scope.sigma,
        };
        let kinetic = Kinetic {
            step_size: self.step_size * unit,
            friction: self.friction / unit,
            temperature: self.temperature,
            integrator: self.integrator,
        };
        if kinetic.step_size > 2.0 * scope.sigma {
            tracing::warn!(
                "algorithm.step_size is {} raw, above 2σ = {}: particles diverge unless the generator contracts; did \
                 you mean step_unit: sigma?",
                kinetic.step_size,
                2.0 * scope.sigma
            );
        }
        let DataFacts { count, .. } = scope.data;
        let shape = [count, self.particles, scope.latent_dim as usize];
        let positions = scope.initial_particles(self.particles, shape, self.init_particles.as_deref())?;
        let draws = scope.random.stream("velocity_initialisation", 0);
        let mut velocities = ParticleStore::standard_normal(shape, draws, &mut scope.storage)?;
        velocities.scale(self.temperature.sqrt());
        let for_parameters = Kinetic {
            temperature: self.temperature / (count * self.particles) as f64,
            integrator: Integrator::Exponential,
            ..kinetic
        };
        Ok(Box::new(MovingParticles {
            parameter_step: self.parameters,
            time_unit: unit,
            kinetic,
            for_parameters,
            positions,
            velocities,
            parameter_velocities: Vec::new(),
        }))
    }
}

struct MovingParticles {
    parameter_step: ParameterStep,
    /// The raw step that corresponds to step_size 1.
    time_unit: f64,
    kinetic: Kinetic,
    /// The same, with the noise of the parameters.
    for_parameters: Kinetic,
    positions: ParticleStore,
    velocities: ParticleStore,
    /// Parameters of the energy first, then of the generator; empty before the first step.
    parameter_velocities: Vec<Tensor>,
}

impl Algorithm for MovingParticles {
    fn step(&mut self, mut step: Step) -> anyhow::Result<Scalars> {
        let joint = self.move_particles(&mut step);
        let mut scalars = Scalars::new();
        let prior = step.sample_prior(&joint, &mut scalars)?;
        match self.parameter_step {
            ParameterStep::Optimizer => update_parameters(&mut step, &joint, &prior, &mut scalars),
            ParameterStep::Momentum => {
                let prior = PriorTerm::sampled(step.model, &prior);
                let gradients = Gradients::of(step.model, &joint, &prior, step.energy_l2);
                self.move_parameters(&mut step, &gradients);
                record(&joint, &prior, &gradients, &mut scalars);
            }
        }
        Ok(scalars)
    }

    fn clouds(&self) -> Option<&dyn Clouds> {
        Some(self)
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("raw step size", self.kinetic.step_size),
            ("raw friction", self.kinetic.friction),
        ]
    }

    fn posterior_steps(&self) -> Vec<PosteriorStep> {
        let kinetic = self.kinetic;
        let variance = move |step_size, curvature| {
            let kinetic = Kinetic { step_size, ..kinetic };
            kinetic.variance(curvature)
        };
        let raw = kinetic.step_size;
        vec![PosteriorStep::new(
            "algorithm.step_size",
            raw / self.time_unit,
            raw,
            2,
            variance,
        )]
    }
}

impl MovingParticles {
    /// Takes one step of the batch's clouds; returns φ at their previous positions.
    fn move_particles(&mut self, step: &mut Step) -> Joint {
        let mut draws = step
            .random
            .stream_of_points("particles", step.number, step.indices);
        let mut phase = Phase {
            x: self.positions.gather(step.indices),
            v: self.velocities.gather(step.indices),
        };
        let joint = joint_of_clouds(step.model, &phase.x, step.data, Wanted::LatentsAndParameters);
        let (model, data) = (step.model, step.data);
        let gradient = |x: &Tensor| joint_of_clouds(model, x, data, Wanted::Latents).latent.view_as(x);
        let start = joint.latent.view_as(&phase.x);
        self.kinetic.step(&mut phase, &start, gradient, &mut draws);
        self.positions.scatter(step.indices, &phase.x);
        self.velocities.scatter(step.indices, &phase.v);
        joint
    }

    fn move_parameters(&mut self, step: &mut Step, gradients: &Gradients) {
        let parameters = step.model.parameters();
        if self.parameter_velocities.is_empty() {
            self.parameter_velocities = parameters
                .iter()
                .map(|parameter| parameter.zeros_like().detach())
                .collect();
        }
        let mut draws = step.random.stream("parameters", step.number);
        for ((mut parameter, gradient), velocity) in parameters
            .into_iter()
            .zip(gradients.all())
            .zip(&mut self.parameter_velocities)
        {
            let mut phase = Phase {
                x: parameter.detach().copy(),
                v: velocity.shallow_clone(),
            };
            // The exponential integrator needs no gradient at the new position.
            self.for_parameters
                .step(&mut phase, gradient, Tensor::zeros_like, &mut draws);
            tch::no_grad(|| parameter.copy_(&phase.x));
            *velocity = phase.v;
        }
    }
}

impl Persistent for MovingParticles {
    fn slots(&mut self) -> Vec<(&'static str, Slot<'_>)> {
        vec![
            ("particles", Slot::Clouds(&mut self.positions)),
            ("velocities", Slot::Clouds(&mut self.velocities)),
            ("parameter_velocities", Slot::List(&mut self.parameter_velocities)),
        ]
    }
}

impl Clouds for MovingParticles {
    fn shape(&self) -> [usize; 3] {
        self.positions.shape()
    }

    fn settled(&self, indices: &Indices, _: u64) -> Tensor {
        self.positions.gather(indices)
    }

    fn raw_step_size(&self) -> f64 {
        self.kinetic.step_size
    }
}

inventory::submit! { Registration::of::<EbiplaUnderdamped>("ebipla_underdamped") }

#[cfg(test)]
mod tests;
