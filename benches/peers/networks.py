"""Initial weights of the networks, as NumPy arrays: every peer starts from the same ones, in PyTorch's layout.

Nothing here knows a library; `torch_networks.py` and `jax_networks.py` turn the weights into networks.
"""

import numpy


def _uniform(rng, bound, shape):
    return rng.uniform(-bound, bound, shape).astype(numpy.float32)


def energy_weights(rng, latent, hidden, layers):
    """(weight, bias) of each layer of an MLP latent -> hidden x layers -> 1, initialised as PyTorch does."""
    sizes = [latent] + [hidden] * layers + [1]
    return [
        (_uniform(rng, inputs**-0.5, (outputs, inputs)), _uniform(rng, inputs**-0.5, (outputs,)))
        for inputs, outputs in zip(sizes, sizes[1:])
    ]


def generator_weights(rng, latent, layers):
    """(weight, bias) of each transposed convolution [channels, kernel, stride, padding]; Xavier-normal weights."""
    weights, inputs = [], latent
    for outputs, kernel, _stride, _padding in layers:
        deviation = (2 / (kernel**2 * (inputs + outputs))) ** 0.5
        weight = rng.standard_normal((inputs, outputs, kernel, kernel), dtype=numpy.float32) * numpy.float32(deviation)
        weights.append((weight, _uniform(rng, (outputs * kernel**2) ** -0.5, (outputs,))))
        inputs = outputs
    return weights


def image_size(layers):
    """Side of the images that a generator makes of 1 x 1 inputs."""
    side = 1
    for _channels, kernel, stride, padding in layers:
        side = (side - 1) * stride + kernel - 2 * padding
    return side
