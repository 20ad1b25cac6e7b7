"""One training iteration of EBIPLA (Algorithm 2 of the paper, losses at X_k) on images in JAX.

Latents and parameters share a pass, and particles outside the batch get their noise when they are next needed.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy

import jax_networks
from jax_chains import langevin


def adam(weights, gradients, moments, count, rate, betas):
    """Adam's update, with its bias corrections for the `count`th one."""
    means, squares = moments
    means = jax.tree.map(lambda m, g: betas[0] * m + (1 - betas[0]) * g, means, gradients)
    squares = jax.tree.map(lambda v, g: betas[1] * v + (1 - betas[1]) * g * g, squares, gradients)
    rate = rate / (1 - betas[0] ** count)
    correction = 1 - betas[1] ** count
    weights = jax.tree.map(lambda w, m, v: w - rate * m / (jnp.sqrt(v / correction) + 1e-8), weights, means, squares)
    return weights, (means, squares)


class Jitted:
    def __init__(self, settings, model):
        self.settings = settings
        energy, generator, particles = jax.tree.map(jnp.array, (model.energy, model.generator, model.particles))
        zeros = partial(jax.tree.map, jnp.zeros_like)
        self.state = {
            "particles": particles,
            "settled": jnp.zeros(settings.data_points),
            "iteration": jnp.zeros(()),
            "key": jax.random.key(1),
            "energy": energy,
            "generator": generator,
            "energy_moments": (zeros(energy), zeros(energy)),
            "generator_moments": (zeros(generator), zeros(generator)),
        }
        self.images = jnp.array(model.images.transpose(0, 2, 3, 1))
        # Donated, the particles are updated in place rather than copied.
        self.jitted_step = jax.jit(self._step, donate_argnums=0)

    def step(self, batch):
        self.state = jax.block_until_ready(self.jitted_step(self.state, batch, self.images))

    @property
    def particles(self):
        return self.state["particles"]

    def gradients(self, latents, prior):
        """The gradients of phi for the latents, then of the loss for all parameters, for the check."""
        gradients = jax.jit(self._gradients)(
            self.state["energy"], self.state["generator"], latents, self.images, prior
        )
        latents, *parameters = gradients
        return [numpy.asarray(gradient) for gradient in [latents, *jax.tree.leaves(parameters)]]

    def _energy(self, weights, x):
        return jax_networks.energy(weights, x, "leaky_relu", 0.2, self.settings.tilt)

    def _loss(self, x, energy, generator, y, prior):
        settings = self.settings
        decoded = jax_networks.generator(generator, x.reshape(-1, settings.latent), settings.layers, settings.slope)
        error = y[:, None] - decoded.reshape(*x.shape[:2], *y.shape[1:])
        misfit = jnp.sum(error**2, (2, 3, 4)) / (2 * settings.sigma**2)
        return jnp.mean(self._energy(energy, x) + misfit) - jnp.mean(self._energy(energy, prior))

    def _gradients(self, energy, generator, x, y, prior):
        of_latents, of_energy, of_generator = jax.grad(self._loss, (0, 1, 2))(x, energy, generator, y, prior)
        # The loss is a mean over particles, phi is not.
        return of_latents * (x.shape[0] * x.shape[1]), of_energy, of_generator

    def _step(self, state, batch, y):
        settings = self.settings
        key, noise_key, start_key, chain_key = jax.random.split(state["key"], 4)
        iteration = state["iteration"]

        missed = iteration - state["settled"][batch]
        scale = jnp.sqrt(2 * settings.step_size * settings.batch / settings.data_points * missed)
        x = state["particles"][batch]
        x = x + scale[:, None, None] * jax.random.normal(noise_key, x.shape)

        start = jax.random.normal(start_key, (settings.batch, settings.latent))
        energy = partial(self._energy, state["energy"])
        prior = langevin(energy, start, chain_key, settings.prior_steps, settings.prior_step_size, 1.0)

        drift, of_energy, of_generator = self._gradients(state["energy"], state["generator"], x, y, prior)
        count = iteration + 1
        new_energy = adam(state["energy"], of_energy, state["energy_moments"], count, 2e-4, (0.5, 0.999))
        new_generator = adam(state["generator"], of_generator, state["generator_moments"], count, 1e-3, (0.9, 0.999))
        return {
            "particles": state["particles"].at[batch].set(x - settings.step_size * drift, unique_indices=True),
            "settled": state["settled"].at[batch].set(iteration, unique_indices=True),
            "iteration": count,
            "key": key,
            "energy": new_energy[0],
            "generator": new_generator[0],
            "energy_moments": new_energy[1],
            "generator_moments": new_generator[1],
        }
