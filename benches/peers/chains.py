"""Times prior chains in PyTorch and JAX, for `runner bench --peers` to compare with.

The chains x <- x - g grad U(x) + sqrt(2g) xi start from N(0, I); U is an MLP (silu, relu, leaky_relu or gelu), with a
tilt s plus |x|^2 / (2 s^2). Prints seconds per step of all chains.

Usage: chains.py '{"latent":2,"hidden":128,"layers":3,"activation":"silu","tilt":null,"chains":1000,"steps":500,
    "step_size":0.003,"threads":2,"repeats":5,"peers":["torch_eager","torch_compile","jax"]}'
"""

import protocol

PEERS = {
    "torch_eager": ("torch_chains", "eager"),
    "torch_compile": ("torch_chains", "compiled"),
    "jax": ("jax_chains", "jitted"),
}

DEFAULTS = {"slope": 0.2, "temperature": 1.0}


def seconds_per_step(peer, settings):
    # Not at the top: without NumPy there are no peers either, and that makes an error line for each.
    import numpy

    import networks

    rng = numpy.random.default_rng(1)
    run = peer(settings, networks.energy_weights(rng, settings.latent, settings.hidden, settings.layers))

    def chains():
        run(rng.standard_normal((settings.chains, settings.latent), dtype=numpy.float32))

    return [seconds / settings.steps for seconds in protocol.timed(chains, settings.repeats)]


if __name__ == "__main__":
    protocol.main(PEERS, DEFAULTS, seconds_per_step)
