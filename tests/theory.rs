//! Theorem 1 where everything is known: the error of the parameters against its exact value, its rate, and the bound.
#![allow(clippy::unwrap_used)]

mod support;

use support::{Scratch, metrics};

/// Steps until nothing is left of the start: (1 − μh)^{2·80} = 3·10⁻⁹ of a squared distance of about 1 in each
/// coordinate, where the error is never below 10⁻⁴.
const BURN_IN: u64 = 80;

/// Steps between two measurements; errors closer than that are almost the same.
const EVERY: u64 = 5;

/// The model of `theory.yaml`, one coordinate of which is φ_y(θ, x) = ½(x − θ)² + (x − y)²/(2σ²).
///
/// The Hessian of φ_y in (θ, x) is A = [[1, −1], [−1, 1 + 1/σ²]], whatever y and wherever: assumptions 1 and 2 of the
/// paper hold with μ and L its two eigenvalues. In d dimensions each of them comes d times, which changes neither.
struct Gaussian {
    dim: f64,
    sigma: f64,
    step: f64,
}

impl Gaussian {
    fn of_recipe(scratch: &Scratch) -> Self {
        let shown = scratch.runner(&["show", "--recipe", "theory", "--json"]).json();
        let number = |section: &str, option: &str| shown["recipe"][section][option].as_f64().unwrap();
        Self {
            dim: number("dataset", "dim"),
            sigma: number("decoder", "sigma"),
            step: number("algorithm", "step_size"),
        }
    }

    /// μ and L, by trace 2 + 1/σ² and determinant 1/σ².
    fn eigenvalues(&self) -> [f64; 2] {
        let determinant = 1.0 / (self.sigma * self.sigma);
        let half_trace = 1.0 + determinant / 2.0;
        let root = (half_trace * half_trace - determinant).sqrt();
        [half_trace - root, half_trace + root]
    }

    /// MN times the stationary covariance of one coordinate of θₖ and θₖ₊ₗ, where l is `lag`.
    ///
    /// Only the mean x̄ of all particles acts on θ. With ȳ the mean of the data, u = (θ − ȳ, x̄ − ȳ) follows
    /// uₖ₊₁ = (I − hA)uₖ + √(2h/MN)·ξₖ, since the mean of MN noises of variance 2h has 2h/MN, which is also the noise of θ.
    /// So E u = 0, and S = (I − hA)S(I − hA) + 2h/MN·I gives S = (A − hA²/2)⁻¹/MN; the covariance over a lag is
    /// (I − hA)ˡS. Its first entry is a sum over the eigenvectors (1, 1 − λ) of A.
    ///
    /// As h → 0 this is (A⁻¹)₁₁ = 1 + σ², the variance of exp(MN·ℓ_M). The step adds (h/2)·((I − hA/2)⁻¹)₁₁: of order h
    /// *relative* to the error, and like it divided by MN. Linear dynamics have no bias in the mean, so that there is no
    /// floor at which the error stops falling: the bound's term C₁√h is not attained.
    fn covariance(&self, lag: i32) -> f64 {
        let along = |eigenvalue: f64| {
            let weight = 1.0 / (1.0 + (1.0 - eigenvalue).powi(2));
            let kept = (1.0 - self.step * eigenvalue).powi(lag);
            weight * kept / (eigenvalue * (1.0 - self.step * eigenvalue / 2.0))
        };
        self.eigenvalues().map(along).iter().sum()
    }

    /// E‖θₖ − θ*‖² in the stationary state.
    fn error(&self, particles: f64) -> f64 {
        self.dim * self.covariance(0) / particles
    }

    /// Standard error of the mean of n measurements, relative to the error.
    ///
    /// For Gaussians, the squares of two numbers with correlation ρ have the covariance 2ρ² (relative to the squared
    /// mean); d coordinates are independent. So the variance is (2/dn)·(1 + 2Σₗ(1 − l/n)ρₗ²).
    fn relative_standard_error(&self, measurements: usize) -> f64 {
        let n = measurements as f64;
        let tail: f64 = (1..measurements)
            .map(|lag| {
                let correlation = self.covariance(lag as i32 * EVERY as i32) / self.covariance(0);
                (1.0 - lag as f64 / n) * correlation * correlation
            })
            .sum();
        (2.0 / (self.dim * n) * (1.0 + 2.0 * tail)).sqrt()
    }

    /// The theorem's C₁√h and C₂/√(MN). The third term, (1 − μh)ᵏC₀, is left out: it is gone, and only adds.
    fn bound(&self, particles: f64) -> [f64; 2] {
        let [mu, l] = self.eigenvalues();
        assert!(
            self.step <= 2.0 / (mu + l),
            "the theorem does not hold for this step"
        );
        let dimensions = (self.dim + particles * self.dim) / particles;
        [
            1.65 * l / mu * dimensions.sqrt() * self.step.sqrt(),
            (self.dim / (mu * particles)).sqrt(),
        ]
    }
}

/// M data points with N particles each, for so many steps.
#[derive(Clone, Copy, Debug)]
struct Member {
    points: u64,
    particles: u64,
    steps: u64,
    seed: u64,
}

/// The mean of ‖θₖ − θ*‖² over a run, and its relative standard error if the program is right.
#[derive(Debug)]
struct Measured {
    /// MN.
    particles: f64,
    error: f64,
    relative_standard_error: f64,
}

impl Member {
    fn run(self, scratch: &Scratch, model: &Gaussian) -> Measured {
        let overrides = [
            format!("dataset.size={}", self.points),
            format!("run.batch_size={}", self.points),
            format!("algorithm.particles={}", self.particles),
            format!("algorithm.step_size={}", model.step),
            format!("run.epochs={}", self.steps),
            format!("run.seed={}", self.seed),
            format!("evaluate.every={EVERY}"),
            "record={metrics: {every: 0}, tensorboard: {every: 0}}".to_owned(),
        ];
        let mut arguments = vec!["--recipe", "theory"];
        arguments.extend(overrides.iter().flat_map(|text| ["--set", text]));
        let outcome = scratch.runner_with_env(&arguments, &[("RUST_LOG", "warn")]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let errors: Vec<_> = metrics(&outcome.folder(scratch))
            .iter()
            .filter(|line| line["step"].as_u64().unwrap() > BURN_IN)
            .filter_map(|line| line["evaluate/parameter_error"].as_f64())
            .collect();
        assert_eq!(errors.len() as u64, (self.steps - BURN_IN) / EVERY);
        Measured {
            particles: (self.points * self.particles) as f64,
            error: errors.iter().sum::<f64>() / errors.len() as f64,
            relative_standard_error: model.relative_standard_error(errors.len()),
        }
    }
}

impl Measured {
    /// Equal to the exact value within five standard errors.
    ///
    /// Twice the variance of the noise on θ gives 1.82 times the error, on the particles 1.18 times, and half of it 0.59
    /// and 0.91 times; five standard errors are 0.07 to 0.14.
    #[track_caller]
    fn assert_exact(&self, model: &Gaussian) {
        let ratio = self.error / model.error(self.particles);
        assert!(
            (ratio - 1.0).abs() < 5.0 * self.relative_standard_error,
            "{self:?}: {ratio} of the exact value"
        );
    }
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
    let centre = weighted(&|point| point.particles.ln()) / total;
    let spread = weighted(&|point| (point.particles.ln() - centre).powi(2));
    let slope = weighted(&|point| (point.particles.ln() - centre) * point.error.ln()) / spread;
    [slope, spread.sqrt().recip()]
}

/// The error is what it should be for each MN, however it is split, so that it falls like 1/(MN), below the bound.
#[test]
fn the_error_falls_with_the_number_of_particles_as_theorem_1_says() {
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
        let [step, concentration] = model.bound(point.particles);
        assert!(point.error.sqrt() < step + concentration, "{point:?}");
        // The step's term is larger than the others by far; without a floor, the error is even below the last alone.
        assert!(point.error.sqrt() < concentration, "{point:?}");
    }
    let [slope, standard_error] = slope(&points);
    println!("slope {slope:.4} ± {standard_error:.4}; {points:#?}");
    assert!(standard_error < 0.05);
    assert!((slope + 1.0).abs() < 3.0 * standard_error, "{slope}");
}

/// A step twice as long, near the largest that the theorem allows, makes the error larger by a factor and no more.
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

#[test]
fn a_vanishing_step_leaves_the_variance_of_the_target() {
    let model = Gaussian {
        dim: 1.0,
        sigma: 0.7,
        step: 1e-9,
    };
    assert!((model.error(100.0) - (1.0 + 0.49) / 100.0).abs() < 1e-9);
}

/// Before the first step α is 0, and all data lie at 0.5 in 40 dimensions: 40 · 0.25.
#[test]
fn parameter_error_by_hand() {
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
fn parameter_error_refuses_models_whose_maximiser_it_does_not_know() {
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
