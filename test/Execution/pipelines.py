#!/usr/bin/python3
#===- pipelines.py - pipeline stages change no bit -------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Runs examples without pipeline stages, and the same mesh and micro-batches with stages, and compares.

    pipelines.py --bin bin

The first loss, and gradients before clipping, must have the same bits, whatever the number of stages, their layers, and
the schedule, but for the gradient of an embedding that is the head: its stages add up their own terms. In float64
losses, weights and states of the optimizer after some steps, and the loss of a validation, may differ by a few
roundings, as stages add up their own terms of the norm that clips gradients; without clipping, they have the same bits
in a case with FP8, of which only later steps use the scales. Where a schedule gathers parameters anew, or reduces
gradients early or late, all bits are those of one that does not, and gathers take less memory. On threads, by MPI, and
by TCP all bits are the same. A checkpoint of one is resumed by the other. The plan that is printed must give the same
program.
Prints a line for each case, then "N passed, N failed"; fails if one failed or none ran.
"""

import os
import random
import re
import shutil
import sys

import numpy as np

from examples_bench import ROOT, Bench, main_of, run, tensors_of

STEPS = 3
F64 = "precision: F64"
DROPOUT = "dropout: 0.1 attention_dropout: 0.1"
DELAYED = "precision: BF16 fp8 { scaling: DELAYED }"
MUON = " muon {}"
TIED = "tied_embeddings: true"
SEQUENCE = "load_balance_group: SEQUENCE capacity_group: SEQUENCE"
# Each layer's experts add a loss, and stages add theirs up by themselves.
LOSSES_OF_LAYERS = "mixtral-tiny"
# How much a number in float64 may differ, as a part of the largest of its tensor.
NEAR = 1e-10
# The same for what two stages add up in another order: the gradient of their parameter, the losses of their experts.
NEAR_SUM = {"float64": 1e-13, "float32": 1e-6}
# The true gradient of the bias of keys is zero: AdamW divides roundings by roundings.
NOISE = ".attention.key.bias"
# Examples, the mesh and micro-batches, the stages, lines for the recipe and for the model.
CASES = (
    ("llama-tiny", "accumulation=4", ("pp=2", "pp=2,schedule=gpipe", "pp=3", "pp=4", "pp=4,schedule=gpipe"), F64, ""),
    ("llama-tiny", "accumulation=4", ("pp=2,chunks=2", "pp=2,chunks=2,schedule=gpipe"), F64, ""),
    ("llama-tiny", "accumulation=4", ("pp=8", "pp=8,schedule=gpipe", "pp=4,chunks=2"), F64, "layers: 8"),
    ("llama-tiny", "accumulation=4,dp=2", ("pp=3",), F64, "layers: 7"),
    ("llama-tiny", "accumulation=2", ("pp=4",), F64, DROPOUT),
    ("llama-tiny", "accumulation=8,dp=2,zero=1", ("pp=4",), F64 + " loss_chunks: 2", ""),
    ("llama-tiny", "accumulation=4,dp=2,zero=2", ("pp=2",), F64, ""),
    ("llama-tiny", "accumulation=4,dp=2,zero=3", ("pp=2", "pp=2,chunks=2", "pp=4,schedule=gpipe"), F64, DROPOUT),
    ("llama-tiny", "accumulation=4,tp=2,sp=true", ("pp=2",), F64 + " documents { end: 5 }", ""),
    ("llama-tiny", "accumulation=4,cp=2:ring", ("pp=2",), F64, ""),
    ("llama-tiny", "accumulation=4,tp=2,dp=2,sp=true,zero=1", ("pp=2",), "precision: BF16", ""),
    ("llama-tiny", "accumulation=4,dp=2,zero=3", ("pp=2",), DELAYED, ""),
    ("llama-tiny", "accumulation=4,dp=2,recompute=full", ("pp=2",), F64, DROPOUT),
    ("llama-tiny", "accumulation=4,dp=2,zero=1", ("pp=2", "pp=2,chunks=2"), F64 + MUON, ""),
    ("gpt2-tiny", "accumulation=4", ("pp=2", "pp=4", "pp=4,schedule=gpipe"), F64, ""),
    ("gpt2-tiny", "accumulation=4,dp=2,tp=2,zero=1", ("pp=2",), F64, ""),
    ("llama-tiny", "accumulation=4,dp=2,zero=3", ("pp=2", "pp=2,schedule=gpipe"), F64, TIED),
    ("llama-tiny", "accumulation=4,dp=2,zero=2", ("pp=2",), DELAYED + " loss_chunks: 2", TIED),
    ("mixtral-tiny", "accumulation=4,ep=2", ("pp=2",), F64, ""),
    ("deepseek-tiny", "accumulation=4,dp=2,zero=3", ("pp=2",), F64, ""),
)
MIXED = "precision: BF16"
# Recipes, the mesh and micro-batches, lines for the model, and how plans gather parameters that the first one gathers
# once a step; "order" stands for a schedule with gathers and reductions at random places.
GATHERS = (
    (MIXED, "accumulation=4,dp=2,zero=1,pp=2,chunks=2", "", ("gather=run", "gather=micro-batch", "order")),
    (MIXED, "accumulation=4,dp=2,zero=2,pp=2,chunks=2,schedule=gpipe", DROPOUT, ("gather=run", "order")),
    (F64, "accumulation=4,dp=2,zero=1,pp=2,chunks=2", "", ("order",)),
    (DELAYED, "accumulation=4,dp=2,zero=1,pp=2", TIED, ("gather=micro-batch", "order")),
)
EMBEDDING = "gradient/embed.tokens.weight"
# What needs a whole batch is replaced in recipes.
REPLACED = (("load_balance_loss: 0.01", f"load_balance_loss: 0.01 {SEQUENCE}"),
            ("routing {\n  bias_update_speed: 1e-3\n}", ""))
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def random_schedule(draw, chunks, micro_batches, places=None):
    """Returns the actions of each stage, as `weft compile --schedule` reads them. Each chunk is in the stage that
    `places` says, or in any."""
    stages = len(set(places)) if places else draw.randint(2, chunks)
    if not places:
        places = [*range(stages), *(draw.randrange(stages) for _ in range(chunks - stages))]
        draw.shuffle(places)
    rows = [[] for _ in range(stages)]
    # For each micro-batch, how many of its actions are done: forward of all chunks, then backward.
    done = [0] * micro_batches
    while done[-1] < 2 * chunks:
        # Each chunk takes micro-batches in their order.
        before = [2 * chunks + 1, *done]
        number = draw.choice([number for number, count in enumerate(done)
                              if count < min(before[number], 2 * chunks)])
        is_forward = done[number] < chunks
        chunk = done[number] if is_forward else 2 * chunks - 1 - done[number]
        rows[places[chunk]].append(f"{chunk}{'F' if is_forward else 'B'}{number}")
        done[number] += 1
    return [",".join(row) for row in rows]


def with_gathers(draw, rows):
    """Adds gathers and reductions at random places where they may be."""
    made = []
    for row in rows:
        actions = row.split(",")
        for chunk in sorted({int(re.match("[0-9]+", action)[0]) for action in actions}):
            places = [place for place, action in enumerate(actions) if re.match(f"{chunk}[FB]", action)]
            # From the last to the first, as each moves those behind it.
            actions.insert(draw.randint(places[-1] + 1, len(actions)), f"{chunk}REDUCE_GRAD")
            for before, place in reversed(list(zip([-1, *places], places))):
                if before < 0 or draw.random() < 0.5:
                    actions.insert(draw.randint(before + 1, place), f"{chunk}UNSHARD")
                    if before >= 0 and draw.random() < 0.7:
                        actions.insert(before + 1, f"{chunk}RESHARD")
        made.append(",".join(actions))
    return made


class PipelinesBench(Bench):
    machine = "h100-8"

    def describe(self, name, recipe, model):
        super().describe(name, recipe, model)
        text = (self.folder / "recipe").read_text()
        for old, new in REPLACED:
            text = text.replace(old, new)
        if MUON in recipe:
            text = text.replace("adamw {}\n", "")
        if DELAYED in recipe:
            text = text.replace("clip_norm: 1\n", "")
        (self.folder / "recipe").write_text(text)
        if model.startswith("layers:"):
            text = re.sub(r"^layers: .*\n", "", (self.folder / "model").read_text(), count=1, flags=re.MULTILINE)
            (self.folder / "model").write_text(text)

    def is_tied(self):
        return TIED in (self.folder / "model").read_text()

    def results(self, command, environment=None):
        """Runs the program by `command`; returns what stages must not change."""
        out = run([*command, "--data", "text", "--steps", STEPS, "--save", "weights", "--save-gradients", "gradients",
                   "--gradients-step", 0, "--validation-split", "0.1", "--validation-steps", 1,
                   "--metrics", "metrics"], self.folder, environment)
        steps = re.findall(r"^step .*?gradient norm [^ ]+", out, re.MULTILINE)
        if len(steps) != STEPS:
            raise RuntimeError(f"expected {STEPS} steps, got {steps}")
        losses = re.findall(r'loss": ?([^,}]+)', (self.folder / "metrics").read_text())
        return {"first loss": losses[0], "losses": losses, "weights": tensors_of(self.folder / "weights"),
                "gradients": tensors_of(self.folder / "gradients")}

    def differing(self, expected, got, exact=("first loss", "losses", "weights", "gradients")):
        return [what for what in exact if got[what] != expected[what]]

    def differing_by_stages(self, expected, got, is_double, exact=("first loss", "gradients")):
        """What differs in bits that must not, or in float64 by more than a few roundings."""
        wrong = []
        if self.is_tied():
            kind = "float64" if is_double else "float32"
            sums = [{EMBEDDING: results["gradients"][EMBEDDING]} for results in (expected, got)]
            wrong += [name for name in self.far(*sums, NEAR_SUM[kind], kind)]
            expected, got = ({**results, "gradients": {**results["gradients"], EMBEDDING: None}}
                             for results in (expected, got))
        wrong += self.differing(expected, got, exact)
        if not is_double:
            return wrong
        first, other = (float(results["first loss"]) for results in (expected, got))
        wrong += [] if abs(first - other) <= NEAR_SUM["float64"] * abs(first) else ["first loss"]
        near = all(abs(float(a) - float(b)) <= NEAR * abs(float(a))
                   for a, b in zip(expected["losses"], got["losses"], strict=True))
        wrong += [] if near else ["losses"]
        return wrong + self.far(expected["weights"], got["weights"], NEAR)

    @staticmethod
    def far(expected, got, most, kind="float64"):
        """The names of tensors that differ by more than `most`, as a part of their largest number."""
        wrong = []
        for name, value in expected.items():
            if name.endswith(NOISE):
                continue
            a, b = (np.frombuffer(tensor, kind) for tensor in (value, got[name]))
            near = np.max(np.abs(a - b)) <= most * np.max(np.abs(a))
            wrong += [] if near else [name]
        return wrong

    def fault_of(self, name, pins, stages, recipe, model):
        """Returns a sentence about the fault, or None."""
        self.describe(name, recipe, model)
        self.compiled("--pin", pins)
        expected = self.results(["./train"])
        for each in stages:
            self.compiled("--pin", f"{pins},{each}")
            exact = ("gradients",) if name == LOSSES_OF_LAYERS else ("first loss", "gradients")
            if DELAYED in recipe and not self.is_tied():
                exact += ("losses", "weights")
            if wrong := self.differing_by_stages(expected, self.results(["./train"]), F64 in recipe, exact):
                return f"{each}: {', '.join(wrong)} are not those without stages"
        return None

    def fault_of_plan(self, layers, model):
        """Chunks of `layers`, by a plan's file. The printed plan must give the same program."""
        self.describe("llama-tiny", F64, model)
        self.compiled("--pin", "dp=2,accumulation=4")
        expected = self.results(["./train"])
        plan = self.folder / "plan"
        plan.write_text('version: 1\nmesh { axis { name: "dp" size: 2 } }\n'
                        'sharding { value: "*" dimension: "batch" axes: ["dp"] }\n'
                        f'accumulation: 4\npipeline {{ layers: {layers} }}\n')
        before = self.compiled("--plan", "plan")
        if wrong := self.differing_by_stages(expected, self.results(["./train"]), True):
            return f"{', '.join(wrong)} are not those without stages"
        plan.write_text(run(["./train", "--print-plan"], self.folder))
        return None if self.compiled("--plan", "plan") == before else "the printed plan gives another program"

    def fault_of_schedules(self, model, seeds):
        """Schedules that nobody would write: chunks in any stage, actions in any order that does not deadlock."""
        self.describe("llama-tiny", F64, model)
        self.compiled("--pin", "dp=2,zero=2,accumulation=4")
        expected = self.results(["./train"])
        for seed in seeds:
            rows = random_schedule(random.Random(seed), chunks=4, micro_batches=4)
            (self.folder / "schedule").write_text("\n".join(rows))
            self.compiled("--pin", "dp=2,zero=2,accumulation=4", "--schedule", "schedule")
            if wrong := self.differing_by_stages(expected, self.results(["./train"]), True):
                return f"{rows}: {', '.join(wrong)} are not those without stages"
        return None

    def peaks(self):
        """The most MiB in use of a rank of each stage, as the program in the folder says."""
        told = run([self.tools / "weft", "explain", "train", "--memory"], self.folder)
        return [float(number) for number in re.findall(r"in use ([0-9.]+) MiB at the peak", told)]

    def fault_of_gathers(self, recipe, pins, model, ways):
        """Schedules that gather parameters several times in a step, and reduce gradients early and late."""
        self.describe("llama-tiny", recipe, model)
        self.compiled("--pin", pins)
        expected, most = self.results(["./train"]), self.peaks()
        for way in ways:
            if way == "order":
                chunks = 4 if "chunks=2" in pins else 2
                draw = random.Random(pins)
                rows = with_gathers(draw, random_schedule(draw, chunks, 4, [0, 1] * (chunks // 2)))
                (self.folder / "schedule").write_text("\n".join(rows))
                self.compiled("--pin", re.sub(",(chunks|schedule)=[0-9a-z]+", "", pins), "--schedule", "schedule")
            else:
                self.compiled("--pin", f"{pins},{way}")
            if wrong := self.differing(expected, self.results(["./train"])):
                return f"{way}: {', '.join(wrong)} are not those of parameters that are gathered once"
            # Where a stage has one chunk, it may need all of it at the peak.
            falls = "gather" in way and "chunks" in pins
            if falls and not all(own < before for own, before in zip(self.peaks(), most, strict=True)):
                return f"{way}: takes {self.peaks()} MiB, and {most} if parameters are gathered once"
        return None

    def fault_of_backends(self):
        """Ranks as processes."""
        self.describe("llama-tiny", F64, "")
        self.compiled("--pin", "dp=2,zero=1,accumulation=4,pp=2")
        expected = self.results(["./train"])
        torchrun = [sys.executable, ROOT / "runtime/tests/torchrun.py", "-n", 4]
        mpi = [self.tools / "weft", "run", "--backend", "mpi", "./train", "--"]
        for what, command in (("tcp", [*torchrun, "./train", "--backend", "tcp"]), ("mpi", mpi)):
            if what == "mpi" and not shutil.which("mpirun"):
                continue
            if wrong := self.differing(expected, self.results(command, {**os.environ, **MPI})):
                return f"{what}: {', '.join(wrong)} are not those of threads"
        return None

    def fault_of_checkpoints(self, model):
        """A run that goes on with other stages."""
        self.describe("llama-tiny", F64, model)
        plans = ("dp=2,zero=1,accumulation=4", "dp=2,zero=1,accumulation=4,pp=2", "dp=2,zero=1,accumulation=4,pp=3")
        for number, pins in enumerate(plans):
            self.compiled("--pin", pins)
            shutil.copy(self.folder / "train", self.folder / f"train-{number}")
        flags = ["--data", "text", "--no-progress"]
        run(["./train-0", *flags, "--steps", 3, "--save", "weights"], self.folder)
        expected = tensors_of(self.folder / "weights")
        for order in ((0, 1, 2), (2, 1, 0)):
            shutil.rmtree(self.folder / "checkpoints", ignore_errors=True)
            for step, number in enumerate(order):
                run([f"./train-{number}", *flags, "--steps", step + 1, "--save", "weights", "--checkpoint-dir",
                     "checkpoints"], self.folder)
            if self.far(expected, tensors_of(self.folder / "weights"), NEAR):
                return f"plans {order}, one after another, are not one run"
        return None


def check_all(bench):
    for name, pins, stages, recipe, model in CASES:
        what = " ".join(part for part in (name, pins, "with", " and ".join(stages), recipe, model) if part)
        bench.tell(what, bench.fault_of, name, pins, stages, recipe, model)
    for model in ("", TIED):
        for layers in ([1, 2, 1], [0, 2, 2, 0]):
            bench.tell(f"a plan's stages of {layers} layers {model}".strip(), bench.fault_of_plan, layers, model)
        bench.tell(f"checkpoints {model}".strip(), bench.fault_of_checkpoints, model)
        bench.tell(f"any schedule {model}".strip(), bench.fault_of_schedules, model, range(3))
    for recipe, pins, model, ways in GATHERS:
        what = " ".join(part for part in ("gathers", pins, "with", " and ".join(ways), recipe, model) if part)
        bench.tell(what, bench.fault_of_gathers, recipe, pins, model, ways)
    bench.tell("ranks as processes", bench.fault_of_backends)


if __name__ == "__main__":
    sys.exit(main_of(__doc__, PipelinesBench, check_all))
