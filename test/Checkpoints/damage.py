#!/usr/bin/python3
#===- damage.py - damages checkpoints and resumes from them ---------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Damages every file of a checkpoint in every way, and resumes.

The run must name the damaged file and go on from the older checkpoint, to the same weights and losses
as a run never stopped; where there is no older one it must end with an error. Nothing may crash, and
no run may begin anew. Prints "N passed, N failed".
"""

import os
import re
import shutil
import subprocess
import sys

import bench as common

MESH = (2, 2)
STEPS = 6
NEWEST, OLDER = "step-00000004", "step-00000002"


def damages(older):
    """Ways to damage the file at a path, by name. `older` gives its namesake of another step."""
    def cut(size):
        return lambda path: path.write_bytes(path.read_bytes()[:size(path)])

    def flip(place):
        def act(path):
            content = bytearray(path.read_bytes())
            content[place(len(content))] ^= 0x10
            path.write_bytes(content)
        return act

    def replace(make):
        return lambda path: (path.unlink(), make(path))

    yield from ((f"cut to {size} bytes", cut(lambda path, size=size: size))
                for size in (0, 1, 8, 100))
    yield "cut in half", cut(lambda path: path.stat().st_size // 2)
    yield "cut by a byte", cut(lambda path: path.stat().st_size - 1)
    yield "a byte longer", lambda path: path.write_bytes(path.read_bytes() + b"x")
    for part in range(16):
        yield f"a bit flipped at {part}/16", flip(lambda size, part=part: size * part // 16)
    yield "the last bit flipped", flip(lambda size: size - 1)
    yield "zeros", lambda path: path.write_bytes(bytes(path.stat().st_size))
    yield "removed", lambda path: path.unlink()
    yield "a folder", replace(lambda path: path.mkdir())
    yield "a link to nowhere", replace(lambda path: path.symlink_to("nowhere"))
    yield "a pipe", replace(lambda path: os.mkfifo(path))
    yield "that of another step", lambda path: shutil.copy(older(path), path)


def every_file(bench, options):
    program, whole, good = bench.compile(MESH), bench.place("whole"), bench.place("good")
    bench.train(program, whole, STEPS)
    bench.train(program, good, 4, "--checkpoint-dir", "ck", "--checkpoint-every", 2)
    files = sorted(path.name for path in (good / "ck" / NEWEST).iterdir())
    bench.check("files", None if files == ["manifest.json", *(f"rank-{rank:05}.safetensors"
                                                              for rank in range(4))]
                else f"they are {files}")
    for file in files:
        for how, act in damages(lambda path: good / "ck" / OLDER / path.name):
            for alone in (False, True):
                place = bench.place("damaged")
                shutil.copytree(good, place, dirs_exist_ok=True)
                act(place / "ck" / NEWEST / file)
                if alone:
                    shutil.rmtree(place / "ck" / OLDER)
                result = bench.train(program, place, STEPS, "--checkpoint-dir", "ck",
                                     "--checkpoint-every", 2)
                bench.check(f"{file} {how}{', no other' if alone else ''}",
                            *damage_faults(place, whole, file, result, alone))


def damage_faults(place, whole, file, result, alone):
    if not re.search(rf"^warning: passed over a checkpoint: .*'ck/{NEWEST}/[^']*'", result.err,
                     re.MULTILINE):
        yield f"expected a warning about {file}, got: {result.err.strip()}"
    if alone:
        if result.status != 1 or "error: 'ck' has had checkpoints, but none is whole; to start " \
                "anew, name another folder\n" not in result.err:
            yield f"expected an error, got status {result.status}: {result.err.strip()}"
        return
    if result.status != 0 or result.resumed_at != 2:
        yield f"status {result.status}, resumed at {result.resumed_at}: {result.err.strip()}"
    else:
        yield common.different(place, whole)


def latest(bench, options):
    """Tests that runs ignore LATEST, which is for people, and resume from the newest whole checkpoint."""
    program, whole, good = bench.compile(MESH), bench.place("whole"), bench.place("good")
    bench.train(program, whole, STEPS)
    bench.train(program, good, 4, "--checkpoint-dir", "ck", "--checkpoint-every", 2)
    for content in (None, b"", b"\n", b"step-00000002\n", b"step-00000099\n", b"../../etc\n",
                    bytes(range(256)) * 9):
        place = bench.place("damaged")
        shutil.copytree(good, place, dirs_exist_ok=True)
        path = place / "ck/LATEST"
        path.unlink() if content is None else path.write_bytes(content)
        result = bench.train(program, place, STEPS, "--checkpoint-dir", "ck")
        warns = content is not None and content != b"step-00000002\n"
        bench.check(f"LATEST with {content and content[:20]}",
                    None if result.status == 0 and result.resumed_at == 4 else
                    f"status {result.status}, resumed at {result.resumed_at}: {result.err}",
                    None if bool(re.fullmatch(r"warning: 'ck/LATEST' (does not name a checkpoint|"
                                                  r"names 'step-00000099', which is not there)\n",
                                                  result.err)) == warns else
                    f"said {result.err}",
                    None if result.status else common.different(place, whole))


def full_disk(bench, options):
    """Tests a disk that runs full while checkpoints are written."""
    program, place, whole = bench.compile(MESH), bench.place("full"), bench.place("whole")
    if subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        print("left out: a full disk needs the right to mount one")
        return
    script = ("mount -t tmpfs -o size=400k none ck && \"$@\"; s=$?; "
              "ls -A ck; cp -r ck kept; exit $s")
    (place / "ck").mkdir()
    command = ["unshare", "-m", "sh", "-c", script, "sh", program, "--data",
               bench.folder / "text", "--steps", "40", "--quiet", "--metrics", "metrics",
               "--checkpoint-dir", "ck", "--checkpoint-every", "1"]
    done = subprocess.run([str(part) for part in command], cwd=place, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    names = done.stdout.split()
    bench.check("a full disk", None if done.returncode == 1 and re.fullmatch(
        r"error: cannot write '[^']*ck/[^']+': No space left on device\n", done.stderr)
        else f"status {done.returncode}: {done.stderr}",
        None if "step-00000001" in names and not any(".writing" in name for name in names)
        else f"left {names}")
    bench.train(program, whole, 40)
    result = bench.train(program, place, 40, "--checkpoint-dir", "kept")
    bench.check("what a full disk keeps", None if result.status == 0 and result.resumed_at > 0 else
                f"status {result.status}: {result.err}",
                None if result.status else common.different(place, whole))


if __name__ == "__main__":
    sys.exit(common.main(common.arguments(__doc__).parse_args(), every_file, latest, full_disk))
