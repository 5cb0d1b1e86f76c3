#!/usr/bin/python3
#===- allocations.py - steps of training allocate nothing ------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Runs compiled programs with allocations.c loaded before the C library, and counts what they allocate in steps.

    allocations.py --bin bin

From the end of the second step to the end of the last but one, no thread of any rank may call malloc, mmap or a
relative of theirs: not for kernels, matmuls and collectives, and not to read data, print lines or validate. The
exceptions are memory that oneDNN's GEMM takes for packed operands, that in which Open MPI keeps messages until they
are received, and that of the questions and answers where a rank has waited long for others. Programs for devices run
on the simulator, whose own calls do not count; its counts of calls of the driver show that steps allocate and make
nothing on devices either. First a small program shows that allocations.c sees such calls.

Prints a line for each case, then "N passed, N failed"; fails if one failed or none ran. Started by root, it needs the
two variables of Open MPI that docs/Running.md names.
"""

import functools
import os
import re
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "Execution"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "runtime/tests"))
import torchrun  # pylint: disable=wrong-import-position
from device_code import has_no_toolkit  # pylint: disable=wrong-import-position
from examples_bench import ROOT, Bench, main_of, run  # pylint: disable=wrong-import-position

HERE = Path(__file__).resolve().parent
STEPS = 8
# Seconds that a run may take.
TIME_LIMIT = 120
# The same in allocations.c.
COUNTS = struct.Struct("4q")
AFTER, MOST_LOGGED = 2, 100000
# Frames of a stack that are printed.
FRAMES = 12
# Where oneDNN multiplies by its GEMM, it packs operands into memory that it frees before it returns.
PACKING = re.compile(r"posix_memalign of \d+ bytes libdnnl")
# Where a rank waits for more than a tenth of a second, as on a busy machine, it asks about the others.
ASKING = re.compile(r"::Engine::report|::FailureDetector::")
# Smaller than the examples, so that ranks need not wait long for each other.
SMALL = ("global_batch_sequences: 16", "global_batch_sequences: 8")
# Two cores for each rank, and links so slow that collectives run beside computation on hosts, too.
MACHINE = (("cores: 1", "cores: 2"), ("bandwidth_bytes_per_second: 3.2e9", "bandwidth_bytes_per_second: 2e7"))
ATTEMPTS = {"local": 1, "tcp": 3, "mpi": 3, "cuda": 1}
# Calls of the driver that a step must not make.
MAKING = re.compile(r"allocate|make|prepare|join|split|register|load|reserve")

# All steps that are watched go into a time line.
TIMELINE = ("--timeline", "line", "--timeline-steps", f"2-{STEPS - 2}")

# How, the example, pins, lines for the recipe, options of the run.
CASES = (
    ("local", "llama-tiny", "dp=1", "", ("--threads", "2", "--metrics", "metrics")),
    ("local", "gpt2-tiny", "dp=1", "", ("--validation-split", "0.1", "--validation-every", "2")),
    ("local", "llama-tiny", "dp=2,tp=2,sp=true,zero=3", "documents { end: 5 }", ()),
    ("local", "llama-tiny", "dp=2,zero=2", "precision: BF16", ()),
    ("local", "llama-tiny", "dp=2", "precision: F16", ("--metrics", "metrics")),
    ("local", "llama-tiny", "dp=2", "precision: BF16 fp8 { scaling: DELAYED }", ()),
    ("local", "llama-tiny", "dp=1", "precision: TF32", ()),
    ("local", "llama-tiny", "dp=1", "precision: F64", ()),
    ("local", "mixtral-tiny", "ep=2", "", ("--metrics", "metrics", "--threads", "2")),
    ("local", "llama-tiny", "pp=2,accumulation=4,recompute=full", "", TIMELINE),
    ("local", "llama-tiny", "pp=2,accumulation=4,dp=2,zero=1", "precision: BF16", ()),
    ("tcp", "llama-tiny", "dp=2,tp=2", "", ()),
    ("tcp", "llama-tiny", "dp=2,zero=3", "precision: BF16", ("--validation-split", "0.1", "--validation-every", "2")),
    ("tcp", "llama-tiny", "pp=2,accumulation=4,recompute=full", "", ("--metrics", "metrics")),
    ("tcp", "llama-tiny", "pp=2,accumulation=4,dp=2,zero=1", "", TIMELINE),
    ("mpi", "llama-tiny", "pp=2,accumulation=4,dp=2,zero=1", "", ()),
    ("cuda", "llama-tiny", "dp=2", "", ("--metrics", "metrics")),
    ("cuda", "llama-tiny", "dp=2", "", ("--graphs", "--validation-split", "0.1", "--validation-every", "2")),
    ("cuda", "llama-tiny", "pp=2,accumulation=4", "", ()),
)
ALONE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
int main(int count, char **arguments) {
  for (int step = 0; step < 8; ++step) {
    char line[64];
    void *volatile memory = NULL, *volatile none = NULL;
    const char *how = step == 4 && count > 1 ? arguments[1] : "";
    if (!strcmp(how, "malloc")) memory = malloc(1);
    if (!strcmp(how, "calloc")) memory = calloc(1, 1);
    if (!strcmp(how, "realloc")) memory = realloc(none, 1);
    if (!strcmp(how, "aligned_alloc")) memory = aligned_alloc(64, 64);
    if (!strcmp(how, "posix_memalign") && posix_memalign((void **)&memory, 64, 64)) return 1;
    if (!strcmp(how, "mmap")) memory = mmap(NULL, 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int length = snprintf(line, sizeof line, "step %d/8  loss\n", step);
    if (fwrite(line, 1, length, stdout) != length) return 1;
  }
  return 0;
}
"""
WAYS = ("malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign", "mmap")


def symbol(frame, folder):
    """The function of a frame in the program; other frames as they are."""
    name, offset = frame.rsplit("+", 1)
    if not (folder / name).exists():
        return frame
    done = subprocess.run(["addr2line", "-Cfe", folder / name, offset], capture_output=True, text=True, check=False)
    return done.stdout.split("\n")[0].split("(")[0] or frame


class AllocationsBench(Bench):
    """Besides the files of a case, the library, its counts and its log."""

    def __init__(self, tools, folder):
        super().__init__(tools, folder)
        machine = (ROOT / "machines/laptop.textproto").read_text()
        for old, new in MACHINE:
            assert machine.count(old) == 1, old
            machine = machine.replace(old, new)
        (folder / "machine").write_text(machine)
        self.simulator = tools.parent / "lib/libweft-rt-cuda-simulator-plugin.so"
        self.watch = {"LD_PRELOAD": str(folder / "allocations.so"), "ALLOCATIONS": str(folder / "counts"),
                      "ALLOCATIONS_LOG": str(folder / "log")}
        run(["cc", "-O1", "-Wall", "-Wextra", "-shared", "-fPIC", HERE / "allocations.c", "-o", "allocations.so"],
            folder)

    def watched(self, commands):
        """Runs processes of one run; returns the numbers of allocations.c and its log."""
        (self.folder / "counts").write_bytes(bytes(COUNTS.size))
        (self.folder / "log").write_text("")
        with open(self.folder / "errors", "w+") as errors:
            processes = [subprocess.Popen(command, cwd=self.folder, env={**os.environ, **added}, stderr=errors,
                                          stdout=subprocess.DEVNULL) for command, added in commands]
            try:
                statuses = [process.wait(TIME_LIMIT) for process in processes]
            finally:
                for process in processes:
                    process.kill()
            if any(statuses):
                raise RuntimeError(f"the run fails: {(self.folder / 'errors').read_text().strip()}")
        return COUNTS.unpack((self.folder / "counts").read_bytes()), (self.folder / "log").read_text().splitlines()

    def faults(self, commands, ranks=1):
        """What the processes of one run allocate in steps: a text, or None."""
        (processes, _, elsewhere, state), log = self.watched(commands)
        if processes != ranks or not elsewhere or state != AFTER:
            return f"{processes} processes were watched, with {elsewhere} other allocations, up to state {state}"
        name = functools.cache(lambda frame: symbol(frame, self.folder))
        calls = [line for line in log
                 if not PACKING.match(line) and not any(ASKING.search(name(frame)) for frame in line.split()[4:])]
        if not calls and len(log) < MOST_LOGGED:
            return None
        texts = []
        for line, count in Counter(calls).most_common(5):
            call, frames = re.match(r"(\S+ of \d+ bytes) ?(.*)", line).groups()
            names = [name(frame) for frame in frames.split()[:FRAMES]]
            texts.append(f"{count} x {call} in " + " < ".join(names))
        return f"{len(calls)} allocations in steps:\n  " + "\n  ".join(texts)

    def check_watch(self, way):
        """Checks that the library sees a call of `way` in a step of a small program."""
        (self.folder / "alone.c").write_text(ALONE)
        run(["cc", "-O0", "alone.c", "-o", "alone"], self.folder)
        fault = self.faults([(["./alone", way], self.watch)])
        seen = fault is not None and fault.startswith("1 allocations in steps") and f"1 x {way} of" in fault
        return None if seen else f"expected one allocation, got {fault}"

    def check_case(self, how, example, pins, recipe, options):
        self.describe(example, recipe, "")
        text = (self.folder / "recipe").read_text()
        (self.folder / "recipe").write_text(text.replace(*SMALL))
        target = "cuda" if how == "cuda" else "host"
        run([self.tools / "weft", "compile", "model", "--recipe", "recipe", "--machine", "machine", "--pin", pins,
             "--target", target, "-o", "train"], self.folder)
        command = ["./train", "--data", "text", "--steps", str(STEPS), *options]
        fault = None
        for _ in range(ATTEMPTS[how]):
            fault = self.faults(*self.commands(how, command))
            if fault is None:
                break
        return fault or (self.device_fault(command) if how == "cuda" else None)

    def commands(self, how, command):
        """The commands of a run, with what each adds to the environment, and the number of processes."""
        if how == "local":
            return [(command, self.watch)], 1
        if how == "cuda":
            return [(command, {**self.watch, "WEFT_RT_CUDA": str(self.simulator),
                               "ALLOCATIONS_EXCEPT": self.simulator.name})], 1
        ranks = int(re.search(r"\bon (\d+) ranks\b", run(["./train", "--help"], self.folder))[1])
        if how == "mpi":
            watch = [f"{name}={value}" for name, value in {**self.watch, "ALLOCATIONS_EXCEPT": "libmpi.so"}.items()]
            mpirun = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), "env"]
            return [([*mpirun, *watch, *command], {})], ranks
        store, port = torchrun.take_port("127.0.0.1")
        store.close()
        return [(command, {**self.watch, **added}) for added in torchrun.variables(ranks, port)], ranks

    def device_fault(self, command):
        """What steps allocate or make on devices: a text, or None."""
        calls = []
        for steps in (STEPS, 2 * STEPS):
            environment = {**os.environ, "WEFT_RT_CUDA": str(self.simulator),
                           "WEFT_SIMULATOR_CALLS": str(self.folder / "calls")}
            run([*command, "--steps", steps], self.folder, environment)
            lines = (self.folder / "calls").read_text().splitlines()
            calls.append({name: int(count) for name, count in map(str.split, lines)})
        few, many = calls
        wrong = [name for name in many if MAKING.match(name) and many[name] != few.get(name)]
        if not many["launch" if "--graphs" not in command else "launchGraph"]:
            return "nothing was launched"
        return f"{', '.join(wrong)} of the driver in steps" if wrong else None


def check_all(bench):
    for way in WAYS:
        bench.tell(f"allocations.c sees {way}", bench.check_watch, way)
    no_toolkit = has_no_toolkit(bench.tools)
    for case in CASES:
        how, example, pins, recipe, options = case
        if how == "cuda" and no_toolkit:
            print(f"skip {' '.join(case[:3])}: {no_toolkit}")
            continue
        words = " ".join([how, example, pins, recipe, *options])
        bench.tell(re.sub(" +", " ", words), bench.check_case, *case)


if __name__ == "__main__":
    sys.exit(main_of(__doc__, AllocationsBench, check_all))
