//! Sees early that a run diverges.

use crate::recipe::GuardSection;

/// The run's numbers left the finite, or the range that the recipe calls sane.
#[derive(Debug, thiserror::Error)]
#[error("diverged: {quantity} is {value:.3e} at step {step}{limit}; try {advice}")]
pub struct Diverged {
    pub quantity: String,
    pub value: f64,
    pub step: u64,
    limit: String,
    advice: &'static str,
}

const CHAINS: &str = "a smaller prior_sampler.step_size, prior_sampler.name=tamed_ula or mala, a smaller \
     optimizer.energy.lr or optimizer.energy.decay, optimizer.energy.clip_norm, energy.tilt where the energy has \
     one, or loss.energy_l2";
const PARTICLES: &str = "a smaller algorithm.step_size, or a smaller optimizer.generator.lr";

impl Diverged {
    /// For weights after a step, where `network` has some that are not finite.
    pub fn of_weights(network: &str, value: f64, step: u64) -> Self {
        Self {
            quantity: format!("a weight of the {network}"),
            value,
            step,
            limit: String::new(),
            advice: if network == "generator" { PARTICLES } else { CHAINS },
        }
    }
}

impl GuardSection {
    /// Looks at the numbers of a step.
    pub fn check(&self, step: u64, numbers: &[(String, f64)]) -> Result<(), Diverged> {
        for (quantity, value) in numbers {
            let (key, limit) = self.limit(quantity);
            if value.is_finite() && limit.is_none_or(|limit| value.abs() <= limit) {
                continue;
            }
            let of_particles = quantity.ends_with("/generator") || quantity.ends_with("/posterior");
            return Err(Diverged {
                quantity: quantity.clone(),
                value: *value,
                step,
                limit: limit.map_or_else(String::new, |limit| format!(" (guard.{key}: {limit:e})")),
                advice: if of_particles { PARTICLES } else { CHAINS },
            });
        }
        Ok(())
    }

    /// The limit for a quantity, and its key.
    fn limit(&self, quantity: &str) -> (&'static str, Option<f64>) {
        match quantity.split('/').next() {
            Some("energy") => ("energy", self.energy),
            Some("latent") => ("latent", self.latent),
            Some("gradient_norm") => ("gradient", self.gradient),
            _ => ("", None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(quantity: &str, value: f64) -> Option<String> {
        let numbers = [("loss/energy".to_owned(), 1.0), (quantity.to_owned(), value)];
        let found = GuardSection::default().check(7, &numbers);
        found.err().map(|diverged| diverged.to_string())
    }

    #[test]
    fn each_quantity_has_its_limit_and_advice() {
        assert_eq!(look("energy/prior", -9e3), None);
        assert_eq!(look("loss/generator", 1e9), None);
        let chains = look("latent/prior", -1001.0).unwrap_or_default();
        assert!(chains.starts_with("diverged: latent/prior is -1.001e3 at step 7 (guard.latent: 1e3); try"));
        assert!(chains.contains("tamed_ula"));
        let particles = look("latent/posterior", f64::INFINITY).unwrap_or_default();
        assert!(particles.contains("algorithm.step_size"));
        assert!(look("loss/energy", f64::NAN).is_some());
        assert!(look("gradient_norm/energy", 2e7).is_some());
    }
}
