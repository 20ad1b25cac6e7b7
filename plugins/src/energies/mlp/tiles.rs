//! A perceptron's value and gradient on the CPU, a tile of points at a time, so that a tile stays in the cache through
//! all layers, forward and back.

use pulp::{Arch, Simd, WithSimd};

use crate::activation::Nonlinearity;

/// Outputs of a layer that are computed together: with two vectors of points each they fill the registers.
const BLOCK: usize = 6;
/// Vectors of points in a tile.
const VECTORS: usize = 2;

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

/// z = Wx + b for points in columns, its weights in blocks of outputs: `[block][input][output in block]`.
struct Affine {
    inputs: usize,
    /// Padded to whole blocks.
    outputs: usize,
    weights: Vec<f32>,
    bias: Vec<f32>,
}

/// A layer's weights as PyTorch keeps them: `[outputs][inputs]`, row by row.
pub struct Weights {
    pub weight: Vec<f32>,
    pub bias: Vec<f32>,
}

impl Network {
    /// `hidden` layers from first to last, then a linear one with a single output.
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
            last_bias: last.bias.first().copied().unwrap_or(0.0),
            activation,
            tilt,
            inputs,
        }
    }

    /// Values and gradients at points given row by row.
    ///
    /// Each point's numbers are the same whatever others it is computed with.
    pub fn value_and_gradient(&self, points: &[f32], values: &mut [f32], gradients: &mut [f32]) {
        Arch::new().dispatch(Pass {
            network: self,
            points,
            values,
            gradients,
        });
    }
}

impl Layer {
    fn new(weights: &Weights) -> Self {
        let outputs = weights.bias.len();
        let inputs = weights.weight.len() / outputs;
        Self {
            forward: Affine::new(inputs, &weights.bias, |output, input| {
                weights.weight[output * inputs + input]
            }),
            backward: Affine::new(outputs, &vec![0.0; inputs], |output, input| {
                weights.weight[input * inputs + output]
            }),
        }
    }
}

impl Affine {
    fn new(inputs: usize, bias: &[f32], weight: impl Fn(usize, usize) -> f32) -> Self {
        let outputs = bias.len().next_multiple_of(BLOCK);
        let mut weights = vec![0.0; outputs * inputs];
        for output in 0..bias.len() {
            for input in 0..inputs {
                weights[(output / BLOCK * inputs + input) * BLOCK + output % BLOCK] = weight(output, input);
            }
        }
        let mut padded = bias.to_vec();
        padded.resize(outputs, 0.0);
        Self {
            inputs,
            outputs,
            weights,
            bias: padded,
        }
    }

    /// From the first `inputs` rows of tile `x` to the first `outputs` rows of tile `z`.
    #[inline(always)]
    fn apply<S: Simd>(&self, simd: S, x: &[f32], z: &mut [f32]) {
        let x = &S::as_simd_f32s(x).0[..VECTORS * self.inputs];
        let z = &mut S::as_mut_simd_f32s(z).0[..VECTORS * self.outputs];
        let blocks = self.weights.chunks_exact(self.inputs * BLOCK);
        let blocks = blocks.zip(self.bias.chunks_exact(BLOCK));
        for ((weights, bias), z) in blocks.zip(z.chunks_exact_mut(VECTORS * BLOCK)) {
            let mut sums: [_; BLOCK] = std::array::from_fn(|i| [simd.splat_f32s(bias[i]); VECTORS]);
            for (x, weights) in x.chunks_exact(VECTORS).zip(weights.chunks_exact(BLOCK)) {
                for (sums, weight) in sums.iter_mut().zip(weights) {
                    let weight = simd.splat_f32s(*weight);
                    for (sum, x) in sums.iter_mut().zip(x) {
                        *sum = simd.mul_add_e_f32s(weight, *x, *sum);
                    }
                }
            }
            z.copy_from_slice(sums.as_flattened());
        }
    }
}

/// One evaluation, compiled for each instruction set and chosen when the program runs.
struct Pass<'a> {
    network: &'a Network,
    points: &'a [f32],
    values: &'a mut [f32],
    gradients: &'a mut [f32],
}

impl WithSimd for Pass<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let columns = VECTORS * S::F32_LANES;
        let Pass { network, .. } = self;
        let mut tile = Tile::new(network, columns);
        let points = self.points.chunks(columns * network.inputs);
        let gradients = self.gradients.chunks_mut(columns * network.inputs);
        for ((points, values), gradients) in points.zip(self.values.chunks_mut(columns)).zip(gradients) {
            tile.load(points, network.inputs);
            tile.forward(simd, network);
            tile.read_values(network, values);
            tile.backward(simd, network);
            tile.read_gradients(network, gradients);
        }
    }
}

/// Numbers of a few points, one row per unit, one column per point.
struct Tile {
    columns: usize,
    points: Vec<f32>,
    /// What is being computed, and what it is computed from.
    current: Vec<f32>,
    next: Vec<f32>,
    /// The activations' derivatives, layer by layer.
    slopes: Vec<Vec<f32>>,
}

impl Tile {
    fn new(network: &Network, columns: usize) -> Self {
        let widths = network
            .hidden
            .iter()
            .map(|layer| layer.forward.outputs.max(layer.backward.outputs));
        let most = widths.max().unwrap_or(0) * columns;
        let slopes = network.hidden.iter();
        Self {
            columns,
            points: vec![0.0; network.inputs * columns],
            current: vec![0.0; most],
            next: vec![0.0; most],
            slopes: slopes
                .map(|layer| vec![0.0; layer.forward.outputs * columns])
                .collect(),
        }
    }

    /// Points come in rows; a last tile that is not full keeps old numbers in its other columns.
    #[inline(always)]
    fn load(&mut self, points: &[f32], inputs: usize) {
        for (column, point) in points.chunks_exact(inputs).enumerate() {
            for (row, value) in point.iter().enumerate() {
                self.points[row * self.columns + column] = *value;
            }
        }
    }

    #[inline(always)]
    fn forward<S: Simd>(&mut self, simd: S, network: &Network) {
        for (i, (layer, slopes)) in network.hidden.iter().zip(&mut self.slopes).enumerate() {
            let input = if i == 0 { &self.points } else { &self.current };
            layer.forward.apply(simd, input, &mut self.next);
            network
                .activation
                .apply_with_slopes(&mut self.next[..slopes.len()], slopes);
            std::mem::swap(&mut self.current, &mut self.next);
        }
    }

    #[inline(always)]
    fn read_values(&self, network: &Network, values: &mut [f32]) {
        values.fill(network.last_bias);
        let rows = self.current.chunks_exact(self.columns);
        for (row, weight) in rows.zip(&network.last) {
            add_scaled(values, row, |feature| weight * feature);
        }
        for row in self.points.chunks_exact(self.columns) {
            add_scaled(values, row, |x| 0.5 * network.tilt * x * x);
        }
    }

    #[inline(always)]
    fn backward<S: Simd>(&mut self, simd: S, network: &Network) {
        let rows = self.current.chunks_exact_mut(self.columns);
        for (row, weight) in rows.zip(&network.last) {
            row.fill(*weight);
        }
        for (layer, slopes) in network.hidden.iter().zip(&self.slopes).rev() {
            for (upstream, slope) in self.current.iter_mut().zip(slopes) {
                *upstream *= slope;
            }
            layer.backward.apply(simd, &self.current, &mut self.next);
            std::mem::swap(&mut self.current, &mut self.next);
        }
    }

    #[inline(always)]
    fn read_gradients(&self, network: &Network, gradients: &mut [f32]) {
        for (column, gradient) in gradients.chunks_exact_mut(network.inputs).enumerate() {
            for (row, value) in gradient.iter_mut().enumerate() {
                let at = row * self.columns + column;
                *value = network.tilt.mul_add(self.points[at], self.current[at]);
            }
        }
    }
}

#[inline(always)]
fn add_scaled(sums: &mut [f32], row: &[f32], term: impl Fn(f32) -> f32) {
    for (sum, value) in sums.iter_mut().zip(row) {
        *sum += term(*value);
    }
}
