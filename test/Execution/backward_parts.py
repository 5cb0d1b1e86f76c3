#!/usr/bin/python3
#===- backward_parts.py - backward in two parts changes no bit --------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Runs examples under schedules that have gradients of inputs and of weights by themselves, and compares.

    backward_parts.py --bin bin

The first loss, and gradients before clipping, must have the bits of the same mesh and micro-batches without stages, as
in pipelines.py. Losses, gradients, and weights after some steps must have those of the same stages under 1F1B, unless
the schedule places chunks elsewhere: then stages add up other terms of the norm that clips gradients. A case may say
the schedule by name, or as "order": then it is random, and cuts some micro-batches' backward and not others.
Prints a line for each case, then "N passed, N failed"; fails if one failed or none ran.
"""

import random
import re
import sys
from dataclasses import dataclass

from examples_bench import main_of
from pipelines import DELAYED, DROPOUT, F64, MIXED, PipelinesBench, random_schedule


@dataclass
class Case:
    stages: str
    way: str = "schedule=zbh1"
    pins: str = "accumulation=4"
    recipe: str = F64
    model: str = ""
    example: str = "llama-tiny"


CASES = (
    Case("pp=2"),
    Case("pp=4"),
    Case("pp=2", "schedule=zbv"),
    Case("pp=4", "order"),
    Case("pp=4", pins="accumulation=2", model=DROPOUT),
    Case("pp=2", pins="accumulation=4,dp=2,zero=2"),
    Case("pp=2,chunks=2", "order", "accumulation=4,dp=2,zero=2"),
    Case("pp=2", "schedule=zbv", "accumulation=4,dp=2,zero=2"),
    Case("pp=2", pins="accumulation=4,dp=2,zero=3,recompute=full", model=DROPOUT),
    Case("pp=2", pins="accumulation=4,tp=2,sp=true"),
    Case("pp=2", "schedule=zbh1,gather=micro-batch", "accumulation=4,dp=2,zero=1", MIXED),
    Case("pp=2", pins="accumulation=4,dp=2,zero=3", recipe=DELAYED),
    Case("pp=2", example="gpt2-tiny"),
    Case("pp=2", "schedule=zbv", example="gpt2-tiny"),
    Case("pp=2", pins="accumulation=4,ep=2", example="mixtral-tiny"),
    Case("pp=4", "schedule=zbv", "accumulation=8", model="layers: 8"),
)


def with_parts(draw, rows):
    """Cuts backward of some micro-batches in two, and moves gradients of weights behind it."""
    made = []
    for row in rows:
        actions = row.split(",")
        for chunk in {int(re.match("[0-9]+", action)[0]) for action in actions}:
            own = [action for action in actions if re.match(f"{chunk}B", action)]
            # The last place at which the sums of the chunk take another micro-batch.
            last = 0
            for action in own:
                place = actions.index(action)
                if draw.random() < 0.3 and last < place:
                    last = place
                    continue
                actions[place] = action.replace("B", "I")
                last = draw.randint(max(place, last) + 1, len(actions))
                actions.insert(last, action.replace("B", "W"))
        made.append(",".join(actions))
    return made


class PartsBench(PipelinesBench):
    def describe(self, name, recipe, model):
        super().describe(name, recipe, model)
        path = self.folder / "recipe"
        path.write_text(path.read_text().replace("sequence_length: 128", "sequence_length: 32"))

    def __init__(self, tools, folder):
        super().__init__(tools, folder)
        # By pins and what they are of.
        self.known = {}

    def results_of(self, case, pins):
        key = (case.example, case.recipe, case.model, pins)
        if key not in self.known:
            self.compiled("--pin", pins)
            self.known[key] = self.results(["./train"])
        return self.known[key]

    def compile_case(self, case, seed):
        if case.way != "order":
            self.compiled("--pin", f"{case.pins},{case.stages},{case.way}")
            return case.way
        draw = random.Random(seed)
        numbers = dict(pin.split("=") for pin in f"{case.pins},{case.stages}".split(","))
        stages, chunks = int(numbers["pp"]), int(numbers.get("chunks", 1))
        rows = with_parts(draw, random_schedule(draw, stages * chunks, int(numbers["accumulation"]),
                                                [*range(stages)] * chunks))
        (self.folder / "schedule").write_text("\n".join(rows))
        self.compiled("--pin", f"{case.pins},pp={stages}", "--schedule", "schedule")
        return f"{rows}"

    def fault_of_case(self, case):
        """Returns a sentence about the fault, or None."""
        self.describe(case.example, case.recipe, case.model)
        whole = self.results_of(case, case.pins)
        usual = None if "zbv" in case.way else self.results_of(case, f"{case.pins},{case.stages}")
        exact = ("gradients",) if case.example == "mixtral-tiny" else ("first loss", "gradients")
        for seed in range(2 if case.way == "order" else 1):
            way = self.compile_case(case, seed)
            got = self.results(["./train"])
            if usual and (wrong := self.differing(usual, got)):
                return f"{way}: {', '.join(wrong)} are not those of 1F1B"
            if wrong := self.differing_by_stages(whole, got, F64 in case.recipe, exact):
                return f"{way}: {', '.join(wrong)} are not those without stages"
        return None


def check_all(bench):
    for case in CASES:
        parts = (case.example, case.pins, case.stages, case.way, case.recipe, case.model)
        bench.tell(" ".join(part for part in parts if part), bench.fault_of_case, case)


if __name__ == "__main__":
    sys.exit(main_of(__doc__, PartsBench, check_all))
