#===- optimizer.py - learning rate, clipping, optimizers ----------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""The update of weights by their gradients, as docs/Numerics.md says."""

import math

import numpy as np


def learning_rate(recipe, step):
    """The rate of `step`, which counts from 0."""
    peak, final = recipe.peak_learning_rate, recipe.final_learning_rate_fraction
    if step < recipe.warmup_steps:
        return peak * (step + 1) / recipe.warmup_steps
    if recipe.decay == "CONSTANT":
        return peak
    remaining = recipe.steps - recipe.warmup_steps
    progress = min(1.0, (step - recipe.warmup_steps) / remaining) if remaining > 0 else 1.0
    if recipe.decay == "LINEAR":
        return peak * (1.0 - (1.0 - final) * progress)
    wave = 0.5 * (1.0 + math.cos(math.pi * progress))
    return peak * (final + (1.0 - final) * wave)


def is_decayed(name):
    """Norm weights and all biases are free of weight decay."""
    return not (name.endswith(".bias") or name.endswith("norm.weight"))


def global_norm(gradients):
    """The 2-norm over all gradients together."""
    return math.sqrt(sum(float((g**2).sum()) for g in gradients.values()))


def clip_scale(recipe, norm):
    """The factor of the gradients; a recipe without clipping has an infinite norm."""
    return min(1.0, recipe.clip_norm / (norm + 1e-6))


class AdamW:
    """Kingma, Ba 2015 with the decoupled decay of Loshchilov, Hutter 2019."""

    def __init__(self, recipe, weights):
        self.recipe = recipe
        self.m = {name: np.zeros_like(w) for name, w in weights.items()}
        self.v = {name: np.zeros_like(w) for name, w in weights.items()}

    def update(self, weights, gradients, step, rate=None):
        recipe, t = self.recipe, step + 1
        rate = learning_rate(recipe, step) if rate is None else rate
        for name, g in gradients.items():
            self.m[name] = recipe.beta1 * self.m[name] + (1.0 - recipe.beta1) * g
            self.v[name] = recipe.beta2 * self.v[name] + (1.0 - recipe.beta2) * g**2
            m = self.m[name] / (1.0 - recipe.beta1**t)
            v = self.v[name] / (1.0 - recipe.beta2**t)
            decay = recipe.weight_decay if is_decayed(name) else 0.0
            weights[name] = weights[name] - rate * (
                m / (np.sqrt(v) + recipe.epsilon) + decay * weights[name])

    def state(self):
        return {**{"adam_m/" + n: m for n, m in self.m.items()},
                **{"adam_v/" + n: v for n, v in self.v.items()}}


class Muon:
    """Jordan et al. 2024, with the scale of Liu et al. 2025; parameters that are no matrices get AdamW."""

    def __init__(self, recipe, weights):
        self.recipe = recipe
        self.momentum = {name: np.zeros_like(w) for name, w in weights.items() if is_matrix(name)}
        self.others = AdamW(recipe, {n: w for n, w in weights.items() if not is_matrix(n)})

    def update(self, weights, gradients, step):
        recipe, rate = self.recipe, learning_rate(self.recipe, step)
        self.others.update(weights, {n: g for n, g in gradients.items() if not is_matrix(n)}, step,
                           rate * recipe.adamw_rate)
        for name, m in self.momentum.items():
            g = gradients[name]
            self.momentum[name] = m = recipe.momentum * m + g
            ahead = g + recipe.momentum * m if recipe.nesterov else m
            weights[name] = weights[name] - rate * (
                scaled_orthogonal(name, ahead, recipe) + recipe.weight_decay * weights[name])

    def state(self):
        return {**{"momentum/" + n: m for n, m in self.momentum.items()}, **self.others.state()}


def is_matrix(name):
    """Whether Muon sees the parameter as a matrix."""
    return (name.startswith("layers.") and is_decayed(name)
            and not name.endswith("shared_router.weight"))


def scaled_orthogonal(name, update, recipe):
    """The orthogonal part of each matrix of `update`, by its scale."""
    stacked = 1 if ".experts." in name else 0
    rows = update.ndim - 1 - stacked if name.endswith(
        ("query.weight", "key.weight", "value.weight")) else 1
    columns = int(np.prod(update.shape[stacked + rows:]))
    matrices = update.reshape(*update.shape[:stacked], -1, columns)
    r, c = matrices.shape[-2:]
    size = (math.sqrt(max(1.0, r / c)) if recipe.scale == "SPECTRAL"
            else 0.2 * math.sqrt(max(r, c)))
    norm = np.sqrt((matrices**2).sum(axis=(-2, -1), keepdims=True))
    x = matrices / (norm + 1e-7)
    for _ in range(recipe.iterations):
        gram = x @ x.swapaxes(-1, -2)
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return size * x.reshape(update.shape)


class SGD:
    """Gradient descent with momentum as PyTorch has it: the decay is part of the gradient."""

    def __init__(self, recipe, weights):
        self.recipe = recipe
        self.momentum = {name: np.zeros_like(w) for name, w in weights.items()}

    def update(self, weights, gradients, step):
        rate = learning_rate(self.recipe, step)
        for name, g in gradients.items():
            decay = self.recipe.weight_decay if is_decayed(name) else 0.0
            self.momentum[name] = self.recipe.momentum * self.momentum[name] + (
                g + decay * weights[name])
            weights[name] = weights[name] - rate * self.momentum[name]

    def state(self):
        return {"momentum/" + n: b for n, b in self.momentum.items()}


def optimizer_for(recipe, weights):
    """The optimizer that the recipe names, with fresh state."""
    return {"adamw": AdamW, "sgd": SGD, "muon": Muon}[recipe.optimizer](recipe, weights)
