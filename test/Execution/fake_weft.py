#!/usr/bin/python3
#===- fake_weft.py - a simulator for the compiler, to test the comparisons --===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Replaces `weft` for compare.py, and trains in NumPy instead.

"Compiling" records the description and the fault to plant: a mutant doubles a gradient, and so
does every mesh of more than one rank if WEFT_FAKE_FAULT asks for it.
"""

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "Reference"))
import config  # noqa: E402
import dataset  # noqa: E402
import reference  # noqa: E402
import safetensors  # noqa: E402

COLLECTIVES = 2


def compile_program(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    for flag in ("--machine", "--recipe", "--target", "--mutate-collective", "-o"):
        parser.add_argument(flag)
    parser.add_argument("--pin", action="append")
    parser.add_argument("--observe-logits", action="store_true")
    options = parser.parse_args(arguments)
    wrong = None
    ranks = np.prod([int(pin.split("=")[1]) for pins in options.pin for pin in pins.split(",")
                     if pin[:2] in ("dp", "tp")])
    if ranks > 1:
        wrong = os.environ.get("WEFT_FAKE_FAULT")
    if options.mutate_collective:
        number, kind = options.mutate_collective.split(":")
        if int(number) >= COLLECTIVES:
            sys.exit(f"error: there is no collective number {number}, the program has 2")
        # The second collective may be scaled unseen.
        wrong = "gradient" if int(number) == 0 or kind != "scale" else None
    for text in (options.model, options.recipe):
        shutil.copy(text, f"{options.o}.{Path(text).name}")
    Path(options.o).write_text(json.dumps(wrong))


def run_program(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int)
    parser.add_argument("program")
    for flag in ("--backend", "--data", "--metrics", "--save", "--save-gradients", "--save-logits",
                 "--validation-data"):
        parser.add_argument(flag)
    for flag in ("--steps", "--seed", "--threads", "--gradients-step", "--validation-steps",
                 "--validation-every"):
        parser.add_argument(flag, type=int)
    parser.add_argument("--quiet", action="store_true")
    options = parser.parse_args([a for a in arguments if a != "--"])
    wrong = json.loads(Path(options.program).read_text())
    model = config.parse_model(Path(options.program + ".model.textproto").read_text())
    recipe = config.parse_recipe(Path(options.program + ".recipe.textproto").read_text())
    data = dataset.Dataset(options.data, recipe.sequence_length, recipe.global_batch, options.seed)
    held = dataset.Dataset(options.validation_data, recipe.sequence_length, recipe.global_batch, 0)
    weights = model.initial_weights(options.seed)
    with open(options.metrics, "w") as metrics:
        def validate(step):
            loss = reference.validation_loss(
                model, weights, map(held.batch_in_order, range(options.validation_steps)))
            metrics.write(json.dumps({"step": step, "validation_loss": loss}) + "\n")

        for step in reference.train(model, recipe, weights, data.batch, options.steps,
                                    options.seed):
            if step.step > 0 and step.step % options.validation_every == 0:
                validate(step.step)
            if wrong == "gradient":
                step.gradients["layers.0.mlp.up.weight"] *= 1.0 + 1e-8
            if wrong == "crash":
                sys.exit("error: the run failed")
            metrics.write(json.dumps({"step": step.step, "loss": step.loss,
                                      "gradient_norm": step.gradient_norm}) + "\n")
            if step.step == options.gradients_step:
                safetensors.save(options.save_gradients, {
                    "gradient/" + name: value for name, value in step.gradients.items()})
        validate(options.steps)
    safetensors.save(options.save, weights)
    if options.save_logits:
        logits = reference.logits(model, weights, held.batch_in_order(0)[0])
        safetensors.save(options.save_logits, {"logits": logits})


if __name__ == "__main__":
    {"compile": compile_program, "run": run_program}[sys.argv[1]](sys.argv[2:])
