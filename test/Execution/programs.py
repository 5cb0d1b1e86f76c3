#===- programs.py - compiles cases and runs the programs -------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Compiles a case for a mesh, runs it, and reads the results."""

import json
import math
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import numpy as np

import cases

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "Reference"))
import config  # noqa: E402
import dataset  # noqa: E402
import reference  # noqa: E402
import safetensors  # noqa: E402

# Seconds that a compilation or run may take; more is a hang.
TIME_LIMIT = 300
# Starts processes as torchrun does.
TORCHRUN = Path(__file__).resolve().parents[2] / "runtime/tests/torchrun.py"


class ProgramError(Exception):
    """A compilation or run failed; `output` is all that it printed."""

    def __init__(self, message, output=""):
        super().__init__(message)
        self.output = output


def call(command):
    """Runs `command`; raises ProgramError if it fails."""
    command = [str(part) for part in command]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired as expired:
        raise ProgramError(f"{' '.join(command)}: not done after {TIME_LIMIT} s") from expired
    if done.returncode != 0:
        tail = " | ".join(done.stdout.strip().splitlines()[-3:])
        raise ProgramError(f"{' '.join(command)}: exit status {done.returncode}: {tail}",
                           done.stdout)

class Once:
    """The result of `compute`, computed when first asked for, by whichever thread comes first."""

    def __init__(self, compute):
        self.compute, self.lock, self.result, self.error = compute, Lock(), None, None

    def __call__(self):
        with self.lock:
            if self.result is None and self.error is None:
                try:
                    self.result = self.compute()
                except ProgramError as error:
                    self.error = error
        if self.error:
            raise self.error
        return self.result


@dataclass
class Run:
    """The results of a run: loss and norm of each step, gradients of one, tensors after the last, the
    loss of each validation, logits of the last one's first batch or None, and what each layer with
    experts dropped in each step."""

    losses: list
    norms: list
    gradients: dict
    weights: dict
    validation: list
    logits: dict
    dropped: list
    files: list


class Compiler:
    """Compiles cases into `folder` with the `weft` at `binary`.

    Safe to call from any thread; two runs of one program at a time need different names.
    """

    def __init__(self, binary, folder):
        self.binary = Path(binary).resolve()
        self.folder = Path(folder)
        self.data = self.folder / "text.txt"
        self.data.write_text(cases.training_text())
        self.validation_data = self.folder / "validation.txt"
        self.validation_data.write_text(cases.validation_text())
        self.lock, self.programs = Lock(), {}

    def program(self, case, mesh):
        """The folder of the program of `case` for `mesh`, compiled when first asked for."""
        with self.lock:
            compiled = self.programs.setdefault(
                (case.name, mesh), Once(lambda: self.compile(case, mesh)))
        return compiled()

    def place(self, case, mesh, suffix=""):
        """Returns a new folder for one program."""
        place = self.folder / f"{case.name}-{mesh.replace(':', '-')}{suffix}"
        place.mkdir(parents=True, exist_ok=True)
        return place

    def compile(self, case, mesh, options=(), suffix=""):
        """Compiles and returns the folder of the program; raises ProgramError."""
        place = self.place(case, mesh, suffix)
        model, recipe = cases.write(case, place)
        machine = place / "machine.textproto"
        machine.write_text(cases.MACHINE)
        options = [*(["--cpu", case.cpu] if case.cpu else []), *options]
        call([self.binary, "compile", model, "--machine", machine, "--recipe", recipe,
              "--target", "host", *(["--observe-logits"] if sees_logits(mesh) else []), "--pin",
              mesh, *options, "-o", place / "train"])
        return place

    def run(self, place, mesh, steps=cases.STEPS, gradients_step=0, name="run", threads=1,
            backend="local"):
        """Runs the program in `place` from fresh weights; raises ProgramError. `threads` share the
        work of each rank."""
        metrics, weights, gradients, logits = (
            place / f"{name}.{kind}" for kind in
            ("metrics.jsonl", "weights.safetensors", "gradients.safetensors", "logits.safetensors"))
        options = ["--data", self.data, "--steps", steps, "--seed", cases.SEED, "--quiet",
                   "--threads", threads,
                   "--metrics", metrics, "--save", weights,
                   "--validation-data", self.validation_data,
                   "--validation-steps", cases.VALIDATION_STEPS,
                   "--validation-every", cases.VALIDATION_EVERY]
        if sees_logits(mesh):
            options += ["--save-logits", logits]
        if steps:
            options += ["--save-gradients", gradients, "--gradients-step", gradients_step]
        ranks = cases.ranks_of(mesh)
        if backend == "tcp":
            call([TORCHRUN, "-n", ranks, self.binary, "run", "-n", ranks, place / "train", "--",
                  "--backend", backend, *options])
        else:
            call([self.binary, "run", "-n", ranks, "--backend", backend, place / "train", "--",
                  *options])
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        validation = [number(line, "validation_loss") for line in lines
                      if "validation_loss" in line]
        dropped = [line["dropped"] for line in lines if "layer" in line]
        lines = [line for line in lines if "loss" in line]
        saved = safetensors.load(gradients) if steps else {}
        saved = {name.removeprefix("gradient/"): value for name, value in saved.items()}
        # Optimizer state has a slash in its name.
        after = {name: value for name, value in safetensors.load(weights).items()
                 if "/" not in name}
        return Run([number(line, "loss") for line in lines],
                   [number(line, "gradient_norm") for line in lines], saved, after, validation,
                   safetensors.load(logits) if sees_logits(mesh) else None, dropped,
                   [weights] + ([logits] if sees_logits(mesh) else []) +
                   ([gradients] if steps else []))


def sees_logits(mesh):
    """Returns whether a program gives logits; with micro-batches no rank has all of them at once."""
    return "accumulation" not in mesh


def number(line, key):
    """Returns a number of a line of metrics; null stands for a value that is not finite."""
    return math.nan if line[key] is None else line[key]


@dataclass
class ReferenceRun:
    """The results of NumPy; `gradients` are those of the step to compare."""

    initial: dict
    losses: list
    norms: list
    all_gradients: list
    weights: dict
    validation: list = None
    logits: dict = None
    dropped: list = None
    initial_logits: dict = None
    gradients: dict = None


def reference_run(compiler, case, weights, steps):
    """Trains `steps` steps of `case` in NumPy, from `weights`."""
    model = config.parse_model(cases.model_text(case))
    recipe = config.parse_recipe(cases.recipe_text(case))
    data = dataset.Dataset(compiler.data, recipe.sequence_length, recipe.global_batch, cases.SEED)
    run = ReferenceRun(model.initial_weights(cases.SEED), [], [], [], {}, dropped=[])
    run.weights = {name: w.astype(np.float64) for name, w in weights.items()}
    for step in reference.train(model, recipe, run.weights, data.batch, steps, cases.SEED):
        run.losses.append(step.loss)
        run.norms.append(step.gradient_norm)
        run.all_gradients.append(step.gradients)
        if recipe.routing and recipe.routing.capacity_factor:
            run.dropped += step.dropped.values()
    data = dataset.Dataset(compiler.validation_data, recipe.sequence_length, recipe.global_batch, 0)
    run.validation = [reference.validation_loss(
        model, run.weights, map(data.batch_in_order, range(cases.VALIDATION_STEPS)), recipe.fp8,
        recipe.document_end)]
    tokens = data.batch_in_order(0)[0]
    run.logits = {"logits": reference.logits(model, run.weights, tokens, recipe.fp8,
                                             recipe.document_end)}
    run.initial_logits = {"logits": reference.logits(
        model, run.initial, tokens, recipe.fp8 and recipe.fp8.fresh(), recipe.document_end)}
    return run
