#!/usr/bin/python3
#===- meshes.py - checkpoints of one mesh, gone on from on another --------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Resumes from checkpoints on other meshes and stages of ZeRO than those that wrote them.

Losses, weights and optimizer state at the end must be those of runs never stopped, of the mesh that
resumes and of one rank, to 1e-10 of the largest value, and the same bits as the former where the mesh is
the same. Prints "N passed, N failed".
"""

import shutil
import sys

import numpy as np

import bench as common

sys.path.insert(0, str(common.HERE.parent / "Reference"))
import safetensors  # noqa: E402

STEPS, STOP = 6, 3
TOLERANCE = 1e-10
ONE_RANK = (1, 1)
# None of these numbers of ranks divides a dimension of a matrix. Without micro-batches, stages 1 and 2 are one plan.
UNEVEN_MESHES = [(ranks, 1, pins) for ranks in (3, 5, 6, 7)
                 for pins in ("zero=1", "zero=2,accumulation=2", "zero=3")] + [
    (1, 1, f"fsdp={ranks}") for ranks in (3, 5, 6, 7)]


def far(whole, place):
    """Returns the largest difference of weights, optimizer state, losses and norms of two runs."""
    a, b = (safetensors.load(folder / "saved") for folder in (whole, place))
    if a.keys() != b.keys():
        return np.inf
    distances = [np.max(np.abs(a[name] - b[name])) / max(np.max(np.abs(a[name])), 1e-30)
                 for name in a]
    return max(distances + [np.max(np.abs(np.array(common.metrics(whole)) -
                                          np.array(common.metrics(place))))])


def all_pairs(bench, options):
    # At least a sample for each rank; 2 micro-batches need a multiple of twice the ranks, 3, 5, 6 and 7.
    batch = 420 if options.uneven else 8
    recipe = common.RECIPE.replace("global_batch_sequences: 4", f"global_batch_sequences: {batch}")
    (bench.folder / "recipe.textproto").write_text(recipe)
    if options.uneven:
        meshes = [ONE_RANK, *UNEVEN_MESHES]
    else:
        # On 3, 5 and 6 ranks, variables are padded between steps. Of 4 heads, 2 of 6 ranks have none.
        meshes = [ONE_RANK, (2, 1), (1, 2), (2, 2), (3, 1), (2, 1, "zero=2,accumulation=2"),
                  (2, 1, "zero=3,accumulation=2"), (5, 1, "zero=3"), (1, 1, "fsdp=6"), (1, 6)]
    meshes += [(4, 1), (5, 1), (1, 4), (4, 2)] if options.all else []
    furthest = 0
    for mesh in meshes:
        bench.train(bench.compile(mesh), bench.place(f"whole-{mesh}"), STEPS)
        done = bench.train(bench.compile(mesh), bench.place(f"half-{mesh}"), STOP,
                           "--checkpoint-dir", "ck")
        bench.check(f"a checkpoint of {mesh}", None if done.status == 0 else done.err)
    for source in meshes:
        for target in meshes:
            place = bench.place("resumed")
            shutil.copytree(bench.runs / f"half-{source}", place, dirs_exist_ok=True)
            result = bench.train(bench.compile(target), place, STEPS, "--checkpoint-dir", "ck")
            what = f"from {source} to {target}"
            if result.status != 0 or result.resumed_at != STOP:
                bench.check(what, f"status {result.status}: {result.err}")
                continue
            distance = max(far(bench.runs / f"whole-{whole}", place) for whole in (target, ONE_RANK))
            furthest = max(furthest, distance)
            bench.check(what, None if distance <= TOLERANCE else f"{distance} away",
                        common.different(place, bench.runs / f"whole-{target}")
                        if source == target else None,
                        None if (source == target) != ("another plan" in result.out) else
                        f"said {result.out}")
    print(f"at most {furthest:.1e} away", flush=True)


def main():
    parser = common.arguments(__doc__)
    parser.add_argument("--all", action="store_true", help="more meshes")
    parser.add_argument("--uneven", action="store_true",
                        help="one rank, and 3, 5, 6 and 7 with each stage of ZeRO and with fsdp, alone")
    return common.main(parser.parse_args(), all_pairs)


if __name__ == "__main__":
    sys.exit(main())
