#!/usr/bin/python3
#===- make_graph.py - writes small ONNX models, whole or broken ------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""make_graph.py NAME FILE: writes a model of graphs.py, one that the compiler must refuse, or a chain of nodes: NAME is
then chain-KIND-COUNT, as chain-norms-400."""

import sys
from pathlib import Path

import numpy as np

import graphs
from graphs import Graph


def op(name, *inputs, **attributes):
    """A graph of one op on the input, then a matmul."""
    def build():
        g = Graph(["batch", 4, 4])
        x = g.add(name, "input", *(make(g) for make in inputs), **attributes)
        g.add("MatMul", x, g.weight("w", 4, 2), name="logits")
        return g
    return build


def changed(name, old, new):
    """The text of a model with one place changed."""
    def build():
        text = graphs.MODELS[name]().text()
        assert old in text
        return text.replace(old, new, 1)
    return build


class Outline(Graph):
    """Weights are zeros, in a file beside the model that has no block on the disk."""

    def __init__(self, shape):
        super().__init__(shape)
        self.bytes = 0

    def weight(self, name, *shape, scale=0):
        size = 4 * int(np.prod(shape))
        self.bytes = max(self.bytes, size)
        entries = " ".join(f'external_data {{ key: "{key}" value: "{value}" }}'
                           for key, value in (("location", "zeros"), ("length", size)))
        self.initializers.append(" ".join(f"dims: {dim}" for dim in shape) + " data_type: 1 " +
                                 f'name: "{name}" data_location: EXTERNAL {entries}')
        return name

    def write(self, path):
        super().write(path)
        with open(path.parent / "zeros", "wb") as file:
            file.truncate(self.bytes)


def table():
    g = Graph(["batch", 6])
    x = g.add("Mul", "input", g.tensor("table", np.arange(24, dtype=np.float32).reshape(4, 6)))
    g.add("MatMul", x, g.weight("w", 6, 2), name="logits")
    return g


def mask():
    g = Graph(["batch", 4, 4])
    values = np.full((4, 4), -1e9, np.float32)
    scores = g.add("MatMul", "input", g.add("Transpose", "input", perm=[0, 2, 1]))
    x = g.add("MatMul", g.add("Softmax", g.add("Add", scores, g.constant(values)), axis=-1), "input")
    g.add("Gemm", g.add("Flatten", x), g.weight("w", 16, 2), name="logits")
    return g


def double_input():
    extra = ('input { name: "attention_mask" type { tensor_type { elem_type: 7 shape '
             '{ dim { dim_param: "batch" } } } } }\n')
    return graphs.mlp().text().replace("output {", extra + "output {", 1)


def dead():
    g = graphs.mlp()
    g.add("NonZero", "input", name="unused")
    return g


def uniform():
    """What a TorchScript exporter merges: one tensor of ones under two names."""
    g = Graph(["batch", 4, 8])
    ones, zeros = g.ones("a.weight", 8), g.zeros("a.bias", 8)
    other = g.add("Identity", ones, name="b.weight")
    x = g.add("LayerNormalization", "input", ones, zeros, axis=-1)
    x = g.add("LayerNormalization", x, other, zeros, axis=-1, name="second")
    g.add("Gemm", g.add("Flatten", x), g.weight("w", 32, 2), name="logits")
    return g


def single(size=6):
    """A single matmul, with no intermediate tensor to split."""
    g = Graph(["batch", size])
    g.add("Gemm", "input", g.weight("w", size, 2), name="logits")
    return g


def roots():
    """Square roots of sums, some of which are negative."""
    g = Graph(["batch", 6])
    x = g.add("Sqrt", g.add("Gemm", "input", g.weight("w", 6, 4)))
    g.add("Gemm", x, g.weight("v", 4, 2), name="logits")
    return g


def integers(*numbers):
    return lambda g: g.ints(*numbers)


def samples(first, second):
    """A matmul of the input and itself, either turned."""
    def build():
        g = Graph(["batch", 4])
        turned = g.add("Transpose", "input", perm=[1, 0])
        names = {"x": "input", "t": turned}
        g.add("MatMul", names[first], names[second], name="logits")
        return g
    return build


def infinite():
    g = graphs.mlp()
    g.initializers[1] = graphs.tensor_text("up.bias", np.full(16, np.nan, np.float32))
    return g


def arithmetic_of_tokens():
    g = Graph(["batch", 8], graphs.INT64)
    x = g.add("Add", "input", g.constant(np.int64(1)))
    g.add("Gather", g.weight("table", 9, 3), x, name="logits")
    return g


def uneven():
    """Dense layers, of whose inputs only one is short."""
    g = Outline(["batch", 6])
    x = "input"
    for name, inputs, outputs in (("a", 6, 1024), ("b", 1024, 1024), ("c", 1024, 1024)):
        x = g.add("Relu", g.add("Gemm", x, g.weight(name, inputs, outputs)))
    g.add("Gemm", x, g.weight("d", 1024, 8), name="logits")
    return g


BROKEN = {
    "unsupported": op("TopK", integers(2)),
    "partly-known": op("Range", integers(2), integers(1)),
    "opset": changed("mlp", "opset_import { version: 17 }", "opset_import { version: 9 }"),
    "domain": changed("mlp", 'op_type: "Relu"', 'op_type: "Relu" domain: "com.microsoft"'),
    "half": changed("mlp", 'dims: 16 data_type: 1', 'dims: 16 data_type: 10'),
    "short": changed("mlp", "dims: 16 dims: 6", "dims: 16 dims: 7"),
    "unordered": changed("mlp", 'input: "/Gemm_0"', 'input: "nothing"'),
    "fixed-batch": changed("mlp", 'dim_param: "batch"', "dim_value: 2"),
    "inputs": double_input,
    "table": table,
    "mask": mask,
    "dropout": op("Dropout", lambda g: g.constant(np.float32(0.5)),
                  lambda g: g.constant(np.array(True))),
    "padding": op("Unsqueeze", integers(9)),
    "shapes": op("Reshape", integers(-1, 8, 2)),
    "batch-sum": op("ReduceMean", axes=[0]),
    "steps": op("Slice", integers(3), integers(0), integers(1), integers(-1)),
    "taken": lambda: graphs.mlp().text().replace("up.bias", "tokens"),
    "infinite": infinite,
    "pairs": samples("x", "t"),
    "summed": samples("t", "x"),
    "token-sum": arithmetic_of_tokens,
    "diagonal": op("Einsum", lambda g: g.weight("e", 4, 4), equation="bij,ii->bj"),
    "constant-size": op("Mul", lambda g: g.add("ConstantOfShape", g.ints(65536, 65536))),
    "dead": dead,
    "uniform": uniform,
    "single": single,
    "five": lambda: single(5),
    "roots": roots,
}
OUTLINES = {"resnet50": lambda: graphs.resnet50(Outline(["batch", 3, 224, 224])), "uneven": uneven}


def main():
    name, path = sys.argv[1:]
    if name.startswith("chain-"):
        _, kind, count = name.split("-")
        graph = graphs.chain(kind, int(count))
    else:
        graph = (BROKEN.get(name) or OUTLINES.get(name) or graphs.MODELS[name])()
    if isinstance(graph, str):
        Path(path).write_text(graph)
    else:
        graph.write(Path(path))


if __name__ == "__main__":
    main()
