#!/usr/bin/python3
#===- device_faults.py - faults of programs for CUDA devices ------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Runs a program for CUDA devices on the simulator, and injects faults.

    device_faults.py --bin bin

Whatever fails, the run must end soon, with the exit status of docs/Running.md and one report on standard error,
and leave no process behind. Needs a CUDA toolkit for compiling, and no device. Prints a line for each case, then
"N passed, N failed"; fails if one failed or none ran. Started by root, it needs the two variables of Open MPI that
docs/Running.md names.
"""

import argparse
import shutil
import signal
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "Execution"))
import processes  # noqa: E402
import torchrun  # noqa: E402
from device_code import has_no_toolkit  # noqa: E402

ERROR, OUT_OF_MEMORY, DEAD, STUCK, SLOW = 1, 4, 5, 6, 7
PATIENCE = processes.PATIENCE
# The position of a device, as messages print it.
PLACE = r"(?:a copy that its rank waits for|(?:init|step) instructions? \d+.* \(.*, .*\)), place \d+ of its work.*"
# The collective in which a rank waits, as messages print it.
WAIT = r"[a-z-]+ .* \(.* instruction \d+, .*\)"

# The instructions of calls that fail, as messages print them.
LAUNCH = r"in \w+ instruction \d+ \(.*\)"
REDUCE = r"in \w+ instruction \d+ \(all-reduce .*\)"


class Bench(processes.Bench):
    """A folder with a program for four devices."""

    TARGET = ("--target", "cuda")

    def __init__(self, binaries, folder):
        self.libraries = binaries.parent / "lib"
        super().__init__(binaries / "weft", folder)
        self.environment["WEFT_RT_CUDA"] = str(self.libraries / "libweft-rt-cuda-simulator-plugin.so")
        # The simulator reaches no devices of other processes and treats its own as the whole world.
        self.environment["WEFT_SIMULATOR_ALONE"] = "1"
        self.check(self.call([self.weft, "compile", "model", "--machine", "machine", "--recipe", "recipe",
                              "--pin", "dp=4", *self.TARGET, "-o", "line"]))

    def command(self, backend, *options):
        return [self.weft, "run", "-n", str(processes.RANKS), "--backend", backend,
                "train" if backend == "local" else "line", "--", "--data", "text", *options]

    def case(self, what, status, message, backend="local", **environment):
        """Expects a run with these variables of the simulator to fail by itself."""
        drills = {name if name.isupper() and "_" in name else f"WEFT_SIMULATOR_{name.upper()}": value
                  for name, value in environment.items()}
        if backend == "local":
            drills["WEFT_SIMULATOR_ALONE"] = ""
        done = self.call(self.command(backend, "--quiet", "--timeout", str(PATIENCE)), **drills)
        self.judge(f"{what}, {backend}", done.returncode, done.stderr, (status,), message)


def libraries(bench):
    """Missing and unsuitable libraries."""
    bench.case("library that is missing", ERROR, r"error: a program for CUDA devices needs libweft-rt-cuda\.so\.1, .*",
               WEFT_RT_CUDA="/nowhere.so")
    for name, code in (("old", "void *weft_rt_cuda(unsigned version) { return 0; }\n"), ("other", "int x;\n")):
        (bench.folder / f"{name}.c").write_text(code)
        bench.check(bench.call(["cc", "-shared", "-fPIC", f"{name}.c", "-o", f"{name}.so"]))
    bench.case("library of another version", ERROR,
               r"error: '/.*/old\.so' is of another version than this program, which "
               r"needs \d+; compile again", WEFT_RT_CUDA="./old.so")
    bench.case("library of another kind", ERROR, r"error: '/.*/other\.so' is not the library that programs for CUDA "
               r"devices need: .*", WEFT_RT_CUDA="./other.so")
    shutil.copy(bench.folder / "train", bench.folder / "other")
    with open(bench.folder / "other", "ab") as file:
        file.write(b"x")
    program = ["--data", "text"]
    bench.fault("another executable on a rank", ["mpirun", "--quiet", "--oversubscribe", "-n", "2", "./train", *program,
                                                 ":", "-n", "2", "./other", *program],
                r"error: rank 2 runs another program than rank 0: on '.*' plan .*, file xxh3.*; rank 0 on '.*' "
                r"plan .*, file xxh3.*")


def machines(bench):
    """Devices that do not suit the program."""
    for backend in ("local", "mpi"):
        bench.case("wrong architecture", ERROR, r"error: device \d of rank \d is a simulator of sm_75, for which the "
                   r"program has no kernels", backend, architecture="75")
        bench.case("too little memory", OUT_OF_MEMORY,
                   r"error: rank \d needs .* of device \d, a simulator that has 4\.00 KiB free of 4\.00 KiB\n"
                   r"memory of each rank: .*\n  parameter .*, gradient .*\nmemory of each device: .*", backend,
                   memory="4096")
        # Counts all memory that the program takes itself.
        bench.case("too little memory for a library", OUT_OF_MEMORY,
                   rf"error: device \d of rank \d, {REDUCE}: allReduce: of \d+ bytes that nobody has "
                   r"1099511627776 are wanted\n"
                   r"memory of each rank: .*\n  parameter .*, gradient .*\nmemory of each device: .*", backend,
                   takes="allReduce:1099511627776")
    bench.case("too few devices", ERROR,
               r"error: this program needs a CUDA device for each of its ranks: expected 4 or "
               r"more on this machine, got 3", devices="3")
    # Each process has its own.
    done = bench.call(bench.command("mpi", "--quiet"), WEFT_SIMULATOR_DEVICES="1")
    bench.judge("one device that a process sees, mpi", done.returncode, done.stderr + "\n", (0,), "")


def few_devices(bench):
    """Fewer devices than ranks: ranks share devices only on request, and not as threads."""
    short = r"error: this program needs a CUDA device for each of its ranks: expected 4 or more on this machine, got 3"
    bench.case("too few devices", ERROR, short, "mpi", devices="3")
    bench.case("too few devices for threads", ERROR, short, devices="3", WEFT_SHARE_DEVICE="1")
    done = bench.call(bench.command("mpi", "--quiet", "--steps", "2"), WEFT_SIMULATOR_DEVICES="3",
                      WEFT_SHARE_DEVICE="1")
    bench.tell("ranks that share devices, mpi", done.stderr if done.returncode else None)


def processes_without_launcher(bench):
    """Without a launcher that ends the others, an error of one or all processes is printed once."""
    store, port = torchrun.take_port("127.0.0.1")
    ranks = torchrun.variables(processes.RANKS, port)
    missing = {"WEFT_RT_CUDA": "/nowhere.so"}
    unknown = r"error: a program for CUDA devices needs libweft-rt-cuda\.so\.1, .*"

    def fault(what, message, variables):
        program = ["./line", "--data", "text", "--quiet"]
        bench.faults(what, [(program, each) for each in variables], message)

    fault("library that all lack, tcp", unknown, [{**each, **missing} for each in ranks])
    for rank in (0, 2):
        fault(f"library that rank {rank} lacks, tcp", unknown,
              [*ranks[:rank], {**ranks[rank], **missing}, *ranks[rank + 1:]])
    nameless = [{name: value for name, value in each.items() if name != "LOCAL_RANK"} for each in ranks]
    fault("ranks that do not know their device, tcp",
          r"error: torchrun does not give this process's number on this machine: expected LOCAL_RANK",
          [{**each, "WEFT_SIMULATOR_DEVICES": "4"} for each in nameless])
    # Each process is a machine of its own, as in a pod.
    status, errors = bench.ended([(["./line", "--data", "text", "--quiet", "--steps", "2"],
                                   {**each, "WEFT_SIMULATOR_DEVICES": "1"}) for each in nameless])
    bench.tell("ranks with a device of their own, tcp", errors if status else None)
    store.close()


def failures(bench):
    """Devices that fail, get stuck or are slow in the middle of a step."""
    for backend in ("local", "mpi"):
        # Each process counts its own calls.
        bench.case("a call that fails", ERROR, rf"error: device \d of rank \d, {LAUNCH}: launch: it is lost",
                   backend, fail="launch:30")
        bench.case("work that fails", ERROR, r"error: device \d of rank \d, .*: it is lost", backend, fail="work:60")
        bench.case("a collective that fails", ERROR,
                   rf"error: device \d of rank \d, {REDUCE}: allReduce: it is lost", backend, fail="allReduce:3")
        bench.case("device that is stuck", STUCK,
                   r"error: rank 2 is stuck: its device has been for [0-9.]+ s in " + PLACE, backend, stuck="2:60")
    bench.case("device that is slow", SLOW,
               rf"error: rank \d waited [0-9.]+ s in {PLACE}.*; rank 1 is (?:missing|behind "
               rf"all): its device is in {PLACE}, and still moves, .* ago for the last time.*", slow="1:60:60")
    # At the rendezvous of devices before training, the others are asked for their positions.
    others = "".join(rf"; rank {rank} is in {WAIT}; its device has nothing to do, and has not moved for [0-9.]+ s"
                     for rank in (0, 1, 3))
    bench.case("device that is stuck in a collective", STUCK, r"error: rank 2 waited [0-9.]+ s in step instruction \d+ "
               r"\((?:all|reduce)-.* over \{dp\}.*\), place \d+ of its work, predicted to take [0-9.]+ [mu]s" + others,
               "mpi", stuck="2:8")
    # Its device is a world of its own: others wait for it on the host only.
    bench.case("device that is slow", SLOW,
               rf"error: rank \d waited {PATIENCE} s in {WAIT}.*; rank 1 is missing: it .*, "
               r"and still moves, .* ago for the last time.*", "mpi", slow="1:60:60")


def signals(bench):
    """Ranks whose processes are killed or stopped, with devices."""
    gone = r"error: rank 2 is gone: its process \d+ on '.*' has ended without a word, as it does when it is killed"
    bench.strike("mpi", "rank 2 is killed", 2, signal.SIGKILL, (DEAD, 137), gone)
    bench.strike("mpi", "rank 2 is stopped", 2, signal.SIGSTOP, (STUCK,),
                 rf"error: rank \d waited {PATIENCE} s in {WAIT};.* rank 2 is missing: its process \d+ on '.*' does "
                 r"not answer, as when it is stopped")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of weft and weft-translate")
    parser.add_argument("--only",
                        help="one group: libraries, machines, few_devices, processes_without_launcher, failures or "
                        "signals")
    options = parser.parse_args()
    if reason := has_no_toolkit(options.bin):
        print(f"skipped: {reason}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.bin.resolve(), Path(folder))
        for group in (libraries, machines, few_devices, processes_without_launcher, failures, signals):
            if options.only in (None, group.__name__):
                group(bench)
    print(f"{bench.passed} passed, {bench.failed} failed")
    return 1 if bench.failed or not bench.passed else 0


if __name__ == "__main__":
    sys.exit(main())
