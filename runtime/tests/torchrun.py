#!/usr/bin/python3
#===- torchrun.py - starts processes as torchrun does --------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""torchrun.py -n RANKS COMMAND...: starts COMMAND once for each rank, with the variables that torchrun
sets, so that tests need no PyTorch. Like torchrun's agent, it listens at MASTER_PORT itself. When a
process fails, or on SIGTERM, it ends all processes; its exit status is that of the first one that failed."""

import argparse
import os
import random
import signal
import socket
import subprocess
import sys
import time

# Seconds between SIGTERM and SIGKILL.
PATIENCE = 6
# The exit status on machines that lack a requirement.
SKIPPED = 77


def take_port(host):
    """Returns a socket that listens like the agent's store, with a free port above its own."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for _ in range(100):
        # Below the ports that the system assigns itself.
        port = random.randrange(15000, 32000)
        store = socket.socket(family)
        try:
            store.bind((host, port))
            store.listen()
            with socket.socket(family) as above:
                above.bind((host, port + 1))
            return store, port
        except OSError:
            store.close()
    print(f"skipped: cannot listen at {host}")
    sys.exit(SKIPPED)


def variables(ranks, port, host="127.0.0.1", run="test"):
    """Returns the variables that the environment of each rank's process gets additionally."""
    return [{"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank),
             "LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": host, "MASTER_PORT": str(port),
             "TORCHELASTIC_RUN_ID": run, "TORCHELASTIC_USE_AGENT_STORE": "True"}
            for rank in range(ranks)]


def end(processes):
    """Ends the processes that still run."""
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
    last = time.monotonic() + PATIENCE
    for process in processes:
        try:
            process.wait(max(last - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def status(process):
    """Returns the exit status as a shell reports it."""
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, required=True, metavar="RANKS")
    parser.add_argument("--host", default="127.0.0.1", help="MASTER_ADDR")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    store, port = take_port(options.host)
    processes = [subprocess.Popen(options.command, env={**os.environ, **added})
                 for added in variables(options.n, port, options.host)]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        while True:
            bad = [process for process in processes if process.poll() not in (None, 0)]
            if bad:
                end(processes)
                return status(bad[0])
            if all(process.poll() == 0 for process in processes):
                return 0
            time.sleep(0.02)
    finally:
        end(processes)
        store.close()


if __name__ == "__main__":
    sys.exit(main())
