//! A perceptron's value and gradient on the CPU, one tile of points at a time, so that a tile stays in the cache
//! through the forward and backward pass.

use pulp::bytemuck::{cast_slice, cast_slice_mut};
use pulp::{Arch, Simd, WithSimd};

use super::affine::{Affine, Then};
use crate::activation::Nonlinearity;

/// A perceptron R^d → R with weights laid out for tiles, plus ½‖x‖²·`tilt`.
pub struct Network {
    hidden: Vec<Layer>,
    last: Vec<f32>,
    last_bias: f32,
    activation: Nonlinearity,
    tilt: f32,
    inputs: usize,
}

/// A hidden layer.
struct Layer {
    forward: Affine,
    /// Multiplies by the transposed weights.
    backward: Affine,
}

/// A layer's weights in PyTorch's order: `[outputs][inputs]`, row by row.
pub struct Weights {
    pub weight: Vec<f32>,
    pub bias: Vec<f32>,
}

impl Network {
    /// Lays out the `hidden` layers, first to last, then a linear one with a single output.
    pub fn new(
        inputs: usize,
        hidden: &[Weights],
        last: Weights,
        activation: Nonlinearity,
        tilt: f32,
    ) -> Self {
        Self {
            hidden: hidden.iter().map(Layer::new).collect(),
            last: last.weight,
            last_bias: *last.bias.first().expect("the last layer has one output"),
            activation,
            tilt,
            inputs,
        }
    }

    /// Values and gradients at points given row by row.
    ///
    /// A point's numbers do not depend on the other points in the call.
    pub fn value_and_gradient(&self, points: &[f32], values: &mut [f32], gradients: &mut [f32]) {
        Arch::new().dispatch(Pass {
            network: self,
            points,
            values,
            gradients,
        });
    }
}

/// The instruction set used for tiles on this machine.
pub fn instructions() -> &'static str {
    match Arch::new() {
        #[cfg(target_arch = "x86_64")]
        Arch::V4(_) => "AVX-512",
        #[cfg(target_arch = "x86_64")]
        Arch::V3(_) => "AVX2",
        _ => "no vector instructions",
    }
}

impl Layer {
    fn new(weights: &Weights) -> Self {
        let outputs = weights.bias.len();
        let inputs = weights.weight.len() / outputs;
        Self {
            forward: Affine::new(inputs, weights.bias.clone(), |output, input| {
                weights.weight[output * inputs + input]
            }),
            backward: Affine::new(outputs, vec![0.0; inputs], |output, input| {
                weights.weight[input * inputs + output]
            }),
        }
    }
}

/// One evaluation, compiled for each instruction set; the program chooses one at run time.
struct Pass<'a> {
    network: &'a Network,
    points: &'a [f32],
    values: &'a mut [f32],
    gradients: &'a mut [f32],
}

impl WithSimd for Pass<'_> {
    type Output = ();

    /// Number of vectors of points in a tile: together with the sums of a block they fill the registers.
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if S::REGISTER_COUNT >= 32 {
            self.tile_by_tile::<S, 4>(simd);
        } else {
            self.tile_by_tile::<S, 2>(simd);
        }
    }
}

impl Pass<'_> {
    #[inline(always)]
    fn tile_by_tile<S: Simd, const VECTORS: usize>(self, simd: S) {
        let columns = VECTORS * S::F32_LANES;
        let Pass { network, .. } = self;
        let mut tile = Tile::<S, VECTORS>::new(simd, network);
        let points = self.points.chunks(columns * network.inputs);
        let gradients = self.gradients.chunks_mut(columns * network.inputs);
        for ((points, values), gradients) in points.zip(self.values.chunks_mut(columns)).zip(gradients) {
            tile.load(points, network.inputs);
            tile.forward(simd, network);
            tile.read_values(simd, network, values);
            tile.backward(simd, network);
            tile.read_gradients(network, gradients);
        }
    }
}

/// Values at a few points, one row per unit, one column per point; a row is `VECTORS` long.
struct Tile<S: Simd, const VECTORS: usize> {
    points: Vec<S::f32s>,
    /// State of the evaluation of one tile.
    current: Vec<S::f32s>,
    next: Vec<S::f32s>,
    /// The activations' derivatives, layer by layer.
    slopes: Vec<Vec<S::f32s>>,
}

impl<S: Simd, const VECTORS: usize> Tile<S, VECTORS> {
    const COLUMNS: usize = VECTORS * S::F32_LANES;

    #[inline(always)]
    fn new(simd: S, network: &Network) -> Self {
        let zero = simd.splat_f32s(0.0);
        let mut most = network.inputs;
        let mut slopes = Vec::with_capacity(network.hidden.len());
        for layer in &network.hidden {
            most = most.max(layer.forward.outputs());
            slopes.push(vec![zero; layer.forward.outputs() * VECTORS]);
        }
        Self {
            points: vec![zero; network.inputs * VECTORS],
            current: vec![zero; most * VECTORS],
            next: vec![zero; most * VECTORS],
            slopes,
        }
    }

    /// Points come in rows; a last tile that is not full keeps old numbers in its other columns.
    #[inline(always)]
    fn load(&mut self, points: &[f32], inputs: usize) {
        let places: &mut [f32] = cast_slice_mut(&mut self.points);
        for (column, point) in points.chunks_exact(inputs).enumerate() {
            for (row, value) in point.iter().enumerate() {
                places[row * Self::COLUMNS + column] = *value;
            }
        }
    }

    #[inline(always)]
    fn forward(&mut self, simd: S, network: &Network) {
        for (i, (layer, slopes)) in network.hidden.iter().zip(&mut self.slopes).enumerate() {
            let input = if i == 0 { &self.points } else { &self.current };
            let then = Then::Activate(network.activation, slopes);
            layer
                .forward
                .apply::<S, VECTORS>(simd, input, &mut self.next, then);
            std::mem::swap(&mut self.current, &mut self.next);
        }
    }

    /// The last layer and the tilt.
    #[inline(always)]
    fn read_values(&mut self, simd: S, network: &Network, values: &mut [f32]) {
        let mut sums = [simd.splat_f32s(network.last_bias); VECTORS];
        for (row, weight) in self.current.as_chunks::<VECTORS>().0.iter().zip(&network.last) {
            let weight = simd.splat_f32s(*weight);
            for vector in 0..VECTORS {
                sums[vector] = simd.mul_add_e_f32s(weight, row[vector], sums[vector]);
            }
        }
        let half_tilt = simd.splat_f32s(0.5 * network.tilt);
        for row in self.points.as_chunks::<VECTORS>().0 {
            for vector in 0..VECTORS {
                let scaled = simd.mul_f32s(half_tilt, row[vector]);
                sums[vector] = simd.mul_add_e_f32s(scaled, row[vector], sums[vector]);
            }
        }
        values.copy_from_slice(&cast_slice(&sums)[..values.len()]);
    }

    #[inline(always)]
    fn backward(&mut self, simd: S, network: &Network) {
        if let Some(slopes) = self.slopes.last() {
            let rows = self.current.chunks_exact_mut(VECTORS);
            let rows = rows.zip(slopes.chunks_exact(VECTORS)).zip(&network.last);
            for ((row, slopes), weight) in rows {
                let weight = simd.splat_f32s(*weight);
                for (upstream, slope) in row.iter_mut().zip(slopes) {
                    *upstream = simd.mul_f32s(weight, *slope);
                }
            }
        }
        for (i, layer) in network.hidden.iter().enumerate().rev() {
            let then = match i.checked_sub(1) {
                Some(below) => Then::Scale(&self.slopes[below]),
                None => Then::Nothing,
            };
            layer
                .backward
                .apply::<S, VECTORS>(simd, &self.current, &mut self.next, then);
            std::mem::swap(&mut self.current, &mut self.next);
        }
    }

    #[inline(always)]
    fn read_gradients(&self, network: &Network, gradients: &mut [f32]) {
        let points: &[f32] = cast_slice(&self.points);
        let current: &[f32] = cast_slice(&self.current);
        for (column, gradient) in gradients.chunks_exact_mut(network.inputs).enumerate() {
            for (row, value) in gradient.iter_mut().enumerate() {
                let at = row * Self::COLUMNS + column;
                *value = network.tilt.mul_add(points[at], current[at]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers blocks and tiles that are not full.
    fn network(activation: Nonlinearity) -> Network {
        let mut seed = 1u32;
        let mut numbers = |count: usize| -> Vec<f32> {
            let next = |_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 8) as f32 / (1 << 24) as f32 - 0.5
            };
            (0..count).map(next).collect()
        };
        let mut weights = |outputs: usize, inputs: usize| Weights {
            weight: numbers(outputs * inputs),
            bias: numbers(outputs),
        };
        let hidden = [weights(17, 3), weights(17, 17)];
        Network::new(3, &hidden, weights(1, 17), activation, 0.5)
    }

    fn evaluate<S: Simd>(simd: S, network: &Network, points: &[f32]) -> Vec<f32> {
        let (mut values, mut gradients) = (vec![0.0; points.len() / 3], vec![0.0; points.len()]);
        simd.vectorize(Pass {
            network,
            points,
            values: &mut values,
            gradients: &mut gradients,
        });
        [values, gradients].concat()
    }

    /// The two round fused products differently, to 2⁻²⁴ of sums of at most 20 numbers below 2.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn instruction_sets_agree() {
        let points: Vec<_> = (0..3 * 70).map(|i| (i % 13) as f32 / 4.0 - 1.5).collect();
        for activation in [
            Nonlinearity::Silu,
            Nonlinearity::Relu,
            Nonlinearity::LeakyRelu(0.2),
            Nonlinearity::Gelu,
        ] {
            let network = network(activation);
            let expected = evaluate(pulp::Scalar, &network, &points);
            let found = [
                pulp::x86::V3::try_new().map(|simd| evaluate(simd, &network, &points)),
                pulp::x86::V4::try_new().map(|simd| evaluate(simd, &network, &points)),
            ];
            for found in found.into_iter().flatten() {
                for (found, expected) in found.iter().zip(&expected) {
                    assert!(
                        (found - expected).abs() < 2e-5,
                        "{activation:?}: {found} {expected}"
                    );
                }
            }
        }
    }
}
