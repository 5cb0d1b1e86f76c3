#!/usr/bin/python3
#===- kills.py - kills runs at any instant and resumes them ---------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Kills training runs, resumes them to their end, and compares with an uninterrupted run.

The weights at the end must be the same bits, and so must every loss; a resumed run must go on at a
checkpoint, and no more than the steps between two checkpoints may be done twice. Runs are killed
after random times, and at every call by which they change a file: before it, and in the middle of
it. Every such call is also made to fail, as on a full disk: the run must then end with an error that
names file and reason, leave no half-written checkpoint, and be resumable.

Prints "N passed, N failed". The short form tries every call except writes, of which many are alike and
it tries a sample; --kills with a large number is the full form, which tries all.
"""

import json
import os
import random
import re
import sys
import time

import bench as common

STEPS = 6
MESH = (2, 2)


def checkpointing(every, keep=2):
    return ["--checkpoint-dir", "ck", "--checkpoint-every", every, "--checkpoint-keep", keep]


def resume_fault(done, result, every, steps):
    """Returns the fault if a run resumed at a wrong step after `done` reported steps, or None."""
    lost = done - result.resumed_at
    if (result.resumed_at % every != 0 and result.resumed_at != steps) or lost < 0:
        return f"went on at step {result.resumed_at} after {done} steps"
    if lost > every:
        return f"{lost} steps were lost, with a checkpoint after every {every}"
    return None


def leftovers(place):
    rest = [name for name in common.folders(place) if name.startswith((".writing", ".removing"))]
    return f"left {rest}" if rest else None


def halves(place):
    """Returns the incomplete folder that has the name of a checkpoint, if any."""
    for folder in sorted((place / "ck").glob("step-*")):
        try:
            shards = json.loads((folder / "manifest.json").read_text())["shards"]
            if all((folder / shard["file"]).stat().st_size == shard["bytes"] for shard in shards):
                continue
        except (OSError, ValueError):
            pass
        return f"{folder.name} is not whole"
    return None


def random_kills(bench, options):
    """Kills a run at random times and resumes it until it is done."""
    source = random.Random(options.seed)
    program = bench.compile(MESH)
    steps, kills, runs, most_lost = 40, 0, 0, 0
    whole = bench.place("whole-long")
    begin = time.monotonic()
    bench.train(program, whole, steps, *checkpointing(2))
    duration = time.monotonic() - begin
    while kills < options.kills:
        place, every = bench.place("killed"), source.randint(1, 3)
        faults, result = [], None
        runs += 1
        while result is None or result.status is None:
            done = len(common.metrics(place))
            faults.append(halves(place))
            result = bench.train(program, place, steps, *checkpointing(every),
                                 kill_after=source.uniform(0, duration))
            kills += result.status is None
            # A run that was killed at once may not have reported the step where it resumes.
            if result.out:
                faults.append(resume_fault(done, result, every, steps))
                most_lost = max(most_lost, done - result.resumed_at)
        if result.status != 0:
            faults.append(f"exit status {result.status}: {result.err.strip()}")
        else:
            faults += [common.different(place, whole), leftovers(place)]
        bench.check(f"run {runs}, after {kills} kills", *faults)
    print(f"{kills} kills at random times in {runs} runs, at most {most_lost} steps lost",
          flush=True)


def interrupted(options, log=None, at=0, by="kill"):
    """Returns the environment that interrupts a run at the call `at`."""
    environment = dict(os.environ, LD_PRELOAD=str(options.interrupt.resolve()),
                       INTERRUPT_AT=str(at), INTERRUPT_BY=by)
    return dict(environment, INTERRUPT_LOG=str(log)) if log else environment


def traced(bench, options, program):
    """Returns an uninterrupted run and its calls, each a list of the call's name and its files."""
    whole, log = bench.place("whole"), bench.folder / "log"
    log.unlink(missing_ok=True)
    result = bench.train(program, whole, STEPS, *checkpointing(2),
                         environment=interrupted(options, log))
    if result.status != 0:
        sys.exit(f"cannot train: {result.err}")
    return whole, [line.split() for line in log.read_text().splitlines()]


def every_call(bench, options):
    """Kills a run, or makes it fail, at each call that changes a file."""
    program = bench.compile(MESH)
    whole, calls = traced(bench, options, program)
    full = options.kills >= 1000
    writes = [at for at, call in enumerate(calls, 1) if call[0] == "write"]
    chosen = set(writes if full else writes[::len(writes) // options.writes])
    sites = [at for at, call in enumerate(calls, 1) if call[0] != "write" or at in chosen]
    for at in sites:
        for by in ("kill", "tear"):
            # The state after a call is that before the next, unless the call can be done by half.
            if by == "kill" or at in chosen:
                killed_at(bench, options, program, whole, at, by, calls[at - 1])
        # The file that tests whether --save can be written needs no further check.
        if calls[at - 1][:2] != ["unlink", "saved.partial"]:
            failed_at(bench, options, program, whole, at, calls[at - 1])
    print(f"{len(sites)} of {len(calls)} calls interrupted", flush=True)


def killed_at(bench, options, program, whole, at, by, call):
    place = bench.place("killed")
    killed = bench.train(program, place, STEPS, *checkpointing(2),
                         environment=interrupted(options, at=at, by=by))
    done, half = len(common.metrics(place)), halves(place)
    # The killed run saved nothing; this run has written all files.
    result = bench.train(program, place, STEPS, *checkpointing(2))
    faults = [half, None if killed.status is None else f"not killed, status {killed.status}",
              None if result.status == 0 else f"status {result.status}: {result.err.strip()}"]
    if result.status == 0:
        faults += [resume_fault(done, result, 2, STEPS),
                   common.different(place, whole), leftovers(place),
                   f"warned: {result.err.strip()}" if result.err else None]
    bench.check(f"{by} at call {at}, {' '.join(call)}", *faults)


def failed_at(bench, options, program, whole, at, call):
    place = bench.place("failed")
    failed = bench.train(program, place, STEPS, *checkpointing(2),
                         environment=interrupted(options, at=at, by="fail"))
    faults = []
    if failed.status != 1 or not re.fullmatch(
            r"error: cannot (write|remove) '[^']+': No space left on device\n", failed.err):
        faults.append(f"status {failed.status}: {failed.err.strip()}")
    faults.append(leftovers(place) if call[0] not in ("unlink", "rmdir") else None)
    result = bench.train(program, place, STEPS, *checkpointing(2))
    faults += ([common.different(place, whole), leftovers(place)] if result.status == 0 else
               [f"resumed with status {result.status}: {result.err.strip()}"])
    bench.check(f"failure at call {at}, {' '.join(call)}", *faults)


def order(bench, options):
    """Checks that no power cut can leave a checkpoint with its name but without its content."""
    program = bench.compile(MESH)
    place, calls = traced(bench, options, program)
    folder = str(place / "ck")
    absolute = [[call[0], *(os.path.join(place, path) for path in call[1:])] for call in calls]
    renames = [i for i, call in enumerate(absolute) if call[0] == "rename" and
               os.path.basename(call[1]).startswith(".writing-")]
    bench.check("checkpoints written", None if len(renames) == STEPS // 2 else
                f"{len(renames)} of them")
    for renamed in renames:
        _, source, target = absolute[renamed]
        before, after = absolute[:renamed], absolute[renamed + 1:]

        def last(calls, *call):
            return max((i for i, found in enumerate(calls) if found == list(call)), default=-1)

        files = {call[1] for call in before if call[0] == "open" and
                 os.path.dirname(call[1]) == source}
        manifest = source + "/manifest.json"
        synced = {file: last(before, "fsync", file) for file in files}
        name, told = os.path.basename(target), str(place / "metrics")
        bench.check(f"metrics are synced before {name}",
                    None if last(before, "mkdir", source) > last(before, "fsync", told) >
                    last(before, "write", told) >= 0 else "they are not")
        bench.check(f"files of {name} are synced after their last write", *(
            None if synced[file] > last(before, "write", file) >= 0 else f"{file} is not"
            for file in files))
        bench.check(f"the manifest of {name} comes last", *(
            None if file == manifest or synced[file] < last(before, "open", manifest)
            else f"{file} is synced later" for file in files))
        bench.check(f"the folder of {name} is synced before it gets its name",
                    None if last(before, "fsync", source) > max(synced.values()) else "it is not")
        following = after[:renames[renames.index(renamed) + 1] - renamed - 1
                          if renamed != renames[-1] else None]
        named = following.index(["fsync", folder]) if ["fsync", folder] in following else None
        bench.check(f"the name {name} is synced first of all that follows",
                    None if named == 0 else f"it is call {named}")
        latest = [i for i, call in enumerate(following) if call[0] == "rename" and
                  call[2] == folder + "/LATEST"]
        removed = [i for i, call in enumerate(following) if call[0] in ("unlink", "rmdir")]
        bench.check(f"older ones are removed when LATEST names {name}",
                    None if len(latest) == 1 and all(i > latest[0] for i in removed) else
                    f"LATEST {latest}, removed {removed}")


def main():
    parser = common.arguments(__doc__)
    parser.add_argument("--interrupt", required=True, type=common.Path,
                        help="the library made of interrupt.c")
    parser.add_argument("--kills", type=int, default=30, help="kills at random times")
    parser.add_argument("--writes", type=int, default=8, help="writes to interrupt")
    parser.add_argument("--seed", type=int, default=1)
    return common.main(parser.parse_args(), order, every_call, random_kills)


if __name__ == "__main__":
    sys.exit(main())
