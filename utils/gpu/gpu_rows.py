#===- gpu_rows.py - the rows of utils/gpu/check ------------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""The rows of gpu-check's table, most important first, and the planned seconds of each.

A row passes, fails, or is skipped with a reason and proves nothing. The simulator skips rows that need a real device.

The planned seconds of all rows on one device fit into SECONDS. A row may take twice its own, but none of the seconds of
later rows that are needed. A row without enough seconds left is not run.
"""

import concurrent.futures
import heapq
import itertools
import math
import os
import re
import signal
import time
from dataclasses import replace

import gpu_ranks
from gpu_bench import CUBLASLT, CUDNN, NCCL, THREADS, Bench, Row, Skip, furthest
from gpu_device import calibrate, ceilings, conformance, functions, large_kernels, sanitized, small_kernels, versions
from gpu_kit import CORES, Late, Training, read_steps
from gpu_speed import (
    END,
    Run,
    Speed,
    attention,
    beside_float32,
    beside_torch,
    exact,
    losses,
    profile,
    repeated,
    resumed,
    speed,
    torch_speed,
)

# The seconds of all rows, and of the preparation before the first.
SECONDS, START = 540, 10
# Processors of the machine that the seconds are planned for.
PROCESSORS = 16
# Characters of the last command's output that a row that fails keeps in JSON.
PRINTED = 1 << 17
UNPROVEN = ("the driver's and the libraries' functions as the runtime calls them",
            "kernels on a device: none has run on one",
            "collectives by NCCL, between ranks that share a device and between devices",
            "losses of a program on a device against the host's and PyTorch's",
            "speed and memory on a device, how near predictions come, and how far PyTorch is",
            "attention by cuDNN, its speed, and that of attention within documents",
            "what becomes of ranks on a device when one is killed or stopped")

# With lines for their recipes, steps, and how far losses may be from the host's.
SMALL = ((Training("llama-tiny"), 20, 1e-4), (Training("gpt2-tiny"), 20, 1e-4), (Training("mixtral-tiny"), 20, 1e-4),
         (Training("deepseek-tiny"), 20, 1e-4), (Training("llama-tiny", "precision: BF16"), 20, 2e-2),
         (Training("llama-tiny", "precision: F16"), 20, 2e-3), (Training("llama-tiny", "precision: TF32"), 20, 2e-3),
         # Rounding to three bits makes last bits of sums grow: on the simulator, 5e-6 in the first step and 3e-2 in 20.
         (Training("llama-tiny", "precision: BF16 fp8 {}"), 8, 1e-2),
         (Training("llama-tiny", "precision: BF16 fp8 { scaling: DELAYED }"), 8, 1e-2),
         (Training("llama-tiny", "muon {}"), 20, 1e-4), (Training("llama-tiny", mesh="accumulation=4"), 20, 1e-4),
         (Training("gpt2-tiny", "precision: BF16"), 20, 2e-2), (Training("mixtral-tiny", "precision: BF16"), 20, 2e-2),
         (Training("deepseek-tiny", "precision: BF16"), 20, 2e-2))
# Of these, what is saved and resumed, and what is run again for the same bits.
RESUMED, REPEATED = SMALL[0][0], (SMALL[4][0], SMALL[7][0])
# With few steps, since the host is slow.
HOST = ((Training("gpt2-124m", "global_batch_tokens: 4096", plain=True), 3, 1e-4),
        (Training("llama-1b", "sequence_length: 512 global_batch_tokens: 512"), 2, 1e-4))
# With steps whose losses are compared with PyTorch's.
TORCH = ((Training("gpt2-tiny", plain=True), 20), (Training("llama-tiny"), 20),
         (Training("llama-tiny", "precision: BF16"), 20),
         (Training("gpt2-124m", "global_batch_tokens: 4096", plain=True), 6))
# The loss of this llama-1b leaps from 1.6 to 11.7 in its seventh step, so roundings grow: PyTorch's losses in two modes
# are 9e-3 apart, and 3e-2 from float32's, as the row that compares with those says.
LARGE = (
    Speed(Training("llama-1b", "precision: BF16"), 16384, 20, share=0.5, faster=1.05, smaller=0.85, apart=5e-2),
    Speed(Training("gpt2-124m", "precision: BF16 global_batch_tokens: 16384", plain=True), 16384, 50, per_second=520e3))
# In FP8, beside the first of these.
FP8 = Speed(Training("llama-1b", "precision: BF16 fp8 {}"), 16384, 20)
# The parts of attention that are timed.
ATTENTION = Training("llama-1b", "precision: BF16", sizes="layers: 2 vocabulary: 512")
# In place of the sizes of models above and of their recipes, to try all of this where there is no device.
REDUCED = {"llama-1b": ("layers: 2 hidden: 64 heads: 4 kv_heads: 2 ffn: 128 vocabulary: 256",
                        "sequence_length: 64 global_batch_tokens: 256", 256),
           "gpt2-124m": ("layers: 2 hidden: 64 heads: 4 ffn: 128 vocabulary: 256",
                         "sequence_length: 64 global_batch_tokens: 256", 256)}
# How ranks are started: as processes on one device, as threads, or as processes on devices of their own.
SHARE, OWN, PROCESSES = "shared device", "own devices", "own devices by torchrun"
# How programs are split; losses may be this far from one rank's.
SPLIT = tuple(Training(model, mesh=mesh) for model, mesh in (
    ("llama-tiny", "dp=2"), ("llama-tiny", "tp=2,sp=true"), ("llama-tiny", "dp=2,zero=3"), ("llama-tiny", "cp=2:ring"),
    ("mixtral-tiny", "ep=2"), ("llama-tiny", "dp=2,zero=1"), ("llama-tiny", "dp=2,zero=2"),
    ("llama-tiny", "cp=2:gather"), ("llama-tiny", "dp=2,tp=2,sp=true")))
SPLIT_STEPS, SPLIT_MOST = 10, 1e-4
# The libraries that matmuls need, and those of several ranks' programs.
MULTIPLIES, COMMUNICATES = (CUBLASLT,), (CUBLASLT, NCCL)
# How PyTorch runs beside the large models.
MODES = ("eager", "compile")
# The tools of compute-sanitizer, and the steps of the long run of later calls.
TOOLS, LONG = ("memcheck", "racecheck", "synccheck"), 100
# Of these, with words for the command line, those that are tried on devices of their own, which are two.
ON_TWO = (*((training, "") for training in SPLIT[:3]), (SPLIT[0], "--graphs"))


def split(training, way, words=""):
    """Compares losses of several ranks, started in this way, with one rank's."""
    def measure(bench, seconds):
        # Devices of a simulator have no peers in other processes.
        if way != OWN:
            bench.only_real()
        end = time.monotonic() + seconds
        one = Training(training.model)
        alone = (bench.found.steps.get(one) or bench.train(one, "cuda", SPLIT_STEPS, seconds))[:SPLIT_STEPS]
        metrics = bench.folder / "metrics"
        metrics.unlink(missing_ok=True)
        ranks = math.prod(map(int, re.findall(r"(?:dp|tp|cp|ep)=(\d+)", training.mesh)))
        command = [bench.kit.program(training, "cuda"), "--data", bench.text, "--steps", SPLIT_STEPS,
                   "--metrics", metrics, *words.split()]
        left = max(end - time.monotonic(), 1)
        if way == OWN:
            bench.run(command, left)
        else:
            gpu_ranks.run(command, ranks, bench.environment, left, way == SHARE)
        away = furthest(read_steps(metrics), alone)
        if not away <= SPLIT_MOST:
            raise RuntimeError(f"losses are up to {away:.1e} from one rank's, expected at most {SPLIT_MOST:.0e}")
        return f"{ranks} ranks, losses up to {away:.1e} from one rank's in {SPLIT_STEPS} steps"
    return measure


def drill(number):
    def measure(bench, seconds):
        metrics = bench.folder / "metrics"
        metrics.unlink(missing_ok=True)
        # Of the simulator, devices of other processes are taken to do as its own does.
        base = bench.environment if bench.is_real else {**bench.environment, "WEFT_SIMULATOR_ALONE": "1"}
        return gpu_ranks.drill([bench.kit.program(Training("llama-tiny", mesh="dp=2"), "cuda"), "--data", bench.text,
                                "--steps", 10000000, "--timeout", 5, "--metrics", metrics],
                               number, base, metrics, seconds)
    return measure


def named(training):
    return " ".join([training.model, *training.sizes.split(), *training.lines.split(), *training.mesh.split()])


def beside(mode, training):
    """Returns the name of the row that times PyTorch in this mode."""
    return f"PyTorch {mode}: {named(training)}"


def reduced(training):
    sizes, lines, _ = REDUCED.get(training.model, ("", "", 0))
    kept = re.findall(r"precision: \w+|fp8 .*|documents .*", training.lines) if sizes else [training.lines]
    return replace(training, sizes=sizes or training.sizes, lines=" ".join([*kept, *([lines] if lines else [])]))


class Models:
    """The models of the rows, of full size or reduced."""

    def __init__(self, is_reduced=False):
        change = reduced if is_reduced else lambda training: training
        self.host = [(change(training), *rest) for training, *rest in HOST]
        self.torch = [(change(training), *rest) for training, *rest in TORCH]
        *self.large, self.fp8 = [
            replace(case, training=change(case.training),
                    tokens=REDUCED[case.training.model][2] if is_reduced else case.tokens) for case in (*LARGE, FP8)]
        documents = replace(ATTENTION, lines=f"{ATTENTION.lines} documents {{ end: {END} }}")
        self.attention = change(ATTENTION), change(documents)


def speed_rows(models):
    """Returns the rows of speed: Weft's of both models first, since later rows need them."""
    for case, seconds in zip(models.large, (20, 12)):
        yield Row(named(case.training), seconds, speed(case), needed=True, libraries=MULTIPLIES)
    for mode, both in zip(MODES, ((20, 13), (44, 38))):
        for case, seconds in zip(models.large, both):
            yield Row(beside(mode, case.training), seconds, torch_speed(case, mode), needed=True)


def loss_rows(models, devices):
    for training, steps, most in SMALL:
        yield Row(named(training), 6, losses(training, steps, most), processors=THREADS, libraries=MULTIPLIES)
    yield Row(f"checkpoints: {named(RESUMED)}", 6, resumed(RESUMED, 10), processors=THREADS, libraries=MULTIPLIES)
    for training in REPEATED:
        yield Row(f"--deterministic: {named(training)}", 9, repeated(training, 10), processors=THREADS,
                  libraries=MULTIPLIES)
    for training, steps in models.torch:
        yield Row("beside PyTorch: " + named(training), 14, beside_torch(training, steps), processors=THREADS,
                  libraries=MULTIPLIES)
    # Each takes half of the machine, and the longest come first.
    for training, steps, most in models.host:
        yield Row(named(training), 38, losses(training, steps, most, is_large=True), processors=CORES,
                  libraries=MULTIPLIES)
    if devices > 1:
        for (training, words), way in itertools.product(ON_TWO, (OWN, PROCESSES)):
            yield Row(" ".join([f"{way}: {training.model} {training.mesh}", *words.split()]), 12,
                      split(training, way, words), processors=PROCESSORS // 2, libraries=COMMUNICATES)
    for training in SPLIT:
        yield Row(f"{SHARE}: {training.model} {training.mesh}", 6, split(training, SHARE), processors=PROCESSORS // 2,
                  libraries=COMMUNICATES)


def base_rows():
    """Returns the rows of the driver and of machine code, which need no library, then those of libraries."""
    yield Row("versions", 15, versions, "told", needed=True)
    for what, seconds, measure, libraries in (
            ("functions of the driver", 6, functions("Cuda*.*-*.SaysThatThereIsNoDriver:*.Computes*"), ()),
            ("kernels, small", 10, small_kernels, ()),
            ("functions of cuBLASLt", 6, functions("CudaDevice.ComputesMatmuls"), MULTIPLIES),
            ("functions of cuDNN", 26, functions("CudaDevice.ComputesAttention"), (CUDNN,))):
        yield Row(what, seconds, measure, needed=True, processors=PROCESSORS // 2, libraries=libraries)
    yield Row("ceilings of copies", 3, ceilings("copies"), needed=True)
    yield Row("ceilings of matmuls", 5, ceilings("matmuls"), needed=True, libraries=MULTIPLIES)


def rows(is_reduced=False, devices=1):
    """Returns all rows for this number of devices, most important first."""
    models = Models(is_reduced)
    yield from base_rows()
    yield from speed_rows(models)
    yield Row("weft calibrate", 12, calibrate, needed=True, libraries=MULTIPLIES)
    yield Row("kernels, large", 28, large_kernels, needed=True)
    llama = models.large[0]
    yield Row(f"float32: {named(llama.training)}", 45, beside_float32(llama), libraries=MULTIPLIES)
    yield from loss_rows(models, devices)
    for case, seconds in zip(models.large, (6, 4)):
        yield Row(f"profile: {named(case.training)}", seconds, profile(case.training), libraries=MULTIPLIES)
    yield Row(named(models.fp8.training), 20, speed(models.fp8), libraries=MULTIPLIES)
    yield Row(f"profile: {named(models.fp8.training)}", 6, profile(models.fp8.training), libraries=MULTIPLIES)
    yield Row("attention within documents", 15, attention(*models.attention), libraries=(CUBLASLT, CUDNN))
    for number in (signal.SIGKILL, signal.SIGSTOP):
        yield Row(f"drill: rank 1 gets {number.name}", 15 if number == signal.SIGSTOP else 10, drill(number),
                  libraries=COMMUNICATES)
    yield Row("conformance", 10, conformance, processors=THREADS, libraries=(NCCL,))
    for tool in TOOLS:
        yield Row(f"compute-sanitizer {tool}", 15, sanitized(tool), processors=THREADS)


def later_rows(is_reduced=False):
    """Returns the rows that only later calls have, which the first has no seconds for."""
    models = Models(is_reduced)
    case = models.large[0]
    yield Row(f"--deterministic: {named(models.fp8.training)}", 60, repeated(models.fp8.training, 12, is_large=True),
              libraries=MULTIPLIES)
    # A device that gets hot lowers its clock.
    yield Row(f"{named(case.training)}, {LONG} steps", 70, speed(replace(case, timed=LONG)), libraries=MULTIPLIES)
    for tool in TOOLS:
        yield Row(f"compute-sanitizer {tool}, all kernels", 60, sanitized(tool, ""), processors=THREADS)


def rows_after(results, is_reduced=False, devices=1):
    """Returns the rows of a later call: those that did not pass in `results`, the rows of earlier calls. First come
    those that were not run, then those that were cut off, with twice the seconds, then the rows that only later calls
    have, and last those that failed or were skipped."""
    states = {row["what"]: row["state"] for row in results}
    places = {"not run": 0, "cut off": 1, "FAIL": 3, "skipped": 3}
    left = [(places.get(states.get(row.what), first), row) for first, some in
            ((0, rows(is_reduced, devices)), (2, later_rows(is_reduced))) for row in some
            if states.get(row.what) not in ("pass", "told")]
    return [replace(row, seconds=2 * row.seconds) if states.get(row.what) == "cut off" else row
            for _, row in sorted(left, key=lambda both: both[0])]


def groups(some):
    """Groups rows: those that may run at once, as many as there are workers, and others alone."""
    return [(processors, list(same)) for processors, same in itertools.groupby(some, lambda row: row.processors)]


def workers(processors, there=PROCESSORS):
    return max(there // processors, 1) if processors else 1


def makespan(some, count):
    """Returns the seconds of rows that are started in order, so many at a time."""
    ends = [0] * count
    for row in some:
        heapq.heapreplace(ends, ends[0] + row.seconds)
    return max(ends)


def whole(is_reduced=False, devices=1):
    """Returns the seconds of all rows and of the preparation before the first."""
    return START + sum(makespan(some, workers(processors)) for processors, some in groups(rows(is_reduced, devices)))


def plan():
    """Returns the list of rows and their seconds for --help; rows that run at once take one line."""
    lines = []
    for processors, some in groups(rows()):
        count = workers(processors)
        if len(some) > 2 * count > 2:
            needed = any(row.needed for row in some)
            lines.append((f"{some[0].what} and {len(some) - 1} others, {count} at a time", makespan(some, count),
                          needed))
        else:
            lines += [(row.what + (", beside the next" if count > 1 and row is not some[-1] else ""), row.seconds,
                       row.needed)
                      for row in some]
    lines.append(("besides, with two devices or more: ranks on devices of their own", whole(devices=2) - whole(),
                  False))
    return "".join(f"  {seconds:4.0f}  {what}{', needed' if needed else ''}\n" for what, seconds, needed in
                   [("what comes before", START, True), *lines])


def timed():
    """Returns the trainings whose speed rows measure, by the rows' names."""
    return {named(case.training): case.training for models in (Models(), Models(is_reduced=True))
            for case in (*models.large, models.fp8)}


def programs(only="", is_reduced=False):
    """Returns the programs of a pack, as pairs of training and target, and those whose times are predicted."""
    models = Models(is_reduced)
    found = {(training, target): None for training, *_ in (*SMALL, *models.host) for target in ("cuda", "host")}
    found |= {(training, "cuda"): None for training in (*(row[0] for row in models.torch),
                                                       *(case.training for case in (*models.large, models.fp8)),
                                                       exact(models.large[0].training), *models.attention, *SPLIT)}
    return ([pair for pair in found if re.search(only, pair[0].model)],
            [case.training for case in (*models.large, models.fp8) if re.search(only, case.training.model)])


def allowed(row, later, left):
    """Returns the seconds that a row may take; 0 if fewer are left than planned."""
    spare = left - row.seconds
    for other in later:
        if other.needed and other.seconds <= spare:
            spare -= other.seconds
        elif other.needed:
            break
    return row.seconds + min(max(spare, 0), row.seconds) if left >= row.seconds else 0


def measured(row, bench, later, left):
    """Runs a row; returns its state, its result and its figures."""
    # A simulator is slow, so only --slower limits its rows.
    seconds = allowed(row, later, left) if bench.is_real or bench.options.slower else left
    if seconds <= 0:
        return "not run", f"{int(max(left, 0))} s left, needs {row.seconds:.0f}", {}
    own = bench.for_row()
    state, result = tried(row, own, seconds)
    if state in ("FAIL", "cut off") and own.printed:
        own.figures["printed"] = own.printed[-PRINTED:]
    return state, "; ".join([*([result] if result else []), *own.said]), own.figures


def tried(row, bench, seconds):
    start = time.monotonic()
    try:
        bench.need(row.libraries)
        return row.success, row.measure(bench, seconds)
    except Skip as reason:
        return "skipped", str(reason)
    except Late as late:
        # The planned seconds are a guess, so this is no failure.
        return "cut off", f"after {time.monotonic() - start:.0f} s, planned {row.seconds:.0f}: {late}"
    except RuntimeError as error:
        return "FAIL", str(error)
    except Exception as error:  # pylint: disable=broad-exception-caught  # Other rows are worth their time.
        return "FAIL", f"{type(error).__name__}: {error}"


def keep(bench, results, models):
    """Keeps figures of earlier calls that later rows are compared with."""
    figures = {row["what"]: row["figures"] for row in results if row["state"] == "pass" and "figures" in row}
    # Also of rows that failed since these losses are too far from ours.
    theirs = {row["what"]: row.get("figures", {}).get("PyTorch's") for row in results}
    for case in models.large:
        if run := figures.get(named(case.training), {}).get("run"):
            bench.found.speeds[case] = Run(**run)
        for mode in MODES:
            if found := theirs.get(beside(mode, case.training)):
                bench.found.theirs[case, mode] = found
    for row in figures.values():
        bench.found.ceilings.update(row.get("ceilings", {}))


def chosen(options, earlier):
    """Returns the rows that the options name, with their seconds on this machine."""
    some = rows_after(earlier, options.reduced, options.devices) if earlier else rows(options.reduced, options.devices)
    return [replace(row, seconds=row.seconds * (options.slower or 1)) for row in some
            if re.search(options.only, row.what)]


def run(kit, options, folder, end, earlier=()):
    """Runs the rows that the options name and that did not pass in `earlier` rows, until `end`; prints each, and yields
    all so far after each."""
    later = chosen(options, earlier)
    there = min(PROCESSORS, len(os.sched_getaffinity(0)))
    done, bench = {}, Bench(kit, options, folder)
    keep(bench, earlier, Models(options.reduced))

    def one(row, others):
        start = time.monotonic()
        state, result, figures = measured(row, bench, others, end - start)
        return {"what": row.what, "state": state, "result": result, "seconds": round(time.monotonic() - start, 1),
                "planned": row.seconds, **({"figures": figures} if figures else {})}

    try:
        for processors, some in groups(later):
            # Rows that run at the same time are not later ones.
            count, later = workers(processors, there), later[len(some):]
            others = [later if count > 1 else some[number + 1:] + later for number in range(len(some))]
            with concurrent.futures.ThreadPoolExecutor(count) as pool:
                places = {pool.submit(one, *both): len(done) + number
                          for number, both in enumerate(zip(some, others, strict=True))}
                # As each ends, since the device may be taken away while the first still runs.
                for ended in concurrent.futures.as_completed(places):
                    row = done[places[ended]] = ended.result()
                    print(row["state"], row["what"] + ":", *row["result"].split(), flush=True)
                    yield [done[place] for place in sorted(done)]
    finally:
        bench.close()
