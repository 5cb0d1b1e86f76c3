#===- cases_of_experts.py - routings, and tokens at experts ----------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""The cases of ops that carry tokens to experts; see modules.Case.

The experts are called ffn where they are cut over ranks. Scores are far enough apart that a
difference in them moves no token to another expert.
"""

from modules import Case

TOKENS = "batch=2 s=5 hidden=3"
ROUTING = "batch=2 s=5 ffn=4"


def slots(count):
    return f"ffn=4 batch=2 slot={count} hidden=3"


def routed(name, operands, result, body, count=2, shape=None, how=""):
    """An op at the mask of the two greatest of scores m, with a buffer of `count` slots."""
    return Case(f"experts/{name}", {**operands, "m": ROUTING}, {"z": result}, f"""
        %mask = weft.top_k 2 of %m {how} : !m -> !m
        {body}""", types=shape)


def ties(name, count, groups=""):
    """All scores are equal: the experts of lowest index are picked. If others are picked, the loss
    divides by zero."""
    return Case(f"experts/ties {name}", {"x": ROUTING}, {"z": ROUTING}, f"""
        %ones = weft.fill constant 1.0 : !x
        %falling = weft.cumulative_sum reverse %ones along 2 : !x -> !x
        %lower = weft.top_k {count} of %falling {groups} : !x -> !x
        %equal = weft.top_k {count} of %ones {groups} : !x -> !x
        %z = weft.map ins(%x, %lower, %equal : !x, !x, !x) maps [#ijk, #ijk, #ijk] -> !z {{
        ^bb0(%a: f64, %b: f64, %c: f64):
          %one = arith.constant 1.0 : f64
          %d = arith.subf %b, %c : f64
          %s = arith.mulf %d, %d : f64
          %q = arith.subf %one, %s : f64
          %r = arith.divf %a, %q : f64
          weft.yield %r : f64
        }}""")


SLOTS = [
    # With as many slots as tokens all go where the mask says, with two some find none.
    *(routed(f"dispatch to {count} slots", {"x": TOKENS, "w": ROUTING}, slots(count), """
        %z = weft.dispatch %x by %w at %mask : !x, !w, !m -> !z""") for count in (2, 5)),
    *(routed(f"combine from {count} slots", {"x": slots(count), "w": ROUTING}, TOKENS, """
        %z = weft.combine %x by %w at %mask : !x, !w, !m -> !z""") for count in (2, 5)),
    *(routed(f"slot_products of {count} slots", {"x": TOKENS, "y": slots(count)}, ROUTING, """
        %z = weft.slot_products %x, %y at %mask : !x, !y, !m -> !z""") for count in (2, 5)),
    routed("there and back", {"x": TOKENS, "w": ROUTING, "v": "ffn=4 n=2 hidden=3"},
           "batch=2 s=5 n=2", """
        %d = weft.dispatch %x by %mask at %mask : !x, !m, !m -> !d
        %e = weft.contract "egch,enh->egcn"(%d, %v) : (!d, !v) -> !e
        %z = weft.combine %e by %w at %mask : !e, !w, !m -> !z""",
           shape={"d": slots(3), "e": "ffn=4 batch=2 slot=3 n=2"}),
    # As a router does it: what is picked are the scores themselves, over their sum.
    Case("experts/normalized scores", {"x": ROUTING}, {"z": ROUTING}, """
        %p = weft.softmax %x : !x -> !x
        %mask = weft.top_k 2 of %p : !x -> !x
        %picked = weft.map ins(%p, %mask : !x, !x) maps [#ijk, #ijk] -> !x {
        ^bb0(%a: f64, %b: f64):
          %r = arith.mulf %a, %b : f64
          weft.yield %r : f64
        }
        %sum = weft.contract "gte->gt"(%picked) : (!x) -> !sum
        %z = weft.map ins(%picked, %sum : !x, !sum) maps [#ijk, #ijk_to_ij] -> !z {
        ^bb0(%a: f64, %b: f64):
          %r = arith.divf %a, %b : f64
          weft.yield %r : f64
        }""", types={"sum": "batch=2 s=5"}),
    routed("mask of groups, biased", {"x": ROUTING, "b": "ffn=4"}, ROUTING, """
        %chosen = weft.top_k 1 of %m bias(%b : !b) {groups = 2 : i64, kept_groups = 1 : i64}
            : !m -> !m
        %z = weft.map ins(%x, %chosen : !x, !m) maps [#ijk, #ijk] -> !z {
        ^bb0(%a: f64, %c: f64):
          %r = arith.mulf %a, %c : f64
          weft.yield %r : f64
        }"""),
]

SUMS = [
    Case("cumulative_sum/first", {"x": "s=4 ffn=2"}, {"z": "s=4 ffn=2"}, """
        %z = weft.cumulative_sum %x along 0 : !x -> !z"""),
    Case("cumulative_sum/middle", {"x": "batch=2 s=3 ffn=2"}, {"z": "batch=2 s=3 ffn=2"}, """
        %z = weft.cumulative_sum %x along 1 : !x -> !z"""),
    Case("cumulative_sum/reverse of last", {"x": "batch=2 s=3"}, {"z": "batch=2 s=3"}, """
        %z = weft.cumulative_sum reverse %x along 1 : !x -> !z"""),
    Case("cumulative_sum/cut dimension", {"x": "batch=4 s=3"}, {"z": "batch=4 s=3"}, """
        %z = weft.cumulative_sum %x along 0 : !x -> !z"""),
]

TIES = [ties("of two", 2), ties("of three", 3),
        ties("of groups", 1, "{groups = 2 : i64, kept_groups = 1 : i64}")]

ALL = SLOTS + SUMS + TIES
