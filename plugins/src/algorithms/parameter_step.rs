//! The step of the network parameters that the algorithms share.

use ebipla_framework::prelude::*;
use ebipla_framework::{Joint, Model, gradient};
use tch::Kind;

/// Gradients of both losses, L_e = mean U(X) − mean U(X̂) and L_d = mean V(X, y).
///
/// These are the paper's eqs. (subsampled_energy) and (subsampled_generator).
pub struct Gradients {
    pub energy: Vec<Tensor>,
    pub generator: Vec<Tensor>,
    /// U(X̂) for each prior sample.
    prior_energies: Tensor,
}

impl Gradients {
    /// From φ at the posterior samples X (`joint`) and the prior samples X̂ (`prior`).
    pub fn of(model: &Model, joint: &Joint, prior: &Tensor) -> Self {
        let prior_energies = tch::with_grad(|| model.energy.energy(prior));
        let prior_sums = gradient::gradients(&prior_energies, &model.energy.parameters().tensors());
        let (samples, chains) = (joint.prior.numel() as f64, prior.size()[0] as f64);
        let contrast = |(posterior, prior): (&Tensor, Tensor)| posterior / samples - prior / chains;
        Self {
            energy: joint.energy.iter().zip(prior_sums).map(contrast).collect(),
            generator: joint.generator.iter().map(|sum| sum / samples).collect(),
            prior_energies: prior_energies.detach(),
        }
    }
}

/// Moves α and β by their optimisers, and notes losses, energies and gradient norms.
pub fn update_parameters(step: &mut Step, joint: &Joint, prior: &Tensor, scalars: &mut Scalars) {
    let gradients = Gradients::of(step.model, joint, prior);
    step.energy_optimizer.step(&gradients.energy);
    step.generator_optimizer.step(&gradients.generator);
    record(joint, &gradients, scalars);
}

/// Notes losses, energies and gradient norms.
pub fn record(joint: &Joint, gradients: &Gradients, scalars: &mut Scalars) {
    let mean = |values: &Tensor| values.mean(Kind::Float);
    let (posterior_energy, prior_energy) = (mean(&joint.prior), mean(&gradients.prior_energies));
    scalars.add("loss/energy", &(&posterior_energy - &prior_energy));
    scalars.add("loss/generator", &mean(&joint.reconstruction));
    scalars.add("energy/posterior", &posterior_energy);
    scalars.add("energy/prior", &prior_energy);
    for (name, gradients) in [("energy", &gradients.energy), ("generator", &gradients.generator)] {
        // A network may have no parameters.
        if !gradients.is_empty() {
            scalars.add(format!("gradient_norm/{name}"), &gradient::norm(gradients));
        }
    }
}
