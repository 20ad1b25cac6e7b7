//! The update of the network parameters, shared by the algorithms.

use ebipla_core::prelude::*;
use ebipla_core::{Joint, Model, gradient};
use tch::Kind;

/// E[∇_α U] under the prior, and the energies of the samples that it was estimated from.
pub struct PriorTerm {
    expectation: Vec<Tensor>,
    /// U(X̂) for each prior sample; `None` where the expectation is exact.
    energies: Option<Tensor>,
    /// X̂ itself.
    samples: Option<Tensor>,
}

impl PriorTerm {
    /// Estimated from prior samples X̂.
    pub fn sampled(model: &Model, samples: &Tensor) -> Self {
        let energies = tch::with_grad(|| model.energy.energy(samples));
        let sums = gradient::gradients(&energies, &model.energy.parameters().tensors());
        let count = samples.size()[0] as f64;
        Self {
            expectation: sums.into_iter().map(|sum| sum / count).collect(),
            energies: Some(energies.detach()),
            samples: Some(samples.shallow_clone()),
        }
    }

    /// Computes it from the energy's closed form, if there is one.
    pub fn exact(model: &Model) -> Option<Self> {
        Some(Self {
            expectation: model.energy.prior_expectation()?,
            energies: None,
            samples: None,
        })
    }
}

/// Gradients of both losses, L_e = mean U(X) − E U(X̂) and L_d = mean V(X, y).
///
/// These are the paper's eqs. (subsampled_energy) and (subsampled_generator).
pub struct Gradients {
    pub energy: Vec<Tensor>,
    pub generator: Vec<Tensor>,
}

impl Gradients {
    /// Computes them from φ at the posterior samples X, with the penalty λ·(mean U(X)² + mean U(X̂)²) on L_e.
    pub fn of(model: &Model, joint: &Joint, prior: &PriorTerm, energy_l2: f64) -> Self {
        let samples = joint.prior.numel() as f64;
        let contrast = |(posterior, prior): (&Tensor, &Tensor)| posterior / samples - prior;
        let mut gradients = Self {
            energy: joint
                .energy
                .iter()
                .zip(&prior.expectation)
                .map(contrast)
                .collect(),
            generator: joint.generator.iter().map(|sum| sum / samples).collect(),
        };
        if energy_l2 > 0.0 {
            for samples in [Some(&joint.x), prior.samples.as_ref()].into_iter().flatten() {
                gradients.penalise(model, samples, energy_l2);
            }
        }
        gradients
    }

    /// Adds ∇_α of λ·mean U(x)².
    fn penalise(&mut self, model: &Model, x: &Tensor, weight: f64) {
        let penalty = tch::with_grad(|| model.energy.energy(x).square().mean(x.kind()) * weight);
        let added = gradient::gradients(&penalty, &model.energy.parameters().tensors());
        for (gradient, added) in self.energy.iter_mut().zip(added) {
            *gradient += added;
        }
    }

    /// In the order of [`Model::parameters`].
    pub fn all(&self) -> impl Iterator<Item = &Tensor> {
        self.energy.iter().chain(&self.generator)
    }
}

/// Updates α and β by their optimisers, and records losses, energies and gradient norms.
pub fn update_parameters(step: &mut Step, joint: &Joint, samples: &Tensor, scalars: &mut Scalars) {
    let prior = PriorTerm::sampled(step.model, samples);
    let gradients = Gradients::of(step.model, joint, &prior, step.energy_l2);
    step.energy_optimizer.step(&gradients.energy);
    step.generator_optimizer.step(&gradients.generator);
    record(joint, &prior, &gradients, scalars);
}

/// Records losses, energies and gradient norms.
pub fn record(joint: &Joint, prior: &PriorTerm, gradients: &Gradients, scalars: &mut Scalars) {
    let mean = |values: &Tensor| values.mean(Kind::Float);
    let posterior_energy = mean(&joint.prior);
    if let Some(energies) = &prior.energies {
        let prior_energy = mean(energies);
        scalars.add("loss/energy", &(&posterior_energy - &prior_energy));
        scalars.watch(Watched::Energy, "prior", &prior_energy);
        scalars.add_distribution("energy/prior", energies);
    }
    let farthest = |x: &Tensor| x.abs().max();
    if let Some(samples) = &prior.samples {
        scalars.watch(Watched::Latent, "prior", &farthest(samples));
    }
    scalars.watch(Watched::Latent, "posterior", &farthest(&joint.x));
    scalars.add("loss/generator", &mean(&joint.reconstruction));
    scalars.watch(Watched::Energy, "posterior", &posterior_energy);
    scalars.add_distribution("energy/posterior", &joint.prior);
    let norms = joint.x.square().sum_dim_intlist(1, false, Kind::Float).sqrt();
    scalars.add_distribution("latent/posterior_norm", &norms);
    for (name, gradients) in [("energy", &gradients.energy), ("generator", &gradients.generator)] {
        // A network may have no parameters.
        if !gradients.is_empty() {
            scalars.watch(Watched::GradientNorm, name, &gradient::norm(gradients));
        }
    }
}
