//! The activations of the networks, on tensors and on plain numbers.

use std::f32::consts::{FRAC_1_SQRT_2, LN_2, LOG2_E};

use ebipla_framework::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// z·sigmoid(z).
    Silu,
    /// max(0, z).
    Relu,
    /// z where it is positive, slope·z elsewhere.
    LeakyRelu,
    /// z·Φ(z), Φ the standard normal distribution function.
    Gelu,
}

/// The slope of [`Activation::LeakyRelu`] in Pang et al. 2020 and in the paper.
pub const SLOPE: f64 = 0.2;

impl Activation {
    /// With the slope that a leaky one has where z is negative.
    pub fn with_slope(self, slope: f64) -> Nonlinearity {
        match self {
            Activation::Silu => Nonlinearity::Silu,
            Activation::Relu => Nonlinearity::Relu,
            Activation::LeakyRelu => Nonlinearity::LeakyRelu(slope),
            Activation::Gelu => Nonlinearity::Gelu,
        }
    }
}

/// An activation with all that it takes to compute it.
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
            // tch's own leaky_relu fixes the slope to 0.01; PReLU is the same with the slope as a tensor.
            Nonlinearity::LeakyRelu(slope) => z.prelu(&Tensor::full([1], slope, (z.kind(), z.device()))),
            Nonlinearity::Gelu => z.gelu("none"),
        }
    }

    /// `upstream` times the derivative at `z`.
    pub fn backward(self, z: &Tensor, upstream: &Tensor) -> Tensor {
        match self {
            Nonlinearity::Silu => z.silu_backward(upstream),
            Nonlinearity::Relu => z.threshold_backward(upstream, 0.0),
            Nonlinearity::LeakyRelu(slope) => z.leaky_relu_backward(upstream, slope, false),
            Nonlinearity::Gelu => z.gelu_backward(upstream, "none"),
        }
    }

    /// Replaces each z by its activation, and writes the derivatives to `slopes`.
    ///
    /// Inlined where it is called, and free of branches, so that the compiler turns it into vector instructions.
    #[inline(always)]
    pub fn apply_with_slopes(self, z: &mut [f32], slopes: &mut [f32]) {
        match self {
            Nonlinearity::Silu => each(z, slopes, |z| {
                let sigmoid = 1.0 / (1.0 + exp(-z));
                let value = z * sigmoid;
                (value, (1.0 - sigmoid).mul_add(value, sigmoid))
            }),
            Nonlinearity::Relu => each(z, slopes, |z| (z.max(0.0), if z > 0.0 { 1.0 } else { 0.0 })),
            Nonlinearity::LeakyRelu(slope) => {
                let slope = slope as f32;
                each(z, slopes, |z| {
                    let slope = if z > 0.0 { 1.0 } else { slope };
                    (slope * z, slope)
                });
            }
            Nonlinearity::Gelu => each(z, slopes, |z| {
                let density = exp(-0.5 * z * z);
                let below = normal_cdf(z, density);
                (z * below, (z * 0.398_942_3).mul_add(density, below))
            }),
        }
    }
}

#[inline(always)]
fn each(z: &mut [f32], slopes: &mut [f32], activation: impl Fn(f32) -> (f32, f32)) {
    for (z, slope) in z.iter_mut().zip(slopes) {
        (*z, *slope) = activation(*z);
    }
}

/// eˣ to two units in the last place: 2ⁿ from the exponent bits, eʳ with |r| ≤ ½ln 2 by its Taylor series.
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// 1.5·2²³: adding it leaves the nearest integer in the low bits.
    const SHIFT: f32 = 12_582_912.0;
    /// The upper bits of ln 2, so that n·LN_2_HIGH is exact.
    const LN_2_HIGH: f32 = 0.693_145_75;
    const LN_2_LOW: f32 = 1.428_606_8e-6;
    debug_assert!((f64::from(LN_2_HIGH) + f64::from(LN_2_LOW) - f64::from(LN_2)).abs() < 1e-7);

    let x = x.clamp(-87.0, 88.0);
    let shifted = x.mul_add(LOG2_E, SHIFT);
    let n = shifted - SHIFT;
    let r = n.mul_add(-LN_2_LOW, n.mul_add(-LN_2_HIGH, x));
    let series = [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];
    let power = series.iter().fold(1.0 / 720.0, |sum, term| r.mul_add(sum, *term));
    power * f32::from_bits((shifted.to_bits() << 23).wrapping_add(1.0f32.to_bits()))
}

/// Φ(z), given exp(−z²/2), to 1.5e-7 (Abramowitz & Stegun 7.1.26).
#[inline(always)]
fn normal_cdf(z: f32, density: f32) -> f32 {
    let t = 1.0 / (z.abs() * FRAC_1_SQRT_2).mul_add(0.327_591_1, 1.0);
    let series = [-1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6];
    let tail = 0.5 * density * t * series.iter().fold(1.061_405_4, |sum, term| t.mul_add(sum, *term));
    if z > 0.0 { 1.0 - tail } else { tail }
}
