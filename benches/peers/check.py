"""Checks that the peers compute the same: who times them wants to compare speed, not results.

Runs the very functions that `chains.py` and `step.py` time, at small sizes. Ends with exit code 1 at a difference.

Usage: check.py
"""

import importlib
import sys
from types import SimpleNamespace

import numpy

import chains
import networks
import step

CHAINS = SimpleNamespace(
    latent=3, hidden=16, layers=3, slope=0.2, tilt=1.5, steps=5, step_size=0.05, temperature=0.0, repeats=1
)
TRAINING = SimpleNamespace(
    latent=6,
    layers=[[8, 4, 1, 0], [5, 4, 2, 1], [3, 3, 1, 1]],
    slope=0.2,
    hidden=16,
    energy_layers=2,
    tilt=1.0,
    data_points=12,
    particles=3,
    batch=4,
    sigma=0.3,
    step_size=0.009,
    prior_steps=5,
    prior_step_size=0.1,
)


def variant(settings, **changes):
    return SimpleNamespace(**{**vars(settings), **changes})


def load(peers):
    return {name: getattr(importlib.import_module(module), function) for name, (module, function) in peers.items()}


class Verdict:
    passed = True

    def expect(self, what, difference, tolerance):
        # Not the other way round: a NaN must fail.
        good = difference < tolerance
        self.passed &= good
        print(f"{'ok' if good else 'FAILED'}: {what}: {difference:.2g}, allowed {tolerance:.2g}", flush=True)


def check_chains_without_noise(verdict):
    for activation in ["silu", "relu", "leaky_relu", "gelu"]:
        settings = variant(CHAINS, activation=activation)
        rng = numpy.random.default_rng(2)
        weights = networks.energy_weights(rng, settings.latent, settings.hidden, settings.layers)
        start = rng.standard_normal((50, settings.latent), dtype=numpy.float32)
        ends = {name: peer(settings, weights)(start.copy()) for name, peer in load(chains.PEERS).items()}
        expected = ends.pop("torch_eager")
        for name, end in ends.items():
            verdict.expect(f"chains of {name}, {activation}, against torch_eager", abs(end - expected).max(), 1e-4)


def check_noise_of_chains(verdict):
    """Without an MLP, the tilt alone makes an autoregression of known variance."""
    settings = variant(CHAINS, activation="silu", tilt=1.0, temperature=1.0, steps=100, step_size=0.1)
    rng = numpy.random.default_rng(3)
    weights = networks.energy_weights(rng, settings.latent, settings.hidden, settings.layers)
    weights = [(0 * weight, 0 * bias) for weight, bias in weights]
    start = rng.standard_normal((20_000, settings.latent), dtype=numpy.float32)
    expected = 1 / (1 - settings.step_size / 2)
    for name, peer in load(chains.PEERS).items():
        variance = peer(settings, weights)(start.copy()).var()
        # Of 60,000 values, the variance has a relative deviation of 0.6 %.
        verdict.expect(f"variance of chains of {name}", abs(variance / expected - 1), 0.03)


def check_gradients(verdict):
    """One pass gives what two give; relative to the largest entry of each gradient."""
    rng = numpy.random.default_rng(4)
    model = step.model(TRAINING, rng)
    latents, prior = model.particles[: TRAINING.batch], model.particles[TRAINING.batch :, 0]
    peers = load(step.PEERS)
    gradients = {name: peer(TRAINING, model).gradients(latents, prior) for name, peer in peers.items()}
    expected = gradients.pop("torch_straightforward")
    for name, found in gradients.items():
        assert len(found) == len(expected) == 1 + 2 * (TRAINING.energy_layers + 1) + 2 * len(TRAINING.layers)
        # The last bias of the energy has no gradient: it is in both expectations.
        scales = [max(abs(gradient).max(), 1e-2) for gradient in expected]
        difference = max(abs(a - b).max() / scale for a, b, scale in zip(found, expected, scales))
        verdict.expect(f"gradients of {name} against two passes", difference, 1e-4)


def check_adam(verdict):
    """JAX has no optimiser of its own, so the one written for it is compared with PyTorch's."""
    import jax_step
    import torch

    rng = numpy.random.default_rng(6)
    start, *gradients = rng.standard_normal((4, 20), dtype=numpy.float32)
    parameter = torch.tensor(start)
    optimizer = torch.optim.Adam([parameter], 1e-2, (0.5, 0.999))
    weight, moments = start, (0 * start, 0 * start)
    for count, gradient in enumerate(gradients, 1):
        parameter.grad = torch.from_numpy(gradient)
        optimizer.step()
        weight, moments = jax_step.adam(weight, gradient, moments, count, 1e-2, (0.5, 0.999))
    verdict.expect("Adam of jax against PyTorch's", abs(numpy.asarray(weight) - parameter.numpy()).max(), 1e-6)


def check_noise_of_particles(verdict):
    """Without drift, a particle is at a sum of increments of known variance, lazily added or not."""
    settings = variant(TRAINING, particles=2000, tilt=None, sigma=1e6)
    iterations = 7
    for name, peer in load(step.PEERS).items():
        model = step.model(settings, numpy.random.default_rng(5))
        model.particles[:] = 0
        model.energy = [(0 * weight, 0 * bias) for weight, bias in model.energy]
        training = peer(settings, model)
        # Three batches in turn. With weights of zero, those of the energy have no gradient and stay there.
        for iteration in range(iterations):
            batch = numpy.arange(settings.batch) + settings.batch * (iteration % 3)
            training.step(batch)
        # The noise of the last iteration is still owed where it is lazy.
        applied = iterations if name == "torch_straightforward" else iterations - 1
        expected = 2 * settings.step_size * applied * settings.batch / settings.data_points
        variance = (numpy.asarray(training.particles)[batch] ** 2).mean()
        # Of 48,000 values, the variance has a relative deviation of 0.6 %.
        verdict.expect(f"variance of particles of {name}", abs(variance / expected - 1), 0.03)


if __name__ == "__main__":
    verdict = Verdict()
    check_chains_without_noise(verdict)
    check_noise_of_chains(verdict)
    check_gradients(verdict)
    check_adam(verdict)
    check_noise_of_particles(verdict)
    sys.exit(0 if verdict.passed else 1)
