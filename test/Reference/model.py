#===- model.py - the decoder-only transformer, forward and backward --------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Loss and gradients of a decoder-only transformer on one device, in float64.

Weights are a dictionary from parameter name to array, named and shaped as docs/Numerics.md says.
"""

import numpy as np

import experts
import generator
import layers


def document_starts(tokens, end):
    """Where in its row the document of each of tokens [batch, sequence] begins; `end` ends one."""
    places = np.arange(tokens.shape[1])
    behind = np.where(tokens[:, :-1] == end, places[1:], 0)
    return np.pad(np.maximum.accumulate(behind, axis=1), ((0, 0), (1, 0)))


class Gradients(dict):
    """Gradients by parameter name; a parameter used twice (tied weights) gets the sum."""

    def add(self, name, value):
        self[name] = self[name] + value if name in self else value


class Transformer:
    """Computes loss and gradients for the `Model` of config.py, with `fp8` and `routing` as in its
    `Recipe`. `dropped` says how often the last batch lost a token at an expert, by layer."""

    def __init__(self, model, fp8=None, routing=None, document_end=None):
        self.model, self.fp8, self.routing = model, fp8, routing or experts.Routing()
        self.document_end, self.starts = document_end, None
        self.dropped, self.routing_loss, self.picks = {}, 0.0, {}
        if model.experts and fp8:
            raise ValueError("the reference has no experts with FP8 matmuls")
        self.frequencies = None
        if model.positions == "ROTARY":
            self.frequencies = layers.rotary_frequencies(
                model.rotary_size, model.theta, model.rope_scaling)

    def loss_and_gradients(self, weights, tokens, targets, z_loss, seed, step):
        """Both for one global batch; tokens and targets are integers [batch, sequence]."""
        saved = []
        logits = self.logits(weights, tokens, seed, step, saved)
        loss = layers.cross_entropy(logits, targets, z_loss) + self.routing_loss
        gradients = Gradients()
        d = layers.cross_entropy_backward(logits, targets, z_loss)
        while saved:
            d = saved.pop()(d, gradients)
        return loss, gradients

    def loss(self, weights, tokens, targets, z_loss, seed, step):
        """The loss alone."""
        logits = self.logits(weights, tokens, seed, step, [])
        return layers.cross_entropy(logits, targets, z_loss) + self.routing_loss

    # The methods below take the activations h, append to `saved` a function that carries the
    # gradient of the result back to h and adds the parameters' gradients, and return the result.

    def logits(self, weights, tokens, seed, step, saved):
        """[batch, sequence, vocabulary]; `saved` then leads from their gradient to all others."""

        def dropout(h, layer, site):
            return self._dropout(h, self.model.dropout, (seed, step, layer, site), saved)

        self.dropped, self.routing_loss = {}, 0.0
        self.starts = None if self.document_end is None else document_starts(
            tokens, self.document_end)
        h = dropout(self._embed(weights, tokens, saved), 0, generator.SITE_EMBEDDING)
        for layer in range(self.model.layers):
            for block, key in ((self._attention_block, (seed, step, layer)),
                               (self._mlp_block, (seed, step, layer))):
                inner = []
                out = block(weights, h, f"layers.{layer}.", key, inner)
                saved.append(_residual_backward(inner))
                h = h + out
        h = self._norm(weights, h, "final_norm", saved)
        head = "embed.tokens.weight" if self.model.tied_embeddings else "head.weight"
        return self._matmul(weights, h, head, None, saved, fp8=None)

    def move_biases(self, weights):
        """Raises the selection biases of experts that the last batch picked seldom."""
        for layer, counts in self.picks.items():
            name = f"layers.{layer}.router.bias"
            if name in weights:
                weights[name] = weights[name] + self.routing.bias_update_speed * np.sign(
                    counts.mean() - counts)

    def _embed(self, weights, tokens, saved):
        places = np.broadcast_to(np.arange(tokens.shape[1]), tokens.shape)
        if self.starts is not None:
            places = places - self.starts
        h = weights["embed.tokens.weight"][tokens]
        if self.model.positions == "LEARNED":
            h = h + weights["embed.positions.weight"][places]

        def backward(d, gradients):
            table = np.zeros_like(weights["embed.tokens.weight"])
            np.add.at(table, tokens, d)
            gradients.add("embed.tokens.weight", table)
            if self.model.positions == "LEARNED":
                table = np.zeros_like(weights["embed.positions.weight"])
                np.add.at(table, places, d)
                gradients.add("embed.positions.weight", table)

        saved.append(backward)
        return h

    def _dropout(self, h, rate, key, saved):
        if rate == 0.0:
            return h
        mask = generator.dropout_mask(h.shape, rate, *key)
        saved.append(lambda d, gradients: d * mask)
        return h * mask

    def _norm(self, weights, h, name, saved):
        epsilon = self.model.norm_epsilon
        weight = weights[name + ".weight"]
        if self.model.norm == "RMS_NORM":
            def backward(d, gradients):
                dx, dw = layers.rms_norm_backward(d, h, weight, epsilon)
                gradients.add(name + ".weight", dw)
                return dx

            saved.append(backward)
            return layers.rms_norm(h, weight, epsilon)

        def backward(d, gradients):
            dx, dw, db = layers.layer_norm_backward(d, h, weight, epsilon)
            gradients.add(name + ".weight", dw)
            if name + ".bias" in weights:
                gradients.add(name + ".bias", db)
            return dx

        saved.append(backward)
        return layers.layer_norm(h, weight, weights.get(name + ".bias"), epsilon)

    def _linear(self, weights, h, name, bias, saved):
        return self._matmul(weights, h, name, bias, saved, self.fp8)

    def _matmul(self, weights, h, name, bias, saved, fp8):
        weight = weights[name]
        # [outputs, inputs], whatever the shape: all but the last of h's dimensions are rows.
        flat = weight.reshape(-1, h.shape[-1])
        has_bias = bias in weights
        if fp8:
            h, flat = fp8.values(h, name + ".input"), fp8.values(flat, name)

        def backward(d, gradients):
            dx, dw, db = layers.linear_backward(d, h, flat)
            if fp8:
                dx, dw, _ = layers.linear_backward(fp8.gradient(d, name), h, flat)
            gradients.add(name, dw.reshape(weight.shape))
            if has_bias:
                gradients.add(bias, db.reshape(weights[bias].shape))
            return dx

        saved.append(backward)
        return layers.linear(h, flat, weights[bias].reshape(-1) if has_bias else None)

    def _attention_block(self, weights, h, prefix, key, saved):
        seed, step, layer = key
        normed = self._norm(weights, h, prefix + "attention_norm", saved)
        attention = self._latent_attention if self.model.latent else self._attention
        mixed = attention(weights, normed, prefix + "attention.", key, saved)
        out = self._linear(weights, mixed, prefix + "attention.output.weight",
                           prefix + "attention.output.bias", saved)
        return self._dropout(out, self.model.dropout,
                             (seed, step, layer, generator.SITE_ATTENTION_RESIDUAL), saved)

    def _attention(self, weights, x, prefix, key, saved):
        model = self.model
        batch, length, _ = x.shape
        paths = {"query": [], "key": [], "value": []}
        q, k, v = (self._linear(weights, x, f"{prefix}{part}.weight", f"{prefix}{part}.bias", path)
                   for part, path in paths.items())
        q = q.reshape(batch, length, model.kv_heads, model.group, model.head_size)
        k = k.reshape(batch, length, model.kv_heads, model.head_size)
        head_norms = {"query": [], "key": []}
        if model.query_key_norm:
            q = self._norm(weights, q, prefix + "query_norm", head_norms["query"])
            k = self._norm(weights, k, prefix + "key_norm", head_norms["key"])
        q = q.transpose(0, 2, 3, 1, 4)
        k, v = (t.reshape(batch, length, model.kv_heads, model.head_size).transpose(0, 2, 1, 3)
                for t in (k, v))
        q, k = self._turn(q, layers.rotate) * model.score_scale, self._turn(k, layers.rotate)
        mask = self._attention_mask(batch, length, key)
        mixed, probabilities = layers.attention(q, k, v, mask, model.attention_window,
                                                 self.starts)

        def backward(d, gradients):
            d = d.reshape(batch, length, model.kv_heads, model.group, model.head_size)
            d = d.transpose(0, 2, 3, 1, 4)
            dq, dk, dv = layers.attention_backward(d, q, k, v, mask, probabilities)
            dq = self._turn(dq * model.score_scale, layers.rotate_backward)
            dk = self._turn(dk, layers.rotate_backward)
            dq, dk, dv = dq.transpose(0, 3, 1, 2, 4), dk.swapaxes(1, 2), dv.swapaxes(1, 2)
            if model.query_key_norm:
                dq = head_norms["query"][0](dq, gradients)
                dk = head_norms["key"][0](dk, gradients)
            dq, dk, dv = (t.reshape(batch, length, -1) for t in (dq, dk, dv))
            return sum(path[0](g, gradients) for path, g in zip(paths.values(), (dq, dk, dv)))

        saved.append(backward)
        return mixed.transpose(0, 3, 1, 2, 4).reshape(batch, length, -1)

    def _turn(self, x, rotate):
        """The first elements of x [..., sequence, head] rotated and scaled, or their gradient."""
        if self.frequencies is None:
            return x
        size = self.model.rotary_size
        turned = rotate(x[..., :size], self.frequencies) * self.model.rotated_scale
        return np.concatenate([turned, x[..., size:]], axis=-1)

    def _attention_mask(self, batch, length, key):
        model = self.model
        if model.attention_dropout == 0.0:
            return None
        shape = (batch, model.kv_heads, model.group, length, length)
        return generator.dropout_mask(shape, model.attention_dropout, *key,
                                      generator.SITE_ATTENTION_PROBABILITIES)

    def _latent_attention(self, weights, x, prefix, key, saved):
        """DeepSeek-V2's attention, section 2.1 of the paper."""
        model = self.model
        batch, length, _ = x.shape
        heads, size = model.heads, model.latent.rotary_size
        query_path, latent_path, paths = [], [], {"query": [], "key": [], "value": [], "turn": []}

        def latent_of(name, path):
            narrow = self._linear(weights, x, f"{prefix}{name}.weight", None, path)
            return self._norm(weights, narrow, f"{prefix}{name}_norm", path)

        source = latent_of("query_latent", query_path) if model.latent.query_rank else x
        c = latent_of("latent", latent_path)
        q = self._linear(weights, source, prefix + "query.weight", None, paths["query"])
        q = q.reshape(batch, length, heads, 1, -1).transpose(0, 2, 3, 1, 4)
        shared = self._linear(weights, x, prefix + "key_rotary.weight", None, paths["turn"])
        plain, v = (self._linear(weights, c, f"{prefix}{part}.weight", None, paths[part])
                    .reshape(batch, length, heads, -1).transpose(0, 2, 1, 3)
                    for part in ("key", "value"))
        turned = np.broadcast_to(self._turn(shared, layers.rotate)[:, None],
                                 (batch, heads, length, size))
        k = np.concatenate([turned, plain], axis=-1)
        q = self._turn(q, layers.rotate) * model.score_scale
        mask = self._attention_mask(batch, length, key)
        mixed, probabilities = layers.attention(q, k, v, mask, model.attention_window,
                                                 self.starts)

        def backward(d, gradients):
            d = d.reshape(batch, length, heads, 1, -1).transpose(0, 2, 3, 1, 4)
            dq, dk, dv = layers.attention_backward(d, q, k, v, mask, probabilities)
            dq = self._turn(dq * model.score_scale, layers.rotate_backward)
            dq = dq.transpose(0, 3, 1, 2, 4).reshape(batch, length, -1)
            d_shared = self._turn(dk[..., :size].sum(axis=1), layers.rotate_backward)
            d_plain, dv = (t.transpose(0, 2, 1, 3).reshape(batch, length, -1)
                           for t in (dk[..., size:], dv))
            through = [paths["query"][0](dq, gradients), paths["turn"][0](d_shared, gradients)]
            dc = paths["key"][0](d_plain, gradients) + paths["value"][0](dv, gradients)
            for path, gradient in ((query_path, through[0]), (latent_path, dc)):
                for step in reversed(path):
                    gradient = step(gradient, gradients)
                through.append(gradient)
            return sum(through[1:])

        saved.append(backward)
        return mixed.transpose(0, 3, 1, 2, 4).reshape(batch, length, -1)

    def _mlp_block(self, weights, h, prefix, key, saved):
        seed, step, layer = key
        normed = self._norm(weights, h, prefix + "mlp_norm", saved)
        if self.model.experts and self.model.experts.has(layer):
            out = self._mixture(weights, normed, prefix, layer, saved)
        else:
            out = self._mlp(weights, normed, prefix + "mlp.", saved)
        return self._dropout(out, self.model.dropout,
                             (seed, step, layer, generator.SITE_MLP_RESIDUAL), saved)

    def _mlp(self, weights, x, prefix, saved):
        inner = self._activation(weights, x, prefix, saved)
        return self._linear(weights, inner, prefix + "down.weight", prefix + "down.bias", saved)

    def _mixture(self, weights, x, prefix, layer, saved):
        mixture = experts.Mixture(self.model.experts, self.routing, InnerLayer(self.model),
                                  weights, prefix, x)
        self.routing_loss += mixture.loss
        self.dropped[layer] = mixture.dropped
        self.picks[layer] = mixture.chosen.sum(axis=(0, 1))
        shared, scale = [], 1.0
        out = mixture.output
        if self.model.experts.shared_ffn:
            plain = self._mlp(weights, x, prefix + "shared.", shared)
            if self.model.experts.shared_gate:
                scale = layers.logistic(x @ weights[prefix + "shared_router.weight"])[..., None]
            out = out + scale * plain

        def backward(d, gradients):
            dx = mixture.backward(d)
            for name, gradient in mixture.gradients.items():
                gradients.add(name, gradient)
            through = scale * d
            for step in reversed(shared):
                through = step(through, gradients)
            if self.model.experts.shared_gate:
                name = prefix + "shared_router.weight"
                d_logit = (d * plain).sum(axis=-1, keepdims=True) * scale * (1.0 - scale)
                gradients.add(name, (d_logit * x).sum(axis=(0, 1)))
                dx = dx + d_logit * weights[name]
            return dx + through if shared else dx

        saved.append(backward)
        return out

    def _activation(self, weights, x, prefix, saved):
        up_path, gate_path = [], []
        layer = InnerLayer(self.model)
        up = self._linear(weights, x, prefix + "up.weight", prefix + "up.bias", up_path)
        gate = None
        if layer.has_gate:
            # Shazeer 2020: the gate passes silu, and multiplies the other projection.
            gate = self._linear(weights, x, prefix + "gate.weight", prefix + "gate.bias", gate_path)

        def backward(d, gradients):
            d_up, d_gate = layer.backward(d, up, gate)
            dx = up_path[0](d_up, gradients)
            return dx + gate_path[0](d_gate, gradients) if layer.has_gate else dx

        saved.append(backward)
        return layer.forward(up, gate)


class InnerLayer:
    """The activation of a model's MLPs, of what up and, if there is one, gate project."""

    def __init__(self, model):
        self.has_gate = model.activation == "SWIGLU"
        if not self.has_gate:
            self.function, self.derive = {
                "GELU": (layers.gelu, layers.gelu_backward),
                "GELU_TANH": (layers.gelu_tanh, layers.gelu_tanh_backward),
            }[model.activation]

    def forward(self, up, gate):
        return layers.silu(gate) * up if self.has_gate else self.function(up)

    def backward(self, d, up, gate):
        """Gradients of both; None of a gate that there is not."""
        if self.has_gate:
            return d * layers.silu(gate), layers.silu_backward(d * up, gate)
        return self.derive(d, up), None


def _residual_backward(inner):
    """The gradient through h + f(h), where `inner` carries it back through f."""
    def backward(d, gradients):
        through = d
        for step in reversed(inner):
            through = step(through, gradients)
        return d + through

    return backward
