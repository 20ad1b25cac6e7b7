//! An affine map of a tile of points: the matrix product in which perceptrons spend their time.

use pulp::Simd;

use crate::activation::Nonlinearity;

/// Outputs that are computed together. With the vectors of a tile they fill the registers.
const BLOCK: usize = 6;

/// z = Wx + b for points in columns.
///
/// Everything here is inlined and free of closures, so that it is compiled for the vector instructions of the caller.
/// Code that is not inlined would make a function call for each of them.
pub struct Affine {
    inputs: usize,
    bias: Vec<f32>,
    /// In blocks of outputs, of which the last may have fewer: `[block][input][output in block]`.
    weights: Vec<f32>,
}

/// What to do with a block of outputs while it is in the nearest cache.
pub enum Then<'a, V> {
    /// Apply the activation and keep its slopes.
    Activate(Nonlinearity, &'a mut [V]),
    /// Multiply by slopes kept earlier.
    Scale(&'a [V]),
    Nothing,
}

impl Affine {
    /// Lays out the weights that `weight` returns for each output and input.
    pub fn new(inputs: usize, bias: Vec<f32>, weight: impl Fn(usize, usize) -> f32) -> Self {
        let outputs: Vec<_> = (0..bias.len()).collect();
        let mut weights = Vec::with_capacity(inputs * bias.len());
        for block in outputs.chunks(BLOCK) {
            for input in 0..inputs {
                weights.extend(block.iter().map(|output| weight(*output, input)));
            }
        }
        Self {
            inputs,
            bias,
            weights,
        }
    }

    pub fn outputs(&self) -> usize {
        self.bias.len()
    }

    /// Maps the first rows of tile `x` to the first rows of tile `z`; a row is `VECTORS` long.
    #[inline(always)]
    pub fn apply<S: Simd, const VECTORS: usize>(
        &self,
        simd: S,
        x: &[S::f32s],
        z: &mut [S::f32s],
        mut then: Then<S::f32s>,
    ) {
        let x = &x.as_chunks::<VECTORS>().0[..self.inputs];
        let (mut first, outputs) = (0, self.outputs());
        while first < outputs {
            let last = (first + BLOCK).min(outputs);
            let bias = &self.bias[first..last];
            let weights = &self.weights[first * self.inputs..last * self.inputs];
            let places = first * VECTORS..last * VECTORS;
            let z = &mut z[places.clone()];
            match bias.len() {
                BLOCK => multiply::<S, VECTORS, BLOCK>(simd, weights, bias, x, z),
                5 => multiply::<S, VECTORS, 5>(simd, weights, bias, x, z),
                4 => multiply::<S, VECTORS, 4>(simd, weights, bias, x, z),
                3 => multiply::<S, VECTORS, 3>(simd, weights, bias, x, z),
                2 => multiply::<S, VECTORS, 2>(simd, weights, bias, x, z),
                _ => multiply::<S, VECTORS, 1>(simd, weights, bias, x, z),
            }
            match &mut then {
                Then::Activate(activation, slopes) => {
                    activation.apply_with_slopes(simd, z, &mut slopes[places]);
                }
                Then::Scale(slopes) => scale(simd, z, &slopes[places]),
                Then::Nothing => {}
            }
            first = last;
        }
    }
}

/// Computes one block of outputs; the sums stay in registers across all inputs.
#[inline(always)]
fn multiply<S: Simd, const VECTORS: usize, const OUTPUTS: usize>(
    simd: S,
    weights: &[f32],
    bias: &[f32],
    x: &[[S::f32s; VECTORS]],
    z: &mut [S::f32s],
) {
    let mut sums = [[simd.splat_f32s(0.0); VECTORS]; OUTPUTS];
    for output in 0..OUTPUTS {
        sums[output] = [simd.splat_f32s(bias[output]); VECTORS];
    }
    for (x, weights) in x.iter().zip(weights.as_chunks::<OUTPUTS>().0) {
        for output in 0..OUTPUTS {
            let weight = simd.splat_f32s(weights[output]);
            for vector in 0..VECTORS {
                sums[output][vector] = simd.mul_add_e_f32s(weight, x[vector], sums[output][vector]);
            }
        }
    }
    z.copy_from_slice(sums.as_flattened());
}

#[inline(always)]
fn scale<S: Simd>(simd: S, z: &mut [S::f32s], slopes: &[S::f32s]) {
    for (z, slope) in z.iter_mut().zip(slopes) {
        *z = simd.mul_f32s(*z, *slope);
    }
}
