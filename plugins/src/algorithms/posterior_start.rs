//! Tests that prior chains started at the posterior's particles start at their current positions, before they move.
#![allow(clippy::unwrap_used)]

use ebipla_core::prelude::*;
use ebipla_core::{PriorChains, PriorChainsSection, Start};
use serde_json::json;

use super::ebipla::Ebipla;
use super::ebipla_full::EbiplaFull;
use super::ebipla_underdamped::EbiplaUnderdamped;
use super::lebm::Lebm;
use super::testing::{Bench, close};

/// Chains that do not move.
struct Still;

impl PriorSampler for Still {
    fn sample(&self, _: &dyn Energy, start: Tensor, _: &mut Draws) -> anyhow::Result<Chains> {
        Ok(Chains {
            last: start,
            statistics: Scalars::new(),
        })
    }

    fn gradient_evaluations(&self) -> u64 {
        0
    }
}

/// With one particle per data point, chains that start at the particles and stay there have the same energies.
fn both_losses_are_equal<P: Plugin<Builds = dyn Algorithm>>(options: serde_json::Value) {
    let mut bench = Bench::new(6, 6);
    bench.prior_chains = PriorChains::new(
        Box::new(Still),
        PriorChainsSection {
            start: Start::Posterior,
            ..PriorChainsSection::default()
        },
    );
    let config: P = serde_json::from_value(options.clone()).unwrap();
    let mut algorithm = bench.build(config);
    for k in 0..5 {
        let reported = bench.step(&mut *algorithm, k, &[0, 1, 2, 3, 4, 5]);
        let number = |name: &str| reported.iter().find(|(known, _)| known == name).unwrap().1;
        assert!(
            number("loss/energy").abs() < 1e-6,
            "{options}: {}",
            number("loss/energy")
        );
        close(number("energy/prior"), number("energy/posterior"));
        close(number("latent/prior"), number("latent/posterior"));
    }
}

#[test]
fn chains_that_stay_at_the_posterior_have_its_energy() {
    for noise in ["lazy", "eager"] {
        for losses_at in ["previous", "updated"] {
            both_losses_are_equal::<Ebipla>(json!({
                "particles": 1, "step_size": 0.3, "noise": noise, "losses_at": losses_at,
                "warmup": { "steps": 2, "particles": 1, "step_size": 0.1, "inner_steps": 3 },
            }));
        }
    }
    both_losses_are_equal::<EbiplaFull>(json!({ "particles": 1, "step_size": 0.3 }));
    for integrator in ["obabo", "baoab", "exponential"] {
        both_losses_are_equal::<EbiplaUnderdamped>(json!({ "particles": 1, "integrator": integrator }));
    }
    both_losses_are_equal::<Lebm>(json!({ "posterior_steps": 3, "step_size": 0.1 }));
}
