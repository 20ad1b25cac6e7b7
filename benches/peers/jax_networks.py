"""The networks in JAX: functions of lists of (weight, bias)."""

import jax
import jax.numpy as jnp
from jax import lax

ACTIVATIONS = {
    "silu": lambda z, slope: jax.nn.silu(z),
    "relu": lambda z, slope: jax.nn.relu(z),
    "leaky_relu": jax.nn.leaky_relu,
    "gelu": lambda z, slope: jax.nn.gelu(z, approximate=False),
}


def energy(weights, x, activation, slope, tilt):
    """U of latents [..., d]: an MLP, and with a tilt s the energy of N(0, s^2 I)."""
    *hidden, (last, last_bias) = weights
    h = x
    for weight, bias in hidden:
        h = ACTIVATIONS[activation](h @ weight.T + bias, slope)
    value = (h @ last.T + last_bias)[..., 0]
    return value if tilt is None else value + 0.5 * jnp.sum(x * x, -1) / tilt**2


def _overlap_add(patches, axis, stride):
    """Adds up the taps along axis 3 of patches, each put `stride` apart along `axis` and shifted by its index."""
    taps = patches.shape[3]
    total = 0.0
    for tap in range(taps):
        part = patches[:, :, :, tap]
        widths = [(0, 0, 0)] * part.ndim
        widths[axis] = (tap, taps - 1 - tap, stride - 1)
        total += lax.pad(part, 0.0, widths)
    return total


def _transposed_convolution(x, weight, bias, stride, padding):
    """Of images [n, h, w, channels], as one matrix product whose overlapping patches are added up.

    On a CPU, XLA has no fast kernel for the dilated convolutions of `lax.conv_transpose` and their gradients: this is
    over ten times faster, and what who measures would write.
    """
    inputs, outputs, kernel, _ = weight.shape
    # The order of axes in which the product comes: another one doubles the time.
    matrix = weight.transpose(0, 2, 3, 1).reshape(inputs, -1)
    patches = (x.reshape(-1, inputs) @ matrix).reshape(*x.shape[:3], kernel, kernel, outputs)
    rows = _overlap_add(patches, 1, stride)
    image = _overlap_add(rows, 2, stride)
    inner = slice(padding, -padding or None)
    return image[:, inner, inner] + bias


def generator(weights, x, layers, slope):
    """Images [n, side, side, channels] of latents [n, d]."""
    h = x[:, None, None, :]
    for index, ((weight, bias), (_channels, _kernel, stride, padding)) in enumerate(zip(weights, layers)):
        h = _transposed_convolution(h, weight, bias, stride, padding)
        h = jax.nn.leaky_relu(h, slope) if index < len(layers) - 1 else jnp.tanh(h)
    return h
