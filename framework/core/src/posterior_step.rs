//! Says which steps an algorithm takes towards the posterior, and what their size does to it.

/// How far the variance may be from the posterior's at a step that is called right.
const TOLERANCE: f64 = 0.05;

/// A step size of an algorithm, and the law that particles have with it.
///
/// Where φ = U + V has the curvature λ in some direction, an exact sampler gives the posterior variance τ/λ there. Every
/// step size gives another variance, which is known for a φ that is quadratic.
pub struct PosteriorStep {
    option: &'static str,
    value: f64,
    raw: f64,
    order: i32,
    variance: Box<dyn Fn(f64, f64) -> f64>,
}

impl PosteriorStep {
    /// The step that the option with this dotted key sets to `value`, which is `raw` in the units of the latent space.
    ///
    /// `order` is the power of the step that has no unit when multiplied by a curvature: 1 for Langevin steps, 2 for steps
    /// in time. `variance` gives the stationary variance at a raw step and a curvature, as a multiple of τ/λ; infinity
    /// where particles fly apart.
    pub fn new(
        option: &'static str,
        value: f64,
        raw: f64,
        order: i32,
        variance: impl Fn(f64, f64) -> f64 + 'static,
    ) -> Self {
        Self {
            option,
            value,
            raw,
            order,
            variance: Box::new(variance),
        }
    }

    /// x ← x − h∇φ + √(2hτ)ξ: the variance is 1/(1 − hλ/2) times the posterior's, or 0 at temperature 0.
    pub fn langevin(option: &'static str, value: f64, raw: f64, temperature: f64) -> Self {
        Self::new(option, value, raw, 1, move |step, curvature| {
            if temperature > 0.0 {
                Self::langevin_variance(step * curvature)
            } else if step * curvature < 2.0 {
                0.0
            } else {
                f64::INFINITY
            }
        })
    }

    /// What [`Self::langevin`] has for hλ.
    pub fn langevin_variance(product: f64) -> f64 {
        if product < 2.0 {
            1.0 / (1.0 - product / 2.0)
        } else {
            f64::INFINITY
        }
    }

    /// The particles' variance as a multiple of the posterior's, where the curvature is `curvature`.
    pub fn variance(&self, curvature: f64) -> f64 {
        (self.variance)(self.raw, curvature)
    }

    /// Twice the curvature, as elsewhere or later in the run, would let particles fly apart, or this one does.
    pub fn is_too_large(&self, curvature: f64) -> bool {
        self.variance(2.0 * curvature).is_infinite()
    }

    /// How far a step moves a particle by its noise, in latent units.
    pub fn reach(&self) -> f64 {
        match self.order {
            1 => (2.0 * self.raw).sqrt(),
            _ => self.raw,
        }
    }

    /// A value of the option with which the variance is within 5 % of the posterior's, if the present one is not.
    fn better_value(&self, curvature: f64) -> Option<f64> {
        let right = |step: f64| {
            ((self.variance)(step, curvature) - 1.0).abs() <= TOLERANCE
                && (self.variance)(step, 2.0 * curvature).is_finite()
        };
        let shares = std::iter::successors(Some(1.0), |share: &f64| Some(share * 0.995));
        let share = shares.take(4000).find(|share| right(self.raw * share))?;
        (share < 1.0).then(|| rounded_down(self.value * share))
    }

    /// The product of step and curvature from which particles fly apart.
    fn limit(&self) -> f64 {
        let [mut stable, mut unstable] = [0.0, 1e6];
        for _ in 0..100 {
            let middle = (stable + unstable) / 2.0;
            match self.variance(middle / self.raw.powi(self.order)).is_finite() {
                true => stable = middle,
                false => unstable = middle,
            }
        }
        unstable
    }

    /// What the step does where the largest curvature is `curvature`, which was found at `place`.
    pub fn describe(&self, curvature: f64, place: &str) -> String {
        let step = match self.order {
            1 => "h",
            _ => "h²",
        };
        let product = curvature * self.raw.powi(self.order);
        let mut text = format!(
            "{} {} ({:.4} raw): {step} × curvature is up to {product:.3} {place}",
            self.option, self.value as f32, self.raw as f32
        );
        let variance = self.variance(curvature);
        if variance.is_infinite() {
            text += &format!(", and from {:.3} on particles fly apart", self.limit());
        } else {
            text += &format!(
                "; the particles' variance is {variance:.2} times the posterior's in the stiffest direction"
            );
            if self.is_too_large(curvature) {
                text += &format!(", and they fly apart from {:.3} on", self.limit());
            }
        }
        if let Some(better) = self.better_value(curvature) {
            text += &format!("; {} {better} would keep it within 5 %", self.option);
        }
        text
    }
}

/// To two digits, towards zero.
fn rounded_down(value: f64) -> f64 {
    let unit = 10f64.powf(value.abs().log10().floor() - 1.0);
    let rounded = (value / unit).floor() * unit;
    // Without the error that the product has in its last digits.
    format!("{rounded:.2e}").parse().unwrap_or(rounded)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step of 0.9 in units of 0.0025.
    fn langevin() -> PosteriorStep {
        PosteriorStep::langevin("algorithm.step_size", 0.9, 0.00225, 1.0)
    }

    #[test]
    fn langevin_steps_inflate_the_variance_until_they_are_unstable() {
        let step = langevin();
        // hλ = 0.1, 0.4, 1 and 2.
        for (product, variance) in [(0.1, 1.0 / 0.95), (0.4, 1.25), (1.0, 2.0), (2.0, f64::INFINITY)] {
            let found = step.variance(product / 0.00225);
            assert!(
                found == variance || (found / variance - 1.0).abs() < 1e-9,
                "{found}"
            );
        }
        assert!(!step.is_too_large(0.99 / 0.00225) && step.is_too_large(1.01 / 0.00225));
        assert!((step.limit() - 2.0).abs() < 1e-6);
    }

    #[test]
    fn without_noise_there_is_no_variance_but_a_limit() {
        let step = PosteriorStep::langevin("algorithm.step_size", 0.9, 0.9, 0.0);
        assert_eq!(step.variance(1.0), 0.0);
        assert_eq!(step.variance(3.0), f64::INFINITY);
        assert_eq!(step.better_value(3.0), None);
    }

    /// 1/(1 − hλ/2) ≤ 1.05 at hλ ≤ 0.0952, which the option has at 0.0952; the largest share 0.995ᵏ below that is 0.0948.
    #[test]
    fn a_step_that_would_be_right_is_named_in_the_units_of_the_option() {
        let text = langevin().describe(0.9 / 0.00225, "at 16 particles");
        assert_eq!(
            text,
            "algorithm.step_size 0.9 (0.0022 raw): h × curvature is up to 0.900 at 16 particles; the particles' variance is \
             1.82 times the posterior's in the stiffest direction; algorithm.step_size 0.094 would keep it within 5 %"
        );
        let unstable = langevin().describe(1000.0, "there");
        assert!(
            unstable
                .contains("is up to 2.250 there, and from 2.000 on particles fly apart; algorithm.step_size"),
            "{unstable}"
        );
        let small = langevin().describe(1.0, "there");
        assert!(
            small.ends_with("1.00 times the posterior's in the stiffest direction"),
            "{small}"
        );
    }

    #[test]
    fn no_curvature_is_no_problem() {
        let step = langevin();
        assert_eq!(step.variance(0.0), 1.0);
        assert!(!step.is_too_large(0.0) && step.better_value(0.0).is_none());
    }
}
