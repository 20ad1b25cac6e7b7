//! Sees early that a run diverges.

use ebipla_core::{Kind, Registration, Scalars, Watched};

use crate::Recipe;
use crate::recipe::GuardSection;

/// The run's numbers left the finite, or the range that the recipe calls sane.
#[derive(Debug, thiserror::Error)]
#[error("diverged: {quantity} is {value:.3e} at step {step}{limit}{advice}")]
pub struct Diverged {
    pub quantity: String,
    pub value: f64,
    pub step: u64,
    limit: String,
    advice: String,
}

impl Diverged {
    /// For a part of the state after a step that is not finite.
    pub fn not_finite(quantity: String, value: f64, step: u64, advice: String) -> Self {
        Self {
            quantity,
            value,
            step,
            limit: String::new(),
            advice,
        }
    }
}

impl GuardSection {
    /// Looks at the `numbers` of a step, which are those of `scalars`; `advice` is what to try about one of them.
    pub fn check(
        &self,
        step: u64,
        scalars: &Scalars,
        numbers: &[(String, f64)],
        advice: impl Fn(&str) -> String,
    ) -> Result<(), Diverged> {
        for (quantity, value) in numbers {
            let limit = scalars.watched(quantity).and_then(|what| self.limit(what));
            if value.is_finite() && limit.is_none_or(|(_, limit)| value.abs() <= limit) {
                continue;
            }
            return Err(Diverged {
                quantity: quantity.clone(),
                value: *value,
                step,
                limit: limit.map_or_else(String::new, |(key, limit)| format!(" (guard.{key}: {limit:e})")),
                advice: advice(quantity),
            });
        }
        Ok(())
    }

    /// What the limits are for that no number of a step has been reported as.
    pub fn unwatched(&self, scalars: &Scalars) -> Vec<String> {
        let missing = Watched::ALL.into_iter().filter(|what| !scalars.watches(*what));
        let message = |what| {
            let (key, _) = self.limit(what)?;
            Some(format!(
                "the algorithm reports no number with Scalars::watch as Watched::{what:?}: guard.{key} has nothing to \
                 watch"
            ))
        };
        missing.filter_map(message).collect()
    }

    /// The key of a limit, and the limit, if there is one.
    fn limit(&self, what: Watched) -> Option<(&'static str, f64)> {
        let (key, limit) = match what {
            Watched::Energy => ("energy", self.energy),
            Watched::Latent => ("latent", self.latent),
            Watched::GradientNorm => ("gradient", self.gradient),
        };
        Some((key, limit?))
    }
}

/// What to try against divergence. It names only what the recipe has and the algorithm uses.
pub struct Advice<'a> {
    pub recipe: &'a Recipe,
    /// Whether the algorithm moves the energy's parameters by their optimiser, and the generator's.
    pub optimizers_used: [bool; 2],
}

/// Samplers whose chains stay bounded.
const SAFE_SAMPLERS: [&str; 2] = ["tamed_ula", "mala"];

impl Advice<'_> {
    /// Behind what is said of a quantity.
    pub fn about(&self, quantity: &str) -> String {
        let of_particles = quantity.ends_with("/generator") || quantity.ends_with("/posterior");
        let options = if of_particles {
            self.on_particles()
        } else {
            self.on_chains()
        };
        match options.split_last() {
            None => String::new(),
            Some((only, [])) => format!("; try {only}"),
            Some((last, others)) => format!("; try {}, or {last}", others.join(", ")),
        }
    }

    fn on_particles(&self) -> Vec<String> {
        let mut options = self.smaller_steps("algorithm");
        if self.optimizers_used[1] {
            options.push("a smaller optimizer.generator.lr".to_owned());
        }
        options
    }

    fn on_chains(&self) -> Vec<String> {
        let mut options = self.smaller_steps("prior_sampler");
        options.extend(self.safe_sampler());
        match self.optimizers_used[0] {
            true => options.extend([
                "a smaller optimizer.energy.lr or optimizer.energy.decay".to_owned(),
                "optimizer.energy.clip_norm".to_owned(),
            ]),
            // Then its own step moves them.
            false => options.extend(self.smaller_steps("algorithm")),
        }
        if self.recipe.value("energy.tilt").is_some() {
            options.push("energy.tilt".to_owned());
        }
        options.push("loss.energy_l2".to_owned());
        options
    }

    /// The step sizes among a section's options.
    fn smaller_steps(&self, section: &str) -> Vec<String> {
        let within = format!("{section}.");
        let keys = self.recipe.origins().map(|(key, _, _)| key);
        let steps = keys.filter(|key| key.starts_with(&within) && key.ends_with("step_size"));
        steps.map(|key| format!("a smaller {key}")).collect()
    }

    fn safe_sampler(&self) -> Option<String> {
        let own = self
            .recipe
            .plugin("prior_sampler")
            .map(|(name, _)| name.to_owned());
        let registered = |name: &&str| {
            let mut all = inventory::iter::<Registration>.into_iter();
            all.any(|entry| entry.kind == Kind::PriorSampler && entry.name == *name)
        };
        let others = SAFE_SAMPLERS
            .into_iter()
            .filter(|name| own.as_deref() != Some(name));
        let others: Vec<_> = others.filter(registered).collect();
        (!others.is_empty()).then(|| format!("prior_sampler.name={}", others.join(" or ")))
    }
}

#[cfg(test)]
mod tests {
    use tch::Tensor;

    use super::*;

    fn look(what: Option<Watched>, name: &str, value: f64) -> Option<String> {
        let mut scalars = Scalars::new();
        scalars.add_number("loss/energy", 1.0);
        let tensor = Tensor::from(value);
        match what {
            Some(what) => scalars.watch(what, name, &tensor),
            None => scalars.add(name, &tensor),
        }
        let advice = |quantity: &str| format!("; about {quantity}");
        let found = GuardSection::default().check(7, &scalars, &scalars.read(), advice);
        found.err().map(|diverged| diverged.to_string())
    }

    #[test]
    fn each_quantity_has_its_limit() {
        assert_eq!(look(Some(Watched::Energy), "prior", -9e3), None);
        assert_eq!(look(None, "loss/generator", 1e9), None);
        let chains = look(Some(Watched::Latent), "prior", -1001.0).unwrap_or_default();
        assert_eq!(
            chains,
            "diverged: latent/prior is -1.001e3 at step 7 (guard.latent: 1e3); about latent/prior"
        );
        // Under whatever name, and also where it has no limit.
        assert!(look(Some(Watched::Latent), "codes", f64::INFINITY).is_some());
        assert!(look(Some(Watched::GradientNorm), "encoder", 2e7).is_some());
        assert!(look(None, "loss/encoder", f64::NAN).is_some());
    }

    #[test]
    fn a_limit_that_has_nothing_to_watch_is_reported() {
        let mut scalars = Scalars::new();
        scalars.watch(Watched::Energy, "prior", &Tensor::from(1.0));
        scalars.add_number("latent/prior", 1.0);
        let section = GuardSection {
            gradient: None,
            ..GuardSection::default()
        };
        let found = section.unwatched(&scalars);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("Watched::Latent: guard.latent has nothing to watch"));
    }
}
