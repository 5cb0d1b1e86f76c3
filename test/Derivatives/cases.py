#===- cases.py - cases for all ops with a derivative -----------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""The table of cases; see modules.Case for what a snippet may name."""

import cases_of_experts
import cases_of_images
import cases_of_layers
from modules import Case

# What is cut over two ranks where a case has it: batch over dp, ffn over tp.
MATRIX = "batch=2 hidden=3"
# Scalar code is the same on every rank, so these are not cut.
ELEMENTS = "rows=2 columns=3"


def scalar(name, code, operands=("x", "y"), positive=()):
    """One or two tensors of one shape, and scalar code from %a (and %b) to %r."""
    arguments = ", ".join(f"%{letter}: f64" for letter, _ in zip("ab", operands))
    types = ", ".join(f"!{name}" for name in operands)
    body = "".join(f"  {line.strip()}\n" for line in code.strip().splitlines())
    return Case(f"scalar/{name}", {name: ELEMENTS for name in operands},
                {"z": ELEMENTS}, f"""
%z = weft.map ins({', '.join('%' + name for name in operands)} : {types})
    maps [{', '.join(['#ij'] * len(operands))}] -> !z {{
^bb0({arguments}):
{body}  weft.yield %r : f64
}}""", positive=positive)


def function(name, op, positive=False):
    """A scalar function of one operand."""
    return scalar(name, f"%r = {op} %a : f64", ("x",), ("x",) if positive else ())


def binary(name, op, positive=()):
    """A scalar function of two operands."""
    return scalar(name, f"%r = {op} %a, %b : f64", positive=positive)


def contract(name, equation, **operands):
    """A contraction of `operands`, in their order."""
    terms, _, result = equation.partition("->")
    sizes = {letter: size for term, shape in zip(terms.split(","), operands.values())
             for letter, size in zip(term, shape)}
    names = {"b": "batch", "f": "ffn"}

    def shape(term):
        return " ".join(f"{names.get(letter, letter)}={sizes[letter]}" for letter in term)

    shapes = {name: shape(term) for name, term in zip(operands, terms.split(","))}
    return Case(f"contract/{name}", shapes, {"z": shape(result)}, f"""
%z = weft.contract "{equation}"({', '.join('%' + name for name in shapes)})
    : ({', '.join('!' + name for name in shapes)}) -> !z""")


SCALARS = [
    binary("add", "arith.addf"),
    binary("subtract", "arith.subf"),
    binary("multiply", "arith.mulf"),
    binary("divide", "arith.divf", positive=("y",)),
    binary("maximum", "arith.maximumf"),
    binary("minimum", "arith.minimumf"),
    binary("power", "math.powf", positive=("x",)),
    function("negate", "arith.negf"),
    function("exp", "math.exp"),
    function("log", "math.log", positive=True),
    function("tanh", "math.tanh"),
    function("sqrt", "math.sqrt", positive=True),
    function("rsqrt", "math.rsqrt", positive=True),
    function("erf", "math.erf"),
    function("sin", "math.sin"),
    function("cos", "math.cos"),
    scalar("select", """
        %less = arith.cmpf olt, %a, %b : f64
        %square = arith.mulf %b, %b : f64
        %r = arith.select %less, %a, %square : f64"""),
    scalar("casts", """
        %narrow = arith.truncf %a : f64 to f32
        %two = arith.constant 2.0 : f32
        %twice = arith.mulf %narrow, %two : f32
        %r = arith.extf %twice : f32 to f64""", ("x",)),
    scalar("power of a constant", """
        %c = arith.constant 2.5 : f64
        %r = math.powf %a, %c : f64""", ("x",), ("x",)),
    scalar("used twice", "%r = arith.mulf %a, %a : f64", ("x",)),
    scalar("used on two ways", """
        %e = math.exp %a : f64
        %s = math.sin %a : f64
        %p = arith.mulf %e, %s : f64
        %r = arith.divf %p, %b : f64""", positive=("y",)),
    scalar("unused operand", "%r = math.tanh %a : f64"),
    scalar("added to itself", "%r = arith.addf %a, %a : f64", ("x",)),
    # Both forms of GELU, and SiLU times a gate, as models have them.
    scalar("gelu", """
        %half = arith.constant 0.5 : f64
        %one = arith.constant 1.0 : f64
        %root = arith.constant 0.70710678118654752 : f64
        %s = arith.mulf %a, %root : f64
        %e = math.erf %s : f64
        %t = arith.addf %e, %one : f64
        %h = arith.mulf %a, %half : f64
        %r = arith.mulf %h, %t : f64""", ("x",)),
    scalar("swiglu", """
        %half = arith.constant 0.5 : f64
        %one = arith.constant 1.0 : f64
        %h = arith.mulf %a, %half : f64
        %t = math.tanh %h : f64
        %u = arith.addf %t, %one : f64
        %s = arith.mulf %h, %u : f64
        %r = arith.mulf %s, %b : f64"""),
]

MAPS = [
    Case("map/row spread", {"x": MATRIX, "y": "hidden=3"}, {"z": MATRIX}, """
        %z = weft.map ins(%x, %y : !x, !y) maps [#ij, #to_j] -> !z {
        ^bb0(%a: f64, %b: f64):
          %r = arith.mulf %a, %b : f64
          weft.yield %r : f64
        }"""),
    Case("map/column spread", {"x": MATRIX, "y": "batch=2"}, {"z": MATRIX}, """
        %z = weft.map ins(%x, %y : !x, !y) maps [#ij, #to_i] -> !z {
        ^bb0(%a: f64, %b: f64):
          %r = arith.divf %a, %b : f64
          weft.yield %r : f64
        }""", positive=("y",)),
    Case("map/scalar spread", {"x": MATRIX, "y": ""}, {"z": MATRIX}, """
        %z = weft.map ins(%x, %y : !x, !y) maps [#ij, #to_none] -> !z {
        ^bb0(%a: f64, %b: f64):
          %r = arith.mulf %a, %b : f64
          weft.yield %r : f64
        }"""),
    Case("map/bias added", {"x": MATRIX, "y": "hidden=3"}, {"z": MATRIX}, """
        %z = weft.map ins(%x, %y : !x, !y) maps [#ij, #to_j] -> !z {
        ^bb0(%a: f64, %b: f64):
          %r = arith.addf %a, %b : f64
          weft.yield %r : f64
        }"""),
    Case("map/middle and outer spread",
         {"x": "batch=2 m=2 hidden=3", "y": "batch=2 hidden=3", "v": "m=2"},
         {"z": "batch=2 m=2 hidden=3"}, """
        %z = weft.map ins(%y, %x, %v : !y, !x, !v) maps [#ijk_to_ik, #ijk, #ijk_to_j] -> !z {
        ^bb0(%a: f64, %b: f64, %c: f64):
          %p = arith.mulf %a, %c : f64
          %r = arith.subf %p, %b : f64
          weft.yield %r : f64
        }"""),
    Case("map/nothing of full shape", {"x": "batch=2", "y": "hidden=3"}, {"z": MATRIX}, """
        %z = weft.map ins(%x, %y : !x, !y) maps [#to_i, #to_j] -> !z {
        ^bb0(%a: f64, %b: f64):
          %r = arith.mulf %a, %b : f64
          weft.yield %r : f64
        }"""),
    Case("map/scalars", {"x": "", "y": ""}, {"z": ""}, """
        %z = weft.map ins(%x, %y : !x, !y) maps [#none, #none] -> !z {
        ^bb0(%a: f64, %b: f64):
          %r = arith.divf %a, %b : f64
          weft.yield %r : f64
        }""", positive=("y",)),
    Case("map/same tensor twice", {"x": MATRIX}, {"z": MATRIX}, """
        %z = weft.map ins(%x, %x : !x, !x) maps [#ij, #ij] -> !z {
        ^bb0(%a: f64, %b: f64):
          %e = math.exp %a : f64
          %r = arith.mulf %e, %b : f64
          weft.yield %r : f64
        }"""),
    Case("map/same tensor spread and whole", {"x": "batch=3 hidden=3", "y": "hidden=3"},
         {"z": "batch=3 hidden=3"}, """
        %z = weft.map ins(%y, %x, %y : !y, !x, !y) maps [#to_i, #ij, #to_j] -> !z {
        ^bb0(%a: f64, %b: f64, %c: f64):
          %p = arith.mulf %a, %b : f64
          %r = arith.mulf %p, %c : f64
          weft.yield %r : f64
        }"""),
    Case("map/two results", {"x": MATRIX, "y": MATRIX}, {"z": MATRIX, "v": MATRIX}, """
        %z, %v = weft.map ins(%x, %y : !x, !y) maps [#ij, #ij] -> !z, !v {
        ^bb0(%a: f64, %b: f64):
          %p = arith.mulf %a, %b : f64
          %q = math.sin %p : f64
          weft.yield %p, %q : f64, f64
        }"""),
    Case("map/second result alone", {"x": MATRIX, "y": MATRIX}, {"z": MATRIX}, """
        %unused, %z = weft.map ins(%x, %y : !x, !y) maps [#ij, #ij] -> !z, !z {
        ^bb0(%a: f64, %b: f64):
          %p = arith.mulf %a, %b : f64
          %q = arith.subf %a, %b : f64
          weft.yield %p, %q : f64, f64
        }"""),
    Case("map/operand yielded", {"x": MATRIX, "y": "hidden=3"}, {"z": MATRIX, "v": MATRIX}, """
        %z, %v = weft.map ins(%x, %y : !x, !y) maps [#ij, #to_j] -> !z, !v {
        ^bb0(%a: f64, %b: f64):
          weft.yield %a, %b : f64, f64
        }"""),
    Case("map/one value yielded twice", {"x": MATRIX}, {"z": MATRIX, "v": MATRIX}, """
        %z, %v = weft.map ins(%x : !x) maps [#ij] -> !z, !v {
        ^bb0(%a: f64):
          %r = math.tanh %a : f64
          weft.yield %r, %r : f64, f64
        }"""),
    Case("map/constant yielded", {"x": MATRIX, "y": MATRIX}, {"z": MATRIX, "v": MATRIX}, """
        %z, %v = weft.map ins(%x, %y : !x, !y) maps [#ij, #ij] -> !z, !v {
        ^bb0(%a: f64, %b: f64):
          %c = arith.constant 2.0 : f64
          %r = arith.mulf %a, %c : f64
          weft.yield %c, %r : f64, f64
        }"""),
    Case("map/integers beside", {"x": MATRIX}, {"z": MATRIX}, """
        %z = weft.map ins(%x, %tokens : !x, !ids) maps [#ij, #ij] -> !z {
        ^bb0(%a: f64, %b: i32):
          %c = arith.sitofp %b : i32 to f64
          %r = arith.mulf %a, %c : f64
          weft.yield %r : f64
        }"""),
    Case("map/one after the other", {"x": MATRIX, "y": "hidden=3"}, {"z": MATRIX}, """
        %t = weft.map ins(%x, %y : !x, !y) maps [#ij, #to_j] -> !z {
        ^bb0(%a: f64, %b: f64):
          %r = arith.addf %a, %b : f64
          weft.yield %r : f64
        }
        %z = weft.map ins(%t, %x, %y : !z, !x, !y) maps [#ij, #ij, #to_j] -> !z {
        ^bb0(%a: f64, %b: f64, %c: f64):
          %p = math.tanh %a : f64
          %q = arith.mulf %p, %b : f64
          %r = arith.mulf %q, %c : f64
          weft.yield %r : f64
        }"""),
]

CONTRACTS = [
    contract("matrices", "bk,kn->bn", x=(2, 3), y=(3, 4)),
    contract("second transposed", "bk,fk->bf", x=(2, 3), y=(4, 3)),
    contract("first transposed", "kb,kf->bf", x=(3, 2), y=(3, 4)),
    contract("result transposed", "bk,fk->fb", x=(2, 3), y=(4, 3)),
    contract("cut sum", "bf,nf->bn", x=(2, 4), y=(3, 4)),
    contract("batch of matrices", "bik,bjk->bij", x=(2, 2, 3), y=(2, 3, 3)),
    contract("result permuted", "bik,bjk->jbi", x=(2, 2, 3), y=(2, 3, 3)),
    contract("heads", "bsk,grdk->bsgrd", x=(2, 2, 3), y=(2, 1, 2, 3)),
    contract("two letters summed", "bsgd,ngd->bsn", x=(2, 2, 2, 2), y=(3, 2, 2)),
    contract("letter of the first summed", "abx,b->a", x=(2, 2, 3), y=(2,)),
    contract("letter of the second summed", "ab,xbc->ac", x=(3, 2), y=(2, 2, 3)),
    contract("letters of both summed", "abx,yb->a", x=(3, 2, 2), y=(3, 2)),
    contract("cut letter of the first summed", "abf,b->a", x=(2, 2, 4), y=(2,)),
    contract("outer product", "b,n->bn", x=(4,), y=(3,)),
    contract("inner product", "bn,bn->", x=(2, 3), y=(2, 3)),
    contract("elementwise", "bn,bn->bn", x=(2, 3), y=(2, 3)),
    contract("matrix and vector", "bn,n->b", x=(2, 3), y=(3,)),
    contract("scalar and matrix", ",bn->bn", x=(), y=(2, 3)),
    contract("scalars", ",->", x=(), y=()),
    contract("sum over the first", "bn->n", x=(2, 3)),
    contract("sum over the last", "bn->b", x=(2, 3)),
    contract("sum over the middle", "bsn->bn", x=(2, 3, 2)),
    contract("sum over all", "bsn->", x=(2, 2, 3)),
    contract("sum permuted", "bsnk->kb", x=(2, 2, 2, 3)),
    contract("transposition", "bn->nb", x=(2, 3)),
    # Beyond one tile of the product kernels, and not a multiple of it.
    contract("larger than a tile", "bk,fk->bf", x=(34, 19), y=(38, 19)),
    Case("contract/tensor with itself", {"x": MATRIX}, {"z": "i=2 j=2"}, """
        %z = weft.contract "ik,jk->ij"(%x, %x) : (!x, !x) -> !z"""),
    Case("contract/one after the other", {"x": MATRIX, "y": "ffn=2 hidden=3", "v": "n=3 ffn=2"},
         {"z": "batch=2 n=3"}, """
        %t = weft.contract "bk,fk->bf"(%x, %y) : (!x, !y) -> !t
        %z = weft.contract "bf,nf->bn"(%t, %v) : (!t, !v) -> !z""",
         types={"t": "batch=2 ffn=2"}),
    Case("contract/parameter read twice", {"x": MATRIX}, {"z": "i=2 j=2"}, """
        %again = weft.read @x : !x
        %s = weft.map ins(%again : !x) maps [#ij] -> !x {
        ^bb0(%a: f64):
          %r = math.sin %a : f64
          weft.yield %r : f64
        }
        %z = weft.contract "ik,jk->ij"(%x, %s) : (!x, !x) -> !z"""),
]

# Sums over ffn, cut over two ranks: the sum of each rank is only a part. What is additive works on
# the parts, anything else must not.
PENDING = [
    Case(f"pending/{name}", {"x": "batch=2 ffn=4", "y": "n=3 ffn=4", "v": "n=3 ffn=4"},
         {"z": "batch=2 n=3"}, f"""
        %p = weft.contract "bf,nf->bn"(%x, %y) : (!x, !y) -> !z
        %q = weft.contract "bf,nf->bn"(%x, %v) : (!x, !v) -> !z
        %z = weft.map ins(%p, %q : !z, !z) maps [#ij, #ij] -> !z {{
        ^bb0(%a: f64, %b: f64):
          {code}
          weft.yield %r : f64
        }}""")
    for name, code in [
        ("difference", "%r = arith.subf %a, %b : f64"),
        ("product", "%r = arith.mulf %a, %b : f64"),
        ("negated", "%n = arith.negf %b : f64 %r = arith.addf %a, %n : f64"),
        ("function", "%e = math.tanh %b : f64 %r = arith.mulf %a, %e : f64"),
        ("constant added", "%c = arith.constant 2.0 : f64 %t = arith.addf %a, %c : f64 "
                           "%r = arith.subf %t, %b : f64"),
    ]
] + [
    Case("pending/bias", {"x": "batch=2 ffn=4", "y": "n=3 ffn=4", "v": "n=3"},
         {"z": "batch=2 n=3"}, """
        %p = weft.contract "bf,nf->bn"(%x, %y) : (!x, !y) -> !z
        %z = weft.map ins(%p, %v : !z, !v) maps [#ij, #to_j] -> !z {
        ^bb0(%a: f64, %b: f64):
          %r = arith.addf %a, %b : f64
          weft.yield %r : f64
        }"""),
    Case("pending/scale", {"x": "batch=2 ffn=4", "y": "n=3 ffn=4", "v": "n=3"},
         {"z": "batch=2 n=3"}, """
        %p = weft.contract "bf,nf->bn"(%x, %y) : (!x, !y) -> !z
        %z = weft.map ins(%p, %v : !z, !v) maps [#ij, #to_j] -> !z {
        ^bb0(%a: f64, %b: f64):
          %r = arith.mulf %a, %b : f64
          weft.yield %r : f64
        }"""),
    Case("pending/two factors", {"x": "i=2 ffn=4", "y": "j=2 ffn=4"}, {"z": "i=2"}, """
        %p = weft.contract "if,jf->ij"(%x, %y) : (!x, !y) -> !t
        %z = weft.contract "ij,ij->i"(%p, %p) : (!t, !t) -> !z""", types={"t": "i=2 j=2"}),
]

ALL = (SCALARS + MAPS + CONTRACTS + PENDING + cases_of_layers.ALL + cases_of_images.ALL
       + cases_of_experts.ALL)
