"""Langevin chains on an energy in PyTorch: eager with autograd, and compiled with the gradient by hand."""

import os

# Idle workers of the compiler would share the cores with what is timed.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

import torch

from torch_networks import Energy


def langevin(x, gradient, step_size, temperature):
    return x - step_size * gradient + (2 * step_size * temperature) ** 0.5 * torch.randn_like(x)


def with_autograd(energy, x, steps, step_size, temperature):
    for _ in range(steps):
        x.requires_grad_()
        (gradient,) = torch.autograd.grad(energy(x).sum(), x)
        x = langevin(x.detach(), gradient, step_size, temperature)
    return x


def compiled_step(energy, step_size, temperature):
    """One step of the chains as a single graph, noise included.

    In the default mode: `reduce-overhead` is about CUDA. Freezing and autotuned products, which need each other on a
    CPU, were no faster on one thread, and training could not use them, since its weights change.
    """

    @torch.compile(fullgraph=True, dynamic=False)
    def step(x):
        return langevin(x, energy.gradient(x), step_size, temperature)

    return step


def with_compiled(step, x, steps):
    with torch.no_grad():
        for _ in range(steps):
            x = step(x)
    return x


def _energy(settings, weights):
    return Energy(weights, settings.activation, settings.slope, settings.tilt).requires_grad_(False)


def eager(settings, weights):
    energy = _energy(settings, weights)

    def run(start):
        x = torch.from_numpy(start)
        return with_autograd(energy, x, settings.steps, settings.step_size, settings.temperature).numpy()

    return run


def compiled(settings, weights):
    step = compiled_step(_energy(settings, weights), settings.step_size, settings.temperature)
    return lambda start: with_compiled(step, torch.from_numpy(start), settings.steps).numpy()
