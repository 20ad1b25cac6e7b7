//! Messages that relate step sizes to the curvature, on a model that has the curvature 1 + 1/σ² = 2 everywhere.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use support::{Outcome, Scratch};

/// Runs `runner check` on the recipe `theory`, with another algorithm.
fn check(algorithm: &str) -> Outcome {
    let overrides = format!("algorithm={algorithm}");
    let outcome = Scratch::new().runner(&["check", "--recipe", "theory", "--set", &overrides]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    outcome
}

#[track_caller]
fn says(outcome: &Outcome, level: &str, words: &[&str]) {
    let found = outcome
        .stderr
        .lines()
        .any(|line| line.contains(level) && words.iter().all(|word| line.contains(word)));
    assert!(found, "no {level} line with {words:?} in\n{}", outcome.stderr);
}

#[test]
fn check_reports_the_effect_of_the_step_on_the_variance() {
    says(
        &check("{ step_size: 0.3 }"),
        "INFO",
        &[
            "algorithm.step_size 0.3 (0.3000 raw): h × curvature is up to 0.600 at 16 particles",
            "variance is 1.43 times the posterior's",
            "algorithm.step_size 0.047 would",
        ],
    );
    says(
        &check("{ step_size: 0.02 }"),
        "INFO",
        &[
            "up to 0.040",
            "1.02 times the posterior's in the stiffest direction",
        ],
    );
}

/// hλ = 1.2 and 2.2; 1/(1 − hλ/2) is 1.05 at hλ = 0.0952, which is h = 0.0476.
#[test]
fn a_step_beyond_half_of_the_stable_range_is_a_warning() {
    says(
        &check("{ step_size: 0.6 }"),
        "WARN",
        &[
            "algorithm.step_size 0.6",
            "up to 1.200",
            "2.50 times",
            "fly apart from 2.000 on",
            "algorithm.step_size 0.047 would keep it within 5 %",
        ],
    );
    says(
        &check("{ step_size: 1.1 }"),
        "WARN",
        &[
            "up to 2.200",
            "from 2.000 on particles fly apart",
            "algorithm.step_size 0.047 would",
        ],
    );
}

#[test]
fn every_algorithm_is_checked() {
    let full = check("{ step_size: 0.6 }");
    assert!(!full.stderr.contains("warmup"));
    says(
        &check("{ name: lebm, step_size: 0.6 }"),
        "WARN",
        &["up to 1.200 at 8 points of N(0, I), where posterior chains start"],
    );
    says(
        &check("{ name: ebipla, step_size: 0.05, warmup: { particles: 2, step_size: 0.6 } }"),
        "WARN",
        &["algorithm.warmup.step_size 0.6", "up to 1.200"],
    );
    says(
        &check("{ name: ebipla_underdamped, step_unit: raw, integrator: baoab, step_size: 1.5 }"),
        "WARN",
        &[
            "h² × curvature is up to 4.500",
            "from 4.000 on particles fly apart",
        ],
    );
    says(
        &check("{ name: ebipla_underdamped, step_unit: raw, integrator: obabo, step_size: 0.5 }"),
        "INFO",
        &["h² × curvature is up to 0.500", "1.14 times"],
    );
}

/// At the start and, since the networks have changed by then, at the end.
#[test]
fn a_run_logs_its_step_sizes() {
    let scratch = Scratch::new();
    let outcome = scratch.runner(&["--recipe", "theory", "--set", "run.max_steps=3"]);
    let log = fs::read_to_string(outcome.folder(&scratch).join("log.txt")).unwrap();
    assert_eq!(log.matches("h × curvature is up to 0.600").count(), 2, "{log}");
}
