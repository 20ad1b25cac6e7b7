"""Times one training iteration of EBIPLA on images in PyTorch and JAX, for `runner bench --peers` to compare with.

Layers are [channels, kernel, stride, padding] of transposed convolutions. Random images stand in for data: what they
show does not change the work. Prints seconds per training iteration.

Usage: step.py '{"latent":100,"layers":[[512,4,1,0],[256,4,2,1],[128,4,2,1],[3,4,2,1]],"slope":0.2,"hidden":200,
    "energy_layers":2,"tilt":1.0,"data_points":73257,"particles":10,"batch":128,"sigma":0.3,"step_size":0.009,
    "prior_steps":60,"prior_step_size":0.1,"threads":2,"repeats":3,
    "peers":["torch_straightforward","torch_eager","torch_compile","jax"]}'
"""

from types import SimpleNamespace

import protocol

PEERS = {
    "torch_straightforward": ("torch_step", "Straightforward"),
    "torch_eager": ("torch_step", "OnePass"),
    "torch_compile": ("torch_step", "Compiled"),
    "jax": ("jax_step", "Jitted"),
}


def model(settings, rng):
    """Initial weights and particles, and the images of a batch."""
    import numpy

    import networks

    side = networks.image_size(settings.layers)
    image_shape = (settings.batch, settings.layers[-1][0], side, side)
    particles_shape = (settings.data_points, settings.particles, settings.latent)
    return SimpleNamespace(
        energy=networks.energy_weights(rng, settings.latent, settings.hidden, settings.energy_layers),
        generator=networks.generator_weights(rng, settings.latent, settings.layers),
        particles=rng.standard_normal(particles_shape, dtype=numpy.float32),
        images=rng.uniform(-1, 1, image_shape).astype(numpy.float32),
    )


def seconds_per_iteration(peer, settings):
    # Not at the top: without NumPy there are no peers either, and that makes an error line for each.
    import numpy

    rng = numpy.random.default_rng(1)
    training = peer(settings, model(settings, rng))
    batches = iter([rng.permutation(settings.data_points)[: settings.batch] for _ in range(settings.repeats + 1)])
    return protocol.timed(lambda: training.step(next(batches)), settings.repeats)


if __name__ == "__main__":
    protocol.main(PEERS, {}, seconds_per_iteration)
