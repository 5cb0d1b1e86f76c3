#===- cases_of_layers.py - norms, attention, loss and calls of layers ------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""The cases of a transformer's ops; see modules.Case."""

from modules import Case

NORMS = [
    Case("norm/layer with bias", {"x": "batch=2 s=2 hidden=4", "scale": "hidden=4",
                                  "bias": "hidden=4"}, {"z": "batch=2 s=2 hidden=4"}, """
        %z = weft.norm layer %x scale(%scale : !scale) bias(%bias : !bias) epsilon = 1.0e-5
            : !x -> !z"""),
    Case("norm/layer without bias", {"x": "batch=2 s=2 hidden=4", "scale": "hidden=4"},
         {"z": "batch=2 s=2 hidden=4"}, """
        %z = weft.norm layer %x scale(%scale : !scale) epsilon = 1.0e-5 : !x -> !z"""),
    Case("norm/rms", {"x": "batch=2 s=2 hidden=4", "scale": "hidden=4"},
         {"z": "batch=2 s=2 hidden=4"}, """
        %z = weft.norm rms %x scale(%scale : !scale) epsilon = 1.0e-6 : !x -> !z"""),
    # An epsilon as large as the variance: a derivative that forgets it is wrong here.
    Case("norm/layer of large epsilon", {"x": "batch=2 hidden=5", "scale": "hidden=5",
                                         "bias": "hidden=5"}, {"z": "batch=2 hidden=5"}, """
        %z = weft.norm layer %x scale(%scale : !scale) bias(%bias : !bias) epsilon = 0.7
            : !x -> !z"""),
    Case("norm/rms of large epsilon", {"x": "batch=2 hidden=5", "scale": "hidden=5"},
         {"z": "batch=2 hidden=5"}, """
        %z = weft.norm rms %x scale(%scale : !scale) epsilon = 0.7 : !x -> !z"""),
    # The gradient of x comes on two ways, as in a residual block.
    Case("norm/residual", {"x": "batch=2 hidden=4", "scale": "hidden=4"},
         {"z": "batch=2 hidden=4"}, """
        %n = weft.norm rms %x scale(%scale : !scale) epsilon = 1.0e-6 : !x -> !x
        %z = weft.map ins(%x, %n : !x, !x) maps [#ij, #ij] -> !z {
        ^bb0(%a: f64, %b: f64):
          %r = arith.addf %a, %b : f64
          weft.yield %r : f64
        }"""),
    Case("norm/same tensor as input and scale", {"x": "batch=1 hidden=4"},
         {"z": "batch=1 hidden=4"}, """
        %row = weft.contract "bh->h"(%x) : (!x) -> !row
        %z = weft.norm layer %x scale(%row : !row) bias(%row : !row) epsilon = 1.0e-5 : !x -> !z""",
         types={"row": "hidden=4"}),
]


CONSTRAINTS = [
    Case("constrain", {"x": "batch=2 hidden=4"}, {"z": "batch=2 hidden=4"},
         "%z = weft.constrain %x [unit, unit] : !z"),
]


def rotary(name, features, frequencies, how="", heads=""):
    """A rotation of three positions, by as many angles as there are frequencies."""
    shape = f"batch=2 s=3 {heads} head={features}"
    return Case(f"rotary/{name}", {"x": shape}, {"z": shape}, f"""
        %angles = weft.rotary_table [{', '.join(map(str, frequencies))}] : !angles
        %z = weft.rotary {how} %x table(%angles : !angles) : !x -> !z""",
                types={"angles": f"part=2 s=3 pair={len(frequencies)}"})


ROTATIONS = [
    rotary("all features", 4, [1.0, 0.3]),
    rotary("some features", 4, [0.7]),
    rotary("inverse", 4, [1.0, 0.3], how="inverse"),
    rotary("heads", 2, [1.1], heads="kv_heads=2"),
    rotary("groups of heads", 2, [1.1], heads="kv_heads=2 group=1"),
]

LOOKUPS = [
    Case("embedding/table", {"embed.tokens.weight": "vocab=6 hidden=3"},
         {"z": "batch=2 s=3 hidden=3"}, """
        %z = weft.embedding %table[%tokens] : !table[!ids] -> !z"""),
    Case("embedding/tied table", {"embed.tokens.weight": "vocab=6 hidden=3"},
         {"z": "batch=2 s=3 vocab=6"}, """
        %e = weft.embedding %table[%tokens] : !table[!ids] -> !e
        %z = weft.contract "bsh,vh->bsv"(%e, %table) : (!e, !table) -> !z""",
         types={"e": "batch=2 s=3 hidden=3"}),
    Case("embedding/two lookups", {"embed.tokens.weight": "vocab=6 hidden=2"},
         {"z": "batch=2 i=3 j=3"}, """
        %e = weft.embedding %table[%tokens] : !table[!ids] -> !e
        %f = weft.embedding %table[%targets] : !table[!ids] -> !e
        %z = weft.contract "bih,bjh->bij"(%e, %f) : (!e, !e) -> !z""",
         types={"e": "batch=2 s=3 hidden=2"}),
]


def attention(name, group, positions, dropout=0.0, heads=2, head=2, batch=2, window=None):
    """Attention of heads * group query heads."""
    query = f"batch={batch} s={positions} kv_heads={heads} group={group} head={head}"
    key = f"batch={batch} s={positions} kv_heads={heads} head={head}"
    drawn = "key(%seed, %step, %layer : !counter, !counter)" if dropout else ""
    seen = f"window = {window}" if window else ""
    return Case(f"attention/{name}", {"q": query, "k": key, "v": key}, {"z": query}, f"""
        %z, %lse = weft.attention(%q, %k, %v) scale = 0.6 dropout = {dropout} {seen} {drawn}
            : !q, !k, !v -> !z, !lse""",
                types={"lse": f"batch={batch} kv_heads={heads} group={group} s={positions}"})


ATTENTIONS = [
    attention("one head", 1, 3, heads=1),
    attention("several heads", 1, 3),
    attention("grouped queries", 3, 3),
    attention("dropout", 1, 4, dropout=0.4),
    attention("grouped queries with dropout", 2, 3, dropout=0.3),
    # More positions than one tile of keys and queries holds.
    attention("many positions", 1, 300, heads=1, batch=1),
    attention("many positions with dropout", 2, 150, dropout=0.2, heads=1, batch=1),
    attention("window", 2, 5, window=2),
    attention("window of one", 1, 3, window=1),
    # Windows that begin in the tile before, at its border, and several tiles before.
    attention("window over tiles", 1, 150, window=40, heads=1, batch=1),
    attention("window of a tile", 1, 200, window=64, heads=1, batch=1),
    attention("window of tiles", 1, 300, window=150, heads=1, batch=1),
    attention("window with dropout", 2, 100, dropout=0.2, window=30, heads=1, batch=1),
    # Documents of three positions.
    Case("attention/documents",
         {"q": "batch=2 s=8 kv_heads=1 group=2 head=2",
          **dict.fromkeys("kv", "batch=2 s=8 kv_heads=1 head=2")},
         {"z": "batch=2 s=8 kv_heads=1 group=2 head=2"}, """
        %places = weft.iota : tensor<8xi32>
        %starts = weft.map ins(%places : tensor<8xi32>) maps [affine_map<(b, s) -> (s)>]
            -> tensor<2x8xi32> {
        ^bb0(%p: i32):
          %three = arith.constant 3 : i32
          %past = arith.remsi %p, %three : i32
          %start = arith.subi %p, %past : i32
          weft.yield %start : i32
        }
        %z, %lse = weft.attention(%q, %k, %v) scale = 0.6 dropout = 0.0
            starts(%starts : tensor<2x8xi32>) : !q, !k, !v -> !z, !lse""",
         types={"lse": "batch=2 kv_heads=1 group=2 s=8"}),
    Case("attention/values of other sizes",
         {"q": "batch=2 s=4 kv_heads=2 group=1 head=6", "k": "batch=2 s=4 kv_heads=2 head=6",
          "v": "batch=2 s=4 kv_heads=2 ffn=3"}, {"z": "batch=2 s=4 kv_heads=2 group=1 ffn=3"}, """
        %z, %lse = weft.attention(%q, %k, %v) scale = 0.6 dropout = 0.0
            : !q, !k, !v -> !z, !lse""", types={"lse": "batch=2 kv_heads=2 group=1 s=4"}),
    Case("attention/query is key and value", {"x": "batch=2 s=3 kv_heads=1 head=2"},
         {"z": "batch=2 s=3 kv_heads=1 group=1 head=2"}, """
        %ones = weft.fill constant 1.0 : !ones
        %one = weft.contract "bsgd,r->bsgrd"(%x, %ones) : (!x, !ones) -> !z
        %z, %lse = weft.attention(%one, %x, %x) scale = 0.5 dropout = 0.0
            : !z, !x, !x -> !z, !lse""",
         types={"ones": "group=1", "lse": "batch=2 kv_heads=1 group=1 s=3"}),
]


def cross_entropy(name, body, results="z", vocabulary=6):
    """Cross-entropy of logits x, and the loss of its results."""
    return Case(f"cross_entropy/{name}", {"x": f"batch=2 s=3 vocab={vocabulary}"},
                {result: "batch=2 s=3" for result in results}, body)


LOSSES = [
    cross_entropy("both results", """
        %y, %z = weft.cross_entropy %x[%targets] : !x[!ids] -> !y, !z""", "yz"),
    cross_entropy("difference", """
        %lse, %picked = weft.cross_entropy %x[%targets] : !x[!ids] -> !z, !z
        %z = weft.map ins(%lse, %picked : !z, !z) maps [#ij, #ij] -> !z {
        ^bb0(%a: f64, %b: f64):
          %r = arith.subf %a, %b : f64
          weft.yield %r : f64
        }"""),
    # As the z-loss adds it to the loss of each token.
    cross_entropy("square of the logarithm", """
        %lse, %picked = weft.cross_entropy %x[%targets] : !x[!ids] -> !z, !z
        %z = weft.map ins(%lse, %picked : !z, !z) maps [#ij, #ij] -> !z {
        ^bb0(%a: f64, %b: f64):
          %d = arith.subf %a, %b : f64
          %s = arith.mulf %a, %a : f64
          %r = arith.addf %d, %s : f64
          weft.yield %r : f64
        }"""),
    cross_entropy("only the logarithm", """
        %z, %unused = weft.cross_entropy %x[%targets] : !x[!ids] -> !z, !z"""),
    cross_entropy("only the picked", """
        %unused, %z = weft.cross_entropy %x[%targets] : !x[!ids] -> !z, !z"""),
]

DROPOUTS = [
    Case("dropout/half", {"x": "batch=2 s=3 hidden=4"}, {"z": "batch=2 s=3 hidden=4"}, """
        %z = weft.dropout %x rate = 0.5 site = 1 key(%seed, %step, %layer : !counter, !counter)
            : !x -> !z"""),
    Case("dropout/twice", {"x": "batch=2 hidden=6"}, {"z": "batch=2 hidden=6"}, """
        %y = weft.dropout %x rate = 0.2 site = 1 key(%seed, %step, %layer : !counter, !counter)
            : !x -> !x
        %t = weft.map ins(%y : !x) maps [#ij] -> !x {
        ^bb0(%a: f64):
          %r = math.exp %a : f64
          weft.yield %r : f64
        }
        %z = weft.dropout %t rate = 0.3 site = 2 key(%seed, %step, %layer : !counter, !counter)
            : !x -> !z"""),
]

# tanh(x wᵀ), whose derivative reads what the layer computed.
LAYER = """
func.func private @layer(%number: index, %x: !x, %w: !w) -> !x {
  %p = weft.contract "bk,nk->bn"(%x, %w) : (!x, !w) -> !x
  %r = weft.map ins(%p : !x) maps [#ij] -> !x {
  ^bb0(%a: f64):
    %t = math.tanh %a : f64
    weft.yield %t : f64
  }
  return %r : !x
}
"""

CALLS = [
    Case("call/two weights", {"x": "batch=2 hidden=3", "w": "n=3 hidden=3", "v": "n=3 hidden=3"},
         {"z": "batch=2 hidden=3"}, """
        %one = arith.constant 1 : index
        %y = weft.call @layer(%layer, %x, %w) label "layers.3" : (index, !x, !w) -> !x
        %z = weft.call @layer(%one, %y, %v) label "layers.1" : (index, !x, !w) -> !x""", LAYER),
    Case("call/one weight twice", {"x": "batch=2 hidden=3", "w": "n=3 hidden=3"},
         {"y": "batch=2 hidden=3", "z": "batch=2 hidden=3"}, """
        %y = weft.call @layer(%layer, %x, %w) label "first" : (index, !x, !w) -> !x
        %z = weft.call @layer(%layer, %y, %w) label "second" : (index, !x, !w) -> !x""", LAYER),
    Case("call/layer in a layer", {"x": "batch=2 hidden=3", "w": "n=3 hidden=3",
                                   "v": "n=3 hidden=3"}, {"z": "batch=2 hidden=3"}, """
        %z = weft.call @block(%layer, %x, %w, %v) label "block" : (index, !x, !w, !v) -> !x""",
         LAYER + """
func.func private @block(%number: index, %x: !x, %w: !w, %v: !w) -> !x {
  %0 = weft.call @layer(%number, %x, %w) label "inner" : (index, !x, !w) -> !x
  %1 = weft.call @layer(%number, %0, %v) label "outer" : (index, !x, !w) -> !x
  %2 = weft.map ins(%1, %x : !x, !x) maps [#ij, #ij] -> !x {
  ^bb0(%a: f64, %b: f64):
    %r = arith.mulf %a, %b : f64
    weft.yield %r : f64
  }
  return %2 : !x
}
"""),
    Case("call/one of two results", {"x": "batch=2 hidden=3"}, {"z": "batch=2 hidden=3"}, """
        %z, %unused = weft.call @two(%layer, %x) label "two" : (index, !x) -> (!x, !x)""", """
func.func private @two(%number: index, %x: !x) -> (!x, !x) {
  %y, %z = weft.map ins(%x : !x) maps [#ij] -> !x, !x {
  ^bb0(%a: f64):
    %s = math.sin %a : f64
    %t = arith.mulf %s, %a : f64
    weft.yield %s, %t : f64, f64
  }
  return %y, %z : !x, !x
}
"""),
    Case("call/argument returned", {"x": "batch=2 hidden=3"},
         {"y": "batch=2 hidden=3", "z": "batch=2 hidden=3"}, """
        %y, %z = weft.call @keep(%layer, %x) label "keep" : (index, !x) -> (!x, !x)""", """
func.func private @keep(%number: index, %x: !x) -> (!x, !x) {
  %y = weft.map ins(%x : !x) maps [#ij] -> !x {
  ^bb0(%a: f64):
    %s = math.cos %a : f64
    weft.yield %s : f64
  }
  return %x, %y : !x, !x
}
"""),
    Case("call/same argument twice", {"x": "batch=3 hidden=3"}, {"z": "batch=3 hidden=3"}, """
        %z = weft.call @layer(%layer, %x, %x) label "square" : (index, !x, !x) -> !x""",
         LAYER.replace("!w", "!x")),
    Case("call/arguments unused", {"x": "batch=2 hidden=3", "w": "n=3"}, {"z": "batch=2 hidden=3"},
         """
        %z = weft.call @first(%layer, %x, %w, %x) label "first" : (index, !x, !w, !x) -> !x""", """
func.func private @first(%number: index, %x: !x, %w: !w, %y: !x) -> !x {
  %z = weft.map ins(%x : !x) maps [#ij] -> !x {
  ^bb0(%a: f64):
    %s = math.sin %a : f64
    weft.yield %s : f64
  }
  return %z : !x
}
"""),
    # Each call draws its own mask, by its number.
    Case("call/dropout by number", {"x": "batch=2 hidden=6"}, {"z": "batch=2 hidden=6"}, """
        %one = arith.constant 1 : index
        %y = weft.call @drop(%layer, %x, %seed, %step) label "layers.3"
            : (index, !x, !counter, !counter) -> !x
        %z = weft.call @drop(%one, %y, %seed, %step) label "layers.1"
            : (index, !x, !counter, !counter) -> !x""", """
func.func private @drop(%number: index, %x: !x, %seed: !counter, %step: !counter) -> !x {
  %d = weft.dropout %x rate = 0.3 site = 1 key(%seed, %step, %number : !counter, !counter)
      : !x -> !x
  %r = weft.map ins(%d : !x) maps [#ij] -> !x {
  ^bb0(%a: f64):
    %e = math.exp %a : f64
    weft.yield %e : f64
  }
  return %r : !x
}
"""),
]

ALL = NORMS + CONSTRAINTS + ROTATIONS + LOOKUPS + ATTENTIONS + LOSSES + DROPOUTS + CALLS
