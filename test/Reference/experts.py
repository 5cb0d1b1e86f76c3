#===- experts.py - a mixture of experts, forward and backward --------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Experts in the place of an MLP, token by token and expert by expert, as docs/Numerics.md says."""

import math
from dataclasses import dataclass

import numpy as np

import layers


@dataclass
class Experts:
    """The fields of Experts in proto/weft/model.proto."""

    experts: int
    experts_per_token: int
    ffn: int
    shared_ffn: int = 0
    shared_gate: bool = False
    first_layer: int = 0
    layer_period: int = 1
    scoring: str = "SOFTMAX"
    normalize: bool = None  # with more than one expert for each token
    scale: float = 1.0
    groups: int = 1
    kept_groups: int = None  # groups
    selection_bias: bool = False

    def __post_init__(self):
        if self.normalize is None:
            self.normalize = self.experts_per_token > 1
        if self.kept_groups is None:
            self.kept_groups = self.groups

    def has(self, layer):
        """Whether layer number `layer` has experts."""
        return layer >= self.first_layer and (layer + 1) % self.layer_period == 0


@dataclass
class Routing:
    """The fields of Routing in proto/weft/recipe.proto."""

    load_balance_loss: float = 0.0
    load_balance_group: str = "GLOBAL_BATCH"
    router_z_loss: float = 0.0
    capacity_factor: float = None
    capacity_group: str = "SEQUENCE"
    bias_update_speed: float = 0.0
    buffer_factor: float = None


def choose(experts, scores):
    """1 where a token, a row of scores [batch, sequence, expert], goes to an expert, else 0."""
    rows = scores.reshape(-1, experts.experts).copy()
    for row in rows:
        parts = row.reshape(experts.groups, -1)
        if experts.kept_groups < experts.groups:
            totals = [sum(sorted(part)[-2:]) for part in parts]
            order = sorted(range(experts.groups), key=lambda group: (-totals[group], group))
            for group in order[experts.kept_groups:]:
                parts[group] = -math.inf
        best = sorted(range(experts.experts), key=lambda expert: (-row[expert], expert))
        row[:] = 0.0
        row[best[:experts.experts_per_token]] = 1.0
    return rows.reshape(scores.shape)


def keep(experts, routing, chosen):
    """The part of `chosen` that is left if no expert takes more tokens of a group than its capacity."""
    if routing.buffer_factor is not None:
        even = chosen.shape[1] * experts.experts_per_token / experts.experts
        room = max(1, math.ceil(routing.buffer_factor * even - 1e-9))
        if chosen.sum(axis=1).max() > room:
            raise ValueError(f"an expert gets {chosen.sum(axis=1).max():.0f} tokens, its buffer holds {room}")
    if routing.capacity_factor is None:
        return chosen
    batch, length, _ = chosen.shape
    is_global = routing.capacity_group == "GLOBAL_BATCH"
    even = (batch if is_global else 1) * length * experts.experts_per_token / experts.experts
    capacity = max(1, math.ceil(routing.capacity_factor * even - 1e-9))
    kept = np.zeros_like(chosen)
    taken = np.zeros(experts.experts)
    for sequence in range(batch):
        if not is_global:
            taken[:] = 0
        for token in range(length):
            for expert in np.flatnonzero(chosen[sequence, token]):
                if taken[expert] < capacity:
                    kept[sequence, token, expert] = 1.0
                    taken[expert] += 1
    return kept


class Mixture:
    """The experts of one layer at one batch. x is [batch, sequence, hidden]."""

    def __init__(self, experts, routing, activation, weights, prefix, x):
        self.experts, self.routing, self.activation = experts, routing, activation
        self.weights, self.prefix, self.x = weights, prefix, x
        self.gradients = {}
        self._route()
        self.output = np.zeros_like(x)
        self.inner = []
        for expert in range(experts.experts):
            places = np.nonzero(self.kept[..., expert])
            up = x[places] @ self._weight("up")[expert].T
            gate = x[places] @ self._weight("gate")[expert].T if self._has_gate() else None
            active = activation.forward(up, gate)
            out = active @ self._weight("down")[expert].T
            self.output[places] += self.shares[places + (expert,)][:, None] * out
            self.inner.append((places, up, gate, active, out))

    def _weight(self, name):
        return self.weights[f"{self.prefix}experts.{name}.weight"]

    def _has_gate(self):
        return f"{self.prefix}experts.gate.weight" in self.weights

    def _route(self):
        experts = self.experts
        self.logits = self.x @ self.weights[self.prefix + "router.weight"].T
        self.probabilities = layers.softmax(self.logits)
        softmax = experts.scoring == "SOFTMAX"
        self.scores = self.probabilities if softmax else layers.logistic(self.logits)
        bias = self.weights.get(self.prefix + "router.bias", 0.0)
        self.chosen = choose(experts, self.scores + bias)
        self.kept = keep(experts, self.routing, self.chosen)
        self.dropped = int((self.chosen - self.kept).sum())
        picked = self.scores * self.chosen
        self.sum = picked.sum(axis=-1, keepdims=True) if experts.normalize else np.ones(1)
        self.sum = np.where(self.sum > 0, self.sum, 1.0)
        self.shares = experts.scale * picked / self.sum
        self.loss = self._losses()

    def _losses(self):
        routing, experts = self.routing, self.experts
        peak = self.logits.max(axis=-1, keepdims=True)
        self.lse = peak + np.log(np.exp(self.logits - peak).sum(axis=-1, keepdims=True))
        self.means = self.scores / self.scores.sum(axis=-1, keepdims=True)
        group = (1,) if routing.load_balance_group == "SEQUENCE" else (0, 1)
        # The share of picks that each expert got, by group; picks have no gradient.
        self.loads = self.chosen.mean(axis=group, keepdims=True) / experts.experts_per_token
        matmuls = self.loads * self.means.mean(axis=group, keepdims=True)
        balance = experts.experts * matmuls.sum(axis=-1).mean()
        return routing.load_balance_loss * balance + routing.router_z_loss * (self.lse**2).mean()

    def backward(self, dy):
        """The gradient of x by that of the output and by the losses; fills in `gradients`."""
        dx = np.zeros_like(self.x)
        d_shares = np.zeros_like(self.shares)
        names = ("up", "gate", "down") if self._has_gate() else ("up", "down")
        found = {name: np.zeros_like(self._weight(name)) for name in names}
        for expert, (places, up, gate, active, out) in enumerate(self.inner):
            share = self.shares[places + (expert,)][:, None]
            d_shares[places + (expert,)] = (dy[places] * out).sum(axis=-1)
            d_out = share * dy[places]
            found["down"][expert] = d_out.T @ active
            d_up, d_gate = self.activation.backward(d_out @ self._weight("down")[expert], up, gate)
            found["up"][expert] = d_up.T @ self.x[places]
            dx[places] += d_up @ self._weight("up")[expert]
            if gate is not None:
                found["gate"][expert] = d_gate.T @ self.x[places]
                dx[places] += d_gate @ self._weight("gate")[expert]
        for name, gradient in found.items():
            self.gradients[f"{self.prefix}experts.{name}.weight"] = gradient
        return dx + self._router_backward(d_shares)

    def _router_backward(self, d_shares):
        experts, routing = self.experts, self.routing
        tokens = self.logits.shape[0] * self.logits.shape[1]
        d_picked = experts.scale * d_shares / self.sum
        if experts.normalize:
            inner = (d_shares * self.shares).sum(axis=-1, keepdims=True)
            d_picked = d_picked - inner / self.sum
        d_scores = d_picked * self.chosen
        d_means = routing.load_balance_loss * experts.experts * self.loads / tokens
        inner = (d_means * self.means).sum(axis=-1, keepdims=True)
        d_scores = d_scores + (d_means - inner) / self.scores.sum(axis=-1, keepdims=True)
        if experts.scoring == "SOFTMAX":
            inner = (d_scores * self.scores).sum(axis=-1, keepdims=True)
            d_logits = self.scores * (d_scores - inner)
        else:
            d_logits = d_scores * self.scores * (1.0 - self.scores)
        d_logits += 2.0 * routing.router_z_loss / tokens * self.lse * self.probabilities
        name = self.prefix + "router.weight"
        dx, self.gradients[name], _ = layers.linear_backward(d_logits, self.x, self.weights[name])
        return dx
