#===- cases_of_images.py - shapes, and the layers of image models ----------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""The cases of ops on shapes and images; see cases.py."""

from modules import Case

SHAPES = [
    Case("reshape/merge", {"x": "batch=2 s=3 ffn=2 d=2"}, {"z": "batch=2 s=3 n=4"}, """
        %z = weft.reshape %x [[0], [1], [2, 3]] : !x -> !z"""),
    Case("reshape/split", {"x": "batch=2 ffn=6"}, {"z": "batch=2 ffn=2 d=3"}, """
        %z = weft.reshape %x [[0], [1, 2]] : !x -> !z"""),
    # A rank's part of six does not end between two of three: the result is whole.
    Case("reshape/split through a cut", {"x": "batch=2 ffn=6"}, {"z": "batch=2 i=3 d=2"}, """
        %z = weft.reshape %x [[0], [1, 2]] : !x -> !z"""),
    Case("reshape/dimension of one", {"x": "one=1 ffn=4 d=2"}, {"z": "n=8"}, """
        %z = weft.reshape %x [[0, 1, 2]] : !x -> !z"""),
    Case("reshape/there and back", {"x": "batch=2 ffn=4"}, {"z": "batch=2 ffn=4"}, """
        %y = weft.reshape %x [[0], [1, 2]] : !x -> !y
        %s = weft.map ins(%y : !y) maps [#ijk] -> !y {
        ^bb0(%a: f64):
          %r = math.sin %a : f64
          weft.yield %r : f64
        }
        %z = weft.reshape %s [[0], [1, 2]] : !y -> !z""", types={"y": "batch=2 i=2 j=2"}),
    Case("reshape/used in both shapes", {"x": "batch=2 ffn=4"},
         {"y": "batch=2 i=2 j=2", "z": "batch=2 ffn=4"}, """
        %y = weft.reshape %x [[0], [1, 2]] : !x -> !y
        %z = weft.map ins(%x : !x) maps [#ij] -> !z {
        ^bb0(%a: f64):
          %r = math.sin %a : f64
          weft.yield %r : f64
        }"""),
    Case("reshape/pending", {"x": "batch=2 ffn=4", "y": "n=6 ffn=4"}, {"z": "batch=2 i=2 j=3"}, """
        %p = weft.contract "bf,nf->bn"(%x, %y) : (!x, !y) -> !p
        %z = weft.reshape %p [[0], [1, 2]] : !p -> !z""", types={"p": "batch=2 n=6"}),
    Case("concat/middle", {"x": "batch=2 s=1 ffn=2", "y": "batch=2 s=3 ffn=2"},
         {"z": "batch=2 s=4 ffn=2"}, """
        %z = weft.concat %x, %y dim 1 : !x, !y -> !z"""),
    Case("concat/cut dimension", {"x": "batch=2 ffn=2", "y": "batch=2 ffn=4", "v": "batch=2 s=3"},
         {"z": "batch=2 n=9"}, """
        %z = weft.concat %x, %y, %v dim 1 : !x, !y, !v -> !z"""),
    Case("concat/with itself", {"x": "batch=2 s=2"}, {"z": "i=4 s=2"}, """
        %z = weft.concat %x, %x dim 0 : !x, !x -> !z"""),
    Case("concat/pending", {"x": "batch=2 ffn=4", "y": "n=3 ffn=4", "v": "batch=2 n=3"},
         {"z": "batch=2 n=6"}, """
        %p = weft.contract "bf,nf->bn"(%x, %y) : (!x, !y) -> !v
        %z = weft.concat %p, %v dim 1 : !v, !v -> !z"""),
    Case("split/middle", {"x": "batch=2 s=4 ffn=2"},
         {"y": "batch=2 s=1 ffn=2", "z": "batch=2 s=3 ffn=2"}, """
        %y, %z = weft.split %x dim 1 : !x -> !y, !z"""),
    Case("split/one part unused", {"x": "batch=2 s=6"}, {"z": "batch=2 s=2"}, """
        %y, %z, %v = weft.split %x dim 1 : !x -> !y, !z, !y""", types={"y": "batch=2 n=2"}),
    Case("extract/strides", {"x": "batch=2 s=7 ffn=2"}, {"z": "batch=2 s=2 ffn=2"}, """
        %z = weft.extract %x from [0, 1, 0] by [1, 3, 1] : !x -> !z"""),
    Case("extract/cut dimension", {"x": "batch=2 ffn=4"}, {"z": "batch=2 ffn=2"}, """
        %z = weft.extract %x from [0, 2] by [1, 1] : !x -> !z"""),
    Case("pad/all sides", {"x": "batch=2 s=3 ffn=2"}, {"z": "batch=2 s=9 n=3"}, """
        %z = weft.pad %x with 0.0 low [0, 1, 0] high [0, 3, 1] interior [0, 1, 0] : !x -> !z"""),
    Case("pad/constant", {"x": "batch=2 ffn=2"}, {"z": "batch=2 ffn=4"}, """
        %y = weft.pad %x with 1.5 low [0, 1] high [0, 1] interior [0, 0] : !x -> !z
        %z = weft.map ins(%y : !z) maps [#ij] -> !z {
        ^bb0(%a: f64):
          %r = math.exp %a : f64
          weft.yield %r : f64
        }"""),
]


def convolution(name, channels, places, kernel, outputs, strides, low, high, dilations, groups=1,
                cut="c", samples=2):
    """A convolution of `samples`; `cut` is the kind of channels, c, o or g, that are ffn."""
    dims = "hwd"[: len(places)]
    kernel_dims = "rst"[: len(places)]

    def shape(**sizes):
        return " ".join(f"{dim}={size}" for dim, size in sizes.items())

    # Channels of a group are another dimension than channels.
    x = {"batch": samples, "ffn" if cut in "cg" else "c": channels, **dict(zip(dims, places))}
    w = {"ffn" if cut in "og" else "o": outputs, "ffn" if cut == "c" else "i": channels // groups,
         **dict(zip(kernel_dims, kernel))}
    spread = [(d * (k - 1) + 1) for d, k in zip(dilations, kernel)]
    found = [(n + a + b - e) // s + 1
             for n, a, b, e, s in zip(places, low, high, spread, strides)]
    z = {"batch": samples, "ffn" if cut in "og" else "o": outputs, **dict(zip(dims, found))}
    return Case(f"convolution/{name}", {"x": shape(**x), "w": shape(**w)}, {"z": shape(**z)}, f"""
        %z = weft.convolution %x by %w strides {strides} low {low} high {high}
            dilations {dilations} : !x, !w -> !z""")


CONVOLUTIONS = [
    convolution("one place", 4, [3, 2], [1, 1], 3, [1, 1], [0, 0], [0, 0], [1, 1]),
    convolution("padded", 2, [4, 5], [3, 3], 3, [1, 1], [1, 1], [1, 1], [1, 1]),
    convolution("output channels cut", 3, [4, 4], [2, 3], 4, [1, 1], [0, 1], [1, 1], [1, 1],
                cut="o"),
    convolution("strides", 2, [7, 6], [3, 2], 2, [2, 3], [1, 0], [1, 1], [1, 1]),
    # The last places of the image are seen by no output.
    convolution("places left over", 2, [6, 6], [2, 2], 1, [3, 4], [0, 0], [0, 0], [1, 1]),
    convolution("dilations", 2, [7, 6], [3, 2], 2, [1, 2], [2, 1], [1, 0], [2, 3]),
    convolution("groups", 4, [4, 3], [3, 2], 6, [1, 1], [1, 0], [1, 1], [1, 1], 2, cut="g"),
    convolution("each channel by itself", 4, [4, 4], [3, 3], 4, [1, 2], [1, 1], [1, 1], [1, 1], 4,
                cut="g"),
    convolution("groups that do not fit", 6, [3, 3], [2, 2], 6, [1, 1], [0, 0], [0, 0], [1, 1], 3,
                cut="g"),
    convolution("one dimension", 2, [9], [3], 4, [2], [1], [1], [2], cut="o"),
    convolution("three dimensions", 2, [3, 4, 3], [2, 2, 3], 2, [1, 2, 1], [0, 1, 1], [1, 0, 1],
                [1, 1, 1]),
    # Taller than all padding: whole rows of the window never lie on the image.
    convolution("window larger than the image", 2, [2, 2], [5, 5], 2, [1, 1], [3, 4], [3, 4],
                [1, 1]),
]


def pool(name, kind, places, sizes, strides, low, high, dilations):
    """A pool of two samples of two channels."""
    dims = "hwd"[: len(places)]
    spread = [(d * (k - 1) + 1) for d, k in zip(dilations, sizes)]
    found = [(n + a + b - e) // s + 1
             for n, a, b, e, s in zip(places, low, high, spread, strides)]

    def shape(counts):
        return "batch=2 ffn=2 " + " ".join(f"{dim}={count}" for dim, count in zip(dims, counts))

    return Case(f"pool/{kind} {name}", {"x": shape(places)}, {"z": shape(found)}, f"""
        %z = weft.pool {kind} %x sizes {sizes} strides {strides} low {low} high {high}
            dilations {dilations} : !x -> !z""")


POOLS = [pool(*case) for kind in ("max", "sum") for case in [
    ("apart", kind, [4, 4], [2, 2], [2, 2], [0, 0], [0, 0], [1, 1]),
    ("overlapping", kind, [5, 6], [3, 3], [2, 2], [1, 1], [1, 1], [1, 1]),
    ("dilated", kind, [6, 5], [2, 3], [1, 2], [1, 2], [0, 1], [3, 2]),
    ("gaps", kind, [7, 7], [2, 1], [3, 3], [0, 0], [0, 0], [1, 1]),
    ("one dimension", kind, [7], [3], [2], [1], [1], [1]),
    ("three dimensions", kind, [3, 3, 4], [2, 3, 2], [1, 1, 2], [1, 0, 0], [0, 1, 0], [1, 1, 1]),
]] + [
    # Equal elements: a small step of the first makes it the greatest, or does not; where they are
    # one element twice, either way the slope is that of the sum.
    Case("pool/max of equal elements", {"x": "batch=2 ffn=2 s=3"}, {"z": "batch=2 ffn=2 s=3"}, """
        %y = weft.concat %x, %x dim 2 : !x, !x -> !y
        %z = weft.pool max %y sizes [2] strides [1] low [0] high [0] dilations [3] : !y -> !z""",
         types={"y": "batch=2 ffn=2 s=6"}),
]

STATISTICS = [
    Case("group_mean/all", {"x": "n=4 ffn=2"}, {"z": "n=4 ffn=2"}, """
        %y = weft.group_mean %x of 4 : !x -> !x
        %z = weft.map ins(%x, %y : !x, !x) maps [#ij, #ij] -> !z {
        ^bb0(%a: f64, %b: f64):
          %r = arith.mulf %a, %b : f64
          weft.yield %r : f64
        }"""),
    Case("group_mean/two groups on two ranks", {"x": "batch=4 s=3"}, {"z": "batch=4 s=3"}, """
        %y = weft.group_mean %x of 2 : !x -> !x
        %z = weft.map ins(%x, %y : !x, !x) maps [#ij, #ij] -> !z {
        ^bb0(%a: f64, %b: f64):
          %r = arith.divf %a, %b : f64
          weft.yield %r : f64
        }""", positive=("x",)),
    Case("softmax/rows", {"x": "batch=2 ffn=4 s=5"}, {"z": "batch=2 ffn=4 s=5"}, """
        %z = weft.softmax %x : !x -> !z"""),
    Case("softmax/cut dimension", {"x": "batch=2 ffn=4"}, {"z": "batch=2 ffn=4"}, """
        %z = weft.softmax %x : !x -> !z"""),
    Case("softmax/one dimension", {"x": "s=40"}, {"z": "s=40"}, """
        %z = weft.softmax %x : !x -> !z"""),
]


def batch_norm_of(image, stat, channels, rank, samples, group, places, after):
    """The text of a batch norm of %{image}, as Import builds it, which gives %{after}.

    The image has `rank` dimensions, with `samples` and `places`. Statistics are of type !{stat}: for
    each channel, or for each sample and channel where `group` samples share them. Scale and bias are
    %scale and %bias of type !{channels}.
    """
    term = "ab" if group else "b"
    count = float(places * (group or samples))
    letters = "abcd"[:rank]
    whole = "#ijk" if rank == 3 else "#ijkl"
    spread = f"{whole}_to_{'ij' if group else 'j'}"
    both = "#ij" if group else "#i"
    p = after

    def mean(value, out, factor):
        text, scale = "", factor / count
        if group:
            text = f"""
        %{p}.{out}.mean = weft.group_mean %{p}.{value} of {group} : !{stat} -> !{stat}"""
            value, scale = f"{out}.mean", factor * group / count
        return text + f"""
        %{p}.{out} = weft.map ins(%{p}.{value} : !{stat}) maps [{both}] -> !{stat} {{
        ^bb0(%a: f64):
          %c = arith.constant {scale!r} : f64
          %r = arith.mulf %a, %c : f64
          weft.yield %r : f64
        }}"""

    return f"""
        %{p}.sum = weft.contract "{letters}->{term}"(%{image}) : (!{image}) -> !{stat}\
{mean("sum", "negated", -1.0)}
        %{p}.centered = weft.map ins(%{image}, %{p}.negated : !{image}, !{stat})
            maps [{whole}, {spread}] -> !{image} {{
        ^bb0(%a: f64, %b: f64):
          %r = arith.addf %a, %b : f64
          weft.yield %r : f64
        }}
        %{p}.squares = weft.contract "{letters},{letters}->{term}"(%{p}.centered, %{p}.centered)
            : (!{image}, !{image}) -> !{stat}{mean("squares", "variance", 1.0)}
        %{p}.factor = weft.map ins(%{p}.variance, %scale : !{stat}, !{channels})
            maps [{both}, {"#to_j" if group else "#i"}] -> !{stat} {{
        ^bb0(%a: f64, %b: f64):
          %e = arith.constant 0.01 : f64
          %s = arith.addf %a, %e : f64
          %d = math.sqrt %s : f64
          %r = arith.divf %b, %d : f64
          weft.yield %r : f64
        }}
        %{p}.scaled = weft.contract "{letters},{term}->{letters}"(%{p}.centered, %{p}.factor)
            : (!{image}, !{stat}) -> !{image}
        %{after} = weft.map ins(%{p}.scaled, %bias : !{image}, !{channels})
            maps [{whole}, {whole}_to_j] -> !{image} {{
        ^bb0(%a: f64, %b: f64):
          %r = arith.addf %a, %b : f64
          weft.yield %r : f64
        }}"""


def batch_norm(name, batch, group=None):
    """A batch norm by all samples or by ghost batches of `group`."""
    image = f"batch={batch} ffn=2 s=3"
    return Case(f"batch_norm/{name}", {"x": image, "scale": "ffn=2", "bias": "ffn=2"},
                {"z": image}, batch_norm_of("x", "stat", "scale", 3, batch, group, 3, "z"),
                types={"stat": f"batch={batch} ffn=2" if group else "ffn=2"})


STATISTICS += [
    batch_norm("all samples", 4),
    batch_norm("ghost batches", 4, 2),
    batch_norm("each sample", 2, 1),
]

# Convolution, norm, function, convolution with cut channels, residual, pool: tp=2 cuts the channels
# between the convolutions, dp=2 the samples that the norm is over.
NETWORKS = [
    Case(f"network/residual block by {kind}",
         {"x": "batch=4 c=2 h=4 w=4", "w": "ffn=4 c=2 r=3 s=3", "v": "n=2 ffn=4 r=1 s=1",
          "scale": "ffn=4", "bias": "ffn=4"}, {"z": "batch=4 c=2 h=2 w=2"}, f"""
        %y = weft.convolution %x by %w strides [1, 1] low [1, 1] high [1, 1] dilations [1, 1]
            : !x, !w -> !y{batch_norm_of("y", "stat", "scale", 4, 4, group, 16, "n")}
        %f = weft.map ins(%n : !y) maps [#ijkl] -> !y {{
        ^bb0(%a: f64):
          %r = math.tanh %a : f64
          weft.yield %r : f64
        }}
        %u = weft.convolution %f by %v strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
            : !y, !v -> !x
        %s = weft.map ins(%x, %u : !x, !x) maps [#ijkl, #ijkl] -> !x {{
        ^bb0(%a: f64, %b: f64):
          %r = arith.addf %a, %b : f64
          weft.yield %r : f64
        }}
        %z = weft.pool max %s sizes [2, 2] strides [2, 2] low [0, 0] high [0, 0]
            dilations [1, 1] : !x -> !z""",
         types={"y": "batch=4 ffn=4 h=4 w=4", "stat": stat})
    for kind, group, stat in (("all samples", None, "ffn=4"),
                              ("ghost batches", 2, "batch=4 ffn=4"))
]
ALL = SHAPES + CONVOLUTIONS + POOLS + STATISTICS + NETWORKS
