//! EBIPLA's steps against formulas written out here, and its noise against its distribution.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::algorithms::testing::{A, Bench, PRIOR, RATE, SIGMA, W, all_close, close, clouds, numbers};

/// One iteration at temperature 0, written out from eqs. (subsampled_energy), (subsampled_generator) and Algorithm 2.
///
/// ∇ₓφ = (x − a) + w(wx − y)/σ²; ∇_a L_e = −mean(x − a) + mean(x̂ − a); ∂_w L_d = mean((wx − y)·x)/σ².
#[test]
fn one_iteration_without_noise_follows_the_formulas() {
    for (losses_at, noise) in [
        (LossesAt::Previous, Noise::Lazy),
        (LossesAt::Previous, Noise::Eager),
        (LossesAt::Updated, Noise::Lazy),
        (LossesAt::Updated, Noise::Eager),
    ] {
        let mut bench = Bench::new(5, 2);
        let mut algorithm = bench.build(Ebipla {
            particles: 3,
            step_size: 0.4,
            step_unit: StepUnit::Sigma2,
            temperature: 0.0,
            noise,
            losses_at,
            warmup: None,
            init_particles: None,
        });
        let h = 0.4 * SIGMA * SIGMA;
        let before = clouds(&*algorithm, 0);
        let batch = [3usize, 1];
        let y = numbers(&bench.data);
        let w = f64::from(W);
        let a = A.map(f64::from);

        let mut expected = before.clone();
        for m in batch {
            for x in &mut expected[m] {
                for d in 0..2 {
                    x[d] -= h * ((x[d] - a[d]) + w * (w * x[d] - y[m][d]) / (SIGMA * SIGMA));
                }
            }
        }
        let at = if losses_at == LossesAt::Previous {
            &before
        } else {
            &expected
        };
        let rows = 6.0;
        let mut gradient_a = [PRIOR[0] - a[0], PRIOR[1] - a[1]];
        let (mut gradient_w, mut loss_d, mut posterior) = (0.0, 0.0, 0.0);
        for m in batch {
            for x in &at[m] {
                for d in 0..2 {
                    let residual = w * x[d] - y[m][d];
                    gradient_a[d] -= (x[d] - a[d]) / rows;
                    gradient_w += residual * x[d] / (SIGMA * SIGMA) / rows;
                    loss_d += residual * residual / (2.0 * SIGMA * SIGMA) / rows;
                    posterior += (x[d] - a[d]).powi(2) / 2.0 / rows;
                }
            }
        }
        let prior = ((PRIOR[0] - a[0]).powi(2) + (PRIOR[1] - a[1]).powi(2)) / 2.0;

        let reported = bench.step(&mut *algorithm, 0, &[3, 1]);
        let number = |name: &str| reported.iter().find(|(known, _)| known == name).unwrap().1;
        close(number("loss/energy"), posterior - prior);
        close(number("loss/generator"), loss_d);
        close(number("gradient_norm/energy"), gradient_a[0].hypot(gradient_a[1]));
        close(number("gradient_norm/generator"), gradient_w.abs());
        let after = clouds(&*algorithm, 1);
        for (found, expected) in after
            .iter()
            .flatten()
            .flatten()
            .zip(expected.iter().flatten().flatten())
        {
            close(*found, *expected);
        }
        let moved = |start: f64, gradient: f64| start - RATE * gradient;
        all_close(
            bench.parameters(),
            [
                moved(a[0], gradient_a[0]),
                moved(a[1], gradient_a[1]),
                moved(w, gradient_w),
            ],
        );
    }
}

/// The inner steps of the warm-up update the particles in place; afterwards each cloud is replicated and drifts.
#[test]
fn warm_up_without_noise_takes_inner_steps_then_replicates_and_drifts() {
    let mut bench = Bench::new(3, 3);
    let mut algorithm = bench.build(Ebipla {
        particles: 4,
        step_size: 0.02,
        step_unit: StepUnit::Raw,
        temperature: 0.0,
        warmup: Some(WarmUp {
            steps: 1,
            particles: 2,
            step_size: 0.01,
            inner_steps: 3,
        }),
        init_particles: None,
        ..Ebipla::default()
    });
    // Parameters move between the two steps; their values are read off, not computed again.
    let drift = |x: &mut f64, y: f64, a: f64, w: f64, h: f64| {
        *x -= h * ((*x - a) + w * (w * *x - y) / (SIGMA * SIGMA))
    };
    let y = numbers(&bench.data);
    let mut expected = clouds(&*algorithm, 0);
    let mut parameters = bench.parameters();
    for (k, (inner, h)) in [(3, 0.01), (1, 0.02)].into_iter().enumerate() {
        for (m, cloud) in expected.iter_mut().enumerate() {
            for x in cloud.iter_mut() {
                for d in 0..2 {
                    for _ in 0..inner {
                        drift(&mut x[d], y[m][d], parameters[d], parameters[2], h);
                    }
                }
            }
            if k == 1 {
                let copy = cloud.clone();
                cloud.extend(copy);
            }
        }
        bench.step(&mut *algorithm, k as u64, &[0, 1, 2]);
        let found = clouds(&*algorithm, k as u64 + 1);
        assert_eq!(found[0].len(), if k == 0 { 2 } else { 4 });
        for (found, expected) in found
            .iter()
            .flatten()
            .flatten()
            .zip(expected.iter().flatten().flatten())
        {
            close(*found, *expected);
        }
        parameters = bench.parameters();
    }
}

/// Cost estimates take steps out of order: a step after the warm-up has all particles, whichever step came before.
#[test]
fn a_step_past_the_warm_up_has_all_particles() {
    let mut bench = Bench::new(3, 3);
    let mut algorithm = bench.build(Ebipla {
        particles: 4,
        warmup: Some(WarmUp {
            steps: 5,
            ..WarmUp::default()
        }),
        ..Ebipla::default()
    });
    for (k, particles) in [(2, 1), (9, 4), (30, 4)] {
        bench.step(&mut *algorithm, k, &[0, 1, 2]);
        assert_eq!(clouds(&*algorithm, k + 1)[0].len(), particles);
    }
}

/// Every particle receives noise of variance 2hτ/L in every iteration, whether it is in the batch or not.
///
/// A point that is never in a batch receives k increments: variance 2hτk/L exactly, with L = ⌈M/|B|⌉ = 3. A point
/// that is in the batch once, at iteration j, is then contracted by c = 1 − h(1 + w²/σ²): 2hτ(c²j + k − j)/L. The
/// sample variance over n = 40,000 coordinates has relative standard error √(2/n) = 0.7 %; five are 3.5 %.
/// Noise that is off by a factor of two, in variance or amplitude, misses by 50 % or more.
#[test]
fn lazy_and_eager_noise_have_the_law_that_the_paper_states() {
    let (h, temperature, particles) = (0.02, 0.7, 20_000);
    for noise in [Noise::Lazy, Noise::Eager] {
        for losses_at in [LossesAt::Previous, LossesAt::Updated] {
            let mut bench = Bench::new(5, 2);
            let mut algorithm = bench.build(Ebipla {
                particles,
                step_size: h,
                step_unit: StepUnit::Raw,
                temperature,
                noise,
                losses_at,
                warmup: None,
                init_particles: None,
            });
            let start = clouds(&*algorithm, 0);
            bench.hold_parameters();
            for (k, batch) in [[1, 2], [3, 2], [1, 3], [3, 1]].iter().enumerate() {
                bench.step(&mut *algorithm, k as u64, batch);
            }
            bench.step(&mut *algorithm, 4, &[4, 3]);
            let end = clouds(&*algorithm, 5);
            let increment = 2.0 * h * temperature / 3.0;
            let contraction = 1.0 - h * (1.0 + f64::from(W * W) / (SIGMA * SIGMA));
            // Point 0 is never in a batch; point 4 is in the last one, at iteration 4.
            let never = spread(&end[0], &start[0], 1.0);
            close_in_law(never, 5.0 * increment);
            let late = spread(&end[4], &start[4], contraction);
            close_in_law(late, increment * (4.0 * contraction * contraction + 1.0));
        }
    }
}

/// Inner steps of the warm-up have the full noise, and noise is due from the last warm-up iteration on.
///
/// In the warm-up, a point of the batch takes J inner steps: 2h'τ(1 + c² + … + c^{2(J−1)}) with c = 1 − h'(1 + w²/σ²);
/// the other points do not move. Then each cloud is doubled, and a point that is in no batch receives 2hτ/L in each of
/// the remaining iterations. Tolerance as above.
#[test]
fn noise_has_its_law_in_and_after_the_warm_up() {
    let (h, warm_h, temperature) = (0.02, 0.015, 0.7);
    for noise in [Noise::Lazy, Noise::Eager] {
        let config = |temperature| Ebipla {
            particles: 40_000,
            step_size: h,
            step_unit: StepUnit::Raw,
            temperature,
            noise,
            losses_at: LossesAt::Previous,
            warmup: Some(WarmUp {
                steps: 1,
                particles: 20_000,
                step_size: warm_h,
                inner_steps: 3,
            }),
            init_particles: None,
        };
        let run = |temperature: f64| {
            let mut bench = Bench::new(5, 2);
            let mut algorithm = bench.build(config(temperature));
            bench.step(&mut *algorithm, 0, &[1, 2]);
            let warm = clouds(&*algorithm, 1);
            for k in 1..4 {
                bench.step(&mut *algorithm, k, &[1, 3]);
            }
            (warm, clouds(&*algorithm, 4))
        };
        let ((warm, end), (still, _)) = (run(temperature), run(0.0));
        let kept = (1.0 - warm_h * (1.0 + f64::from(W * W) / (SIGMA * SIGMA))).powi(2);
        let inner = 2.0 * warm_h * temperature * (1.0 + kept + kept * kept);
        close_in_law(spread(&warm[1], &still[1], 1.0), inner);
        assert_eq!(
            warm[0], still[0],
            "a point outside the batch moved during warm-up"
        );
        let doubled = [warm[0].clone(), warm[0].clone()].concat();
        close_in_law(spread(&end[0], &doubled, 1.0), 2.0 * h * temperature);
        assert_ne!(end[0][0], end[0][20_000], "copies move independently");
    }
}

/// The stationary distribution does not depend on whether the batch size divides the number of data points.
///
/// Drifts contract by c = 1 − h(1 + w²/σ²), and between two of them a particle receives noise of variance 2h, as in any
/// Langevin chain with steps of size h: variance 2h/(1 − c²) right before a drift. Here c² = 0.64, and 40 visits leave
/// nothing of the start. Tolerance as above; noise for L = M/|B| = 1.1 instead of 2 would give 1.8 times the variance.
#[test]
fn the_stationary_law_does_not_depend_on_ragged_epochs() {
    let h = 0.02;
    for noise in [Noise::Lazy, Noise::Eager] {
        for points in [10, 11, 20] {
            let mut bench = Bench::new(points, 10);
            bench.hold_parameters();
            let mut algorithm = bench.build(Ebipla {
                particles: 20_000,
                step_size: h,
                step_unit: StepUnit::Raw,
                noise,
                ..Ebipla::default()
            });
            let all: Vec<i64> = (0..points).collect();
            let batches: Vec<_> = all.chunks(10).collect();
            let steps = 40 * batches.len();
            for k in 0..steps {
                bench.step(&mut *algorithm, k as u64, batches[k % batches.len()]);
            }
            // The next step would visit point 0.
            let cloud = &clouds(&*algorithm, steps as u64)[0];
            let origin = vec![vec![0.0; 2]; cloud.len()];
            let contraction = 1.0 - h * (1.0 + f64::from(W * W) / (SIGMA * SIGMA));
            close_in_law(
                spread(cloud, &origin, 1.0),
                2.0 * h / (1.0 - contraction * contraction),
            );
        }
    }
}

/// A dump shows the path that the run takes: a visit drifts from the position that a dump at the same iteration shows,
/// and dumping changes nothing.
#[test]
fn dumps_show_the_path_that_the_run_takes() {
    let (h, run) = (0.02, |looks: &[u64]| {
        let mut bench = Bench::new(5, 2);
        bench.hold_parameters();
        let mut algorithm = bench.build(Ebipla {
            particles: 3,
            step_size: 0.02,
            step_unit: StepUnit::Raw,
            ..Ebipla::default()
        });
        for k in 0..6 {
            bench.step(&mut *algorithm, k, &[1, 2 + (k % 2) as i64]);
            if looks.contains(&k) {
                let _ = clouds(&*algorithm, k + 1);
            }
        }
        (bench, algorithm)
    });
    let (mut bench, mut algorithm) = run(&[0, 3, 5]);
    assert_eq!(clouds(&*algorithm, 6), clouds(&*run(&[]).1, 6));
    let before = clouds(&*algorithm, 6);
    bench.step(&mut *algorithm, 6, &[0, 3]);
    let after = clouds(&*algorithm, 6);
    let y = numbers(&bench.data);
    let w = f64::from(W);
    for m in [0, 3] {
        for (before, after) in before[m].iter().zip(&after[m]) {
            for d in 0..2 {
                let gradient = before[d] - f64::from(A[d]) + w * (w * before[d] - y[m][d]) / (SIGMA * SIGMA);
                close(after[d], before[d] - h * gradient);
            }
        }
    }
}

/// Particles of a point outside the batch at several dumps: increments between dumps are independent, with variance
/// 2hτ/L per iteration. Tolerance of variances as above; of a correlation, five times 1/√n = 0.5 %.
#[test]
fn noise_between_dumps_has_its_law() {
    let (h, particles) = (0.02, 20_000);
    let mut bench = Bench::new(5, 2);
    let mut algorithm = bench.build(Ebipla {
        particles,
        step_size: h,
        step_unit: StepUnit::Raw,
        ..Ebipla::default()
    });
    let mut dumps = Vec::new();
    for k in 0..9 {
        bench.step(&mut *algorithm, k, &[1, 2]);
        if [1, 2, 5, 8].contains(&k) {
            dumps.push((k, clouds(&*algorithm, k + 1)[0].clone()));
        }
    }
    let increments: Vec<_> = dumps
        .windows(2)
        .map(|pair| {
            let [(earlier, from), (later, to)] = [&pair[0], &pair[1]];
            close_in_law(spread(to, from, 1.0), (later - earlier) as f64 * 2.0 * h / 3.0);
            let moved = to.iter().flatten().zip(from.iter().flatten());
            moved.map(|(to, from)| to - from).collect::<Vec<_>>()
        })
        .collect();
    for pair in increments.windows(2) {
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let (one, other) = (&pair[0], &pair[1]);
        let correlation = product(one, other) / (product(one, one) * product(other, other)).sqrt();
        assert!(correlation.abs() < 0.025, "{correlation}");
    }
}

/// Variance of end − factor·start over the particles, averaged over both coordinates.
fn spread(end: &[Vec<f64>], start: &[Vec<f64>], factor: f64) -> f64 {
    let one = |d: usize| {
        let differences: Vec<_> = end
            .iter()
            .zip(start)
            .map(|(end, start)| end[d] - factor * start[d])
            .collect();
        let mean = differences.iter().sum::<f64>() / differences.len() as f64;
        let squares: f64 = differences.iter().map(|value| (value - mean).powi(2)).sum();
        squares / (differences.len() - 1) as f64
    };
    (one(0) + one(1)) / 2.0
}

fn close_in_law(found: f64, expected: f64) {
    assert!(
        (found / expected - 1.0).abs() < 0.035,
        "variance {found}, expected {expected}"
    );
}
