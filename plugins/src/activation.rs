//! The networks' activation functions, on tensors and on CPU vectors.

use std::f32::consts::{FRAC_1_SQRT_2, LN_2, LOG2_E};

use ebipla_core::prelude::*;
use pulp::Simd;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// z·sigmoid(z).
    Silu,
    /// max(0, z).
    Relu,
    /// z where z is positive, slope·z elsewhere.
    LeakyRelu,
    /// z·Φ(z), where Φ is the standard normal distribution function.
    Gelu,
}

/// The slope of [`Activation::LeakyRelu`] in Pang et al. 2020 and in the paper.
pub const SLOPE: f64 = 0.2;

impl Activation {
    /// Adds the slope that leaky_relu uses where z is negative.
    pub fn with_slope(self, slope: f64) -> Nonlinearity {
        match self {
            Activation::Silu => Nonlinearity::Silu,
            Activation::Relu => Nonlinearity::Relu,
            Activation::LeakyRelu => Nonlinearity::LeakyRelu(slope),
            Activation::Gelu => Nonlinearity::Gelu,
        }
    }
}

/// An activation with all its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Nonlinearity {
    Silu,
    Relu,
    LeakyRelu(f64),
    Gelu,
}

impl Nonlinearity {
    pub fn apply(self, z: &Tensor) -> Tensor {
        match self {
            Nonlinearity::Silu => z.silu(),
            Nonlinearity::Relu => z.relu(),
            // tch's leaky_relu fixes the slope to 0.01. Its derivative at z takes a slope; multiplied by z it gives the
            // same result, and libtorch differentiates that product in one pass.
            Nonlinearity::LeakyRelu(slope) => z.detach().leaky_relu_backward(z, slope, false),
            Nonlinearity::Gelu => z.gelu("none"),
        }
    }

    /// Writes the activation to `out`.
    pub fn apply_out(self, z: &Tensor, out: &Tensor) -> Tensor {
        match self {
            Nonlinearity::Silu => z.silu_out(out),
            Nonlinearity::Relu => z.relu_out(out),
            Nonlinearity::LeakyRelu(_) => self.backward_out(z, z, out),
            Nonlinearity::Gelu => z.gelu_out(out, "none"),
        }
    }

    /// Writes `upstream` times the derivative at `z` to `out`.
    pub fn backward_out(self, z: &Tensor, upstream: &Tensor, out: &Tensor) -> Tensor {
        match self {
            Nonlinearity::Silu => z.silu_backward_grad_input(out, upstream),
            Nonlinearity::Relu => z.threshold_backward_grad_input(out, upstream, 0.0),
            Nonlinearity::LeakyRelu(slope) => z.leaky_relu_backward_grad_input(out, upstream, slope, false),
            Nonlinearity::Gelu => z.gelu_backward_grad_input(out, upstream, "none"),
        }
    }

    /// Replaces each z by its activation and writes the derivatives to `slopes`.
    #[inline(always)]
    pub fn apply_with_slopes<S: Simd>(self, simd: S, z: &mut [S::f32s], slopes: &mut [S::f32s]) {
        let places = z.iter_mut().zip(slopes);
        match self {
            Nonlinearity::Silu => {
                for (z, slope) in places {
                    [*z, *slope] = silu(simd, *z);
                }
            }
            Nonlinearity::Relu => {
                for (z, slope) in places {
                    [*z, *slope] = leaky_relu(simd, *z, 0.0);
                }
            }
            Nonlinearity::LeakyRelu(below) => {
                for (z, slope) in places {
                    [*z, *slope] = leaky_relu(simd, *z, below as f32);
                }
            }
            Nonlinearity::Gelu => {
                for (z, slope) in places {
                    [*z, *slope] = gelu(simd, *z);
                }
            }
        }
    }
}

/// The activation z·σ(z) and its derivative.
#[inline(always)]
fn silu<S: Simd>(simd: S, z: S::f32s) -> [S::f32s; 2] {
    let one = simd.splat_f32s(1.0);
    let sigmoid = simd.div_f32s(one, simd.add_f32s(one, exp(simd, simd.neg_f32s(z))));
    let value = simd.mul_f32s(z, sigmoid);
    let slope = simd.mul_add_e_f32s(simd.sub_f32s(one, sigmoid), value, sigmoid);
    [value, slope]
}

/// The activation with slope `below` for negative z, and its derivative.
#[inline(always)]
fn leaky_relu<S: Simd>(simd: S, z: S::f32s, below: f32) -> [S::f32s; 2] {
    let positive = simd.greater_than_f32s(z, simd.splat_f32s(0.0));
    let slope = simd.select_f32s(positive, simd.splat_f32s(1.0), simd.splat_f32s(below));
    [simd.mul_f32s(slope, z), slope]
}

/// The activation z·Φ(z) and its derivative.
#[inline(always)]
fn gelu<S: Simd>(simd: S, z: S::f32s) -> [S::f32s; 2] {
    let half = simd.mul_f32s(z, simd.splat_f32s(-0.5));
    let density = exp(simd, simd.mul_f32s(half, z));
    let below = normal_cdf(simd, z, density);
    let scaled = simd.mul_f32s(z, simd.splat_f32s(0.398_942_3));
    [
        simd.mul_f32s(z, below),
        simd.mul_add_e_f32s(scaled, density, below),
    ]
}

/// eˣ to two units in the last place: 2ⁿ from the exponent bits, eʳ with |r| ≤ ½ln 2 from its Taylor series.
#[inline(always)]
fn exp<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    /// 1.5·2²³: adding it leaves the nearest integer in the low bits.
    const SHIFT: f32 = 12_582_912.0;
    /// The upper bits of ln 2, which make n·LN_2_HIGH exact.
    const LN_2_HIGH: f32 = 0.693_145_75;
    const LN_2_LOW: f32 = 1.428_606_8e-6;
    debug_assert!((f64::from(LN_2_HIGH) + f64::from(LN_2_LOW) - f64::from(LN_2)).abs() < 1e-7);

    let x = simd.max_f32s(x, simd.splat_f32s(-87.0));
    let x = simd.min_f32s(x, simd.splat_f32s(88.0));
    let shift = simd.splat_f32s(SHIFT);
    let shifted = simd.mul_add_e_f32s(x, simd.splat_f32s(LOG2_E), shift);
    let n = simd.sub_f32s(shifted, shift);
    let r = simd.mul_add_e_f32s(n, simd.splat_f32s(-LN_2_HIGH), x);
    let r = simd.mul_add_e_f32s(n, simd.splat_f32s(-LN_2_LOW), r);
    let series = [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];
    let power = polynomial(simd, r, series);
    let exponent = simd.wrapping_dyn_shl_u32s(simd.transmute_u32s_f32s(shifted), simd.splat_u32s(23));
    let scale = simd.add_u32s(exponent, simd.splat_u32s(1.0f32.to_bits()));
    simd.mul_f32s(power, simd.transmute_f32s_u32s(scale))
}

/// Φ(z), given exp(−z²/2), to 1.5e-7 (Abramowitz & Stegun 7.1.26).
#[inline(always)]
fn normal_cdf<S: Simd>(simd: S, z: S::f32s, density: S::f32s) -> S::f32s {
    let one = simd.splat_f32s(1.0);
    let scale = simd.splat_f32s(0.327_591_1 * FRAC_1_SQRT_2);
    let t = simd.div_f32s(one, simd.mul_add_e_f32s(simd.abs_f32s(z), scale, one));
    let series = [1.061_405_4, -1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6];
    let polynomial = simd.mul_f32s(t, polynomial(simd, t, series));
    let tail = simd.mul_f32s(simd.mul_f32s(simd.splat_f32s(0.5), density), polynomial);
    let positive = simd.greater_than_f32s(z, simd.splat_f32s(0.0));
    simd.select_f32s(positive, simd.sub_f32s(one, tail), tail)
}

/// Horner's scheme, highest coefficient first.
#[inline(always)]
fn polynomial<S: Simd, const TERMS: usize>(simd: S, x: S::f32s, coefficients: [f32; TERMS]) -> S::f32s {
    let mut sum = simd.splat_f32s(0.0);
    for coefficient in coefficients {
        sum = simd.mul_add_e_f32s(x, sum, simd.splat_f32s(coefficient));
    }
    sum
}
