#===- differences.py - differences between two runs ------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Compares losses and tensors of two runs, and names the first that differ and by how much."""

import math

import numpy as np

# A tensor whose norm is below this share of all tensors' norm holds nothing but rounding, as the
# gradient of a key bias does, which is zero in truth. It is measured against the norm of all.
NOTHING = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-7}


def global_norm(tensors):
    """The 2-norm over all tensors together."""
    return math.sqrt(sum(float((np.asarray(t, np.float64) ** 2).sum()) for t in tensors.values()))


def of_series(kind, got, expected, tolerance):
    """A sentence about the first step whose value differs, or None."""
    if len(got) != len(expected):
        return f"{kind}: {len(got)} steps, expected {len(expected)}"
    for step, (a, b) in enumerate(zip(got, expected)):
        # Written so that a value that is not a number differs from all others.
        if not abs(a - b) <= tolerance * abs(b):
            return (f"{kind} of step {step}: {a!r}, expected {b!r}, "
                    f"relative difference {abs(a - b) / abs(b):.1e} above {tolerance:.0e}")
    return None


def of_tensors(kind, got, expected, tolerance):
    """A sentence about the first tensor that differs, or None. Distances are relative norms."""
    if set(got) != set(expected):
        odd = sorted(set(got) ^ set(expected))[0]
        return f"{kind} {odd}: only in one of the runs"
    scale = global_norm(expected)
    first, count = None, 0
    for name in sorted(expected):
        a, b = np.asarray(got[name], np.float64), np.asarray(expected[name], np.float64)
        if a.shape != b.shape:
            return f"{kind} {name}: shape {list(a.shape)}, expected {list(b.shape)}"
        size = np.linalg.norm(b)
        if size <= NOTHING[expected[name].dtype] * scale:
            size = scale
        distance = np.linalg.norm(a - b)
        if not distance <= tolerance * size:
            count += 1
            first = first or (f"{kind} {name}: relative difference {distance / (size or 1.0):.1e} "
                              f"above {tolerance:.0e}")
    return f"{first} ({count} of {len(expected)} tensors differ)" if first else None


NAMES = {"losses": "loss", "norms": "gradient norm", "gradients": "gradient of",
         "weights": "weight", "validation": "validation loss", "logits": "tensor",
         "dropped": "number of dropped tokens"}


def of_runs(got, expected, tolerance, what=tuple(NAMES)):
    """Returns a sentence about the first difference between two runs in `what`, or None. Fields
    that are None in `got` are not compared."""
    for part in what:
        if getattr(got, part) is None:
            continue
        compare = of_series if part in ("losses", "norms", "validation", "dropped") else of_tensors
        found = compare(NAMES[part], getattr(got, part), getattr(expected, part), tolerance)
        if found:
            return found
    return None


# Half of the last bit: what rounding alone may do to a tensor. A bf16 has 8 bits, others have 11.
UNITS = {"BF16": 2.0 ** -9, "F16": 2.0 ** -12, "TF32": 2.0 ** -12}
BF16_UNIT = UNITS["BF16"]
# How far a bf16 program may be from float64. As measured, losses are 2e-4 away and all gradients
# together 4e-3; five times that is no rounding any more.
BF16_LIMITS = {"losses": 1e-3, "gradients": 2e-2}


def errors(got, exact):
    """Distances of a run from an exact one: {"losses": root mean square over the steps of the
    relative difference, "gradients": relative norm over all tensors, name: relative norm of one}.
    A tensor that is zero but for rounding is measured against all."""
    relative = [(a - b) / b for a, b in zip(got.losses, exact.losses, strict=True)]
    distances = {name: np.linalg.norm(np.asarray(got.gradients[name], np.float64) - tensor)
                 for name, tensor in exact.gradients.items()}
    scale = global_norm(exact.gradients)
    found = {"losses": math.sqrt(sum(r * r for r in relative) / len(relative)),
             "gradients": math.sqrt(sum(d * d for d in distances.values())) / scale}
    for name, tensor in exact.gradients.items():
        size = np.linalg.norm(tensor)
        found[name] = distances[name] / (scale if size <= BF16_UNIT ** 2 * scale else size)
    return found


def too_far(got, exact, precision="BF16"):
    """Returns a sentence about the values of a low-precision run that are far from float64, or None."""
    found = errors(got, exact)
    for part, limit in BF16_LIMITS.items():
        limit *= UNITS[precision] / BF16_UNIT
        if not found[part] <= limit:
            return f"{part}: relative error {found[part]:.1e} above {limit:.0e}"
    return None


class Figures(str):
    """The figures of a comparison without fault, for the reader of the output."""


def figures(got, exact, name="float64"):
    """Returns the distances of a run from another, called `name`."""
    found = errors(got, exact)
    return Figures(f"losses {found['losses']:.1e}, gradients {found['gradients']:.1e} from {name}")


def further(got, single, exact, precision="BF16"):
    """Returns a sentence about the values of `got` that are more than twice as far from float64 as
    in `single`, the program for one rank; or None. Single tensors may be short, so they are also
    allowed the error of rounding."""
    found, allowed = errors(got, exact), errors(single, exact)
    for part, error in found.items():
        least = 0.0 if part in BF16_LIMITS else UNITS[precision]
        limit = 2 * max(allowed[part], least)
        if not error <= limit:
            return f"{part}: relative error {error:.1e}, twice that of one rank is {limit:.1e}"
    return None
