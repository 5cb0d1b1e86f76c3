#!/usr/bin/python3
#===- reference.py - trains a described model in NumPy ---------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""The training run that a compiled program must reproduce, in float64 on one device.

Takes the same data, seed and descriptions as a program, and writes the same kinds of files:

    reference.py MODEL RECIPE --data TEXT --steps 20 --seed 1 --metrics m.jsonl --save w.safetensors
                 [--load w.safetensors] [--save-gradients g.safetensors --gradients-step 0]

Without --load it draws the initial weights itself, by docs/Numerics.md.
"""

import argparse
import json
from dataclasses import dataclass, replace

import numpy as np

import config
import dataset
import optimizer
import safetensors
from model import Transformer


@dataclass
class Step:
    """The results of one step; gradients are before clipping."""

    step: int
    loss: float
    gradient_norm: float
    learning_rate: float
    gradients: dict
    dropped: dict  # see Transformer.dropped


def train(model, recipe, weights, batch, steps, seed):
    """Yields a Step for each of `steps` steps, and changes `weights` in place.

    `batch(step)` gives tokens and targets of that step, each [global_batch, sequence_length].
    """
    transformer = Transformer(model, recipe.fp8, recipe.routing, recipe.document_end)
    update = optimizer.optimizer_for(recipe, weights)
    for step in range(steps):
        tokens, targets = batch(step)
        loss, gradients = transformer.loss_and_gradients(
            weights, tokens, targets, recipe.z_loss, seed, step)
        norm = optimizer.global_norm(gradients)
        yield Step(step, loss, norm, optimizer.learning_rate(recipe, step), gradients,
                   dict(transformer.dropped))
        transformer.move_biases(weights)
        if recipe.fp8:
            recipe.fp8.end_step()
        scale = optimizer.clip_scale(recipe, norm)
        update.update(weights, {name: g * scale for name, g in gradients.items()}, step)


def validation_loss(model, weights, batches, fp8=None, document_end=None):
    """Mean of the cross-entropy over `batches` of (tokens, targets), with nothing dropped."""
    transformer = without_dropout(model, fp8, document_end)
    return float(np.mean([transformer.loss(weights, tokens, targets, 0.0, 0, 0)
                          for tokens, targets in batches]))


def logits(model, weights, tokens, fp8=None, document_end=None):
    """The logits of `tokens`, with nothing dropped."""
    return without_dropout(model, fp8, document_end).logits(weights, tokens, 0, 0, [])


def without_dropout(model, fp8, document_end):
    return Transformer(replace(model, dropout=0.0, attention_dropout=0.0), fp8,
                       document_end=document_end)


def main():
    parser = argparse.ArgumentParser(description="trains a described model in NumPy, in float64")
    parser.add_argument("model")
    parser.add_argument("recipe")
    parser.add_argument("--data", required=True, help="a text file; its bytes are the tokens")
    parser.add_argument("--steps", type=int, help="default: those of the recipe")
    parser.add_argument("--seed", type=int, help="default: that of the recipe")
    parser.add_argument("--load", help="initial weights, as --save writes them")
    parser.add_argument("--save", help="where to write the weights after the last step")
    parser.add_argument("--metrics", help="where to write one JSON line for each step")
    parser.add_argument("--save-gradients", help="where to write the gradients of one step")
    parser.add_argument("--gradients-step", type=int, default=0, help="which step that is")
    options = parser.parse_args()

    with open(options.model) as file:
        model = config.parse_model(file.read())
    with open(options.recipe) as file:
        recipe = config.parse_recipe(file.read())
    steps = recipe.steps if options.steps is None else options.steps
    seed = recipe.seed if options.seed is None else options.seed
    if options.load:
        loaded = safetensors.load(options.load)
        weights = {name: loaded[name].astype(np.float64) for name in model.parameters()}
    else:
        weights = model.initial_weights(seed)

    data = dataset.Dataset(options.data, recipe.sequence_length, recipe.global_batch, seed)
    lines = []
    for result in train(model, recipe, weights, data.batch, steps, seed):
        lines.append(json.dumps({"step": result.step, "loss": result.loss,
                                 "gradient_norm": result.gradient_norm,
                                 "learning_rate": result.learning_rate}))
        print(lines[-1])
        if options.save_gradients and result.step == options.gradients_step:
            safetensors.save(options.save_gradients, {
                "gradient/" + name: value for name, value in result.gradients.items()})
    if options.metrics:
        with open(options.metrics, "w") as file:
            file.writelines(line + "\n" for line in lines)
    if options.save:
        safetensors.save(options.save, weights)


if __name__ == "__main__":
    main()
