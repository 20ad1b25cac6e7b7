"""Writes the golden files that the tests of the networks compare with: what PyTorch itself computes.

pip install torch==2.13.0 safetensors numpy; python make.py
"""

from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

HERE = Path(__file__).parent
ACTIVATIONS = {
    "leaky_relu": lambda: nn.LeakyReLU(0.2),
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
}


def decoder(activation):
    return nn.Sequential(
        nn.ConvTranspose2d(5, 6, 4, 1, 0),
        activation(),
        nn.ConvTranspose2d(6, 4, 4, 2, 1),
        activation(),
        nn.ConvTranspose2d(4, 5, 3, 1, 1),
        activation(),
        nn.ConvTranspose2d(5, 3, 4, 2, 1),
        nn.Tanh(),
    )


class Energy(nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(7, 9), nn.Linear(9, 9), nn.Linear(9, 1)])
        self.activation = activation()

    def forward(self, x):
        tilt = x.square().sum(1) / 2
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        return self.layers[-1](x).squeeze(1) + tilt


def write(name, network, x, loss):
    """Weights to one file; inputs, outputs and gradients of `loss` under each activation to another."""
    weights = network(nn.ReLU).state_dict()
    # Larger than initial weights, so that no activation is near linear.
    weights = {key: 3 * value for key, value in weights.items()}
    save_file(weights, HERE / f"{name}_weights.safetensors")
    found = {}
    for word, activation in ACTIVATIONS.items():
        net = network(activation)
        net.load_state_dict(weights, strict=True)
        leaf = x.clone().requires_grad_()
        output = net(leaf[:, :, None, None] if name == "conv_decoder" else leaf)
        inputs = {"x": leaf, **dict(net.named_parameters())}
        gradients = torch.autograd.grad(loss(output), list(inputs.values()))
        found[f"{word}.output"] = output.detach()
        found |= {f"{word}.gradient.{key}": value for key, value in zip(inputs, gradients)}
    return found


torch.manual_seed(0)
x, y = torch.randn(3, 5), torch.rand(3, 3, 16, 16) * 2 - 1
found = write("conv_decoder", decoder, x, lambda output: (output - y).square().sum())
save_file({"x": x, "y": y, **found}, HERE / "conv_decoder.safetensors")

x = torch.randn(12, 7)
found = write("mlp", Energy, x, torch.sum)
save_file({"x": x, **found}, HERE / "mlp.safetensors")
