#===- mutants.py - programs with one broken collective ---------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Breaks the collectives of a program one by one; the comparison with one rank must notice each.

This tests the test: if a collective can be dropped or scaled unnoticed, equality does not cover it.
"""

import itertools
import shutil
from functools import partial

import cases
import differences
from programs import Once, ProgramError

KINDS = ("drop", "double", "scale")
MESH = "dp=2,tp=2,sp=false,zero=0"
STEPS = 4

# What the compiler says of a number beyond the last collective, and of a mutation that keeps the
# meaning: a maximum taken twice is the same, and what is subtracted before exp() and added after
# log() may be any number. Such a collective is dropped instead.
NO_SUCH = "no collective"
UNCHANGED = "changes nothing"

# What a comparison returns that asks for a collective beyond the last.
NOTHING_LEFT = object()


def check_mutants(compiler, case, full):
    """Breaks each collective of the program for a 2 x 2 mesh: in every way if `full`, else in one,
    another one from each collective to the next. Stops when the compiler says that no collective is left."""
    def train(mesh):
        return compiler.run(compiler.program(case, mesh), mesh, STEPS, name="mutants")

    expected = Once(lambda: train(cases.ONE_RANK))

    def unbroken():
        return differences.of_runs(train(MESH), expected(), 1e-10)

    yield "unbroken", unbroken
    for number in itertools.count():
        for kind in KINDS if full else [KINDS[number % len(KINDS)]]:
            yield f"{kind} collective {number}", partial(
                unnoticed, compiler, case, expected, number, kind)


def unnoticed(compiler, case, expected, number, kind):
    """Returns a sentence if the mutant trains like the original program, or None."""
    try:
        place = compiler.compile(case, MESH, suffix=f"-{number}-{kind}",
                                    options=["--mutate-collective", f"{number}:{kind}"])
    except ProgramError as error:
        if UNCHANGED in error.output and kind != "drop":
            return unnoticed(compiler, case, expected, number, "drop")
        if NO_SUCH not in error.output:
            raise
        return "the program has no collectives" if number == 0 else NOTHING_LEFT
    # Not before the compiler was asked, which says when nothing is left; and outside of the `try`,
    # because a fault of its own is not the mutant's.
    expected()
    try:
        found = differences.of_runs(compiler.run(place, MESH, STEPS), expected(), 1e-10)
    except ProgramError:
        return None  # It stopped, which nobody fails to notice.
    finally:
        shutil.rmtree(place)
    return None if found else "losses, gradients, weights and validations stay the same"
