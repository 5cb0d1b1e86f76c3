#===- modules.py - turns a case into a module ------------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Turns a case, an op and its operands, into a module as Import makes it.

The loss is the sum over all results of the case of their products with fixed weights, so that
every element of every result has a gradient of its own.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "Reference"))
import generator  # noqa: E402

SEED = 1

# The inputs of most cases: BATCH sequences of SEQUENCE tokens below VOCABULARY, none of which is
# the last one, so that one row of a table is never read, and others are read more than once.
BATCH, SEQUENCE, VOCABULARY = 2, 3, 6
TEXT = bytes([3, 1, 4, 1, 1, 0, 2, 4, 2, 3, 1, 0, 0])

MACHINE = """version: 1
name: "test"
devices_per_node: 2
device {
  name: "core"
  peak_flops { precision: F64 flops: 1e10 }
  memory_bytes: 1073741824
  memory_bandwidth_bytes_per_second: 1e10
}
links { name: "memory" scope: NODE latency_seconds: 1e-6 bandwidth_bytes_per_second: 5e9 }
"""

# Values are multiples of this power of two. With what finite differences add to them, they are
# then exact in float32 too, and a cast to it is as smooth as any other op.
GRAIN = 2.0**-11

# What every snippet may name.
MAPS = """#none = affine_map<() -> ()>
#i = affine_map<(i) -> (i)>
#to_none = affine_map<(i, j) -> ()>
#to_i = affine_map<(i, j) -> (i)>
#to_j = affine_map<(i, j) -> (j)>
#ij = affine_map<(i, j) -> (i, j)>
#ijk = affine_map<(i, j, k) -> (i, j, k)>
#ijk_to_ik = affine_map<(i, j, k) -> (i, k)>
#ijk_to_j = affine_map<(i, j, k) -> (j)>
#ijk_to_ij = affine_map<(i, j, k) -> (i, j)>
#ijkl = affine_map<(i, j, k, l) -> (i, j, k, l)>
#ijkl_to_j = affine_map<(i, j, k, l) -> (j)>
#ijkl_to_ij = affine_map<(i, j, k, l) -> (i, j)>
"""


def recipe(case):
    """Returns the recipe of a case."""
    return f"""version: 1
sequence_length: {case.sequence}
global_batch_sequences: {case.batch}
precision: F64
sgd {{}}
schedule {{ peak_learning_rate: 1.0 }}
steps: 1
seed: {SEED}
"""


@dataclass(frozen=True)
class Case:
    """One op or a few, and their operands.

    `operands` and `results` say the shape by name, as "batch=2 hidden=3"; "" is a scalar. In
    `body` the operand x is the value %x of type !x; so are results, which the body must define,
    and `types`, which are types alone. Also there are %tokens and %targets (!ids), %seed and
    %step (!counter), %layer (index) and the maps above. `functions` stand beside @loss.
    """

    name: str
    operands: dict
    results: dict
    body: str
    functions: str = ""
    types: dict = None
    positive: tuple = ()  # operands whose values must be above zero
    batch: int = BATCH
    sequence: int = SEQUENCE

    @property
    def weights(self):
        """The fixed factors of the results in the loss, by name of parameter."""
        return {f"{name}.weight": shape for name, shape in self.results.items()}

    @property
    def parameters(self):
        """All parameters with their shapes."""
        parameters = {**self.operands, **self.weights}
        # The compiler learns the size of the vocabulary from this one.
        parameters.setdefault("embed.tokens.weight", f"vocab={VOCABULARY} hidden=1")
        return parameters

    @property
    def pins(self):
        """The known splits over two ranks that cut an operand of this case."""
        sizes = {(name, size) for shape in self.operands.values()
                 for name, size in zip(*dimensions(shape))}

        def fits(cut):
            found = [size for name, size in sizes if name in cut]
            return found and all(size % 2 == 0 for size in found)

        return [pin for pin, cut in (("dp=2", {"batch"}), ("tp=2", {"vocab", "kv_heads", "ffn"}))
                if fits(cut)]


def dimensions(shape):
    """Names and sizes of "batch=2 hidden=3"."""
    pairs = [part.split("=") for part in shape.split()]
    return [name for name, _ in pairs], tuple(int(size) for _, size in pairs)


def tensor(shape):
    """The type of a tensor of float64 of this shape."""
    return "tensor<" + "".join(f"{size}x" for size in dimensions(shape)[1]) + "f64>"


def alias(name):
    """Returns the name of an operand in snippets."""
    return "table" if name == "embed.tokens.weight" else name


def values(case):
    """Returns the point at which the derivatives of `case` are taken: all its parameters, by name."""
    drawn = {}
    for name, shape in case.parameters.items():
        sizes = dimensions(shape)[1]
        value = generator.normal(SEED, generator.fnv1a(f"{case.name}/{name}"), int(np.prod(sizes)))
        if name in case.positive:
            value = 0.5 + np.abs(value)
        drawn[name] = (np.round(value / GRAIN) * GRAIN).reshape(sizes)
    return drawn


def indent(text, by):
    """Returns `text` without its own margin, indented."""
    lines = text.strip("\n").splitlines()
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "".join(" " * by + line[margin:] + "\n" for line in lines)


def variables(case):
    """The declarations of parameters, inputs and the optimizer."""
    text = ""
    for name, shape in case.parameters.items():
        names = ", ".join(f'"{dimension}"' for dimension in dimensions(shape)[0])
        text += f"weft.variable parameter @{name} [{names}] : {tensor(shape)}\n"
    return text + """weft.variable input @tokens ["batch", "sequence"] : !ids
weft.variable input @targets ["batch", "sequence"] : !ids
weft.variable input @seed [] : !counter
weft.variable input @step_number [] : !counter
weft.optimizer sgd learning_rate 0.0 decay constant warmup 0 steps 1 final 0.0
"""


def init(case):
    """@init, whose values are never used: every run loads its own."""
    text = ""
    for number, (name, shape) in enumerate(case.parameters.items()):
        text += (f"  %{number} = weft.fill constant 0.0 : {tensor(shape)}\n"
                 f"  weft.assign @{name}, %{number} : {tensor(shape)}\n")
    return f"func.func @init() {{\n{text}  return\n}}\n"


def loss(case):
    """@loss: the body, then its results times their weights, added up."""
    reads = [(f"%{alias(name)}", name, tensor(shape))
             for name, shape in {**case.operands, **case.weights}.items()]
    reads += [("%tokens", "tokens", "!ids"), ("%targets", "targets", "!ids"),
              ("%seed", "seed", "!counter"), ("%step", "step_number", "!counter")]
    text = "".join(f"  {value} = weft.read @{name} : {kind}\n" for value, name, kind in reads)
    text += "  %layer = arith.constant 3 : index\n" + indent(case.body, 2)
    for number, name in enumerate(case.results):
        letters = "abcdefgh"[: len(dimensions(case.results[name])[0])]
        text += (f'  %part.{number} = weft.contract "{letters},{letters}->"'
                 f"(%{name}, %{name}.weight) : (!{name}, !{name}) -> !number\n")
    count = len(case.results)
    parts = ", ".join(f"%part.{number}" for number in range(count))
    text += (f"  %loss = weft.map ins({parts} : {', '.join(['!number'] * count)}) "
             f"maps [{', '.join(['#none'] * count)}] -> !number {{\n  ^bb0("
             + ", ".join(f"%s.{number}: f64" for number in range(count)) + "):\n")
    total = "%s.0"
    for number in range(1, count):
        text += f"    %t.{number} = arith.addf {total}, %s.{number} : f64\n"
        total = f"%t.{number}"
    text += f"    weft.yield {total} : f64\n  }}\n  return %loss : !number\n"
    return f"func.func @loss() -> !number {{\n{text}}}\n"


def module(case):
    """The whole module."""
    shapes = {**{alias(name): shape for name, shape in case.operands.items()}, **case.results,
              **(case.types or {})}
    aliases = "".join(f"!{name} = {tensor(shape)}\n" for name, shape in shapes.items())
    aliases += (f"!ids = tensor<{case.batch}x{case.sequence}xi32>\n"
                "!counter = tensor<i64>\n!number = tensor<f64>\n")
    parts = [variables(case), indent(case.functions, 0), init(case), loss(case)]
    return MAPS + aliases + "module @derivative {\n" + "".join(indent(p, 2) for p in parts) + "}\n"
