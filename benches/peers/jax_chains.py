"""Langevin chains on an energy in JAX: one jitted loop over all steps."""

import jax
import jax.numpy as jnp
import numpy
from jax import lax

import jax_networks


def langevin(energy, x, key, steps, step_size, temperature):
    """The chains after `steps` steps from x; `energy` maps [n, d] to [n]."""
    gradient = jax.grad(lambda x: jnp.sum(energy(x)))
    scale = (2 * step_size * temperature) ** 0.5

    def step(_, state):
        x, key = state
        key, noise = jax.random.split(key)
        return x - step_size * gradient(x) + scale * jax.random.normal(noise, x.shape), key

    return lax.fori_loop(0, steps, step, (x, key))[0]


def jitted(settings, weights):
    @jax.jit
    def chains(weights, x, key):
        def energy(x):
            return jax_networks.energy(weights, x, settings.activation, settings.slope, settings.tilt)

        return langevin(energy, x, key, settings.steps, settings.step_size, settings.temperature)

    weights = jax.tree.map(jnp.asarray, weights)
    keys = iter(jax.random.split(jax.random.key(1), settings.repeats + 1))
    return lambda start: numpy.asarray(chains(weights, start, next(keys)))
