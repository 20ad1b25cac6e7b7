//! The stationary distribution of the recipe `theory`, derived by hand.

use crate::support::Scratch;

/// The model of `theory.yaml`, of which one coordinate is φ_y(θ, x) = ½(x − θ)² + (x − y)²/(2σ²).
///
/// The Hessian of φ_y in (θ, x) is A = [[1, −1], [−1, 1 + 1/σ²]] for every y and everywhere: assumptions 1 and 2 of the
/// paper hold with μ and L its two eigenvalues. In d dimensions each of them occurs d times, which changes neither.
///
/// # The dynamics
///
/// Only the mean x̄ of all MN particles acts on θ. The mean of their noises has variance 2h/MN, as does θ's own noise.
/// E[∇_θ U] = θ − E[x] under the prior is 0 where it is exact. Where it is estimated by M chains of J steps γ
/// from N(0, 1), these are x' = x − γ(x − θ) + √(2γ)ξ, so that with ρ = (1 − γ)^J
///
/// > E[X̂_J] = (1 − ρ)θ, Var(X̂_J) = ρ² + (1 − ρ²)/(1 − γ/2),
///
/// and the estimate is ρθ plus a noise of variance Var(X̂_J)/M. Both cases together, with ρ = 0 in the first of them:
///
/// > θ' = θ − h((1 − ρ)θ − x̄) + noise of variance q_θ, x̄' = x̄ − h((x̄ − θ) + (x̄ − ȳ)/σ²) + noise of variance q_x,
/// > q_θ = 2h/MN + h²·Var(X̂_J)/M, q_x = 2h/MN.
///
/// # The mean
///
/// The fixed point satisfies (1 − ρ)θ = x̄ and (1 + σ²)x̄ = σ²θ + ȳ, hence θ = ȳ/(1 − ρ(1 + σ²)). The maximiser is ȳ:
/// the bias is ȳρ(1 + σ²)/(1 − ρ(1 + σ²)), independent of M, N and h.
///
/// # The covariance
///
/// With H = [[1 − ρ, −1], [−1, 1 + 1/σ²]], the deviation u from the fixed point follows u' = (I − hH)u + noise, so its
/// covariance solves S = (I − hH)S(I − hH) + diag(q_θ, q_x). In the basis of the eigenvectors (1, 1 − ρ − λ) of H,
/// whose eigenvalues are λᵢ, that is Sᵢⱼ = Qᵢⱼ/(1 − (1 − hλᵢ)(1 − hλⱼ)); the covariance over a lag l is (I − hH)ˡS.
///
/// For ρ = 0 and without chains this is (A − hA²/2)⁻¹/MN, which for h → 0 becomes (A⁻¹)₁₁/MN = (1 + σ²)/MN, the
/// variance of exp(MN·ℓ_M). The step adds (h/2)·((I − hA/2)⁻¹)₁₁: of order h *relative* to the error, and also divided
/// by MN. Linear dynamics have no bias in the mean, so there is no floor at which the error stops decreasing: the
/// bound's term C₁√h is not attained. With chains there is one, due to the bias.
#[derive(Clone, Debug)]
pub struct Gaussian {
    pub dim: f64,
    pub sigma: f64,
    pub step: f64,
    /// The chains that estimate the prior expectation; `None` where it is exact.
    pub chains: Option<Chains>,
}

/// Prior chains by ULA from N(0, I).
#[derive(Clone, Copy, Debug)]
pub struct Chains {
    /// J.
    pub steps: i32,
    /// γ.
    pub step_size: f64,
}

/// Number of data points and particles, and the norm of the data's mean.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// M.
    pub points: f64,
    /// N.
    pub particles: f64,
    /// ‖ȳ‖² of the given data.
    pub squared_mean: f64,
}

impl Chains {
    /// ρ, the remaining influence of the start.
    fn left(self) -> f64 {
        (1.0 - self.step_size).powi(self.steps)
    }

    /// Var(X̂_J).
    fn variance(self) -> f64 {
        let squared = self.left().powi(2);
        squared + (1.0 - squared) / (1.0 - self.step_size / 2.0)
    }
}

impl Gaussian {
    /// With the exact prior expectation, as in the recipe itself.
    pub fn of_recipe(scratch: &Scratch) -> Self {
        let shown = scratch.runner(&["show", "--recipe", "theory", "--json"]).json();
        let number = |section: &str, option: &str| shown["recipe"][section][option].as_f64().unwrap();
        Self {
            dim: number("dataset", "dim"),
            sigma: number("decoder", "sigma"),
            step: number("algorithm", "step_size"),
            chains: None,
        }
    }

    /// ρ, or 0 where the prior expectation is exact.
    fn left(&self) -> f64 {
        self.chains.map_or(0.0, Chains::left)
    }

    /// Smaller and larger eigenvalue of H.
    fn eigenvalues(&self) -> [f64; 2] {
        let [first, last] = [1.0 - self.left(), 1.0 + 1.0 / (self.sigma * self.sigma)];
        let half_trace = (first + last) / 2.0;
        let root = (half_trace * half_trace - (first * last - 1.0)).sqrt();
        [half_trace - root, half_trace + root]
    }

    /// μ and L: the eigenvalues for the exact prior expectation.
    fn mu_and_l(&self) -> [f64; 2] {
        let exact = Self {
            chains: None,
            ..self.clone()
        };
        exact.eigenvalues()
    }

    /// The covariance of one coordinate of θₖ and θₖ₊ₗ, where l is `lag`.
    pub fn covariance(&self, size: Size, lag: i32) -> f64 {
        let shared = 2.0 * self.step / (size.points * size.particles);
        let of_chains = self.chains.map_or(0.0, Chains::variance) / size.points;
        let noise = [shared + self.step * self.step * of_chains, shared];
        let eigenvalues = self.eigenvalues();
        let vectors = eigenvalues.map(|eigenvalue| {
            let second = 1.0 - self.left() - eigenvalue;
            let length = (1.0 + second * second).sqrt();
            [1.0 / length, second / length]
        });
        let kept = eigenvalues.map(|eigenvalue| 1.0 - self.step * eigenvalue);
        let mut sum = 0.0;
        for (one, kept_one) in vectors.iter().zip(kept) {
            for (other, kept_other) in vectors.iter().zip(kept) {
                let noise = one[0] * noise[0] * other[0] + one[1] * noise[1] * other[1];
                sum += one[0] * kept_one.powi(lag) * noise / (1.0 - kept_one * kept_other) * other[0];
            }
        }
        sum
    }

    /// ‖E θ − θ*‖².
    pub fn squared_bias(&self, size: Size) -> f64 {
        let share = self.left() * (1.0 + self.sigma * self.sigma);
        size.squared_mean * (share / (1.0 - share)).powi(2)
    }

    /// E‖θₖ − θ*‖² in the stationary state.
    pub fn error(&self, size: Size) -> f64 {
        self.squared_bias(size) + self.dim * self.covariance(size, 0)
    }

    /// Standard error of the mean of n measurements `every` steps apart, relative to the error.
    ///
    /// A measurement is ‖b + u‖² with bias b and a Gaussian u, whose d coordinates have the covariance S over a lag.
    /// Two of them have the covariance 4‖b‖²S + 2dS². So the variance of the mean is (1/n)·(c₀ + 2Σₗ(1 − l/n)cₗ).
    pub fn relative_standard_error(&self, size: Size, measurements: u64, every: u64) -> f64 {
        let n = measurements as f64;
        let covariance = |lag: u64| {
            let of_theta = self.covariance(size, (lag * every) as i32);
            4.0 * self.squared_bias(size) * of_theta + 2.0 * self.dim * of_theta * of_theta
        };
        let tail: f64 = (1..measurements)
            .map(|lag| (1.0 - lag as f64 / n) * covariance(lag))
            .sum();
        ((covariance(0) + 2.0 * tail) / n).sqrt() / self.error(size)
    }

    /// Steps until the start is forgotten: 3·10⁻⁹ of a squared distance of about 1 in each coordinate, where the
    /// error is never below 10⁻⁴.
    pub fn burn_in(&self) -> u64 {
        let [slowest, _] = self.eigenvalues();
        (3e-9f64.ln() / (2.0 * (1.0 - self.step * slowest).ln())).ceil() as u64
    }

    /// The bound's terms: C̃₁√h, C̃₂/√(MN) and C̃₃; the first two are C₁√h and C₂/√(MN) where the expectation is exact.
    ///
    /// The term (1 − μh)ᵏC₀ is omitted: it has vanished, and only adds. The estimate of the prior expectation is off by
    /// ρθ, and θ starts at 0, so the assumption's δ² is the stationary ρ²E‖θ‖²; its σ² is d·Var(X̂_J)/M.
    pub fn bound(&self, size: Size) -> [f64; 3] {
        let [mu, l] = self.mu_and_l();
        assert!(
            self.step <= 2.0 / (mu + l),
            "the theorems do not hold for this step"
        );
        let particles = size.points * size.particles;
        let dimensions = ((self.dim + particles * self.dim) / particles).sqrt();
        let variance = self.chains.map_or(0.0, Chains::variance) * self.dim / size.points;
        let from_chains = variance / (1.64 * l * dimensions + (variance * mu).sqrt());
        let mean = size.squared_mean / (1.0 - self.left() * (1.0 + self.sigma * self.sigma)).powi(2);
        let squared_theta = mean + self.dim * self.covariance(size, 0);
        [
            (1.65 * l / mu * dimensions + from_chains) * self.step.sqrt(),
            (self.dim / (mu * particles)).sqrt(),
            self.left() * squared_theta.sqrt() / mu,
        ]
    }
}

#[test]
fn a_vanishing_step_leaves_the_variance_of_the_target() {
    let model = Gaussian {
        dim: 1.0,
        sigma: 0.7,
        step: 1e-9,
        chains: None,
    };
    let size = Size {
        points: 20.0,
        particles: 5.0,
        squared_mean: 1.0,
    };
    assert!((model.error(size) / ((1.0 + 0.49) / 100.0) - 1.0).abs() < 1e-6);
}

/// Compared with an independent simulation of the equations in NumPy (float64, 700,000 values of θ in each case):
/// it gave bias/ȳ 0.32206, 0.70230 and 0.50497, and variances 0.10065, 0.06718 and 0.12694.
#[test]
fn the_distribution_with_chains_matches_a_simulation() {
    for (chains, points, particles, bias, variance) in [
        ((20, 0.1), 5.0, 20.0, 0.322_06, 0.100_65),
        ((15, 0.1), 20.0, 4.0, 0.702_30, 0.067_18),
        ((8, 0.2), 4.0, 40.0, 0.504_97, 0.126_94),
    ] {
        let model = Gaussian {
            dim: 1.0,
            sigma: 1.0,
            step: 0.3,
            chains: Some(Chains {
                steps: chains.0,
                step_size: chains.1,
            }),
        };
        let size = Size {
            points,
            particles,
            squared_mean: 1.0,
        };
        assert!((model.squared_bias(size).sqrt() / bias - 1.0).abs() < 0.01);
        assert!((model.covariance(size, 0) / variance - 1.0).abs() < 0.02);
    }
}
