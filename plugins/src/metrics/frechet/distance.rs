//! The Fréchet distance between two Gaussians, d² = ‖μ₁ − μ₂‖² + tr(Σ₁ + Σ₂ − 2(Σ₁Σ₂)^½).

use anyhow::Context;
use ebipla_core::interruption_point;
use ebipla_core::prelude::*;
use tch::Kind;

use super::moments::Moments;

/// The squared distance, commonly called the Fréchet distance.
///
/// Σ₁Σ₂ has the eigenvalues of Σ₁^½ Σ₂ Σ₁^½, which is symmetric: the trace of its root is the sum of their roots. This
/// equals `sqrtm`'s result, without its problems for singular covariances.
pub fn squared_distance(one: &Moments, other: &Moments) -> anyhow::Result<f64> {
    let _guard = tch::no_grad_guard();
    let root = square_root(&one.covariance)?;
    interruption_point();
    let product = root.matmul(&other.covariance).matmul(&root);
    let product = (&product + product.transpose(0, 1)) * 0.5;
    let eigenvalues = product
        .f_linalg_eigvalsh("L")
        .context("eigenvalues of a product of covariances")?;
    // Zero eigenvalues come out as tiny numbers of either sign.
    let cross = eigenvalues.clamp_min(0.0).sqrt().sum(Kind::Double);
    let means = (&one.mean - &other.mean).square().sum(Kind::Double);
    let squared = means + one.covariance.trace() + other.covariance.trace() - cross * 2.0;
    Ok(squared.double_value(&[]))
}

/// The symmetric square root of a symmetric matrix without negative eigenvalues.
fn square_root(matrix: &Tensor) -> anyhow::Result<Tensor> {
    let (values, vectors) = matrix.f_linalg_eigh("L").context("eigenvalues of a covariance")?;
    Ok((&vectors * values.clamp_min(0.0).sqrt()).matmul(&vectors.transpose(0, 1)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn gaussian(mean: &[f64], covariance: &Tensor) -> Moments {
        Moments {
            mean: Tensor::from_slice(mean),
            covariance: covariance.shallow_clone(),
        }
    }

    fn diagonal(variances: &[f64]) -> Tensor {
        Tensor::from_slice(variances).diag(0)
    }

    /// A rotation in the plane of the first two axes.
    fn rotation(angle: f64) -> Tensor {
        let (sin, cos) = angle.sin_cos();
        Tensor::from_slice(&[cos, -sin, 0.0, sin, cos, 0.0, 0.0, 0.0, 1.0]).view([3, 3])
    }

    #[track_caller]
    fn assert_near(found: f64, expected: f64) {
        assert!(
            (found - expected).abs() < 1e-12 * (1.0 + expected.abs()),
            "{found}, expected {expected}"
        );
    }

    /// For diagonal covariances it is ‖μ₁ − μ₂‖² + Σ(σ₁ − σ₂)²: 9 + 16 and 1 + 4 + 0. One variance is 0.
    #[test]
    fn diagonal_covariances_match_the_closed_form() {
        let one = gaussian(&[1.0, 2.0, 3.0], &diagonal(&[1.0, 4.0, 0.0]));
        let other = gaussian(&[4.0, -2.0, 3.0], &diagonal(&[4.0, 16.0, 0.0]));
        assert_near(squared_distance(&one, &other).unwrap(), 30.0);
        assert_near(squared_distance(&one, &one).unwrap(), 0.0);
    }

    /// Covariances with the same axes commute; turning both changes nothing.
    #[test]
    fn commuting_covariances_match_the_closed_form() {
        let turned = |variances: &[f64]| {
            let axes = rotation(0.7);
            axes.matmul(&diagonal(variances)).matmul(&axes.transpose(0, 1))
        };
        let one = gaussian(&[0.0; 3], &turned(&[1.0, 4.0, 9.0]));
        let other = gaussian(&[0.0; 3], &turned(&[16.0, 1.0, 1.0]));
        assert_near(squared_distance(&one, &other).unwrap(), 9.0 + 1.0 + 4.0);
    }

    /// In the plane, tr(AB)^½ = √(tr AB + 2√(det A det B)) by the Cayley–Hamilton theorem. Here A and B do not commute,
    /// and the distance is symmetric.
    #[test]
    fn noncommuting_covariances_match_the_closed_form() {
        let a = Tensor::from_slice(&[2.0, 1.0, 1.0, 3.0]).view([2, 2]);
        let b = Tensor::from_slice(&[5.0, -2.0, -2.0, 1.0]).view([2, 2]);
        // tr AB = 10 − 2 − 2 + 3 = 9, det A = 5, det B = 1.
        let expected = (2.0 + 3.0) + (5.0 + 1.0) - 2.0 * (9.0 + 2.0 * 5f64.sqrt()).sqrt();
        let (one, other) = (gaussian(&[0.0; 2], &a), gaussian(&[0.0; 2], &b));
        assert_near(squared_distance(&one, &other).unwrap(), expected);
        assert_near(squared_distance(&other, &one).unwrap(), expected);
    }
}
