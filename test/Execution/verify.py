#!/usr/bin/python3
#===- verify.py - `weft verify` accepts right plans ------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Runs `weft verify` on cases of cases.py and on the examples, each with several meshes.

    verify.py --weft bin/weft            a few, quickly
    verify.py --weft bin/weft --full     all cases on all their meshes, all examples, and graphs

Each must be verified, with every kind of collective and each op sharded as in the original, and with --full
in a minute of processor time, which other work on the machine does not change. A run that is stopped must
leave no files and no processes. Prints a line for each, with its seconds and those of processors, then "N passed,
N failed"; fails if one failed or none ran.
"""

import argparse
import contextlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cases

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "Onnx"))
import graphs  # noqa: E402

SECONDS = 60
# What is wrong where a signal comes too late.
DONE = "it was done before it could be stopped"

# Machines that have the precision, as many nodes as the ranks need, and meshes that the sizes of each example
# allow.
EXAMPLES = {
    "llama-tiny": ("laptop", 1, ["dp=2,tp=2", "pp=2,dp=2,tp=2,zero=3,accumulation=4",
                                 "dp=2,cp=2:ring,tp=2,sp=true,zero=3"]),
    "gpt2-tiny": ("laptop", 1, ["dp=4,tp=2,zero=1", "cp=2:all-to-all,tp=2"]),
    "mixtral-tiny": ("laptop", 1, ["dp=2,ep=2,tp=2", "dp=2,ep=2,zero=3", "ep=4"]),
    "deepseek-tiny": ("h100-8", 2, ["dp=2,ep=2,tp=2", "ep=4,zero=0", "dp=2,ep=4,tp=2,zero=3"]),
    "gpt2-124m": ("a100-8", 2, ["dp=8,zero=2", "dp=4,cp=2:gather", "dp=4,tp=2,cp=2:ring,zero=3"]),
    "llama-160m": ("h100-8", 1, ["dp=2,tp=4,sp=true", "dp=8,zero=3", "dp=2,cp=4:ring"]),
    "llama3-8b": ("h100-8", 2, ["dp=2,cp=8:ring,zero=3", "pp=4,fsdp=4,accumulation=8",
                                "dp=4,cp=2:ring,tp=2,sp=true,zero=3"]),
    "llama3-70b": ("h100-8", 2, ["dp=2,tp=8,sp=true,zero=3"]),
    "mixtral-8x7b": ("h100-8", 2, ["dp=2,ep=8,zero=1", "dp=2,ep=4,tp=2,zero=3"]),
}
QUICK_EXAMPLES = ("mixtral-tiny",)
QUICK_CASES = (("gpt2-adamw", "dp=2,cp=2:gather,tp=2,sp=true"), ("llama-sgd", "dp=2,tp=2"),
               ("gpt2-adamw", "dp=2,cp=3:ring"),
               ("gpt2-adamw", "dp=2,tp=2,sp=true,zero=3,accumulation=2"),
               ("llama-muon", "dp=2,tp=2,zero=1"), ("llama-sgd-plain-tied-f64-chunks4", "cp=2:ring"),
               ("deepseek-adamw", "ep=2,tp=2"), ("deepseek-adamw-plain-tied-f64-six", "ep=4"),
               ("llama-sgd-dropout-untied-f64-heads4on2", "tp=5"),
               # In which a number lies between two FP8 numbers.
               ("llama-sgd-plain-untied-f64-fp8", "cp=3:ring"))


def work_of_examples(full):
    """Yields (name, arguments)."""
    for name, (machine, nodes, meshes) in EXAMPLES.items():
        folder = ROOT / "examples" / name
        if full or name in QUICK_EXAMPLES:
            for mesh in meshes if full else meshes[:1]:
                yield f"{name} {mesh}", [folder / "model.textproto", "--machine",
                                         ROOT / f"machines/{machine}.textproto", "--nodes", nodes,
                                         "--recipe", folder / "recipe.textproto", "--pin", mesh]


def work_of_fp8(folder):
    """Yields (name, arguments) of more layers than small models have, in micro-batches, and in stages."""
    example, recipe = ROOT / "examples/llama-tiny", folder / "fp8.textproto"
    recipe.write_text((example / "recipe.textproto").read_text() +
                      "precision: BF16 fp8 { scaling: DELAYED history: 2 }")
    for pins in ("dp=2,zero=2,accumulation=2", "pp=3,dp=2,zero=1,accumulation=4"):
        yield f"llama-tiny in FP8 {pins}", [
            example / "model.textproto", "--machine", ROOT / "machines/h100-8.textproto", "--recipe", recipe,
            "--pin", pins]


def work_of_cases(full, folder):
    """Yields (name, arguments)."""
    chosen = cases.default_cases() + cases.fp8_cases() + cases.bf16_cases()
    machine = folder / "machine.textproto"
    machine.write_text(cases.MACHINE)
    for case in chosen:
        place = folder / case.name
        place.mkdir(exist_ok=True)
        model, recipe = cases.write(case, place)
        for mesh in case.meshes:
            if full or any(case.name.startswith(name) and mesh == quick and case.precision == "F64"
                           for name, quick in QUICK_CASES):
                yield f"{case.name} {mesh}", [model, "--machine", machine, "--recipe", recipe,
                                              "--pin", mesh]


def work_of_graphs(weft, folder):
    """Yields (name, arguments)."""
    recipe = """version: 1 steps: 8 seed: 3 {batch} adamw {{ epsilon: 1e-6 }}
schedule {{ peak_learning_rate: 0.01 decay: CONSTANT }} clip_norm: 1
"""
    for name, make in graphs.MODELS.items():
        place = folder / name
        place.mkdir()
        model = make()
        model.write(place / f"{name}.textproto")
        subprocess.run([weft, "import", place / f"{name}.textproto", "-o", place / "imported"],
                       stdout=subprocess.DEVNULL, check=True)
        batch = (f"sequence_length: {model.shape[1]} global_batch_sequences: 32"
                 if model.kind == graphs.INT64 else "global_batch_samples: 32")
        (place / "recipe.textproto").write_text(recipe.format(batch=batch))
        for mesh in ("dp=4", "dp=2,tp=2"):
            yield f"graph {name} {mesh}", [place / "imported/model.textproto", "--machine",
                                           ROOT / "machines/laptop.textproto", "--recipe",
                                           place / "recipe.textproto", "--pin", mesh]


def fault_of(weft, arguments):
    """Runs weft verify; returns a sentence about the fault, or None."""
    try:
        done = subprocess.run([str(part) for part in [weft, "verify", *arguments]],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=10 * SECONDS)
    except subprocess.TimeoutExpired:
        return f"not done after {10 * SECONDS} s"
    if done.returncode != 0:
        return " | ".join(done.stdout.strip().splitlines()[-3:])
    for line in done.stdout.splitlines():
        if line.endswith("not kept"):
            return line.strip()
    return None if "\nverified: " in done.stdout else "does not say that it is verified"


def programs_in(folder):
    """Returns the numbers of the processes whose programs are in `folder`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                program = Path(os.readlink(entry / "exe"))
            except OSError:
                continue  # It has ended, or is another user's.
            if folder in program.parents:
                found.append(int(entry.name))
    return found


def halted(pids):
    """Stops the processes; returns those that had not ended yet."""
    found = []
    for pid in pids:
        try:
            os.kill(pid, signal.SIGSTOP)
            found.append(pid)
        except ProcessLookupError:
            pass
    return found


def fault_of_stopping(weft, arguments, number, folder, runs):
    """Sends a signal to weft verify alone, as soon as its folder exists, or with `runs` as soon as it
    trains a program. Returns a sentence if files or processes stay, or None. On a busy machine it may
    end before the signal."""
    for attempt in range(5):
        place = folder / str(attempt)
        place.mkdir(parents=True)
        fault = fault_of_signal(weft, arguments, number, place, runs)
        if fault != DONE:
            return fault
    return fault


def kill(pids):
    """Kills the processes that have not ended yet."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def fault_of_signal(weft, arguments, number, folder, runs):
    """Runs weft verify once and sends it a signal."""
    process = subprocess.Popen([str(part) for part in [weft, "verify", *arguments]],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env={**os.environ, "TMPDIR": str(folder)})
    trained = []
    while process.poll() is None and not (trained if runs else [*folder.iterdir()]):
        time.sleep(0.002)
        trained = halted(programs_in(folder)) if runs else []  # Or they would soon end by themselves.
    if process.poll() is not None:
        kill(programs_in(folder))  # What was halted would stay.
        return DONE
    process.send_signal(number)
    process.wait()
    deadline = time.monotonic() + SECONDS
    while (any(folder.iterdir()) or programs_in(folder)) and time.monotonic() < deadline:
        time.sleep(0.01)
    left = [path.name for path in folder.iterdir()] + programs_in(folder)
    kill(programs_in(folder))
    return f"leaves {left}" if left else None


def processor_seconds():
    """Returns the processor seconds of all ended child processes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default="build/bin/weft", help="the compiler")
    parser.add_argument("--full", action="store_true", help="all cases and examples")
    parser.add_argument("--only", default="", help="only those whose name contains this")
    options = parser.parse_args()
    weft = Path(options.weft).resolve()

    passed = failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        work = [*work_of_examples(options.full), *work_of_cases(options.full, Path(temporary)),
                *work_of_fp8(Path(temporary))]
        if options.full:
            work += work_of_graphs(weft, Path(temporary))
        checks = [(name, lambda arguments=arguments: fault_of(weft, arguments))
                  for name, arguments in work]
        checks += [(f"stopped by {number.name}",
                    lambda number=number, runs=runs: fault_of_stopping(
                        weft, work[0][1], number, Path(temporary) / number.name, runs))
                   for number, runs in ((signal.SIGINT, False), (signal.SIGTERM, True),
                                        (signal.SIGKILL, True))]
        for name, check in checks:
            if options.only not in name:
                continue
            start, used = time.monotonic(), processor_seconds()
            fault = check()
            seconds, used = time.monotonic() - start, processor_seconds() - used
            if options.full and not fault and used > SECONDS:
                fault = f"takes more than {SECONDS} s of processors"
            failed, passed = failed + bool(fault), passed + (not fault)
            print(f"{'FAIL' if fault else 'pass'} {name}: {seconds:.1f} s, {used:.1f} s of processors"
                  + (f": {fault}" if fault else ""), flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
