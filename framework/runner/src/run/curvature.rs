//! Estimates how strongly φ = U + V is curved at particles, since a step size is only large or small beside that.

use ebipla_core::{Draws, Model, gradient};
use tch::{Kind, Tensor};

/// Power iterations.
const ITERATIONS: usize = 10;

/// The largest eigenvalue of the Hessian of φ(x, y) in x over all rows, from below.
///
/// Each row has a power iteration of its own. A product with its Hessian is the difference of two gradients that are
/// `distance` apart, so that nothing is asked of a network but what training asks, and kinks, as in a network with ReLU,
/// count as the curvature that they are over that distance. The gradients are not counted as the run's.
pub fn largest(model: &Model, x: &Tensor, y: &Tensor, distance: f64, draws: &mut Draws) -> f64 {
    let _guard = tch::no_grad_guard();
    let dot = |a: &Tensor, b: &Tensor| (a * b).sum_dim_intlist(1, true, a.kind());
    let unit = |v: Tensor| &v / dot(&v, &v).sqrt().clamp_min(f64::from(f32::MIN_POSITIVE));
    let here = gradient_of_phi(model, x, y);
    let mut direction = unit(draws.normal_like(x));
    let mut found = Tensor::full([], f64::NEG_INFINITY, (x.kind(), x.device()));
    // Where the most negative eigenvalue is the largest in size, adding its size to all of them makes it the smallest.
    let mut shift = dot(x, x).zeros_like();
    for _ in 0..ITERATIONS {
        let product = (gradient_of_phi(model, &(x + &direction * distance), y) - &here) / distance;
        let curvature = dot(&direction, &product);
        found = found.maximum(&curvature.max());
        shift = shift.maximum(&-curvature);
        direction = unit(product + &shift * direction);
    }
    found.to_kind(Kind::Double).double_value(&[])
}

fn gradient_of_phi(model: &Model, x: &Tensor, y: &Tensor) -> Tensor {
    let x = gradient::leaf(x);
    let phi = tch::with_grad(|| model.energy.energy(&x) + model.reconstruction(&x, y));
    gradient::gradients(&phi, &[x]).remove(0)
}

#[cfg(test)]
mod tests {
    use ebipla_core::{Energy, Generator, Parameters, Random};
    use tch::Device;

    use super::*;

    /// U(x) = Σ cᵢxᵢ²/2 with as many curvatures as dimensions.
    struct Curved(Tensor, Parameters);

    impl Energy for Curved {
        fn parameters(&self) -> &Parameters {
            &self.1
        }

        fn energy(&self, x: &Tensor) -> Tensor {
            (x.square() * &self.0 / 2.0).sum_dim_intlist(1, false, x.kind())
        }
    }

    /// g(x) = W·max(x, 0), or Wx.
    struct Layer {
        weight: Tensor,
        rectified: bool,
        parameters: Parameters,
    }

    impl Generator for Layer {
        fn parameters(&self) -> &Parameters {
            &self.parameters
        }

        fn latent_dim(&self) -> i64 {
            self.weight.size()[1]
        }

        fn generate(&self, x: &Tensor) -> Tensor {
            let x = if self.rectified {
                x.relu()
            } else {
                x.shallow_clone()
            };
            x.matmul(&self.weight.tr())
        }
    }

    fn curvature(energy: &[f32], weight: &[f32], sigma: f64, rectified: bool) -> f64 {
        let dim = energy.len() as i64;
        let energy = Curved(Tensor::from_slice(energy), Parameters::new());
        let generator = Layer {
            weight: Tensor::from_slice(weight).view([-1, dim]),
            rectified,
            parameters: Parameters::new(),
        };
        let outputs = generator.weight.size()[0];
        let model = Model::new(Box::new(energy), Box::new(generator), sigma);
        let mut random = Random::new(1);
        let mut draws = random.stream("test", 0);
        let x = draws.normal(&[16, dim], Device::Cpu);
        let y = Tensor::zeros([16, outputs], (Kind::Float, Device::Cpu));
        let before = model.gradient_count();
        let found = largest(&model, &x, &y, 0.05, &mut draws);
        assert_eq!(model.gradient_count(), before, "they are not the run's");
        found
    }

    #[track_caller]
    fn close(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 0.01, "{found} for {expected}");
    }

    #[test]
    fn it_is_that_of_energy_and_decoder_together() {
        close(curvature(&[3.0, 1.0, 0.5], &[0.0; 3], 1.0, false), 3.0);
        // WᵀW/σ² = diag(1, 4)/0.25.
        close(curvature(&[1.0, 1.0], &[1.0, 0.0, 0.0, 2.0], 0.5, false), 17.0);
    }

    /// Descent does not diverge along a direction in which φ falls away, however steeply.
    #[test]
    fn the_largest_is_not_the_most_negative() {
        close(curvature(&[2.0, -50.0, 1.0], &[0.0; 3], 1.0, false), 2.0);
        close(curvature(&[-3.0, -50.0], &[0.0; 2], 1.0, false), -3.0);
    }

    /// With ReLU, a second derivative by autograd has WᵀW/σ² as well; both coordinates are positive in some of 16 rows.
    #[test]
    fn it_works_with_kinks() {
        let found = curvature(&[0.0, 0.0], &[1.0, 0.0, 0.0, 2.0], 0.5, true);
        assert!((15.9..17.0).contains(&found), "{found}");
    }

    #[test]
    fn a_flat_model_has_none() {
        assert_eq!(curvature(&[0.0, 0.0], &[0.0, 0.0], 1.0, false), 0.0);
    }
}
