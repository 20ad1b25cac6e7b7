//! The step of the network parameters that the algorithms with mini-batches share.

use ebipla_framework::prelude::*;
use ebipla_framework::{Joint, gradient};
use tch::Kind;

/// Moves α and β down their losses, and notes losses, energies and gradient norms.
///
/// L_e = mean U(X) − mean U(X̂) and L_d = mean V(X, y), the paper's eqs. (subsampled_energy) and
/// (subsampled_generator): `joint` holds the gradients at the posterior samples X, `prior` is X̂.
pub fn update_parameters(step: &mut Step, joint: &Joint, prior: &Tensor, scalars: &mut Scalars) {
    let energy = &step.model.energy;
    let prior_energies = energy.energy(prior);
    let prior_gradients = gradient::gradients(&prior_energies, &energy.parameters().tensors());

    let (samples, chains) = (joint.prior.numel() as f64, prior.size()[0] as f64);
    let energy_gradients: Vec<_> = joint
        .energy
        .iter()
        .zip(&prior_gradients)
        .map(|(posterior, prior)| posterior / samples - prior / chains)
        .collect();
    let generator_gradients: Vec<_> = joint
        .generator
        .iter()
        .map(|gradient| gradient / samples)
        .collect();
    step.energy_optimizer.step(&energy_gradients);
    step.generator_optimizer.step(&generator_gradients);

    let mean = |values: &Tensor| values.mean(Kind::Float);
    let (posterior_energy, prior_energy) = (mean(&joint.prior), mean(&prior_energies));
    scalars.add("loss/energy", &(&posterior_energy - &prior_energy));
    scalars.add("loss/generator", &mean(&joint.reconstruction));
    scalars.add("energy/posterior", &posterior_energy);
    scalars.add("energy/prior", &prior_energy);
    scalars.add("gradient_norm/energy", &gradient::norm(&energy_gradients));
    scalars.add("gradient_norm/generator", &gradient::norm(&generator_gradients));
}
