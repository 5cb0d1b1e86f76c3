#===- layers.py - every operation forward, and backward by hand ------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""The operations of the model family in float64, each with the gradient derived by hand.

`f(...)` returns the value; `f_backward(...)` takes the gradient of the loss by that value and
returns the gradients of the inputs. Activations are [batch, sequence, hidden]; attention works
on [batch, kv_heads, group, sequence, head]. Formulas are those of docs/Numerics.md.
"""

import math

import numpy as np

_erf = np.frompyfunc(math.erf, 1, 1)


def erf(x):
    """The error function, to the last bits of float64."""
    return _erf(x).astype(np.float64)


def linear(x, weight, bias=None):
    """y = x W^T + b over the last dimension; W is [outputs, inputs]."""
    y = x @ weight.T
    return y if bias is None else y + bias


def linear_backward(dy, x, weight):
    """Gradients of x, W and b."""
    rows, inputs = dy.reshape(-1, dy.shape[-1]), x.reshape(-1, x.shape[-1])
    return dy @ weight, rows.T @ inputs, rows.sum(axis=0)


# Bits of mantissa, least exponent and greatest number of FP8 formats.
FLOAT8 = {"E4M3": (3, -6, 448.0), "E5M2": (2, -14, 57344.0)}


def quantize(x, name, amax=None):
    """The nearest numbers of the format `name`, at ties the even ones, after x was scaled by the
    greatest power of two that leaves `amax`, x's own without one, in range; scaled back."""
    bits, least, greatest = FLOAT8[name]
    amax = np.abs(x).max() if amax is None else amax
    if amax == 0.0:
        return x
    scale = 2.0 ** math.floor(math.log2(greatest / amax))
    scaled = np.clip(x * scale, -greatest, greatest)
    _, exponent = np.frexp(scaled)
    unit = 2.0 ** (np.maximum(exponent - 1, least) - bits)
    return np.rint(scaled / unit) * unit / scale


class Fp8:
    """The operands of FP8 matmuls: formats of values and of gradients, and the number of steps for
    which a tensor's greatest absolute values are kept for its scale; 0 to scale by its own."""

    def __init__(self, values, gradients, history=0):
        self.formats, self.history = (values, gradients), history
        self.kept, self.own = {}, {}

    def fresh(self):
        """The same settings with the state before the first step."""
        return Fp8(*self.formats, self.history)

    def values(self, x, name):
        return self._quantize(x, name, self.formats[0])

    def gradient(self, x, name):
        return self._quantize(x, name + ".gradient", self.formats[1])

    def end_step(self):
        """Ends a step, whose tensors scale those of the next."""
        for name, amax in self.own.items():
            self.kept[name] = (self.kept.get(name, []) + [amax])[-max(self.history, 1):]
        self.own = {}

    def _quantize(self, x, name, number_format):
        if self.history == 0:
            return quantize(x, number_format)
        self.own[name] = np.abs(x).max()
        amax = max(self.kept.get(name, [0.0]))
        return quantize(x, number_format, amax if amax > 0.0 else FLOAT8[number_format][2])


def layer_norm(x, weight, bias, epsilon):
    """Ba, Kiros, Hinton 2016, with the biased variance; `bias` may be None."""
    centered = x - x.mean(axis=-1, keepdims=True)
    y = centered / np.sqrt((centered**2).mean(axis=-1, keepdims=True) + epsilon) * weight
    return y if bias is None else y + bias


def layer_norm_backward(dy, x, weight, epsilon):
    """Gradients of x, weight and bias."""
    centered = x - x.mean(axis=-1, keepdims=True)
    inverse = 1.0 / np.sqrt((centered**2).mean(axis=-1, keepdims=True) + epsilon)
    unit = centered * inverse
    g = dy * weight
    dx = inverse * (g - g.mean(axis=-1, keepdims=True)
                    - unit * (g * unit).mean(axis=-1, keepdims=True))
    return dx, (dy * unit).sum(axis=(0, 1)), dy.sum(axis=(0, 1))


def rms_norm(x, weight, epsilon):
    """Zhang, Sennrich 2019."""
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + epsilon) * weight


def rms_norm_backward(dy, x, weight, epsilon):
    """Gradients of x and weight; all dimensions but the last are rows."""
    inverse = 1.0 / np.sqrt((x**2).mean(axis=-1, keepdims=True) + epsilon)
    unit = x * inverse
    g = dy * weight
    dx = inverse * (g - unit * (g * unit).mean(axis=-1, keepdims=True))
    return dx, (dy * unit).reshape(-1, x.shape[-1]).sum(axis=0)


def gelu(x):
    """x times the normal distribution function (Hendrycks, Gimpel 2016)."""
    return 0.5 * x * (1.0 + erf(x / math.sqrt(2.0)))


def gelu_backward(dy, x):
    density = np.exp(-0.5 * x**2) / math.sqrt(2.0 * math.pi)
    return dy * (0.5 * (1.0 + erf(x / math.sqrt(2.0))) + x * density)


GELU_SCALE = math.sqrt(2.0 / math.pi)
GELU_CUBIC = 0.044715


def gelu_tanh(x):
    """The approximation by tanh that GPT-2 uses."""
    return 0.5 * x * (1.0 + np.tanh(GELU_SCALE * (x + GELU_CUBIC * x**3)))


def gelu_tanh_backward(dy, x):
    t = np.tanh(GELU_SCALE * (x + GELU_CUBIC * x**3))
    inner = GELU_SCALE * (1.0 + 3.0 * GELU_CUBIC * x**2)
    return dy * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t**2) * inner)


def silu(x):
    """x times the logistic function, without overflow for any x."""
    return x * logistic(x)


def silu_backward(dy, x):
    s = logistic(x)
    return dy * s * (1.0 + x * (1.0 - s))


def logistic(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0.0, 1.0, e) / (1.0 + e)


def rotary_frequencies(head_size, theta, scaling):
    """Radians per position of each pair of components (Su et al. 2021).

    `scaling` is None, ("linear", factor), ("yarn", factor, fast_turns, slow_turns,
    original_positions, whole_pairs) or ("llama3", factor, low_frequency_factor,
    high_frequency_factor, original_positions).
    """
    plain = theta ** (-2.0 * np.arange(head_size // 2) / head_size)
    if scaling is None:
        return plain
    if scaling[0] == "linear":
        return plain / scaling[1]
    if scaling[0] == "yarn":
        return yarn_frequencies(plain, head_size, theta, *scaling[1:])
    _, factor, low, high, original = scaling
    # Turns that a pair makes over the original context: many turns stay, few are stretched.
    turns = original * plain / (2.0 * math.pi)
    smooth = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return (1.0 - smooth) * plain / factor + smooth * plain


def yarn_frequencies(plain, head_size, theta, factor, fast, slow, original, whole):
    """Peng et al. 2023: pairs that turn often stay, those that turn seldom are stretched."""
    def pair_of(turns):
        return head_size * math.log(original / (2.0 * math.pi * turns)) / (2.0 * math.log(theta))

    low, high = pair_of(fast), pair_of(slow)
    if whole:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, head_size - 1)
    high = low + 1e-3 if low == high else high
    ramp = np.clip((np.arange(len(plain)) - low) / (high - low), 0.0, 1.0)
    return plain / factor * ramp + plain * (1.0 - ramp)


def rotate(x, frequencies):
    """Turns components (i, i + head/2) of x [..., sequence, head] by position * frequency[i]."""
    angle = np.arange(x.shape[-2])[:, None] * frequencies
    cosine, sine = np.cos(angle), np.sin(angle)
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cosine - b * sine, b * cosine + a * sine], axis=-1)


def rotate_backward(dy, frequencies):
    """A rotation's transpose is the rotation by the opposite angle."""
    return rotate(dy, -frequencies)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention(q, k, v, mask, window=0, starts=None):
    """Causal attention (Vaswani et al. 2017); `mask` multiplies the probabilities, or is None.

    With a window, only that many keys up to the query's own count (Beltagy et al. 2020); with
    starts, [batch, sequence], only those from the start of the query's document on.

    q is [batch, kv_heads, group, sequence, head]; k and v are [batch, kv_heads, sequence, head].
    Returns the mixed values, shaped as q, and the probabilities before the mask.
    """
    scores = np.einsum("bkgqh,bksh->bkgqs", q, k) / math.sqrt(q.shape[-1])
    length = q.shape[-2]
    distance = np.arange(length)[:, None] - np.arange(length)
    seen = (distance >= 0) & (distance < (window or length))
    if starts is not None:
        seen = (seen & (np.arange(length) >= starts[..., None]))[:, None, None]
    probabilities = softmax(np.where(seen, scores, -np.inf))
    kept = probabilities if mask is None else probabilities * mask
    return np.einsum("bkgqs,bksh->bkgqh", kept, v), probabilities


def attention_backward(dy, q, k, v, mask, probabilities):
    """Gradients of q, k and v."""
    kept = probabilities if mask is None else probabilities * mask
    dv = np.einsum("bkgqs,bkgqh->bksh", kept, dy)
    dp = np.einsum("bkgqh,bksh->bkgqs", dy, v)
    if mask is not None:
        dp = dp * mask
    ds = probabilities * (dp - (dp * probabilities).sum(axis=-1, keepdims=True))
    ds = ds / math.sqrt(q.shape[-1])
    return np.einsum("bkgqs,bksh->bkgqh", ds, k), np.einsum("bkgqs,bkgqh->bksh", ds, q), dv


def cross_entropy(logits, targets, z_coefficient):
    """Mean over all tokens of -log softmax at the target, plus z_coefficient * mean(lse^2)."""
    peak = logits.max(axis=-1, keepdims=True)
    lse = (peak + np.log(np.exp(logits - peak).sum(axis=-1, keepdims=True)))[..., 0]
    chosen = np.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    return (lse - chosen).mean() + z_coefficient * (lse**2).mean()


def cross_entropy_backward(logits, targets, z_coefficient):
    """Gradient of the logits for a loss gradient of 1."""
    peak = logits.max(axis=-1, keepdims=True)
    lse = peak + np.log(np.exp(logits - peak).sum(axis=-1, keepdims=True))
    d = np.exp(logits - lse) * (1.0 + 2.0 * z_coefficient * lse)
    chosen = np.take_along_axis(d, targets[..., None], axis=-1) - 1.0
    np.put_along_axis(d, targets[..., None], chosen, axis=-1)
    return d / targets.size
