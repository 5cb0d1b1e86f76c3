#===- gpu_rows.py - what utils/gpu-check tries -------------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""The rows of gpu-check's table, in the order of their worth, and how each is measured.

A row passes, fails, or is skipped with a reason: then it shows nothing. What only a real device can show is skipped on
the stand-in. What a row has measured stays in the table, however it ends.
"""

import itertools
import json
import os
import re
import shutil
import signal
import statistics
import threading
import time
from dataclasses import dataclass

import gpu_ranks
import gpu_torch
from gpu_kit import TEXT, Late, Training, read_steps
from gpu_process import Process, query_device

TOOLS = ("weft-rt-kernels", "weft-rt-cuda-plugin-test")
UNPROVEN = ("the driver's and the libraries' functions as the runtime calls them",
            "kernels on a device: none has run on one",
            "collectives by NCCL, between ranks that share a device and between devices",
            "losses of a program on a device against the host's and PyTorch's",
            "speed and memory on a device, how near predictions come, and how far PyTorch is",
            "what becomes of ranks on a device when one is killed or stopped")

# With lines for their recipes, steps, and how far losses may be from the host's.
SMALL = ((Training("llama-tiny"), 20, 1e-4), (Training("gpt2-tiny"), 20, 1e-4), (Training("mixtral-tiny"), 20, 1e-4),
         (Training("deepseek-tiny"), 20, 1e-4), (Training("llama-tiny", "precision: BF16"), 20, 2e-2),
         (Training("llama-tiny", "precision: F16"), 20, 2e-3), (Training("llama-tiny", "precision: TF32"), 20, 2e-3))
# With steps whose losses are compared with PyTorch's.
TORCH = ((Training("gpt2-tiny", plain=True), 20), (Training("llama-tiny"), 20),
         (Training("llama-tiny", "precision: BF16"), 20),
         (Training("gpt2-124m", "global_batch_tokens: 4096", plain=True), 6))
# With the tokens of a step and steps that are timed, for speed.
LARGE = ((Training("gpt2-124m", "precision: BF16 global_batch_tokens: 16384", plain=True), 16384, 50),
         (Training("llama-1b", "precision: BF16"), 16384, 20))
# Steps before those: on both sides what is looked for is then found. Steps whose losses are compared, and steps of runs
# in which memory is watched, which nothing is timed in.
WARM, COMPARED, WATCHED = 5, 12, 6
# With few steps, as the host takes its time.
HOST = ((Training("gpt2-124m", "global_batch_tokens: 4096", plain=True), 3, 1e-4),
        (Training("llama-1b", "sequence_length: 512 global_batch_tokens: 512"), 2, 1e-4))
# Ranks that share the device; losses may be this far from one rank's.
SHARED = tuple(Training(model, mesh=mesh) for model, mesh in (
    ("llama-tiny", "dp=2"), ("llama-tiny", "tp=2,sp=true"), ("llama-tiny", "dp=2,zero=3"), ("llama-tiny", "cp=2:ring"),
    ("mixtral-tiny", "ep=2"), ("llama-tiny", "dp=2,zero=1"), ("llama-tiny", "dp=2,zero=2"), ("llama-tiny", "cp=2:gather"),
    ("llama-tiny", "dp=2,tp=2,sp=true")))
SHARED_STEPS, SHARED_MOST = 10, 1e-4
# Gradients of attention by cuDNN may differ in last bits from run to run.
GRAPHS_MOST = 1e-3
# Kernels that are enough for a sanitizer, which makes them slow.
SANITIZED = ("NormTest", "MapTest", "EmbeddingTest", "CrossEntropyTest", "BF16Test")


class Skip(Exception):
    """Nothing can be shown here; says why."""


@dataclass
class Row:
    """`seconds` is what it may take at most; `measure(bench, seconds)` returns what to say. Its success shows something,
    or is only told."""
    what: str
    seconds: float
    measure: object
    success: str = "pass"


class Bench:
    """What rows have in common."""

    def __init__(self, kit, options, folder):
        self.kit, self.options, self.folder = kit, options, folder
        self.is_real = not options.library
        # What is found out about products is kept for all rows, where a home may be none's to write to.
        self.environment = {**os.environ, **kit.environment(), "XDG_CACHE_HOME": str(folder / "cache")}
        self.ceilings, self.asked = {}, None
        # What the row at hand has measured so far.
        self.said = []
        if options.library:
            self.environment["WEFT_RT_CUDA"] = str(options.library)
        self.text = folder / "text"
        self.text.write_bytes(TEXT)

    def run(self, command, seconds, environment=None, statuses=(0,)):
        """What it prints; raises with that if it fails or takes too long."""
        try:
            with Process(command, {**self.environment, **(environment or {})}) as process:
                if not process.wait(seconds):
                    raise Late(f"not finished after {seconds:.0f} s")
                if process.status not in statuses:
                    raise RuntimeError((process.errors or process.output).strip()[-2000:]
                                       or f"{command[0]} ends with status {process.status}")
                return process.output
        except FileNotFoundError as error:
            # What is looked for in PATH is not the kit's.
            if "/" in str(command[0]):
                raise
            raise Skip(f"{command[0]}: {error.strerror}") from None

    def train(self, training, target, steps, seconds, *more):
        """What a run of one rank, with `more` on its command line, says of its steps."""
        metrics = self.folder / "metrics"
        metrics.unlink(missing_ok=True)
        self.run([self.kit.program(training, target), "--data", self.text, "--steps", steps, "--metrics", metrics,
                  *more], seconds)
        return read_steps(metrics)

    def ask_torch(self, seconds):
        """What PyTorch says of itself, as it said when it was first asked."""
        self.asked = self.asked or gpu_torch.ask(self.options.python, max(min(60, seconds), 1))
        found, reason = self.asked
        if not found:
            raise Skip(f"there is no PyTorch: {reason}")
        if self.is_real and not found["device"]:
            raise Skip(f"PyTorch {found['torch']} sees no device")
        return found

    def only_real(self):
        if not self.is_real:
            raise Skip("this needs a device, and not its stand-in")


def furthest(got, expected):
    return max(abs(a["loss"] / b["loss"] - 1) for a, b in zip(got, expected, strict=True))


def median_speed(steps):
    """Tokens per second, without the first step."""
    return statistics.median(step["tokens_per_second"] for step in steps[1:])


def versions(bench, seconds):
    bench.only_real()
    end = time.monotonic() + seconds
    device, reason = query_device("name,driver_version,memory.total,clocks.max.sm")
    if not device:
        raise RuntimeError(reason)
    bench.said.append(device)
    try:
        found = bench.ask_torch(end - time.monotonic())
        bench.said.append(f"PyTorch {found['torch']}, NCCL {found['nccl']}, cuDNN {found['cudnn']}")
    except Skip as none:
        bench.said.append(str(none))


def functions(bench, seconds):
    bench.only_real()
    command = [bench.kit.tool("weft-rt-cuda-plugin-test"), "--gtest_filter=Cuda*.*-*.SaysThatThereIsNoDriver"]
    environment = {}
    packed = bench.kit.folder / "libweft-rt-cuda.so.1"
    if packed.exists():
        environment["WEFT_RT_CUDA"] = str(packed)
    output = bench.run(command, seconds, environment)
    skipped = len(re.findall(r"\[  SKIPPED \] \S+ \(", output))
    passed = sum(map(int, re.findall(r"\[  PASSED  \] (\d+)", output)))
    if skipped:
        raise RuntimeError(f"{skipped} tests were skipped: " + output[-1000:])
    if not passed:
        raise RuntimeError("no test has run: " + output[-1000:])
    return f"{passed} tests"


def try_kernels(bench, seconds, *words):
    """What weft-rt-kernels says of all folders of kernels."""
    reports, end = [], time.monotonic() + seconds
    for folder in bench.kit.kernels(bench.options.kernels):
        report = bench.folder / "report.json"
        bench.run([bench.kit.tool("weft-rt-kernels"), folder, "--json", report, *words],
                  max(end - time.monotonic(), 1), statuses=(0, 1))
        if not report.exists():
            raise RuntimeError("weft-rt-kernels ended without a report")
        reports.append(json.loads(report.read_text()))
        report.unlink()
        if reports[-1]["fault"]:
            raise RuntimeError(reports[-1]["fault"])
    if not reports:
        raise Skip("the pack has no kernels")
    cases = [case for report in reports for case in report["cases"]]
    wrong = [f"{case['name']}: {case['fault']}" for case in cases if case["fault"]]
    if wrong:
        raise RuntimeError(f"{len(wrong)} of {len(cases)} kernels are wrong: " + "; ".join(wrong[:8]))
    return reports, cases


def small_kernels(bench, seconds):
    cases = try_kernels(bench, seconds, "--size", "small")[1]
    return f"{len(cases)} kernels, off from float64 by at most {max(case['error'] for case in cases):.1e} of the largest"


def ceilings(bench, seconds):
    report = bench.folder / "report.json"
    bench.run([bench.kit.tool("weft-rt-kernels"), bench.kit.kernels(bench.options.kernels)[0], "--only", "none",
               "--ceilings", "--json", report], seconds)
    bench.ceilings = json.loads(report.read_text())["ceilings"]
    report.unlink()
    return (f"copies {bench.ceilings['copied_bytes_per_second'] * 1e-9:,.0f} GB/s, products of bf16 "
            f"{bench.ceilings['product_flops_per_second'] * 1e-12:,.1f} TFLOP/s, of eight bits "
            f"{bench.ceilings['byte_product_flops_per_second'] * 1e-12:,.1f} ({bench.ceilings['libraries']})")


def large_kernels(bench, seconds):
    bench.only_real()
    cases = try_kernels(bench, seconds, "--size", "large")[1]
    most = bench.ceilings.get("copied_bytes_per_second")
    said = []
    for case in cases:
        speed = case["bytes"] / case["seconds"] if case["seconds"] else 0
        share = f" ({speed / most:.0%})" if most else ""
        said.append(f"{case['name'].removeprefix('Large.')} {speed * 1e-9:,.0f} GB/s{share}")
    return "; ".join(said)


def losses(training, steps, most):
    def measure(bench, seconds):
        if training.model in (large.model for large, *_ in LARGE):
            bench.only_real()
        end = time.monotonic() + seconds
        device = bench.train(training, "cuda", steps, seconds)
        host = bench.train(training, "host", steps, max(end - time.monotonic(), 1))
        away = furthest(device, host)
        if not away <= most:
            raise RuntimeError(f"losses are up to {away:.1e} from the host's, expected at most {most:.0e}")
        return f"losses up to {away:.1e} from the host's in {steps} steps, {median_speed(device):,.0f} tokens/s"
    return measure


def beside_torch(training, steps):
    """Losses of PyTorch eager: on the device, or on the processor where there is a stand-in for that."""
    def measure(bench, seconds):
        end = time.monotonic() + seconds
        bench.ask_torch(seconds)
        device = bench.train(training, "cuda", steps, max(end - time.monotonic(), 1))
        return compared(training, device, by_torch(bench, training, "eager", steps, end))
    return measure


def by_torch(bench, training, mode, steps, end, *warm):
    try:
        return gpu_torch.train(bench.options.python, training, bench.folder, bench.text,
                               "cuda" if bench.is_real else "cpu", mode, steps, max(end - time.monotonic(), 1), *warm)
    except gpu_torch.Unable as reason:
        raise Skip(str(reason)) from None


def compared(training, ours, theirs):
    """How far losses are from PyTorch's; raises if that is too far."""
    away, most = gpu_torch.furthest(ours, theirs), gpu_torch.MOST[precision(training)]
    if not away <= most:
        raise RuntimeError(f"losses are up to {away:.1e} from PyTorch's {theirs['torch']}, expected at most {most:.0e}")
    return f"losses up to {away:.1e} from PyTorch's in {len(ours)} steps"


def precision(training):
    found = re.search(r"precision: (\w+)", training.lines)
    return found[1] if found else "F32"


class MemoryWatch:
    """The most memory of the device in use meanwhile, in GiB, beyond what was in use before."""

    def __enter__(self):
        self.seen, self.fault = [], ""
        self.look()
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()

    def look(self):
        found, reason = query_device("memory.used", "csv,noheader,nounits")
        if found and found.strip().isdecimal():
            self.seen.append(int(found) / 1024)
        else:
            self.fault = reason or f"nvidia-smi tells no memory: {found}"

    def watch(self):
        while not self.ends.wait(0.2):
            self.look()

    def gib(self):
        """One figure that is missing may have been the largest."""
        if self.fault:
            raise RuntimeError(f"memory is not known: {self.fault}")
        return max(self.seen) - self.seen[0]


def told(number, unit, digits=1):
    return f"{number:,.{digits}f} {unit}" if number is not None else "nothing"


def speed(training, tokens, timed):
    """Both sides are warm, then timed over a block of steps, then run again, briefly, to watch the device's memory."""
    def measure(bench, seconds):
        bench.only_real()
        end = time.monotonic() + seconds
        steps = train_timed(bench, training, tokens, timed, end)
        faults = []
        try:
            for mode in ("eager", "compile"):
                faults += say_of_torch(bench, training, mode, (tokens, timed), steps, end)
        except Late:
            if not faults:
                raise
        if faults:
            raise RuntimeError("; ".join(faults))
    return measure


def train_timed(bench, training, tokens, timed, end):
    """Steps of ours, once all that concerns them is said."""
    def mean(*options):
        steps = bench.train(training, "cuda", WARM + timed, max(end - time.monotonic(), 1), *options)
        return steps, statistics.fmean(step["ms"] for step in steps[WARM:])

    milliseconds, arena, whole = bench.kit.predicted(training)
    steps, taken = mean()
    bench.said.append(f"{tokens / taken * 1e3:,.0f} tokens/s, {taken:.1f} ms a step in the mean of {timed} after {WARM}, "
                      f"predicted {told(milliseconds, 'ms')}")
    by_graphs, taken = mean("--graphs")
    bench.said.append(f"with --graphs {tokens / taken * 1e3:,.0f} tokens/s")
    away = furthest(by_graphs[:COMPARED], steps[:COMPARED])
    if not away <= GRAPHS_MOST:
        raise RuntimeError(f"losses with --graphs are up to {away:.1e} from those without")
    with MemoryWatch() as watch:
        bench.train(training, "cuda", WATCHED, max(end - time.monotonic(), 1))
    bench.said.append(f"{watch.gib():.1f} GiB of the device, predicted {told(whole, 'GiB')} beside context and libraries, "
                      f"arena {told(arena, 'GiB')}")
    return steps


def say_of_torch(bench, training, mode, sizes, steps, end):
    """Says how fast PyTorch is, and what it takes; returns what is wrong with the losses, which leaves the rest worth
    telling."""
    tokens, timed = sizes
    try:
        bench.ask_torch(end - time.monotonic())
        found = by_torch(bench, training, mode, WARM + timed, end, WARM)
        speed_told = tokens / statistics.fmean(found["ms"]) * 1e3
        bench.said.append(f"PyTorch {mode} {speed_told:,.0f} tokens/s, allocated {found['peak'] / (1 << 30):.1f} GiB, "
                          f"reserved {found['reserved'] / (1 << 30):.1f} GiB")
        with MemoryWatch() as watch:
            by_torch(bench, training, mode, WATCHED, end, WARM)
        bench.said.append(f"{watch.gib():.1f} GiB of the device")
    except Skip as reason:
        bench.said.append(str(reason))
        return []
    if precision(training) == "BF16":
        bench.said.append("autocast keeps a residual of float32 where ours is bf16, its attention is flash or cuDNN's")
    try:
        bench.said.append(compared(training, steps[:COMPARED], {**found, "losses": found["losses"][:COMPARED]}))
        return []
    except RuntimeError as error:
        return [f"PyTorch {mode}: {error}"]


def shared(training):
    def measure(bench, seconds):
        bench.only_real()
        end = time.monotonic() + seconds
        alone = bench.train(Training(training.model), "cuda", SHARED_STEPS, seconds)
        metrics = bench.folder / "metrics"
        metrics.unlink()
        ranks = 1
        for size in re.findall(r"(?:dp|tp|cp|ep)=(\d+)", training.mesh):
            ranks *= int(size)
        gpu_ranks.run([bench.kit.program(training, "cuda"), "--data", bench.text, "--steps", SHARED_STEPS, "--metrics",
                       metrics], ranks, bench.environment, max(end - time.monotonic(), 1))
        away = furthest(read_steps(metrics), alone)
        if not away <= SHARED_MOST:
            raise RuntimeError(f"losses are up to {away:.1e} from one rank's, expected at most {SHARED_MOST:.0e}")
        return f"{ranks} ranks, losses up to {away:.1e} from one rank's in {SHARED_STEPS} steps"
    return measure


def drill(number):
    def measure(bench, seconds):
        metrics = bench.folder / "metrics"
        metrics.unlink(missing_ok=True)
        # Of the stand-in, devices of other processes are taken to do as its own does.
        base = bench.environment if bench.is_real else {**bench.environment, "WEFT_STAND_IN_ALONE": "1"}
        return gpu_ranks.drill([bench.kit.program(Training("llama-tiny", mesh="dp=2"), "cuda"), "--data", bench.text,
                                "--steps", 10000000, "--timeout", 5, "--metrics", metrics], number, base, metrics, seconds)
    return measure


def sanitized(tool):
    def measure(bench, seconds):
        bench.only_real()
        program = shutil.which("compute-sanitizer", path=os.environ["PATH"] + ":/usr/local/cuda/bin")
        if not program:
            raise Skip("there is no compute-sanitizer")
        end, tried = time.monotonic() + seconds, 0
        for folder, only in itertools.product(bench.kit.kernels(bench.options.kernels), SANITIZED):
            output = bench.run([program, "--tool", tool, "--error-exitcode", 9, bench.kit.tool("weft-rt-kernels"), folder,
                                "--size", "small", "--only", only], max(end - time.monotonic(), 1), statuses=(0, 1, 9))
            tried += count_sanitized(output)
        if not tried:
            raise RuntimeError("no kernel has run")
        return f"{tried} kernels without errors"
    return measure


def count_sanitized(output):
    """Kernels that a sanitizer has nothing against, of which a folder may have none; raises if there is one that it has,
    or that is wrong."""
    if "not supported" in output:
        raise Skip("compute-sanitizer does not support this device here")
    counts = re.search(r"^(\d+) passed, (\d+) failed$", output, re.MULTILINE)
    if (not counts or int(counts[2])
            or not re.search(r"ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards", output)):
        raise RuntimeError(output[-1500:])
    return int(counts[1])


def calibrate(bench, seconds):
    bench.only_real()
    weft = bench.kit.build and bench.kit.build / "bin/weft"
    if not weft:
        raise Skip("the compiler is not in a pack")
    if "--target" not in bench.run([weft, "calibrate", "--help"], seconds):
        raise Skip("weft calibrate does not measure devices yet")
    file = bench.folder / "machine.textproto"
    bench.run([weft, "calibrate", "--target", "cuda", "-o", file], seconds)
    return " ".join(file.read_text().split())[:600]


def speed_rows():
    for training, tokens, timed in LARGE:
        yield Row(" ".join([training.model, *training.lines.split()]), 240, speed(training, tokens, timed))


def shared_rows():
    for training in SHARED:
        yield Row(f"shared device: {training.model} {training.mesh}", 60, shared(training))


def drill_rows():
    for number in (signal.SIGKILL, signal.SIGSTOP):
        yield Row(f"drill: rank 1 gets {number.name}", 60, drill(number))


def rows():
    """All of them, what is worth most first."""
    yield Row("versions", 80, versions, "told")
    yield Row("functions of CUDA", 90, functions)
    yield Row("kernels, small", 180, small_kernels)
    for training, steps, most in SMALL:
        yield Row(" ".join([training.model, *training.lines.split()]), 60, losses(training, steps, most))
    for training, steps in TORCH:
        what = "beside PyTorch: " + " ".join([training.model, *training.lines.split()])
        yield Row(what, 60, beside_torch(training, steps))
    yield Row("ceilings", 60, ceilings)
    yield Row("kernels, large", 180, large_kernels)
    # One of each kind before more of the same, as time may be over.
    speeds, sharing, drills = speed_rows(), shared_rows(), drill_rows()
    yield next(speeds)
    yield from itertools.islice(sharing, 4)
    yield next(drills)
    for more in (speeds, sharing, drills):
        yield from more
    for training, steps, most in HOST:
        yield Row(" ".join([training.model, *training.lines.split()]), 120, losses(training, steps, most))
    for tool in ("memcheck", "racecheck", "synccheck"):
        yield Row(f"compute-sanitizer {tool}", 150, sanitized(tool))
    yield Row("weft calibrate", 120, calibrate)


def programs(only=""):
    """What a pack has to hold: pairs of training and target."""
    found = {(training, target): None for training, *_ in (*SMALL, *HOST) for target in ("cuda", "host")}
    found |= {(training, "cuda"): None for training in (*(row[0] for row in (*TORCH, *LARGE)), *SHARED)}
    return [pair for pair in found if only in pair[0].model]


def measured(row, bench, seconds):
    """The state and what there is to say."""
    if seconds <= 0:
        return "not begun", "the time is over"
    # A stand-in takes its time.
    own = min(seconds, row.seconds) if bench.is_real else seconds
    bench.said = []
    state, result = tried(row, bench, own, own == seconds)
    return state, "; ".join([*([result] if result else []), *bench.said])


def tried(row, bench, seconds, is_last):
    try:
        return row.success, row.measure(bench, seconds)
    except Skip as reason:
        return "skipped", str(reason)
    except Late as late:
        return ("cut off", "the time is over") if is_last else ("FAIL", str(late))
    except RuntimeError as error:
        return "FAIL", str(error)
    except Exception as error:  # pylint: disable=broad-exception-caught  # Other rows are worth their time.
        return "FAIL", f"{type(error).__name__}: {error}"


def run(kit, options, folder, end):
    """Tries the rows that options name, until `end`; gives all so far after each, and tells it."""
    bench, done = Bench(kit, options, folder), []
    for row in rows():
        if options.only not in row.what:
            continue
        start = time.monotonic()
        state, result = measured(row, bench, end - start)
        done.append({"what": row.what, "state": state, "result": result, "seconds": round(time.monotonic() - start, 1)})
        print(f"{state} {row.what}: {result}", flush=True)
        yield done
