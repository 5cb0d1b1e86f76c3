#===- gpu_ranks.py - several ranks for utils/gpu/check ------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Runs ranks as processes, as torchrun starts them, and tests how they end when one rank is gone.

Each rank has its own device, or all share the first. NCCL refuses two ranks on one device unless they seem to be on
different hosts: so each rank gets its own NCCL_HOSTID, and they communicate by sockets, with few channels since they
share the device's multiprocessors.
"""

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "runtime/tests"))
import torchrun  # noqa: E402  pylint: disable=wrong-import-position
from gpu_kit import Late  # noqa: E402  pylint: disable=wrong-import-position
from gpu_process import Process  # noqa: E402  pylint: disable=wrong-import-position

# Exit statuses of docs/Running.md.
DEAD, STUCK = 5, 6
# Seconds within which a rank must end that must notice a failure within five.
ENDED = 10


def sharing(base, rank):
    """Returns the variables by which a rank shares a device."""
    # With several devices, each rank would otherwise take its own.
    first = base.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    return {"CUDA_VISIBLE_DEVICES": first, "WEFT_SHARE_DEVICE": "1", "NCCL_HOSTID": f"weft-{rank}",
            "NCCL_MAX_NCHANNELS": "2", "NCCL_IB_DISABLE": "1", "NCCL_SOCKET_IFNAME": "lo"}


def environments(count, base, shares):
    """Returns an environment for each rank, and the socket that must stay open while they run."""
    store, port = torchrun.take_port("127.0.0.1")
    return store, [{**base, "OMP_NUM_THREADS": "2", **own, **(sharing(base, rank) if shares else {})}
                   for rank, own in enumerate(torchrun.variables(count, port))]


@contextlib.contextmanager
def started(command, count, base, shares=True):
    """Starts the processes of all ranks, and kills them in the end."""
    store, places = environments(count, base, shares)
    with contextlib.closing(store), contextlib.ExitStack() as stack:
        running = [stack.enter_context(Process(command, place)) for place in places]
        try:
            yield running
        finally:
            # Kill all ranks before waiting for one.
            for process in running:
                process.kill()


def run(command, count, base, seconds, shares=True):
    """Waits for all ranks; raises with their output if one fails or they take too long."""
    end = time.monotonic() + seconds
    with started(command, count, base, shares) as running:
        while any(process.status is None for process in running):
            if any(process.status for process in running):
                break
            if time.monotonic() > end:
                raise Late(f"not finished after {seconds:.0f} s")
            time.sleep(0.05)
        if any(process.status for process in running):
            raise RuntimeError(ended(running))


def drill(command, number, base, metrics, seconds):
    """Sends a signal to rank 1 of two after some steps; returns how rank 0 ends."""
    end = time.monotonic() + seconds
    expected = {signal.SIGKILL: DEAD, signal.SIGSTOP: STUCK}[number]
    with started(command, 2, base) as running:
        while not (metrics.exists() and metrics.read_bytes().count(b"\n") >= 3):
            if any(process.status is not None for process in running):
                raise RuntimeError("does not come to its third step: " + ended(running))
            if time.monotonic() > end:
                raise Late(f"does not come to its third step in {seconds:.0f} s")
            time.sleep(0.05)
        start = time.monotonic()
        os.kill(running[1].running.pid, number)
        left = max(end - start, 1)
        if not running[0].wait(left):
            raise (RuntimeError if left >= ENDED else Late)(f"the other rank does not end in {left:.0f} s")
        said = running[0].errors.strip()
        if running[0].status != expected:
            raise RuntimeError(f"expected exit status {expected}, got {running[0].status}: {said[-1000:]}")
        return f"exit status {expected} after {time.monotonic() - start:.1f} s: {(said.splitlines() or [''])[0][:160]}"


def ended(running):
    """Returns the output of the ranks that have ended, the first to fail among them."""
    return "; ".join(f"rank {rank} ends with status {process.status}: {process.errors.strip()[-1000:]}"
                     for rank, process in enumerate(running) if process.status is not None)
