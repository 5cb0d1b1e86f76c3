#!/usr/bin/python3
#===- rule_mutants.py - tests that wrong factor rules are noticed ----------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Plants mistakes in factor rules, one at a time; assignments.py must notice each.

    rule_mutants.py --bin build/bin [--count N]

The whole compiler sees the wrong rule, the verifiers of shapes and shardings included. A mistake is
noticed if another part of the compiler refuses the module, or if a result differs. A mistake that
changes no program does not count.

Prints a line for each mistake, then "N passed, N failed"; fails if one failed or there were fewer
than asked for.
"""

import argparse
import random
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import assignment_cases
import assignments
from assignments import ProgramError

MESH = (2, 2)
KINDS = ("swap", "factor", "forget", "free", "join", "additive")

# More mistakes of one kind than any rule has.
SITES = 24


class Bench:
    """The steps of all cases, and the ops that occur in each."""

    def __init__(self, tools, folder):
        self.tools, self.cases, self.right = tools, [], {}
        for number, case in enumerate(assignment_cases.cases_for(MESH[0] * MESH[1])):
            place = folder / str(number)
            place.mkdir()
            assignments.write_step(tools, place, case, MESH)
            self.cases.append((case, place, (place / "step.mlir").read_text()))

    def of(self, op):
        """Returns the cases in which `op` occurs; for ops that occur in all, the cases that test them."""
        found = [(case, place) for case, place, text in self.cases if re.search(rf"{op}\b", text)]
        own = [(case, place) for case, place in found if case.name.startswith(f"{op[5:]}/")]
        return own if len(found) == len(self.cases) else found

    def ranks(self, place, op, options, name):
        """Returns the module of the ranks in a case, as text."""
        assignments.write_ranks(self.tools, place, MESH, f"only={op}", options, name)
        return (place / name).read_text()

    def right_ranks(self, place, op):
        """Returns the module of the ranks without a mistake."""
        key = (place, op)
        if key not in self.right:
            self.right[key] = self.ranks(place, op, (), f"{op}.mlir")
        return self.right[key]

    def notice(self, mutation):
        """Returns how `mutation` is noticed; None if it is not, and "" if it changes no program."""
        op, changed, planted = mutation.split(":")[0], False, f"--mutate-rule={mutation}"
        for case, place in self.of(op):
            name = mutation.replace(":", "-")
            try:
                mutant = self.ranks(place, op, [planted], f"{name}.mlir")
            except ProgramError as error:
                return f"refused: {error}"
            if mutant == self.right_ranks(place, op):
                continue
            changed = True
            try:
                program = assignments.compile_ranks(self.tools, place, [planted],
                                                    f"{name}.mlir", name)
                _, found = assignments.faults(assignments.run(place, program),
                                              assignments.tolerance_of(case))
            except ProgramError as error:
                return f"refused: {error}"
            if found:
                return f"seen in {case.name}: {found[0]}"
        return None if changed else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin", help="the folder of weft and weft-opt")
    parser.add_argument("--count", type=int, default=100, help="mistakes (default: 100)")
    parser.add_argument("--jobs", type=int, default=1, help="mistakes at a time (default: 1)")
    options = parser.parse_args()
    tools = Path(options.bin).resolve()
    mutations = [f"{op}:{kind}:{site}" for op in sorted(assignments.shardable_ops(tools))
                 for kind in KINDS for site in range(1 if kind == "additive" else SITES)]
    random.Random(0).shuffle(mutations)
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="weft-rule-mutants-") as folder:
        bench = Bench(tools, Path(folder))
        with ThreadPoolExecutor(options.jobs) as pool:
            todo = iter(mutations)
            while passed + failed < options.count:
                batch = list(islice(todo, options.jobs))
                if not batch:
                    break
                for mutation, how in zip(batch, pool.map(bench.notice, batch)):
                    if how == "" or passed + failed == options.count:
                        continue
                    passed, failed = passed + bool(how), failed + (not how)
                    print(f"{'ok  ' if how else 'FAIL'} {passed + failed:3} {mutation}: "
                          f"{how or 'nobody notices'}"[:200], flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or passed < options.count else 0


if __name__ == "__main__":
    sys.exit(main())
