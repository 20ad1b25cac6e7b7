//! Theorems 1 and 2 on a solvable model: the error of the parameters against its exact value, its rate, and the bound.
#![allow(clippy::unwrap_used)]

mod gaussian;
mod member;
#[path = "../support/mod.rs"]
mod support;
mod theorem_2;

use gaussian::Gaussian;
use member::{Measured, Member};
use support::{Scratch, metrics};

/// ln MN.
fn ln_particles(point: &Measured) -> f64 {
    (point.size.points * point.size.particles).ln()
}

/// Slope of ln error over ln MN and its standard error, by least squares weighted with the known variances.
fn slope(points: &[Measured]) -> [f64; 2] {
    let weighted = |value: &dyn Fn(&Measured) -> f64| -> f64 {
        let terms = points
            .iter()
            .map(|point| value(point) / point.relative_standard_error.powi(2));
        terms.sum()
    };
    let total = weighted(&|_| 1.0);
    let centre = weighted(&|point| ln_particles(point)) / total;
    let spread = weighted(&|point| (ln_particles(point) - centre).powi(2));
    let slope = weighted(&|point| (ln_particles(point) - centre) * point.error.ln()) / spread;
    [slope, spread.sqrt().recip()]
}

/// The error has its exact value for each MN, however MN is split, so it decreases like 1/(MN), below the bound.
///
/// Twice the variance of the noise on θ gives 1.82 times the error, on the particles 1.18 times, and half of it 0.59
/// and 0.91 times; five standard errors are 0.07 to 0.14.
#[test]
fn the_error_decreases_with_the_particles_as_in_theorem_1() {
    let scratch = Scratch::new();
    let model = Gaussian::of_recipe(&scratch);
    let sweep = [
        (5, 2, 2500),
        (2, 5, 2500),
        (10, 10, 2500),
        (50, 2, 2500),
        (20, 50, 2000),
        (50, 200, 600),
    ];
    // With one seed, the same noise would drive all splits of an MN.
    let mut seeds = 0..;
    let points = sweep.map(|(points, particles, steps)| {
        let seed = seeds.next().unwrap();
        let member = Member {
            points,
            particles,
            steps,
            seed,
        };
        member.run(&scratch, &model)
    });
    for point in &points {
        point.assert_exact(&model);
        point.assert_bounded(&model);
        let [_, concentration, _] = model.bound(point.size);
        // The step's term is by far the largest; without a floor, the error is below even that term alone.
        assert!(point.error.sqrt() < concentration, "{point:?}");
    }
    let [slope, standard_error] = slope(&points);
    println!("slope {slope:.4} ± {standard_error:.4}; {points:#?}");
    assert!(standard_error < 0.05);
    assert!((slope + 1.0).abs() < 3.0 * standard_error, "{slope}");
}

/// A step twice as long, near the largest that the theorem allows, increases the error by a factor and no more.
#[test]
fn the_step_inflates_the_error_and_adds_no_floor() {
    let scratch = Scratch::new();
    let mut model = Gaussian::of_recipe(&scratch);
    model.step *= 2.0;
    for (points, particles) in [(10, 10), (20, 50)] {
        let member = Member {
            points,
            particles,
            steps: 1000,
            seed: 0,
        };
        member.run(&scratch, &model).assert_exact(&model);
    }
}

/// Before the first step α is 0, and all data are 0.5 in 40 dimensions: 40 · 0.25.
#[test]
fn parameter_error_matches_a_calculation_by_hand() {
    let scratch = Scratch::new();
    let outcome = scratch.runner(&[
        "--recipe",
        "theory",
        "--set",
        "dataset.mean=0.5",
        "--set",
        "dataset.std=0",
        "--set",
        "run.max_steps=0",
    ]);
    let found = &metrics(&outcome.folder(&scratch))[0]["evaluate/parameter_error"];
    assert!((found.as_f64().unwrap() - 10.0).abs() < 1e-9, "{found}");
}

#[test]
fn parameter_error_refuses_models_with_unknown_maximiser() {
    for change in ["energy.name=mlp", "generator.name=linear"] {
        let outcome = Scratch::new().runner(&[
            "check",
            "--recipe",
            "theory",
            "--set",
            change,
            "--set",
            "algorithm.prior=sampled",
        ]);
        assert_eq!(outcome.code, 1, "{}", outcome.stderr);
        for word in ["parameter_error", "`quadratic`", "`identity`"] {
            assert!(outcome.stderr.contains(word), "{}", outcome.stderr);
        }
    }
}
