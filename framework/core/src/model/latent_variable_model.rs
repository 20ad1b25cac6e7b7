//! Joins energy and generator to the latent variable model p(x, y) = p_α(x) p_β(y|x).

use tch::Tensor;

use crate::model::gradient_count::{GradientCount, GradientCounter};
use crate::{Energy, Generator, gradient, interruption_point};

/// Rows that are decoded at a time where nothing but memory limits it.
const MEAN_BLOCK: i64 = 64;

/// The model: prior energy U_α, generator g_β and decoder noise σ.
pub struct Model {
    pub energy: Box<dyn Energy>,
    pub generator: Box<dyn Generator>,
    /// Standard deviation σ of the decoder.
    pub sigma: f64,
    gradients: GradientCounter,
}

/// Values and gradients of φ(x, y) = U_α(x) + V_β(x, y) from one forward and backward pass.
///
/// Nothing here shares memory with what the caller has: it stays as it is when the caller moves its particles.
pub struct Joint {
    /// The rows x.
    pub x: Tensor,
    /// U(x) for each row.
    pub prior: Tensor,
    /// V(x, y) = ‖y − g(x)‖²/(2σ²) for each row.
    pub reconstruction: Tensor,
    /// ∇ₓφ for each row.
    pub latent: Tensor,
    /// ∇_α of the *sum* of U over rows; empty if not asked for.
    pub energy: Vec<Tensor>,
    /// ∇_β of the *sum* of V over rows; empty if not asked for.
    pub generator: Vec<Tensor>,
}

/// Which gradients [`Model::joint`] returns besides those of the latents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Latents,
    LatentsAndParameters,
}

impl Model {
    pub fn new(energy: Box<dyn Energy>, generator: Box<dyn Generator>, sigma: f64) -> Self {
        Self {
            energy,
            generator,
            sigma,
            gradients: GradientCounter::default(),
        }
    }

    /// Gradients taken so far: of φ by [`Self::joint`], and of U by prior chains.
    pub fn gradient_count(&self) -> GradientCount {
        self.gradients.get()
    }

    /// Counts gradients of U that were taken past the model, as a sampler does.
    pub fn count_energy_gradients(&self, count: u64) {
        self.gradients.add(GradientCount {
            energy: count,
            ..GradientCount::default()
        });
    }

    /// Floating-point operations that so many gradients take in the layers of both networks, where these know: a row
    /// takes two for each multiplication on the way forth, as many on the way back, and as many again for parameters.
    pub fn operations(&self, count: GradientCount) -> Option<u64> {
        let [energy, generator] = [self.energy.multiplications()?, self.generator.multiplications()?];
        let GradientCount { with_parameters, .. } = count;
        let passes = |rows: u64| 2 * rows + with_parameters;
        Some(2 * (energy * passes(count.energy) + generator * passes(count.generator)))
    }

    /// Handles to all parameters: α, then β.
    pub fn parameters(&self) -> Vec<Tensor> {
        let networks = [self.energy.parameters(), self.generator.parameters()];
        networks.iter().flat_map(|network| network.tensors()).collect()
    }

    /// V(x, y) = ‖y − g(x)‖²/(2σ²) for each row.
    pub fn reconstruction(&self, x: &Tensor, y: &Tensor) -> Tensor {
        let difference = self.generator.generate(x) - y;
        difference
            .square()
            .flatten(1, -1)
            .sum_dim_intlist(1, false, difference.kind())
            / (2.0 * self.sigma * self.sigma)
    }

    /// φ and its gradients at rows `x` (`[n, latent]`) with data `y` (`[n, shape…]`).
    pub fn joint(&self, x: &Tensor, y: &Tensor, wanted: Wanted) -> Joint {
        let rows = x.size()[0] as u64;
        self.gradients.add(GradientCount {
            energy: rows,
            generator: rows,
            with_parameters: if wanted == Wanted::LatentsAndParameters {
                rows
            } else {
                0
            },
        });
        let x = gradient::leaf(x);
        // The graph is needed even where the caller has switched gradients off.
        let (prior, reconstruction, total) = tch::with_grad(|| {
            let prior = self.energy.energy(&x);
            let reconstruction = self.reconstruction(&x, y);
            let total = prior.sum(prior.kind()) + reconstruction.sum(reconstruction.kind());
            (prior, reconstruction, total)
        });

        let (alpha, beta) = match wanted {
            Wanted::Latents => (Vec::new(), Vec::new()),
            Wanted::LatentsAndParameters => (
                self.energy.parameters().tensors(),
                self.generator.parameters().tensors(),
            ),
        };
        let split = 1 + alpha.len();
        let inputs: Vec<_> = std::iter::once(x).chain(alpha).chain(beta).collect();
        let mut all = gradient::gradients(&total, &inputs);
        let generator = all.split_off(split);
        let energy = all.split_off(1);
        Joint {
            x: inputs[0].detach(),
            prior: prior.detach(),
            reconstruction: reconstruction.detach(),
            latent: all.remove(0),
            energy,
            generator,
        }
    }

    /// g(x) for each row, without graph or noise, on the CPU, block by block.
    pub fn mean(&self, x: &Tensor) -> Tensor {
        let _guard = tch::no_grad_guard();
        let block = |x: Tensor| {
            interruption_point();
            self.generator.generate(&x).to_device(tch::Device::Cpu)
        };
        let blocks: Vec<_> = x.split(MEAN_BLOCK, 0).into_iter().map(block).collect();
        // Images may lie in memory with their channels last.
        Tensor::cat(&blocks, 0).contiguous()
    }

    /// Samples of the data space: g(x) with the decoder's noise.
    pub fn decode(&self, x: &Tensor, draws: &mut crate::Draws) -> Tensor {
        let _guard = tch::no_grad_guard();
        let mean = self.generator.generate(x);
        let noise = draws.normal_like(&mean);
        mean + noise * self.sigma
    }
}
