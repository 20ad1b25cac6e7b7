//! Estimates the mean of the latents of data points under the posterior.

use ebipla_core::{Draws, Model, Wanted, interruption_point};
use tch::Tensor;

/// Langevin chains on the posterior of each data point: x ← x − h∇φ(x) + √(2h)ξ.
#[derive(Clone, Copy, Debug)]
pub struct PosteriorMean {
    /// Steps of each chain; the mean is that of the second half.
    pub steps: u32,
    /// Raw step size h.
    pub step_size: f64,
}

impl PosteriorMean {
    /// The mean of a chain for each of the points `y`, from the rows of `start`.
    pub fn estimate(&self, model: &Model, y: &Tensor, start: &Tensor, draws: &mut Draws) -> Tensor {
        let _guard = tch::no_grad_guard();
        let mut x = start.copy();
        let mut sum = x.zeros_like();
        let from = self.steps / 2;
        for step in 0..self.steps {
            interruption_point();
            let gradient = model.joint(&x, y, Wanted::Latents).latent;
            x -= gradient * self.step_size;
            draws.add_normal(&mut x, (2.0 * self.step_size).sqrt());
            if step >= from {
                sum += &x;
            }
        }
        sum / f64::from((self.steps - from).max(1))
    }
}

#[cfg(test)]
mod tests {
    use ebipla_core::{Random, testing};
    use tch::Device;

    use super::*;

    /// With U(x) = Σxᵢ and g(x) = x, φ = Σxᵢ + ‖y − x‖²/(2σ²): the posterior is N(y − σ², σ²I).
    ///
    /// A chain with step h = cσ² is an autoregression with coefficient 1 − c and variance σ²/(1 − c/2), so that the mean
    /// of n steps has variance about (2/(cn))σ²; over 200 chains of two coordinates, with n = 200 and c = 0.2, five
    /// standard errors are 5√(2/(0.2·200)/400)σ = 0.056σ.
    #[test]
    fn a_gaussian_posterior_has_a_known_mean() {
        let sigma = 0.3;
        let model = testing::model(sigma);
        let chains = PosteriorMean {
            steps: 400,
            step_size: 0.2 * sigma * sigma,
        };
        let mut random = Random::new(4);
        let mut draws = random.stream("chains", 0);
        let y = draws.normal(&[200, 2], Device::Cpu);
        let means = chains.estimate(&model, &y, &y, &mut draws);
        let off = (means - (&y - sigma * sigma))
            .mean(tch::Kind::Double)
            .double_value(&[]);
        assert!(off.abs() < 0.056 * sigma, "{off}");
    }
}
