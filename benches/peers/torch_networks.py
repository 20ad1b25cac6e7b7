"""The networks in PyTorch."""

import torch
from torch import nn
from torch.nn import functional

ACTIVATIONS = {
    "silu": lambda slope: nn.SiLU(),
    "relu": lambda slope: nn.ReLU(),
    "leaky_relu": nn.LeakyReLU,
    "gelu": lambda slope: nn.GELU(),
}


def _derivative(activation, slope, z):
    if activation == "silu":
        sigmoid = torch.sigmoid(z)
        return sigmoid * (1 + z * (1 - sigmoid))
    if activation == "gelu":
        density = torch.exp(-0.5 * z * z) / (2 * torch.pi) ** 0.5
        return 0.5 * (1 + torch.erf(z / 2**0.5)) + z * density
    below = slope if activation == "leaky_relu" else 0.0
    return torch.where(z > 0, 1.0, below)


def _load(layer, weight, bias):
    layer.weight.data.copy_(torch.from_numpy(weight))
    layer.bias.data.copy_(torch.from_numpy(bias))
    return layer


class Energy(nn.Module):
    """U of latents [..., d]: an MLP, and with a tilt s the energy of N(0, s^2 I)."""

    def __init__(self, weights, activation, slope, tilt):
        super().__init__()
        self.layers = nn.ModuleList(
            _load(nn.Linear(weight.shape[1], weight.shape[0]), weight, bias) for weight, bias in weights
        )
        self.activation, self.slope = activation, slope
        self.activate = ACTIVATIONS[activation](slope)
        self.tilt = tilt

    def forward(self, x):
        h = x
        for layer in self.layers[:-1]:
            h = self.activate(layer(h))
        energy = self.layers[-1](h).squeeze(-1)
        return energy if self.tilt is None else energy + 0.5 * x.square().sum(-1) / self.tilt**2

    def gradient(self, x):
        """The gradient of U with respect to x, by hand: no graph is built, and U itself is not computed."""
        h, derivatives = x, []
        for layer in self.layers[:-1]:
            z = layer(h)
            h = self.activate(z)
            derivatives.append(_derivative(self.activation, self.slope, z))
        back = self.layers[-1].weight
        for layer, derivative in zip(reversed(self.layers[:-1]), reversed(derivatives)):
            back = (back * derivative) @ layer.weight
        return back if self.tilt is None else back + x / self.tilt**2


class Generator(nn.Module):
    """Images [n, channels, side, side] of latents [n, d]."""

    def __init__(self, weights, layers, slope):
        super().__init__()
        self.layers = nn.ModuleList(
            _load(nn.ConvTranspose2d(*weight.shape[:2], kernel, stride, padding), weight, bias)
            for (weight, bias), (_channels, kernel, stride, padding) in zip(weights, layers)
        )
        self.slope = slope

    def forward(self, x):
        h = x[:, :, None, None]
        for layer in self.layers[:-1]:
            h = functional.leaky_relu(layer(h), self.slope)
        return torch.tanh(self.layers[-1](h))
