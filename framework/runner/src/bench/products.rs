//! The limit that everything is held against: how fast libtorch multiplies matrices here, and nothing else.

use ebipla_core::Parameters;
use tch::{Device, Kind, Tensor};

use super::stopwatch::{Contender, race};

/// Side of the matrices that a machine's rate is measured with: large enough for it to be at its best.
const SIDE: i64 = 2048;

/// Operations per second in a product of large matrices, by whichever of libtorch's two libraries is faster here: MKL is
/// slow on processors that are not Intel's, and oneDNN, which has the convolutions, multiplies where a kernel is a pixel.
pub fn rate(device: Device, rounds: usize) -> anyhow::Result<f64> {
    let _guard = tch::no_grad_guard();
    let square = || Tensor::ones([SIDE, SIDE], (Kind::Float, device));
    let (a, b) = (square(), square());
    // As many pixels as rows, with their channels last, as the generators have them.
    let images = a.view([8, SIDE / 128, 16, SIDE]).permute([0, 3, 1, 2]);
    let kernels = b.view([SIDE, SIDE, 1, 1]);
    let by_matrices = || {
        wait_for(&a.f_matmul(&b)?);
        Ok(())
    };
    let by_pixels = || {
        wait_for(&images.f_conv2d(&kernels, None::<Tensor>, [1, 1], [0, 0], [1, 1], 1)?);
        Ok(())
    };
    let mut contenders = [
        Contender::new("matmul", by_matrices),
        Contender::new("convolution", by_pixels),
    ];
    let seconds = race(&mut contenders, rounds)?
        .into_iter()
        .fold(f64::MAX, f64::min);
    Ok(2.0 * (SIDE as f64).powi(3) / seconds)
}

/// The products of a perceptron's value and gradient at so many rows: each of its matrices forth and back.
pub struct LayerProducts(Vec<[Tensor; 3]>);

impl LayerProducts {
    pub fn of(parameters: &Parameters, rows: i64) -> Self {
        let _guard = tch::no_grad_guard();
        let matrices: Vec<_> = parameters
            .tensors()
            .iter()
            .filter(|tensor| tensor.dim() == 2)
            .map(|matrix| matrix.detach().copy())
            .collect();
        let operands = |matrix: Tensor| {
            let (outputs, inputs) = (matrix.size()[0], matrix.size()[1]);
            let numbers = |columns: i64| Tensor::ones([rows, columns], (matrix.kind(), matrix.device()));
            let forth = [numbers(inputs), matrix.tr(), numbers(outputs)];
            let back = [numbers(outputs), matrix.shallow_clone(), numbers(inputs)];
            [forth, back]
        };
        Self(matrices.into_iter().flat_map(operands).collect())
    }

    /// Multiplies all of them so many times.
    pub fn multiply(&mut self, times: u64) -> anyhow::Result<()> {
        let _guard = tch::no_grad_guard();
        for _ in 0..times {
            for [a, b, product] in &mut self.0 {
                *product = a.f_matmul_out(product, b)?;
            }
        }
        if let Some([_, _, last]) = self.0.last() {
            wait_for(last);
        }
        Ok(())
    }
}

/// Reads a number of `tensor`, which a GPU has only when it is done.
pub fn wait_for(tensor: &Tensor) {
    let _ = tensor.flatten(0, -1).get(0).double_value(&[]);
}
