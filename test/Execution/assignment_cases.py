#===- assignment_cases.py - every op that can be sharded, of sizes that fit ===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""The cases of assignments.py; see modules.Case for what a snippet may name.

A case is made for a number n of ranks: dimensions of n elements can be cut by all axes of any mesh
of n ranks. Where a rule could mix up two dimensions, they have the same size.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "Derivatives"))  # Behind our own `cases`.
from cases_of_images import convolution  # noqa: E402
from modules import Case  # noqa: E402

NAMES = ("batch", "sequence", "kv_heads", "group", "head", "ffn")


def shape(*sizes, names=NAMES):
    """A shape of these sizes, whose dimensions are called by `names` in order."""
    return " ".join(f"{name}={size}" for name, size in zip(names, sizes))


def case(name, n, operands, results, body, **rest):
    """A case whose inputs are n sequences of n tokens."""
    return Case(name, operands, results, body, batch=n, sequence=n, **rest)


def maps(n):
    square, line = shape(n, n), shape(n, names=("sequence",))

    def function(name, code, operands, spreads, **rest):
        arguments = ", ".join(f"%{letter}: f64" for letter, _ in zip("abc", operands))
        return case(f"map/{name}", n, operands, {"z": square}, f"""
            %z = weft.map ins({', '.join('%' + o for o in operands)} :
                {', '.join('!' + o for o in operands)}) maps [{', '.join(spreads)}] -> !z {{
            ^bb0({arguments}):
              {code}
              weft.yield %r : f64
            }}""", **rest)

    two = {"x": square, "y": square}
    yield function("sum", "%r = arith.addf %a, %b : f64", two, ["#ij", "#ij"])
    yield function("difference", "%r = arith.subf %a, %b : f64", two, ["#ij", "#ij"])
    yield function("product", "%r = arith.mulf %a, %b : f64", two, ["#ij", "#ij"])
    yield function("quotient", "%r = arith.divf %a, %b : f64", two, ["#ij", "#ij"],
                   positive=("y",))
    yield function("maximum", "%r = arith.maximumf %a, %b : f64", two, ["#ij", "#ij"])
    yield function("function", "%e = math.exp %a : f64 %r = math.sin %e : f64", {"x": square},
                   ["#ij"])
    yield function("selection", """%c = arith.cmpf olt, %a, %b : f64
              %r = arith.select %c, %a, %b : f64""", two, ["#ij", "#ij"])
    yield function("constant added", """%c = arith.constant 2.0 : f64
              %r = arith.addf %a, %c : f64""", {"x": square}, ["#ij"])
    yield function("bias", "%r = arith.addf %a, %b : f64", {"x": square, "y": line},
                   ["#ij", "#to_j"])
    yield function("rows scaled", "%r = arith.mulf %a, %b : f64",
                   {"x": square, "y": shape(n)}, ["#ij", "#to_i"])
    yield function("scalar", "%r = arith.mulf %a, %b : f64", {"x": square, "y": ""},
                   ["#ij", "#to_none"])
    yield function("outer product", "%r = arith.mulf %a, %b : f64",
                   {"x": shape(n), "y": line}, ["#to_i", "#to_j"])
    yield function("linear in one", """%e = math.tanh %b : f64 %p = arith.mulf %a, %e : f64
              %n = arith.negf %c : f64 %r = arith.addf %p, %n : f64""",
                   {"x": square, "y": square, "v": line}, ["#ij", "#ij", "#to_j"])
    yield case("map/two results", n, two, {"z": square, "v": square}, """
        %z, %v = weft.map ins(%x, %y : !x, !y) maps [#ij, #ij] -> !z, !v {
        ^bb0(%a: f64, %b: f64):
          %p = arith.mulf %a, %b : f64
          %q = arith.subf %a, %b : f64
          weft.yield %p, %q : f64, f64
        }""")
    yield case("map/tokens", n, {"x": square}, {"z": square}, """
        %z = weft.map ins(%x, %tokens : !x, !ids) maps [#ij, #ij] -> !z {
        ^bb0(%a: f64, %b: i32):
          %c = arith.sitofp %b : i32 to f64
          %r = arith.mulf %a, %c : f64
          weft.yield %r : f64
        }""")
    # Widened and rounded, as bf16 is beside wider types in a step.
    narrow = f"tensor<{n}x{n}xbf16>"
    yield case("map/bf16", n, {"x": square, "y": square}, {"z": square}, f"""
        %n = weft.map ins(%x : !x) maps [#ij] -> {narrow} {{
        ^bb0(%a: f64):
          %h = arith.truncf %a : f64 to f32
          %r = arith.truncf %h : f32 to bf16
          weft.yield %r : bf16
        }}
        %z = weft.map ins(%n, %y : {narrow}, !y) maps [#ij, #ij] -> !z {{
        ^bb0(%a: bf16, %b: f64):
          %h = arith.extf %a : bf16 to f32
          %w = arith.extf %h : f32 to f64
          %r = arith.mulf %w, %b : f64
          weft.yield %r : f64
        }}""")


def contracts(n):
    for equation in ("bk,kn->bn", "bk,nk->bn", "kb,kn->nb", "bik,bjk->bij", "bk,bk->b", "bk,bk->",
                     "b,n->bn", "bn,bn->bn", "bn,n->b", ",bn->bn", "bsk,gdk->bsgd",
                     "bsgd,ngd->bsn", "abx,yb->a", "bik->bi", "bik->k", "bik->", "bn->nb"):
        terms, _, result = equation.partition("->")
        shapes = {name: shape(*[n] * len(term), names=term)
                  for name, term in zip(("x", "y"), terms.split(","))}
        yield case(f"contract/{equation}", n, shapes,
                   {"z": shape(*[n] * len(result), names=result)}, f"""
            %z = weft.contract "{equation}"({', '.join('%' + name for name in shapes)})
                : ({', '.join('!' + name for name in shapes)}) -> !z""")


def layers(n):
    square = shape(n, n)
    for kind, bias in (("layer", True), ("layer", False), ("rms", False)):
        given = "bias(%bias : !bias)" if bias else ""
        line = shape(n, names=("head",))
        operands = {"x": shape(n, n, n, names=("batch", "sequence", "head")), "scale": line,
                    **({"bias": line} if bias else {})}
        yield case(f"norm/{kind}{' with bias' if bias else ''}", n, operands, {"z": operands["x"]},
                   f"""
            %z = weft.norm {kind} %x scale(%scale : !scale) {given} epsilon = 1.0e-5 : !x -> !z""")
    for name, how, heads in (("rows", "", ()), ("heads", "", (n, 2)), ("back", "inverse", (n,))):
        dims = shape(n, n, *heads, 4, names=("batch", "sequence", "kv_heads", "group", "head")
                     if len(heads) > 1 else ("batch", "sequence", "kv_heads", "head")
                     if heads else ("batch", "sequence", "head"))
        yield case(f"rotary/{name}", n, {"x": dims}, {"z": dims}, f"""
            %angles = weft.rotary_table [1.0, 0.3] : !angles
            %z = weft.rotary {how} %x table(%angles : !angles) : !x -> !z""",
                   types={"angles": f"part=2 s={n} pair=2"})
    yield case("embedding/table", n, {"embed.tokens.weight": f"vocab={n} hidden={n}"},
               {"z": f"batch={n} s={n} hidden={n}"}, """
        %z = weft.embedding %table[%tokens] : !table[!ids] -> !z""")
    for dropout in (0.0, 0.3):
        query, key = shape(n, 3, n, n, 2), f"batch={n} sequence=3 kv_heads={n} head=2"
        drawn = "key(%seed, %step, %layer : !counter, !counter)" if dropout else ""
        yield case(f"attention/{dropout}", n, {"q": query, "k": key, "v": key}, {"z": query}, f"""
            %z, %lse = weft.attention(%q, %k, %v) scale = 0.6 dropout = {dropout} {drawn}
                : !q, !k, !v -> !z, !lse""",
                   types={"lse": f"batch={n} kv_heads={n} group={n} sequence=3"})
    # In square attention nothing is seen to be wrong by its size, and positions can be cut.
    cube = shape(n, n, n, n, n)
    for name, how in (("causal", "dropout = 0.0"), ("window", "dropout = 0.0 window = 2"),
                      ("bidirectional", "dropout = 0.0 bidirectional"),
                      ("dropout", "dropout = 0.3 key(%seed, %step, %layer : !counter, !counter)")):
        yield case(f"attention/square, {name}", n,
                   {"q": cube, **dict.fromkeys("kv", shape(*[n] * 4, names="bsgd"))}, {"z": cube},
                   f"""
            %z, %lse = weft.attention(%q, %k, %v) scale = 0.6 {how}
                : !q, !k, !v -> !z, !lse""", types={"lse": shape(*[n] * 4)})
    yield case("attention/square, documents", n,
               {"q": cube, **dict.fromkeys("kv", shape(*[n] * 4, names="bsgd"))}, {"z": cube}, f"""
            %places = weft.iota : tensor<{n}xi32>
            %starts = weft.map ins(%places : tensor<{n}xi32>) maps [#to_j] -> !ids {{
            ^bb0(%p: i32):
              %two = arith.constant 2 : i32
              %past = arith.remsi %p, %two : i32
              %start = arith.subi %p, %past : i32
              weft.yield %start : i32
            }}
            %z, %lse = weft.attention(%q, %k, %v) scale = 0.6 dropout = 0.0
                starts(%starts : !ids) : !q, !k, !v -> !z, !lse""", types={"lse": shape(*[n] * 4)})
    yield case("cross_entropy/both", n, {"x": f"batch={n} s={n} vocab={n}"},
               {"y": square, "z": square}, """
        %y, %z = weft.cross_entropy %x[%targets] : !x[!ids] -> !y, !z""")
    yield case("dropout/rows", n, {"x": shape(n, n, n)}, {"z": shape(n, n, n)}, """
        %z = weft.dropout %x rate = 0.4 site = 1 key(%seed, %step, %layer : !counter, !counter)
            : !x -> !z""")


def places(n):
    """A case of ops without operands, whose results depend on their position alone."""
    square = shape(n, n)
    multiply = """
        %z = weft.map ins(%x, %y : !x, !{0}) maps [#ij, {1}] -> !z {{
        ^bb0(%a: f64, %b: {2}):
          {3}
          weft.yield %r : f64
        }}"""
    yield case("fill/normal", n, {"x": square}, {"z": square}, """
        %y = weft.fill normal 1.0 seed(%seed : !counter) stream(%layer) : !x"""
               + multiply.format("x", "#ij", "f64", "%r = arith.mulf %a, %b : f64"))
    yield case("fill/constant", n, {"x": square}, {"z": square}, """
        %y = weft.fill constant 3.0 : !x"""
               + multiply.format("x", "#ij", "f64", "%r = arith.mulf %a, %b : f64"))
    yield case("iota/columns", n, {"x": square}, {"z": square}, f"""
        %y = weft.iota : tensor<{n}xi32>"""
               + multiply.replace("!{0}", f"tensor<{n}xi32>").format("", "#to_j", "i32", """\
%w = arith.sitofp %b : i32 to f64 %r = arith.mulf %a, %w : f64"""))
    yield case("reorder/columns", n, {"x": square}, {"z": square}, f"""
        %n = weft.iota : tensor<{n}xi32>
        %y = weft.reorder %n dim 0 order <{n} x 1> : tensor<{n}xi32> -> tensor<{n}xi32>"""
               + multiply.replace("!{0}", f"tensor<{n}xi32>").format("", "#to_j", "i32", """\
%w = arith.sitofp %b : i32 to f64 %r = arith.mulf %a, %w : f64"""))
    # The gradient passes it as if it were not there.
    for kind in ("e4m3", "e5m2"):
        yield case(f"quantize/{kind}", n, {"x": square}, {"z": square}, f"""
            %amax = weft.amax %x : !x -> !number
            %z = weft.quantize {kind} %x by %amax : !x, !number -> !z""")


def shapes(n):
    square = shape(n, n)
    cube = shape(n, n, n)

    def reshape(name, x, z, groups):
        return case(f"reshape/{name}", n, {"x": x}, {"z": z}, f"""
            %z = weft.reshape %x {groups} : !x -> !z""")

    yield reshape("merge", shape(n, n, 2), f"batch={n} n={2 * n}", "[[0], [1, 2]]")
    yield reshape("split", f"batch={n} n={n * n}", cube, "[[0], [1, 2]]")
    yield reshape("split first", f"n={2 * n} head={n}", shape(2, n, n), "[[0, 1], [2]]")
    yield reshape("dimension of one", shape(1, n, n), square.replace("batch", "n"),
                  "[[0, 1], [2]]")
    yield reshape("several groups", shape(n, 2, n, 2), f"i={2 * n} j={2 * n}", "[[0, 1], [2, 3]]")
    yield case("concat/middle", n, {"x": cube, "y": shape(n, 1, n)}, {"z": shape(n, n + 1, n)}, """
        %z = weft.concat %x, %y dim 1 : !x, !y -> !z""")
    yield case("concat/first", n, {"x": square, "y": square}, {"z": shape(2 * n, n)}, """
        %z = weft.concat %x, %y dim 0 : !x, !y -> !z""")
    yield case("split/middle", n, {"x": shape(n, n + 1, n)}, {"y": cube, "z": shape(n, 1, n)}, """
        %y, %z = weft.split %x dim 1 : !x -> !y, !z""")
    yield case("extract/strides", n, {"x": shape(n, 7, n)}, {"z": shape(n, 2, n)}, """
        %z = weft.extract %x from [0, 1, 0] by [1, 3, 1] : !x -> !z""")
    yield case("select/tokens", n, {"x": shape(n, names=("sequence",))},
               {"z": shape(n, names=("sequence",))}, f"""
        %one = arith.constant 1 : index
        %row = weft.select %tokens[%one] : !ids -> tensor<{n}xi32>
        %z = weft.map ins(%x, %row : !x, tensor<{n}xi32>) maps [#i, #i] -> !z {{
        ^bb0(%a: f64, %b: i32):
          %c = arith.sitofp %b : i32 to f64
          %r = arith.mulf %a, %c : f64
          weft.yield %r : f64
        }}""")
    yield case("pad/zeros", n, {"x": shape(n, 3, n)}, {"z": shape(n, 9, n)}, """
        %z = weft.pad %x with 0.0 low [0, 1, 0] high [0, 3, 0] interior [0, 1, 0] : !x -> !z""")
    yield case("pad/constant", n, {"x": shape(n, 3, n)}, {"z": shape(n, 5, n)}, """
        %z = weft.pad %x with 1.5 low [0, 1, 0] high [0, 1, 0] interior [0, 0, 0] : !x -> !z""")


def images(n):
    for name, channels, outputs, groups in (("channels", n, n, 1), ("groups", 2 * n, 2 * n, n),
                                            ("two groups", n, n, 2)):
        yield convolution(name, channels, [3, 4], [2, 3], outputs, [1, 2], [0, 1], [1, 1], [1, 1],
                          groups, samples=n, cut="g" if groups > 1 else "c")
    yield convolution("one place", n, [n], [1], n, [1], [0], [0], [1], samples=n)
    for kind in ("max", "sum"):
        yield case(f"pool/{kind}", n, {"x": shape(n, n, 5)}, {"z": shape(n, n, 2)}, f"""
            %z = weft.pool {kind} %x sizes [3] strides [2] low [0] high [0] dilations [1]
                : !x -> !z""")
    for count in (1, 2, n):
        yield case(f"group_mean/{count}", n, {"x": shape(2 * n, n)}, {"z": shape(2 * n, n)}, f"""
            %y = weft.group_mean %x of {count} : !x -> !x
            %z = weft.map ins(%x, %y : !x, !x) maps [#ij, #ij] -> !z {{
            ^bb0(%a: f64, %b: f64):
              %r = arith.mulf %a, %b : f64
              weft.yield %r : f64
            }}""")
    yield case("softmax/rows", n, {"x": shape(n, n, n)}, {"z": shape(n, n, n)}, """
        %z = weft.softmax %x : !x -> !z""")


def constraints(n):
    """A case of a constraint that leaves all axes open, which is cut in all ways."""
    yield case("constrain", n, {"x": shape(n, n)}, {"z": shape(n, n)},
               "%z = weft.constrain %x [unit, unit] : !z")


def experts(n):
    """A routing by the greatest scores; with as many slots as tokens, no token is dropped."""
    routing = f"batch={n} sequence={n} ffn={n}"
    tokens, slots = f"batch={n} sequence={n} hidden={n}", f"ffn={n} batch={n} slot=2 hidden={n}"
    square_slots = f"ffn={n} batch={n} slot={n} hidden={n}"

    def routed(name, operands, result, body):
        return case(f"experts/{name}", n, {**operands, "m": routing}, {"z": result}, f"""
            %mask = weft.top_k 2 of %m : !m -> !m
            {body}""")

    for filled in (slots, square_slots):
        count = "two" if filled == slots else "all"
        yield routed(f"dispatch {count}", {"x": tokens, "w": routing}, filled,
                     "%z = weft.dispatch %x by %w at %mask : !x, !w, !m -> !z")
        yield routed(f"combine {count}", {"x": filled, "w": routing}, tokens,
                     "%z = weft.combine %x by %w at %mask : !x, !w, !m -> !z")
        yield routed(f"slot_products {count}", {"x": tokens, "y": filled}, routing,
                     "%z = weft.slot_products %x, %y at %mask : !x, !y, !m -> !z")
    def multiplied(name, operands, body):
        return routed(name, {"x": routing, **operands}, routing, f"""
            {body}
            %z = weft.map ins(%x, %y : !x, !m) maps [#ijk, #ijk] -> !z {{
            ^bb0(%a: f64, %c: f64):
              %r = arith.mulf %a, %c : f64
              weft.yield %r : f64
            }}""")

    yield multiplied("biased", {"b": f"ffn={n}"}, """
            %y = weft.top_k 1 of %m bias(%b : !b) : !m -> !m""")
    yield multiplied("grouped", {"b": f"ffn={n}"}, """
            %y = weft.top_k 2 of %m bias(%b : !b) {groups = 2 : i64} : !m -> !m""")
    yield multiplied("of one group", {}, """
            %y = weft.top_k 1 of %m {groups = 2 : i64, kept_groups = 1 : i64} : !m -> !m""")
    # Without a gradient, which would sum up in reverse.
    yield multiplied("numbered", {}, """
            %rows = weft.cumulative_sum %mask along 1 : !m -> !m
            %y = weft.cumulative_sum %rows along 0 : !m -> !m""")
    for dim in range(3):
        yield case(f"cumulative_sum/{dim}", n, {"x": routing}, {"z": routing}, f"""
            %z = weft.cumulative_sum %x along {dim} : !x -> !z""")


def cases_for(n):
    """All cases for n ranks."""
    return [each for group in (maps, contracts, layers, places, shapes, images, constraints,
                                 experts)
            for each in group(n)]
