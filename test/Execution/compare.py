#!/usr/bin/python3
#===- compare.py - the same model under every plan, on every run, and in NumPy --===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Compiles small models, runs them, and compares numbers.

    equality   programs for several meshes against the program for one rank: losses and weights of
               20 steps, all gradients of the first and of a later step, validations, logits
    repeat     the same program twice, and once with ranks of three threads: equal to the last bit
    backends   programs with ranks as processes against ranks as threads: equal to the last bit; of
               all cases and meshes a few, which --seed draws, or with --full all
    precision  bf16, f16 and TF32 programs for several meshes: no further from the same model in float64 than
               twice what the program for one rank is; prints how far losses and gradients are
    reference  programs against the NumPy implementation in test/Reference
    whole      models like GPT-2, Llama and Mixtral on 8 and 16 ranks, as threads against one rank, and
               as processes against threads, in float64 and float32; a few, which --seed draws, or
               with --full all; prints how far float32 is from one rank
    mutants    programs with one collective broken on purpose, each of which must be noticed

Prints a line for each comparison, then "N passed, N failed"; fails if one failed or none ran.
"""

import argparse
import os
import random
import sys
import tempfile
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import cases
import differences
import mutants
import programs
import whole_cases
from programs import Once, ProgramError

REFERENCE_STEPS = 6
# Pairs of a case and a mesh that `backends` compares unless asked for all.
BACKENDS_SAMPLE = 3
# The same for `whole`.
WHOLE_SAMPLE = 6
REFERENCE_MESHES = (cases.ONE_RANK, "dp=2,tp=2")

# A check is a generator of (what is compared, function that returns the fault, or None or Figures if
# there is none), so that comparisons of all checks can run side by side.


def learned(losses):
    """Returns a sentence if training hardly changed the loss, so that equality proves little; or None."""
    if losses[-1] <= 0.9 * losses[0]:
        return None
    return f"loss went from {losses[0]:.4f} to {losses[-1]:.4f}, expected a fall by a tenth"


def runs_of(compiler, case, mesh):
    """Runs one program twice, saving the gradients of different steps."""
    place = compiler.program(case, mesh)
    return [compiler.run(place, mesh, gradients_step=step, name=f"equality-{step}")
            for step in (0, cases.LATER_STEP)]


def check_equality(compiler, case):
    """Compares every mesh of `case` with one rank."""
    single = Once(lambda: runs_of(compiler, case, cases.ONE_RANK))
    yield "loss falls", lambda: learned(single()[0].losses)
    for mesh in case.meshes:
        def compare(mesh=mesh):
            first, later = runs_of(compiler, case, mesh)
            if case.precision == "F32":
                # Rounding grows from step to step, so only the first gradients tell.
                return (differences.of_runs(first, single()[0], 1e-5,
                                            ("losses", "gradients", "validation"))
                        or differences.figures(first, single()[0], "one rank"))
            return (differences.of_runs(first, single()[0], 1e-10)
                    or differences.of_runs(later, single()[1], 1e-10, ("gradients",)))

        yield f"{mesh} is one rank", compare


def check_repeat(compiler, case):
    """Compares runs of one program, on one rank and on the largest mesh."""
    for mesh in (cases.ONE_RANK, max(case.meshes, key=cases.ranks_of)):
        def compare(mesh=mesh):
            place = compiler.program(case, mesh)
            first = compiler.run(place, mesh, name="repeat-1")
            for name, threads in (("repeat-2", 1), ("shared", 3)):
                again = compiler.run(place, mesh, name=name, threads=threads)
                for a, b in zip(first.files, again.files):
                    if a.read_bytes() != b.read_bytes():
                        return f"{a.name} and {b.name} differ"
                fault = differences.of_runs(again, first, 0.0, ("losses", "norms", "validation"))
                if fault:
                    return fault
            return None

        yield f"{mesh} repeats its bits", compare


def check_backends(compiler, case):
    """Compares ranks as processes with ranks as threads, on the meshes of `case`."""
    for mesh in case.meshes:
        def compare(mesh=mesh):
            place = compiler.program(case, mesh)
            threads, *others = (compiler.run(place, mesh, name=backend, gradients_step=1,
                                             backend=backend) for backend in ("local", "mpi", "tcp"))
            for processes in others:
                for a, b in zip(threads.files, processes.files):
                    if a.read_bytes() != b.read_bytes():
                        return f"{a.name} and {b.name} differ"
                difference = differences.of_runs(processes, threads, 0.0,
                                                 ("losses", "norms", "validation"))
                if difference:
                    return difference
            return None

        yield f"{mesh} has the same bits on all backends", compare


def check_whole(compiler, case):
    """Compares every mesh of `case` with one rank, and ranks as processes with threads."""
    yield from check_equality(compiler, case)
    yield from check_backends(compiler, case)


def drawn(chosen, seed, count):
    """Draws `count` pairs of a case and a mesh, as cases of one mesh each."""
    pairs = [(case, mesh) for case in chosen for mesh in case.meshes if mesh != cases.ONE_RANK]
    return [replace(case, meshes=(mesh,)) for case, mesh in
            random.Random(seed).sample(pairs, min(count, len(pairs)))]


def check_precision(compiler, case):
    """Compares every mesh of `case` in its low precision with float64 on one rank."""
    exact_case = replace(case, precision="F64", reduction="F32", gradients="F32", coarse=True)
    exact = Once(lambda: compiler.run(compiler.program(exact_case, cases.ONE_RANK), cases.ONE_RANK, name="exact"))
    single = Once(lambda: compiler.run(compiler.program(case, cases.ONE_RANK), cases.ONE_RANK, name="precision"))
    yield "loss falls", lambda: learned(single().losses)
    short = case.precision
    yield f"{short.lower()} is near float64", lambda: (
        differences.too_far(single(), exact(), short) or differences.figures(single(), exact()))
    for mesh in case.meshes:
        def compare(mesh=mesh):
            got = compiler.run(compiler.program(case, mesh), mesh, name="precision")
            return (differences.further(got, single(), exact(), short)
                    or differences.figures(got, exact()))

        yield f"{mesh} is as near as one rank", compare


def check_reference(compiler, case):
    """Compares programs with the NumPy implementation."""
    for mesh in REFERENCE_MESHES:
        yield (f"{mesh} is the reference",
               lambda mesh=mesh: unlike_reference(compiler, case, mesh))


def unlike_reference(compiler, case, mesh):
    """The first difference between a program and the NumPy implementation, or None."""
    exact = case.precision == "F64"
    place = compiler.program(case, mesh)
    initial = compiler.run(place, mesh, steps=0, name="initial")
    expected = programs.reference_run(compiler, case, initial.weights, REFERENCE_STEPS)
    fault = differences.of_tensors("initial weight", initial.weights, expected.initial,
                                   1e-12 if exact else 1e-6)
    if initial.logits is not None:
        fault = fault or differences.of_tensors("initial", initial.logits, expected.initial_logits,
                                                1e-9 if exact else 1e-5)
    for step in (0, REFERENCE_STEPS - 1):
        if fault:
            break
        got = compiler.run(place, mesh, REFERENCE_STEPS, step, f"reference-{step}")
        expected.gradients = expected.all_gradients[step]
        parts = ("losses", "norms", "dropped", "gradients", "weights", "validation", "logits")
        if not exact:
            parts = ("losses", "gradients") if step == 0 else ("losses", "validation")
        fault = differences.of_runs(got, expected, 1e-9 if exact else 1e-5, parts)
    return fault


def guarded(compare):
    """Returns the result of `compare`; a program that fails is a fault too."""
    try:
        return compare()
    except (ProgramError, OSError, ValueError, KeyError) as error:
        return f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else str(error)


CHECKS = {"equality": check_equality, "repeat": check_repeat, "precision": check_precision,
          "reference": check_reference, "backends": check_backends, "whole": check_whole,
          "mutants": mutants.check_mutants}


def results(work, jobs):
    """Yields (kind, case, name, result) for all comparisons, `jobs` at a time, in order."""
    with ThreadPoolExecutor(jobs) as pool:
        pending, ended = deque(), set()

        def first():
            kind, case, number, what, future = pending.popleft()
            fault = future.result()
            if fault is mutants.NOTHING_LEFT:
                ended.add(number)
            elif number not in ended:
                yield kind, case, what, fault

        for number, (kind, case, comparisons) in enumerate(work):
            for what, compare in comparisons:
                pending.append((kind, case, number, what, pool.submit(guarded, compare)))
                # Few ahead: that there is nothing left shows only when one has run.
                if len(pending) > 2 * jobs:
                    yield from first()
                if number in ended:
                    break
        while pending:
            yield from first()


def cases_of(kind, options):
    """Returns the cases to compare: all, or the default ones of `kind`."""
    chosen = cases.all_cases() if options.full else cases.default_cases()
    if kind in ("equality", "reference"):
        chosen = chosen + cases.fp8_cases() + cases.document_cases()
    if kind == "precision":
        chosen = cases.bf16_cases() + cases.short_fraction_cases()
    if kind == "repeat":
        chosen = chosen + cases.bf16_cases()[:1] + cases.short_fraction_cases()[::2]
    if kind == "backends":
        chosen = chosen + cases.bf16_cases() + cases.fp8_cases() + cases.short_fraction_cases()
        chosen = chosen if options.full else drawn(chosen, options.seed, BACKENDS_SAMPLE)
    if kind == "whole":
        chosen = whole_cases.whole_cases()
        chosen = chosen if options.full else drawn(chosen, options.seed, WHOLE_SAMPLE)
    if kind == "mutants":
        # The mesh has both axes, and only float64 tells a small mistake from rounding.
        # A key's bias moves all scores of a query alike, so its gradient is zero, however often it
        # is reduced: there a mistake makes no difference that could be noticed.
        chosen = [replace(case, attention_biases=False) for case in chosen
                  if case.precision == "F64"]
    if not options.full and kind == "repeat":
        chosen = [case for case in chosen if case.dropout]
    if not options.full and kind == "mutants":
        chosen = [case for case in chosen if case.dropout and case.tied]
    return [case for case in chosen if not options.case or options.case in case.name]


def dry_run(work, compiler):
    """Writes descriptions and lists cases, without a compiler."""
    for kind, case in work:
        print(kind, case.name, *case.meshes)
        cases.write(case, compiler.place(case, cases.ONE_RANK))
    return 0


def compare_all(work, compiler, options):
    """Runs all comparisons and prints a line for each; returns the exit status."""
    passed = failed = 0
    checks = []
    for kind, case in work:
        arguments = (options.full,) if kind == "mutants" else ()
        checks.append((kind, case, CHECKS[kind](compiler, case, *arguments)))
    for kind, case, what, found in results(checks, options.jobs):
        fault = bool(found) and not isinstance(found, differences.Figures)
        passed, failed = passed + (not fault), failed + fault
        print(f"{'FAIL' if fault else 'pass'} {kind} {case.name}: {what}"
              + (f": {found}" if found else ""), flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="+", choices=list(CHECKS), metavar="KIND",
                        help=", ".join(CHECKS))
    parser.add_argument("--weft", default="build/bin/weft", help="the compiler")
    parser.add_argument("--full", action="store_true", help="every case on every mesh")
    parser.add_argument("--case", help="only cases whose name contains this")
    parser.add_argument("--seed", type=int, default=0, help="draws the comparisons of backends and whole")
    parser.add_argument("--folder", help="where programs go and stay; default: a temporary one")
    parser.add_argument("--jobs", type=int, default=2, help="comparisons at a time")
    parser.add_argument("--dry-run", action="store_true",
                        help="write the descriptions into --folder and list the cases")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or temporary
        os.makedirs(folder, exist_ok=True)
        compiler = programs.Compiler(options.weft, folder)
        work = [(kind, case) for kind in options.kinds for case in cases_of(kind, options)]
        if options.dry_run:
            return dry_run(work, compiler)
        return compare_all(work, compiler, options)


if __name__ == "__main__":
    sys.exit(main())
