#===- generator.py - the counter-based random numbers of docs/Numerics.md --===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Counter-based random numbers: every value is a function of seed, stream and index alone.

Nothing here keeps state, so any shard of a tensor can be drawn by itself, in any order. All
arithmetic is on unsigned 64-bit integers that wrap around.
"""

import numpy as np

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15

# Where in a layer a dropout mask is drawn; part of the stream number.
SITE_EMBEDDING = 0
SITE_ATTENTION_RESIDUAL = 1
SITE_MLP_RESIDUAL = 2
SITE_ATTENTION_PROBABILITIES = 3


def mix(z):
    """The finalizer of splitmix64 (Steele, Lea, Flood 2014), on a uint64 array or an int."""
    if isinstance(z, (int, np.integer)):
        return int(mix(np.array([int(z) & MASK], np.uint64))[0])
    z = z ^ (z >> np.uint64(30))
    z = z * np.uint64(0xBF58476D1CE4E5B9)
    z = z ^ (z >> np.uint64(27))
    z = z * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def bits(seed, stream, indices):
    """64 random bits for each index: mix(mix(mix(seed) ^ stream) + index * GOLDEN)."""
    key = mix(mix(seed) ^ (stream & MASK))
    return mix(np.uint64(key) + np.asarray(indices, np.uint64) * np.uint64(GOLDEN))


def uniform(seed, stream, count):
    """`count` values in [0, 1), multiples of 2^-53."""
    drawn = bits(seed, stream, np.arange(count, dtype=np.uint64)) >> np.uint64(11)
    return drawn.astype(np.float64) * 2.0**-53


def normal(seed, stream, count):
    """`count` standard normal values by Box and Muller; element i takes draws 2i and 2i+1."""
    drawn = bits(seed, stream, np.arange(2 * count, dtype=np.uint64)) >> np.uint64(11)
    u1 = (drawn[0::2].astype(np.float64) + 1.0) * 2.0**-53
    u2 = drawn[1::2].astype(np.float64) * 2.0**-53
    return np.sqrt(-2.0 * np.log(u1)) * np.cos(2.0 * np.pi * u2)


def fnv1a(name):
    """FNV-1a of the UTF-8 bytes of `name`, 64 bits: the stream of a parameter's initial values."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def dropout_stream(step, layer, site):
    """The stream of the mask at `site` of `layer` in `step`."""
    return (step * (1 << 20) + layer * (1 << 8) + site) & MASK


def dropout_mask(shape, rate, seed, step, layer, site):
    """What to multiply a tensor of the global `shape` with: 0, or 1 / (1 - rate) where kept."""
    drawn = uniform(seed, dropout_stream(step, layer, site), int(np.prod(shape)))
    return (drawn >= rate).reshape(shape) / (1.0 - rate)
