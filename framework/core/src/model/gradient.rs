//! Guards the one way to ask libtorch for gradients.

use tch::Tensor;

/// Gradients of the sum of `output` with respect to each of `inputs`; zero where an input was not used.
///
/// libtorch crashes the process when asked for the gradient of something without a graph, hence the check. The
/// graph is freed afterwards, and the inputs' own `.grad` stays untouched.
pub fn gradients(output: &Tensor, inputs: &[Tensor]) -> Vec<Tensor> {
    // The sum must be part of the graph, even where the caller has switched gradients off.
    let total = tch::with_grad(|| output.sum(output.kind()));
    assert!(
        total.requires_grad(),
        "the output does not depend on any tensor that requires gradients"
    );
    let found = Tensor::run_backward(&[total], inputs, false, false);
    found
        .into_iter()
        .zip(inputs)
        .map(|(gradient, input)| {
            if gradient.defined() {
                gradient
            } else {
                input.zeros_like()
            }
        })
        .collect()
}

/// A copy of `x` outside of any graph, ready to be differentiated with respect to.
///
/// It is a copy so that whatever is kept of it stays as it is when the caller moves `x` in place.
pub fn leaf(x: &Tensor) -> Tensor {
    x.detach().copy().set_requires_grad(true)
}

/// √(Σ‖g‖²) over all of `gradients`, left on their device.
pub fn norm(gradients: &[Tensor]) -> Tensor {
    let squares: Vec<_> = gradients
        .iter()
        .map(|gradient| gradient.square().sum(gradient.kind()))
        .collect();
    Tensor::stack(&squares, 0).sum(tch::Kind::Float).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_inputs_get_zero() {
        let x = leaf(&Tensor::from_slice(&[1f32, 2.0]));
        let unused = leaf(&Tensor::from_slice(&[5f32]));
        let found = gradients(&x.square(), &[x.shallow_clone(), unused]);
        assert!(found[0].equal(&Tensor::from_slice(&[2f32, 4.0])));
        assert!(found[1].equal(&Tensor::from_slice(&[0f32])));
    }

    #[test]
    fn it_works_where_gradients_are_switched_off() {
        let x = leaf(&Tensor::from_slice(&[3f32]));
        let output = x.square();
        let _guard = tch::no_grad_guard();
        assert!(
            gradients(&output, &[x])
                .remove(0)
                .equal(&Tensor::from_slice(&[6f32]))
        );
    }

    #[test]
    #[should_panic(expected = "does not depend")]
    fn a_constant_is_caught_before_libtorch_crashes() {
        let x = leaf(&Tensor::from_slice(&[1f32]));
        gradients(&Tensor::from_slice(&[1f32]), &[x]);
    }
}
