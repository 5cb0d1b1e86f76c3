#===- slopes.py - derivatives by finite differences, and their comparison --===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Measures slopes of a function of several tensors, and compares a gradient with them.

The slope along a direction is a central difference with step h. Its error is of the order of
h^2 / 6 = 4e-11 times the third derivative, and of rounding, 1e-16 / h = 7e-12 times the loss. As
measured, slopes are within 1e-8 of the gradient, relative to its norm.
"""

from dataclasses import dataclass

import numpy as np

# h. A power of two, so that adding it to a multiple of modules.GRAIN rounds nothing.
STEP = 2.0**-16

# A gradient may be off by this share of its norm. It must be above 2^-24 = 6e-8, by which the
# gradient of a cast to float32 is rounded; a wrong formula is off by far more than 1e-6.
TOLERANCE = 1e-6

# A tensor whose gradient is smaller than this share of all gradients together is measured against
# that share: what is zero in truth, as the derivative of softmax along a shift, is rounding here.
NOTHING = 1e-4

# Tensors of at most this many elements are checked elementwise.
ALL_ELEMENTS = 24

# Random directions through all tensors together, and through each tensor of more elements.
DIRECTIONS_OF_ALL = 2
DIRECTIONS_OF_EACH = 3


@dataclass
class Slope:
    """The slope of the loss along `direction`, a tensor for each of some operands."""

    name: str
    direction: dict
    value: float = 0.0

    def of(self, gradients):
        """Returns the slope by these gradients."""
        return sum(float((gradients[name] * part).sum()) for name, part in self.direction.items())


def directions(shapes):
    """Returns the directions to measure for operands of these shapes, always the same.

    Random directions have elements of 1 and -1: a wrong element shows in each of them.
    """
    source = np.random.RandomState(1)

    def signs(names):
        return {name: source.randint(0, 2, shapes[name]) * 2.0 - 1.0 for name in names}

    found = [Slope(f"all, direction {n}", signs(shapes)) for n in range(DIRECTIONS_OF_ALL)]
    for name, shape in shapes.items():
        if np.prod(shape) > ALL_ELEMENTS:
            found += [Slope(f"{name}, direction {n}", signs([name]))
                      for n in range(DIRECTIONS_OF_EACH)]
            continue
        for index in np.ndindex(*shape):
            unit = np.zeros(shape)
            unit[index] = 1.0
            found.append(Slope(f"{name}{list(index)}", {name: unit}))
    return found


def measure(loss, values, slope):
    """Fills in the slope of `loss`, a function of a dictionary of tensors, at `values`."""
    def at(steps):
        moved = {name: values[name] + steps * STEP * part
                 for name, part in slope.direction.items()}
        return loss({**values, **moved})

    slope.value = (at(1) - at(-1)) / (2.0 * STEP)


def norm(tensors):
    """The 2-norm over all tensors together."""
    return float(np.sqrt(sum((tensor**2).sum() for tensor in tensors)))


def distance(gradients, slope):
    """Returns the distance of the gradients from a measured slope, relative to their norm."""
    size = max(norm(gradients[name] for name in slope.direction),
               NOTHING * norm(gradients.values()))
    with np.errstate(invalid="ignore"):
        difference = abs(slope.of(gradients) - slope.value)
    if difference == 0.0:
        return 0.0
    # What is not a number, on whichever side, is as far away as can be.
    return difference / size if difference < np.inf and 0.0 < size < np.inf else np.inf


def fault(gradients, slopes):
    """Returns a sentence about the slope that differs most, or None, and the largest distance."""
    worst = max(slopes, key=lambda slope: distance(gradients, slope))
    far = distance(gradients, worst)
    if far <= TOLERANCE:
        return None, far
    count = sum(distance(gradients, slope) > TOLERANCE for slope in slopes)
    return (f"slope along {worst.name} is {worst.of(gradients)!r}, finite differences say "
            f"{worst.value!r}, relative difference {far:.1e} above {TOLERANCE:.0e} "
            f"({count} of {len(slopes)} slopes differ)"), far


def blind_spot(gradients, slopes):
    """Returns a sentence if a gradient that is wrong in one element would pass, or None.

    Each tensor in turn gets one wrong element, by ten times the tolerance, and must be noticed;
    so must be the gradient of another sign, and one that is missing.
    """
    size = norm(gradients.values())
    for name, gradient in gradients.items():
        own = max(norm([gradient]), NOTHING * size) or 1.0
        wrong = gradient.copy()
        wrong.flat[wrong.size // 2] += 10.0 * TOLERANCE * own
        mutants = [("with a wrong element", wrong)]
        if norm([gradient]) > NOTHING * size:
            mutants += [("negated", -gradient), ("of zeros", np.zeros_like(gradient)),
                        ("of no numbers", np.full_like(gradient, np.nan))]
        for what, mutant in mutants:
            if fault({**gradients, name: mutant}, slopes)[0] is None:
                return f"a gradient of {name} {what} is not noticed"
    return None
