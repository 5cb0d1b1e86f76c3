#===- graphs.py - small ONNX models as text --------------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Writes models as PyTorch's exporters write them, small, as protobuf's text format.

A Graph collects nodes; `write` gives a file that `weft import` reads. Weights are drawn by NumPy from a
fixed seed.
"""

import json

import numpy as np

FLOAT, INT64, BOOL = 1, 7, 9
TYPES = {np.dtype(np.float32): FLOAT, np.dtype(np.float64): 11, np.dtype(np.int64): INT64,
         np.dtype(np.bool_): BOOL}


def quote(text):
    return json.dumps(text)


def tensor_text(name, array):
    array = np.asarray(array)
    raw = "".join(f"\\{byte:03o}" for byte in array.tobytes())
    dims = " ".join(f"dims: {size}" for size in array.shape)
    return f'{dims} data_type: {TYPES[array.dtype]} name: {quote(name)} raw_data: "{raw}"'


def attribute_text(name, value):
    head = f"attribute {{ name: {quote(name)} "
    if isinstance(value, np.ndarray):
        return head + f"type: TENSOR t {{ {tensor_text('', value)} }} }}"
    if isinstance(value, str):
        return head + f"type: STRING s: {quote(value)} }}"
    if isinstance(value, float):
        return head + f"type: FLOAT f: {value!r} }}"
    if isinstance(value, int):
        return head + f"type: INT i: {value} }}"
    return head + "type: INTS " + " ".join(f"ints: {int(number)}" for number in value) + " }"


class Graph:
    """Nodes, initializers, and names for both."""

    def __init__(self, shape, kind=FLOAT, opset=17, seed=0):
        self.random = np.random.default_rng(seed)
        self.opset = opset
        self.nodes, self.initializers = [], []
        self.shape, self.kind = shape, kind
        self.outputs = "logits"

    def tensor(self, name, array):
        self.initializers.append(tensor_text(name, array))
        return name

    def weight(self, name, *shape, scale=0.3):
        return self.tensor(name, (self.random.normal(size=shape) * scale).astype(np.float32))

    def ones(self, name, *shape):
        return self.tensor(name, np.ones(shape, np.float32))

    def zeros(self, name, *shape):
        return self.tensor(name, np.zeros(shape, np.float32))

    def constant(self, array):
        return self.add("Constant", value=np.asarray(array))

    def ints(self, *numbers):
        return self.constant(np.array(numbers, np.int64))

    def add(self, op, *inputs, outputs=1, name=None, **attributes):
        first = name or f"/{op}_{len(self.nodes)}"
        names = [first] + [f"{first}_{i}" for i in range(1, outputs)]
        text = "node { " + " ".join(f"input: {quote(i)}" for i in inputs)
        text += " " + " ".join(f"output: {quote(o)}" for o in names)
        text += f" op_type: {quote(op)} name: {quote('/' + first)} "
        text += " ".join(attribute_text(*item) for item in attributes.items()) + " }"
        self.nodes.append(text)
        return names[0] if outputs == 1 else names

    def text(self):
        lines = ["ir_version: 8", f"opset_import {{ version: {self.opset} }}", "graph {",
                 'name: "main"']
        lines += self.nodes
        lines += [f"initializer {{ {text} }}" for text in self.initializers]
        dims = " ".join(f"dim {{ {'dim_param: ' + quote(size) if isinstance(size, str) else f'dim_value: {size}'} }}"
                        for size in self.shape)
        lines.append(f'input {{ name: "input" type {{ tensor_type {{ elem_type: {self.kind} '
                     f"shape {{ {dims} }} }} }} }}")
        lines.append(f'output {{ name: "{self.outputs}" type {{ tensor_type {{ elem_type: 1 }} }} }}')
        return "\n".join(lines + ["}"]) + "\n"

    def write(self, path):
        path.write_text(self.text())


def mlp():
    """Gemm, Relu, Gemm on images that are rows of numbers."""
    g = Graph(["batch", 6])
    x = g.add("Gemm", "input", g.weight("up.weight", 16, 6), g.weight("up.bias", 16), transB=1)
    x = g.add("Relu", x)
    g.add("Gemm", x, g.weight("down.weight", 4, 16), g.weight("down.bias", 4), transB=1,
          name="logits")
    return g


def chain(kind, count):
    """`count` nodes, one after the other: activations, dense layers with activations, or norms."""
    g = Graph(["batch", 8])
    x = g.add("MatMul", "input", g.weight("in", 8, 8))
    for i in range(count - 2):
        if kind == "norms":
            x = g.add("LayerNormalization", x, g.weight(f"scale{i}", 8), g.weight(f"shift{i}", 8), axis=-1)
        elif kind == "activations" or i % 3 == 2:
            x = g.add("Tanh" if i % 2 else "Sigmoid", x)
        elif i % 3 == 0:
            x = g.add("MatMul", x, g.weight(f"weight{i}", 8, 8))
        else:
            x = g.add("Add", x, g.weight(f"bias{i}", 8))
    g.add("MatMul", x, g.weight("out", 8, 4), name="logits")
    return g


def linear(g, name, x, inputs, outputs, folded=True):
    """x · Wᵀ + b, the weight transposed by the exporter or by a node."""
    if folded:
        weight = g.weight(name + ".weight", inputs, outputs)
    else:
        weight = g.add("Transpose", g.weight(name + ".weight", outputs, inputs), perm=[1, 0])
    return g.add("Add", g.weight(name + ".bias", outputs), g.add("MatMul", x, weight))


def heads_of(g, x, batch, length, heads, size, perm):
    shape = g.add("Concat", batch, g.ints(length, heads, size), axis=0)
    return g.add("Transpose", g.add("Reshape", x, shape), perm=perm)


def attention(g, name, x, width, heads, length, mask, positions=None):
    """As TorchScript's exporter writes scaled_dot_product_attention."""
    shape = g.add("Shape", x)
    batch = g.add("Unsqueeze", g.add("Gather", shape, g.constant(np.int64(0)), axis=0), g.ints(0))
    size = width // heads
    q = heads_of(g, linear(g, name + ".q", x, width, width), batch, length, heads, size, [0, 2, 1, 3])
    v = heads_of(g, linear(g, name + ".v", x, width, width), batch, length, heads, size, [0, 2, 1, 3])
    k = linear(g, name + ".k", x, width, width, folded=False)
    if positions is None:
        k = heads_of(g, k, batch, length, heads, size, [0, 2, 3, 1])
    else:
        k = heads_of(g, k, batch, length, heads, size, [0, 2, 1, 3])
        q, k = (rotary(g, part, size, positions) for part in (q, k))
        k = g.add("Transpose", k, perm=[0, 1, 3, 2])
    root = g.constant(np.array([size ** -0.25], np.float32))
    scores = g.add("MatMul", g.add("Mul", q, root), g.add("Mul", k, root))
    if mask:
        scores = g.add("Add", scores, mask)
    mixed = g.add("MatMul", g.add("Softmax", scores, axis=-1), v)
    merged = g.add("Reshape", g.add("Transpose", mixed, perm=[0, 2, 1, 3]),
                   g.add("Concat", batch, g.ints(length, width), axis=0))
    return linear(g, name + ".out", merged, width, width)


def rotary(g, x, size, tables):
    cosines, sines = tables
    low, high = g.add("Split", x, g.ints(size // 2, size // 2), axis=3, outputs=2)
    turned = g.add("Concat", g.add("Neg", high), low, axis=-1)
    return g.add("Add", g.add("Mul", x, cosines), g.add("Mul", turned, sines))


def gelu(g, x):
    erf = g.add("Erf", g.add("Div", x, g.constant(np.float32(2 ** 0.5))))
    both = g.add("Mul", x, g.add("Add", erf, g.constant(np.float32(1))))
    return g.add("Mul", both, g.constant(np.float32(0.5)))


def norm(g, name, x, width):
    return g.add("LayerNormalization", x, g.ones(name + ".weight", width),
                 g.zeros(name + ".bias", width), axis=-1, epsilon=1e-5)


def block(g, name, x, width, heads, length, mask, positions=None):
    x = g.add("Add", x, attention(g, name + ".attention", norm(g, name + ".norm1", x, width),
                                  width, heads, length, mask, positions))
    inner = gelu(g, linear(g, name + ".up", norm(g, name + ".norm2", x, width), width, 2 * width))
    return g.add("Add", x, linear(g, name + ".down", inner, 2 * width, width))


def causal_mask(g, length):
    ones = g.add("Expand", g.constant(np.float32(1)), g.ints(length, length))
    isFuture = g.add("Equal", g.add("Trilu", ones, upper=0), g.constant(np.float32(0)))
    return g.add("Where", isFuture, g.constant(np.float32(-np.inf)), g.constant(np.float32(0)))


def gpt(vocabulary=256, width=8, heads=2, length=8, layers=2):
    """Learned positions, a tied head, a causal mask that is computed."""
    g = Graph(["batch", length], INT64)
    tokens = g.add("Gather", g.weight("tokens.weight", vocabulary, width), "input", axis=0)
    count = g.add("Gather", g.add("Shape", "input"), g.constant(np.int64(1)), axis=0)
    numbers = g.add("Range", g.constant(np.int64(0)), count, g.constant(np.int64(1)))
    x = g.add("Add", tokens, g.add("Gather", g.weight("positions.weight", 16, width), numbers))
    for number in range(layers):
        x = block(g, f"layer{number}", x, width, heads, length, causal_mask(g, length))
    x = norm(g, "norm", x, width)
    g.add("MatMul", x, g.add("Transpose", "tokens.weight", perm=[1, 0]), name="logits")
    return g


def llama(vocabulary=256, width=8, heads=2, length=8):
    """Rotary positions from tables of numbers."""
    g = Graph(["batch", length], INT64)
    x = g.add("Gather", g.weight("tokens.weight", vocabulary, width), "input", axis=0)
    size = width // heads
    angles = np.outer(np.arange(length), 100.0 ** -(np.arange(0, size, 2) / size))
    angles = np.concatenate([angles, angles], axis=1)
    tables = (g.tensor("cosines", np.cos(angles).astype(np.float32)),
              g.tensor("sines", np.sin(angles).astype(np.float32)))
    x = block(g, "layer0", x, width, heads, length, causal_mask(g, length), tables)
    g.add("MatMul", norm(g, "norm", x, width), g.weight("head.weight", width, vocabulary),
          name="logits")
    return g


def vit(width=8, heads=2, image=8, patch=4, classes=4):
    """Patches by a convolution, a class token, attention without a mask."""
    g = Graph(["batch", 3, image, image])
    patches = (image // patch) ** 2
    x = g.add("Conv", "input", g.weight("patch.weight", width, 3, patch, patch),
              g.weight("patch.bias", width), strides=[patch, patch], pads=[0, 0, 0, 0],
              dilations=[1, 1], group=1, kernel_shape=[patch, patch])
    batch = g.add("Unsqueeze", g.add("Gather", g.add("Shape", x), g.constant(np.int64(0))), g.ints(0))
    x = g.add("Reshape", x, g.add("Concat", batch, g.ints(width, patches), axis=0))
    x = g.add("Transpose", x, perm=[0, 2, 1])
    token = g.add("Expand", g.weight("class_token", 1, 1, width),
                  g.add("Concat", batch, g.ints(1, 1), axis=0))
    x = g.add("Concat", token, x, axis=1)
    x = g.add("Add", x, g.weight("positions", 1, patches + 1, width))
    x = block(g, "layer0", x, width, heads, patches + 1, None)
    x = g.add("Gather", norm(g, "norm", x, width), g.constant(np.int64(0)), axis=1)
    g.add("Gemm", x, g.weight("head.weight", classes, width), g.weight("head.bias", classes),
          transB=1, name="logits")
    return g


def convolution(g, name, x, inputs, outputs, size, stride=1):
    x = g.add("Conv", x, g.weight(name + ".conv.weight", outputs, inputs, size, size),
              strides=[stride, stride], pads=[size // 2] * 4, dilations=[1, 1], group=1,
              kernel_shape=[size, size])
    return g.add("BatchNormalization", x, g.ones(name + ".norm.weight", outputs),
                 g.weight(name + ".norm.bias", outputs), g.zeros(name + ".norm.mean", outputs),
                 g.ones(name + ".norm.var", outputs), outputs=3, epsilon=1e-5, momentum=0.9,
                 training_mode=1)[0]


def resnet(classes=4, width=4):
    """A stem with a pool, one residual block with a projection, global pooling."""
    g = Graph(["batch", 3, 8, 8])
    x = g.add("Relu", convolution(g, "stem", "input", 3, width, 3))
    x = g.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    y = g.add("Relu", convolution(g, "a", x, width, 2 * width, 3, 2))
    y = convolution(g, "b", y, 2 * width, 2 * width, 3)
    x = g.add("Relu", g.add("Add", y, convolution(g, "skip", x, width, 2 * width, 1, 2)))
    x = g.add("Flatten", g.add("GlobalAveragePool", x), axis=1)
    g.add("Gemm", x, g.weight("head.weight", classes, 2 * width), g.weight("head.bias", classes),
          transB=1, name="logits")
    return g


def resnet50(g):
    """ResNet-50 (He et al., arXiv 1512.03385), with the stride in the 3 x 3 convolutions."""
    x = g.add("Relu", convolution(g, "stem", "input", 3, 64, 7, 2))
    x = g.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    inputs = 64
    for stage, blocks in enumerate([3, 4, 6, 3]):
        width, outputs = 64 << stage, 256 << stage
        for block in range(blocks):
            name, stride = f"stage{stage}.block{block}", 2 if stage and not block else 1
            y = g.add("Relu", convolution(g, name + ".reduce", x, inputs, width, 1))
            y = g.add("Relu", convolution(g, name + ".middle", y, width, width, 3, stride))
            y = convolution(g, name + ".expand", y, width, outputs, 1)
            if not block:
                x = convolution(g, name + ".skip", x, inputs, outputs, 1, stride)
            x = g.add("Relu", g.add("Add", y, x))
            inputs = outputs
    x = g.add("Flatten", g.add("GlobalAveragePool", x), axis=1)
    g.add("Gemm", x, g.weight("head.weight", 1000, inputs), g.weight("head.bias", 1000), transB=1,
          name="logits")
    return g


MODELS = {"mlp": mlp, "gpt": gpt, "llama": llama, "vit": vit, "resnet": resnet}
