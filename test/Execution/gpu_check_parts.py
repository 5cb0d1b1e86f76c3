#!/usr/bin/python3
#===- gpu_check_parts.py - parts of utils/gpu-check that take no build -------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""What utils/gpu-check makes of ranks, of PyTorch and of tools that end early, late, or without a word.

Prints a line for each case, then "N passed, N failed"; fails if one failed.
"""

import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "utils"))
import gpu_device  # noqa: E402  pylint: disable=wrong-import-position
import gpu_process  # noqa: E402  pylint: disable=wrong-import-position
import gpu_ranks  # noqa: E402  pylint: disable=wrong-import-position
import gpu_rows  # noqa: E402  pylint: disable=wrong-import-position
import gpu_speed  # noqa: E402  pylint: disable=wrong-import-position
import gpu_torch  # noqa: E402  pylint: disable=wrong-import-position
from gpu_kit import Late, Training  # noqa: E402  pylint: disable=wrong-import-position
from gpu_process import Process  # noqa: E402  pylint: disable=wrong-import-position

# Rank 0 is gone at once, the other stays.
GONE = ["sh", "-c", "[ $RANK = 0 ] && { echo it is lost >&2; exit 1; }; sleep 60"]
STAYS = ["sleep", "60"]
SAID = '{"losses": [1], "ms": [1]}'
OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"
REFUSED = "torch._dynamo.exc.Unsupported: a call"
CRASH = "RuntimeError: CUDA error: an illegal memory access was encountered\\nSearch for it"
TAKEN = ("device 0 of rank 0: 4.00 GiB of 79.2 GiB taken, by anybody; 1024 MiB before the run and by its context, "
         "3.00 GiB since then, predicted 2.50 GiB\n")
SANITIZED = "{} passed, {} failed\n========= ERROR SUMMARY: {} errors\n"


class Bench:
    def __init__(self, folder):
        self.folder = folder
        self.passed = self.failed = 0

    def expect(self, what, call, kind, text):
        """What a call returns, or raises, is of this kind and has this text in it."""
        start = time.monotonic()
        try:
            got = call()
        except Exception as error:  # pylint: disable=broad-exception-caught  # Any is compared.
            got = error
        is_good = type(got) is kind and text in str(got) and time.monotonic() - start < 20
        self.passed, self.failed = self.passed + is_good, self.failed + (not is_good)
        print("pass" if is_good else "FAIL", what, "" if is_good else repr(got), flush=True)

    def script(self, name, text):
        path = self.folder / name
        path.write_text("#!/bin/sh\n" + text + "\n")
        path.chmod(0o755)
        return path

    def torch(self, text, mode="eager", seconds=10):
        """Training by something in the place of PyTorch."""
        return lambda: gpu_torch.train(self.script("python", text), Training("gpt2-tiny"), self.folder, self.folder, "cpu",
                                       mode, 4, seconds)


def ranks(bench):
    bench.expect("a drill without steps", lambda: gpu_ranks.drill(GONE, signal.SIGKILL, os.environ, bench.folder / "no", 30),
                 RuntimeError, "does not come to its third step: rank 0 ends with status 1: it is lost")
    bench.expect("a rank that fails at once", lambda: gpu_ranks.run(GONE, 2, os.environ, 30), RuntimeError,
                 "rank 0 ends with status 1: it is lost")
    bench.expect("ranks that take too long", lambda: gpu_ranks.run(STAYS, 2, os.environ, 0.3), Late, "not finished after")
    bench.expect("a drill that takes too long", lambda: gpu_ranks.drill(STAYS, signal.SIGKILL, os.environ,
                                                                        bench.folder / "no", 0.3), Late, "third step")
    bench.expect("ranks that are done", lambda: gpu_ranks.run(["true"], 2, os.environ, 30), type(None), "None")


def torch(bench):
    bench.expect("PyTorch that does not end", bench.torch(f"echo '{SAID}'; sleep 60", seconds=1), dict, "losses")
    bench.expect("PyTorch that takes too long", bench.torch("sleep 60", seconds=0.3), Late, "not finished after")
    for what, said, mode, kind in (("little memory", OUT_OF_MEMORY, "eager", gpu_torch.Unable),
                                   ("a model that it does not compile", REFUSED, "compile", gpu_torch.Unable),
                                   ("a fault of the compiler that is not asked", REFUSED, "eager", RuntimeError),
                                   ("a crash", CRASH, "compile", RuntimeError)):
        bench.expect(f"PyTorch: {what}", bench.torch(f"printf '{said}\\n' >&2; exit 1", mode), kind,
                     said.split("\\n", maxsplit=1)[0])
    bench.expect("no PyTorch", lambda: gpu_torch.ask("/no/python"), tuple, "(None, '/no/python: No such file")
    bench.expect("a Python that does not answer", lambda: gpu_torch.ask(bench.script("python", "sleep 60"), 0.3), tuple,
                 "(None, ")


def tools(bench):
    bench.expect("kernels without errors", lambda: gpu_device.count_sanitized(SANITIZED.format(3, 0, 0)), int, "3")
    bench.expect("kernels with errors", lambda: gpu_device.count_sanitized(SANITIZED.format(3, 0, 2)), RuntimeError, "2 errors")
    bench.expect("kernels that are wrong", lambda: gpu_device.count_sanitized(SANITIZED.format(2, 1, 0)), RuntimeError, "1 fai")

    bench.expect("a device that is not supported", lambda: gpu_device.count_sanitized("Error: Device not supported"),
                 gpu_rows.Skip, "does not support")
    bench.script("nvidia-smi", "echo NVIDIA T1, 580.159.03, 81559 MiB")
    bench.expect("a device", lambda: gpu_process.find_device({}), tuple, "('NVIDIA T1, 580.159.03, 81559 MiB', '')")
    bench.script("nvidia-smi", "echo no device >&2; exit 9")
    bench.expect("no device", lambda: gpu_process.find_device({}), tuple, "(None, 'no device; ")
    bench.expect("memory", lambda: gpu_speed.taken_memory(TAKEN), str, "of the device 4.00 GiB, of these 1.00 before it and by "
                 "its context, then 3.00 GiB, predicted 2.50 GiB (+20.0%)")
    bench.expect("memory that is not told", lambda: gpu_speed.taken_memory("memory: 1 KiB"), RuntimeError, "does not say")
    bench.script("stays", "sleep 60 & echo $!; wait")

    def left():
        with Process([bench.folder / "stays"], None) as process:
            while not process.output:
                time.sleep(0.01)
            child = int(process.output)
        end = time.monotonic() + 5
        while Path(f"/proc/{child}/stat").exists() and time.monotonic() < end:
            if Path(f"/proc/{child}/stat").read_text().split()[2] == "Z":
                break
            time.sleep(0.01)
        return time.monotonic() < end

    bench.expect("what a process has started", left, bool, "True")


def states(bench):
    """How a row ends that has measured something before."""
    def raises(error, left):
        def measure(own, _):
            own.said.append("half of it")
            raise error
        row_bench = SimpleNamespace(is_real=True, for_row=lambda: SimpleNamespace(said=[]))
        return lambda: gpu_rows.measured(gpu_rows.Row("row", 5, measure), row_bench, [], left)

    bench.expect("the end of all time", raises(Late("late"), 6), tuple, "('cut off', 'late; half of it')")
    bench.expect("the end of a row's time", raises(Late("late"), 30), tuple, "('FAIL', 'late; half of it')")
    bench.expect("a tool that the kit lacks", raises(OSError(13, "denied"), 30), tuple, "('FAIL', 'PermissionError: ")
    bench.expect("what cannot be shown", raises(gpu_rows.Skip("none"), 30), tuple, "('skipped', 'none; half of it')")
    bench.expect("no time for it", raises(Late("late"), 4), tuple, "('not run', '4 s left, needs 5')")


def seconds(bench):
    """What rows may take of what is left."""
    row, needed = gpu_rows.Row("row", 10, None), gpu_rows.Row("needed", 20, None, needed=True)
    for what, later, left, expected in (
            ("enough for all", [row, needed], 100, (20, False)), ("nothing to spare", [row, needed], 30, (10, True)),
            ("some to spare", [needed, row], 35, (15, True)), ("rows that nobody needs", [row, row], 20, (20, False)),
            ("not enough for what is needed later", [needed], 25, (20, False)), ("not enough", [], 9, (0, True))):
        bench.expect(f"seconds: {what}", lambda given=(row, later, left): gpu_rows.allowed(*given), tuple, str(expected))
    for is_reduced in (False, True):
        whole = gpu_rows.START + sum(map(gpu_rows.planned, gpu_rows.rows(is_reduced)))
        bench.expect("seconds of all rows", lambda left=gpu_rows.SECONDS - whole: left >= 0, bool, "True")
    order = [row.needed for row in gpu_rows.rows()]
    bench.expect("what is needed comes first", lambda: order == sorted(order, reverse=True), bool, "True")
    bench.expect("what --help says", gpu_rows.plan, str, "compute-sanitizer memcheck\n")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
        bench = Bench(Path(folder))
        for part in (ranks, torch, tools, states, seconds):
            part(bench)
    print(f"{bench.passed} passed, {bench.failed} failed")
    return bench.failed > 0


if __name__ == "__main__":
    sys.exit(main())
