"""One training iteration of EBIPLA (Algorithm 2 of the paper, losses at X_k) on images in PyTorch.

`Straightforward` is what the paper's pseudocode says, line by line; `OnePass` is what a careful user makes of it.
"""

import torch

from torch_chains import compiled_step, with_autograd, with_compiled
from torch_networks import Energy, Generator


class _Training:
    """Networks, optimisers and the particles [data points, particles, latent] of both variants."""

    def __init__(self, settings, model, fused):
        self.settings = settings
        self.energy = Energy(model.energy, "leaky_relu", 0.2, settings.tilt)
        self.generator = Generator(model.generator, settings.layers, settings.slope)
        self.particles = torch.from_numpy(model.particles)
        self.images = torch.from_numpy(model.images)
        self.optimizers = [
            torch.optim.Adam(self.energy.parameters(), 2e-4, (0.5, 0.999), fused=fused),
            torch.optim.Adam(self.generator.parameters(), 1e-3, (0.9, 0.999), fused=fused),
        ]
        # L of the paper: in an epoch a particle gets one drift, but noise this many times.
        self.iterations_per_epoch = settings.data_points / settings.batch

    def phi(self, x, y):
        """U + V of latents [batch, particles, d] for images [batch, channels, side, side]."""
        decoded = self.generator(x.flatten(0, 1)).unflatten(0, x.shape[:2])
        misfit = (y[:, None] - decoded).square().sum((2, 3, 4)) / (2 * self.settings.sigma**2)
        return self.energy(x) + misfit

    def loss(self, x, y, prior):
        """Of both networks: each sees only its own part of it."""
        return self.phi(x, y).mean() - self.energy(prior).mean()

    def prior_start(self):
        return torch.randn(self.settings.batch, self.settings.latent)

    def prior_chains(self, x):
        settings = self.settings
        return with_autograd(self.energy, x, settings.prior_steps, settings.prior_step_size, 1.0)

    def update_parameters(self):
        for optimizer in self.optimizers:
            optimizer.step()

    def gradients(self, latents, prior):
        """The gradients of phi for the latents, then of the loss for all parameters, for the check."""
        latents, prior = torch.from_numpy(latents), torch.from_numpy(prior)
        gradients = [self.latent_and_parameter_gradients(latents, prior)]
        gradients += [parameter.grad for network in (self.energy, self.generator) for parameter in network.parameters()]
        return [gradient.numpy() for gradient in gradients]


class Straightforward(_Training):
    def __init__(self, settings, model):
        super().__init__(settings, model, fused=None)

    def step(self, batch):
        batch = torch.from_numpy(batch)
        step_size = self.settings.step_size
        x = self.particles[batch]
        self.particles[batch] = x - step_size * self.latent_gradient(x)
        self.particles += (2 * step_size / self.iterations_per_epoch) ** 0.5 * torch.randn_like(self.particles)
        prior = self.prior_chains(self.prior_start())
        self.parameter_gradients(x, prior)
        self.update_parameters()

    def latent_gradient(self, x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad(self.phi(x, self.images).sum(), x)[0]

    def parameter_gradients(self, x, prior):
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        self.loss(x, self.images, prior).backward()

    def latent_and_parameter_gradients(self, x, prior):
        gradient = self.latent_gradient(x)
        self.parameter_gradients(x, prior)
        return gradient


class OnePass(_Training):
    """Latents and parameters share a pass; particles outside the batch get their noise when they are next needed."""

    def __init__(self, settings, model):
        super().__init__(settings, model, fused=True)
        # oneDNN's transposed convolutions are about a quarter faster in this layout.
        self.generator.to(memory_format=torch.channels_last)
        self.images = self.images.to(memory_format=torch.channels_last)
        self.iteration = 0
        self.settled = torch.zeros(settings.data_points)

    def step(self, batch):
        batch = torch.from_numpy(batch)
        x = self.settle(batch)
        prior = self.prior_chains(self.prior_start())
        gradient = self.latent_and_parameter_gradients(x, prior)
        self.particles[batch] = x.detach() - self.settings.step_size * gradient
        self.update_parameters()
        self.iteration += 1

    def settle(self, batch):
        """The particles of the batch, with the noise of all iterations since it was last applied."""
        missed = self.iteration - self.settled[batch]
        self.settled[batch] = self.iteration
        scale = (2 * self.settings.step_size / self.iterations_per_epoch * missed).sqrt()
        x = self.particles[batch]
        return x + scale[:, None, None] * torch.randn_like(x)

    def latent_and_parameter_gradients(self, x, prior):
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        x.requires_grad_()
        self.loss(x, self.images, prior).backward()
        # The loss is a mean over particles, phi is not.
        return x.grad * x[..., 0].numel()


class Compiled(OnePass):
    def __init__(self, settings, model):
        super().__init__(settings, model)
        self.loss = torch.compile(self.loss, fullgraph=True, dynamic=False)
        self.prior_step = compiled_step(self.energy, settings.prior_step_size, 1.0)

    def prior_chains(self, x):
        return with_compiled(self.prior_step, x, self.settings.prior_steps)
