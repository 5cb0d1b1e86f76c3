#!/usr/bin/python3
#===- attention.py - attention under every cut of its sequence -------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Runs attention and its derivative under many shardings, and compares them with NumPy.

    attention.py --weft bin/weft

Queries are cut over the sequence, with whole keys, with keys that go round all ranks that share
the queries or some of them, or exchanged for heads; together with cuts of the batch and of heads,
by position or in zigzag order. Each with grouped queries: causal, in windows, within documents,
bidirectional, with dropout. The expected values are
computed by test/Reference, from whole tensors, in float64.

Prints a line for each layout, then "N passed, N failed"; fails if one failed or none ran.
"""

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "Reference"))
import generator  # noqa: E402
import layers  # noqa: E402
import safetensors  # noqa: E402

# A shard is less than a tile of keys (64), several, or one and a part of one.
BATCH, LENGTH, HEADS, GROUP, FEATURES = 4, 192, 4, 2, 8
SCALE = FEATURES ** -0.5
SEED, LAYER, SITE = 3, 1, 3
TOLERANCE = 1e-12

RECIPE = """version: 1 sequence_length: 2 global_batch_sequences: 1 precision: F64
sgd {} schedule { peak_learning_rate: 1.0 } steps: 1
"""

MACHINE = """version: 1 name: "test" devices_per_node: 8
device {
  name: "core" peak_flops { precision: F64 flops: 1e10 }
  memory_bytes: 1073741824 memory_bandwidth_bytes_per_second: 1e10
}
links { name: "memory" scope: NODE latency_seconds: 0 bandwidth_bytes_per_second: 5e9 }
"""


@dataclass(frozen=True)
class Variant:
    """A kind of attention."""

    window: int = 0
    bidirectional: bool = False
    dropout: float = 0.0
    documents: bool = False

    def attributes(self, layout):
        chunks = layout.chunks
        text = f"scale = {SCALE!r} dropout = {self.dropout!r}"
        text += f" window = {self.window}" if self.window else ""
        text += " bidirectional" if self.bidirectional else ""
        scalar = kind("", {})
        text += f" key(%seed, %step, %layer : {scalar}, {scalar})" if self.dropout else ""
        text += f" starts(%starts : {layout.starts})" if self.documents else ""
        # Without both, an attention has no use for positions.
        asks = chunks and (self.dropout or not self.bidirectional)
        return text + (f" order <{chunks} x {LENGTH // chunks}>" if asks else "")


VARIANTS = (Variant(), Variant(window=3), Variant(window=70), Variant(bidirectional=True),
            Variant(dropout=0.3), Variant(window=100, dropout=0.3),
            Variant(bidirectional=True, dropout=0.3), Variant(documents=True),
            Variant(window=40, dropout=0.3, documents=True))
# Tokens of a document in the first sequence; in each that follows one less.
DOCUMENT = 51


@dataclass(frozen=True)
class Layout:
    """Axes that cut each letter of the op: batch b, queries s, keys t, KV heads g, query heads r.
    Tensors lie at first and in the end with their positions cut over `home`, if it is given."""

    name: str
    mesh: tuple  # sizes of the axes a, b, c
    cuts: tuple  # of (letter, axes)
    home: str = None
    chunks: int = 0  # of the zigzag order that positions are stored in, if they are

    def of(self, letter):
        return dict(self.cuts).get(letter, "")

    @property
    def starts(self):
        return kind("bs", dict(self.cuts), element="i32")


LAYOUTS = (
    Layout("one rank", (2,), ()),
    Layout("one rank in zigzag order", (2,), (), chunks=4),
    Layout("whole keys in zigzag order", (2,), (("s", "a"),), chunks=4),
    Layout("ring in zigzag order", (2,), (("s", "a"), ("t", "a")), chunks=4),
    Layout("ring in zigzag order", (4,), (("s", "a"), ("t", "a")), chunks=8),
    Layout("ring in zigzag order of long chunks", (4,), (("s", "a"), ("t", "a")), chunks=2),
    Layout("ring in zigzag order, heads", (2, 2), (("s", "a"), ("t", "a"), ("g", "b")), chunks=4),
    Layout("exchanged for heads in zigzag order", (2,), (("g", "a"),), home="a", chunks=4),
    Layout("whole keys", (2,), (("s", "a"),)),
    Layout("whole keys", (4,), (("s", "a"),)),
    Layout("ring", (2,), (("s", "a"), ("t", "a"))),
    Layout("ring", (4,), (("s", "a"), ("t", "a"))),
    Layout("ring", (8,), (("s", "a"), ("t", "a"))),
    Layout("ring on two axes", (2, 2), (("s", "ab"), ("t", "ab"))),
    Layout("ring on two axes, keys in another order", (2, 2), (("s", "ab"), ("t", "ba"))),
    Layout("ring on the minor axis", (2, 2), (("s", "ab"), ("t", "b"))),
    Layout("ring on the major axis", (2, 2), (("s", "ab"), ("t", "a"))),
    Layout("whole keys, heads", (2, 2), (("s", "a"), ("g", "b"))),
    Layout("ring, heads", (2, 2), (("s", "a"), ("t", "a"), ("g", "b"))),
    Layout("ring, query heads", (2, 2), (("s", "b"), ("t", "b"), ("r", "a"))),
    Layout("ring, batch", (2, 2), (("b", "a"), ("s", "b"), ("t", "b"))),
    Layout("ring, batch, heads", (2, 2, 2), (("b", "a"), ("s", "b"), ("t", "b"), ("g", "c"))),
    Layout("exchanged for heads", (2,), (("g", "a"),), home="a"),
    Layout("exchanged for heads", (4,), (("g", "a"),), home="a"),
    Layout("exchanged for heads, ring", (2, 2), (("g", "b"), ("s", "a"), ("t", "a")), home="ab"),
)

SIZES = {"b": # A shard is less than a tile of keys (64), several, or one and a part of one.
BATCH, "s": LENGTH, "t": LENGTH, "g": HEADS, "r": GROUP, "d": FEATURES}
QUERY, KEY, LSE = "bsgrd", "btgd", "bgrs"
# Every tensor that comes in, and every one that goes out.
INPUTS = {"q": QUERY, "k": KEY, "v": KEY, "g": QUERY}
OUTPUTS = {"o": QUERY, "l": LSE, "dq": QUERY, "dk": KEY, "dv": KEY}


def cut(axes):
    return "{" + ", ".join(f'"{axis}"' for axis in axes) + "}"


def kind(letters, cuts, pending="", element="f64"):
    """The type of a tensor with these letters as dimensions."""
    element = element if letters else "i64"
    sizes = "".join(f"{SIZES[letter]}x" for letter in letters)
    unreduced = f", unreduced = sum{cut(pending)}" if pending else ""
    dims = ", ".join(cut(cuts.get(letter, "")) for letter in letters)
    return f"tensor<{sizes}{element}, #weft.sharding<#mesh, [{dims}]{unreduced}>>"


class Module:
    """A module after Plan in which a step computes all variants under one layout."""

    def __init__(self, layout):
        self.layout, self.lines, self.variables = layout, [], {}
        scalar = kind("", {})
        self.lines += [f"%seed = weft.read @seed : {scalar}",
                       f"%step = weft.read @step_number : {scalar}",
                       f"%layer = arith.constant {LAYER} : index"]
        for name, letters in INPUTS.items():
            self.variables[name] = (letters, self.home(letters))
            self.lines.append(f"%{name}.home = weft.read @{name} : {self.home(letters)}")
            self.move(f"{name}.home", name, self.home(letters), self.type(letters))
        self.find_starts()
        for number, variant in enumerate(VARIANTS):
            self.compute(number, variant)

    def find_starts(self):
        """Returns the start of each position's document: p - p % (DOCUMENT - b) for position p in sequence b."""
        cuts, chunks = dict(self.layout.cuts), self.layout.chunks
        rows, places = (kind(letter, cuts, element="i32") for letter in "bs")
        whole = kind("s", {}, element="i32") if chunks else places
        self.lines += [f"%rows = weft.iota : {rows}", f"%positions = weft.iota : {whole}"]
        if chunks:
            self.lines.append(f"%places = weft.reorder %positions dim 0 "
                              f"order <{chunks} x {LENGTH // chunks}> : {whole} -> {places}")
        self.lines += [
            f"%starts = weft.map ins(%rows, {'%places' if chunks else '%positions'} : {rows}, {places})",
            "maps [affine_map<(b, s) -> (b)>, affine_map<(b, s) -> (s)>]",
            f"-> {self.layout.starts} {{", "^bb0(%b: i32, %p: i32):",
            f"%most = arith.constant {DOCUMENT} : i32", "%length = arith.subi %most, %b : i32",
            "%past = arith.remsi %p, %length : i32", "%start = arith.subi %p, %past : i32",
            "weft.yield %start : i32", "}"]

    def type(self, letters, pending=""):
        return kind(letters, dict(self.layout.cuts), pending)

    def home(self, letters):
        home = self.layout.home
        return self.type(letters) if home is None else kind(letters, {"s": home, "t": home})

    def move(self, name, to, before, after):
        self.lines.append(f"%{to} = weft.reshard %{name} : {before} -> {after}")

    def results(self):
        """The type of each output, as the op leaves it."""
        layout = self.layout
        permuted = layout.of("t")
        types = {name: self.type(letters) for name, letters in OUTPUTS.items()}
        # Sums over queries that do not come by, and over the query heads of a group.
        pending = "".join(axis for axis in "abc" if axis not in permuted
                          and axis in layout.of("s") + layout.of("r"))
        types["dk"] = types["dv"] = self.type(KEY, pending)
        return types

    def compute(self, number, variant):
        types, name = self.results(), f"v{number}"
        q, k, lse = self.type(QUERY), self.type(KEY), self.type(LSE)
        self.lines += [
            f"%{name}.o, %{name}.l = weft.attention(%q, %k, %v) {variant.attributes(self.layout)} : "
            f"{q}, {k}, {k} -> {q}, {lse}",
            f"%{name}.dq, %{name}.dk, %{name}.dv = weft.attention_grad(%q, %k, %v) "
            f"output(%{name}.o, %{name}.l) gradient(%g) {variant.attributes(self.layout)} : "
            f"{q}, {k}, {k}, {q}, {lse}, {q} -> {q}, {types['dk']}, {types['dv']}"]
        for output, letters in OUTPUTS.items():
            variable = f"{name}.{output}"
            home = self.home(letters)
            self.variables[variable] = (letters, home)
            self.move(variable, f"{variable}.home", types[output], home)
            self.lines.append(f"weft.assign @{variable}, %{variable}.home : {home}")

    def text(self):
        axes = ", ".join(f'"{axis}"={size}' for axis, size in zip("abc", self.layout.mesh))
        lines = [f"#mesh = #weft.mesh<{axes}>",
                 "module @attention attributes {weft.mesh = #mesh} {"]
        table = "tensor<6x1xf64, #weft.sharding<#mesh, [{}, {}]>>"
        variables = {**self.variables, "embed.tokens.weight": ("vh", table)}
        init = []
        for name, (letters, of) in variables.items():
            dims = ", ".join(f'"{letter}"' for letter in letters)
            lines.append(f"weft.variable parameter @{name} [{dims}] : {of}")
            init += [f"%{name} = weft.fill constant 0.0 : {of}",
                     f"weft.assign @{name}, %{name} : {of}"]
        ids = "tensor<1x2xi32, #weft.sharding<#mesh, [{}, {}]>>"
        lines += [f'weft.variable input @{name} ["batch", "sequence"] : {ids}'
                  for name in ("tokens", "targets")]
        lines += [f"weft.variable input @{name} [] : {kind('', {})}"
                  for name in ("seed", "step_number")]
        scalar = "tensor<f64, #weft.sharding<#mesh, []>>"
        lines += ["func.func @init() {", *init, "return", "}", "func.func @step() {", *self.lines,
                  f"%zero = weft.fill constant 0.0 : {scalar}",
                  f'weft.observe "loss", %zero : {scalar}', "return", "}", "}"]
        return "\n".join(lines) + "\n"


def stored(layout):
    """The position at each place of the sequence."""
    chunks = np.arange(LENGTH).reshape(max(layout.chunks, 1), -1)
    order = [number // 2 if number % 2 == 0 else -1 - number // 2 for number in range(len(chunks))]
    return chunks[order].reshape(-1)


def expected(variant, values):
    """Returns the expected values of the variant, by name of output."""
    # The reference has heads before positions.
    q, g = (values[name].transpose(0, 2, 3, 1, 4) for name in "qg")
    k, v = (values[name].transpose(0, 2, 1, 3) for name in "kv")
    mask = None
    if variant.dropout:
        mask = generator.dropout_mask((# A shard is less than a tile of keys (64), several, or one and a part of one.
BATCH, HEADS, GROUP, LENGTH, LENGTH), variant.dropout, SEED,
                                      0, LAYER, SITE)
    scores = np.einsum("bkgqh,bksh->bkgqs", q, k) * SCALE
    distance = np.arange(LENGTH)[:, None] - np.arange(LENGTH)
    seen = (distance >= 0) & (distance < (variant.window or LENGTH)) | variant.bidirectional
    if variant.documents:
        places = np.arange(LENGTH)
        starts = np.stack([places - places % (DOCUMENT - row) for row in range(BATCH)])
        seen = (seen & (places >= starts[..., None]))[:, None, None]
    scores = np.where(seen, scores, -np.inf)
    probabilities = layers.softmax(scores)
    kept = probabilities if mask is None else probabilities * mask
    dq, dk, dv = layers.attention_backward(g, q, k, v, mask, probabilities)
    return {"o": np.einsum("bkgqs,bksh->bkgqh", kept, v).transpose(0, 3, 1, 2, 4),
            "l": np.log(np.exp(scores).sum(axis=-1)), "dq": dq.transpose(0, 3, 1, 2, 4),
            "dk": dk.transpose(0, 2, 1, 3), "dv": dv.transpose(0, 2, 1, 3)}


def call(folder, *command):
    done = subprocess.run([str(part) for part in command], cwd=folder, capture_output=True,
                          text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {(done.stderr or done.stdout).strip()[:2000]}")


def check(weft, folder, layout):
    """Returns a sentence about the first wrong result, or None."""
    module = Module(layout)
    plan = "version: 1 mesh { " + " ".join(
        f'axis {{ name: "{axis}" size: {size} }}' for axis, size in zip("abc", layout.mesh)) + " }\n"
    for name, text in (("module.mlir", module.text()), ("recipe", RECIPE), ("machine", MACHINE),
                       ("plan", plan)):
        (folder / name).write_text(text)
    (folder / "text").write_bytes(bytes(8))
    call(folder, weft, "compile", "module.mlir", "--start-after=plan", "--machine", "machine",
         "--recipe", "recipe", "--plan", "plan", "-o", "program")
    random = np.random.default_rng(1)
    values = {name: np.zeros([SIZES[letter] for letter in letters])
              for name, (letters, _) in module.variables.items()}
    values |= {name: random.normal(size=values[name].shape) for name in INPUTS}
    places = stored(layout)
    given = {name: value[:, places] if name in INPUTS else value for name, value in values.items()}
    safetensors.save(folder / "values", {**given, "embed.tokens.weight": np.zeros((6, 1))})
    call(folder, "./program", "--data", "text", "--load", "values", "--steps", 1, "--seed", SEED,
         "--quiet", "--save", "results")
    results = safetensors.load(folder / "results")
    for number, variant in enumerate(VARIANTS):
        for output, wanted in expected(variant, values).items():
            wanted = wanted.take(places, OUTPUTS[output].replace("t", "s").index("s"))
            error = np.abs(results[f"v{number}.{output}"] - wanted).max()
            if not error <= TOLERANCE * max(1.0, np.abs(wanted).max()):
                return f"{output} of {variant} differs by {error:.3g}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default="build/bin/weft", help="the compiler")
    parser.add_argument("--layout", default="", help="only layouts whose name contains this")
    options = parser.parse_args()
    passed = failed = 0
    for layout in LAYOUTS:
        if options.layout not in layout.name:
            continue
        with tempfile.TemporaryDirectory(prefix="weft-attention-") as folder:
            try:
                fault = check(Path(options.weft).resolve(), Path(folder), layout)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                fault = str(error)
        passed, failed = passed + (not fault), failed + bool(fault)
        size = "x".join(str(size) for size in layout.mesh)
        print(f"{'FAIL' if fault else 'ok  '} {layout.name} on {size}"
              + (f": {fault}" if fault else ""), flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0 or passed == 0)


if __name__ == "__main__":
    main()
