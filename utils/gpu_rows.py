#===- gpu_rows.py - what utils/gpu-check tries -------------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""The rows of gpu-check's table, in the order of their worth, and how each is measured.

A row passes, fails, or is skipped with a reason: then it shows nothing. What only a real device can show is skipped on
the stand-in.
"""

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import dataclass

import gpu_ranks
import gpu_torch
from gpu_kit import TEXT, Late, Training, read_steps

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
# With the tokens of a step, for speed.
LARGE = ((Training("gpt2-124m", "precision: BF16 global_batch_tokens: 16384", plain=True), 16384),
         (Training("llama-1b", "precision: BF16"), 16384))
LARGE_STEPS = 12
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
    """`seconds` is what it may take at most; `measure(bench, seconds)` returns what to say."""
    what: str
    seconds: float
    measure: object


class Bench:
    """What rows have in common."""

    def __init__(self, kit, options, folder):
        self.kit, self.options, self.folder = kit, options, folder
        self.is_real = not options.library
        # What is found out about products is kept for all rows, where a home may be none's to write to.
        self.environment = {**os.environ, **kit.environment(), "XDG_CACHE_HOME": str(folder / "cache")}
        self.ceilings = {}
        if options.library:
            self.environment["WEFT_RT_CUDA"] = str(options.library)
        self.text = folder / "text"
        self.text.write_bytes(TEXT)

    def run(self, command, seconds, environment=None, statuses=(0,)):
        """What it prints; raises with that if it fails or takes too long."""
        try:
            done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False,
                                  env={**self.environment, **(environment or {})}, timeout=seconds)
        except subprocess.TimeoutExpired:
            raise Late(f"not finished after {seconds:.0f} s") from None
        except OSError as error:
            raise Skip(f"{command[0]}: {error.strerror}") from None
        if done.returncode not in statuses:
            raise RuntimeError((done.stderr or done.stdout).strip()[-2000:])
        return done.stdout

    def train(self, training, target, steps, seconds, *more):
        """What a run of one rank, with `more` on its command line, says of its steps."""
        metrics = self.folder / "metrics"
        metrics.unlink(missing_ok=True)
        self.run([self.kit.program(training, target), "--data", self.text, "--steps", steps, "--metrics", metrics,
                  *more], seconds)
        return read_steps(metrics)

    def only_real(self):
        if not self.is_real:
            raise Skip("this needs a device, and not its stand-in")


def furthest(got, expected):
    return max(abs(a["loss"] / b["loss"] - 1) for a, b in zip(got, expected, strict=True))


def median_speed(steps):
    """Tokens per second, without the first step."""
    return sorted(step["tokens_per_second"] for step in steps[1:])[len(steps[1:]) // 2]


def versions(bench, seconds):
    bench.only_real()
    said = [bench.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.max.sm", "--format=csv,noheader"],
                      seconds).strip()]
    found, reason = gpu_torch.ask(
        bench.options.python, "'PyTorch', torch.__version__, 'NCCL', torch.cuda.nccl.version(), 'cuDNN', "
                              "torch.backends.cudnn.version()")
    return ", ".join([*said, found or f"no PyTorch: {reason}"])


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
        if training.model in (large.model for large, _ in LARGE):
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
        version, reason = gpu_torch.ask(bench.options.python)
        if not version:
            raise Skip(f"there is no PyTorch: {reason}")
        device = bench.train(training, "cuda", steps, seconds)
        return compared(bench, training, device, by_torch(bench, training, "eager", steps, end))
    return measure


def by_torch(bench, training, mode, steps, end):
    try:
        return gpu_torch.train(bench.options.python, training, bench.folder, bench.text,
                               "cuda" if bench.is_real else "cpu", mode, steps, max(end - time.monotonic(), 1))
    except gpu_torch.Fails as reason:
        raise Skip(f"PyTorch {mode} {reason}") from None


def compared(bench, training, ours, theirs):
    """How far losses are from PyTorch's; raises if that is too far."""
    precision = re.search(r"precision: (\w+)", training.lines)
    away, most = gpu_torch.furthest(ours, theirs), gpu_torch.MOST[precision[1] if precision else "F32"]
    if not away <= most:
        raise RuntimeError(f"losses are up to {away:.1e} from PyTorch's {theirs['torch']}, expected at most {most:.0e}")
    return f"losses up to {away:.1e} from PyTorch's in {len(ours)} steps"


class MemoryWatch:
    """The most memory of the device in use meanwhile, in GiB, beyond what was in use before."""

    def __enter__(self):
        self.before = self.most = self.used()
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.look)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()

    @staticmethod
    def used():
        done = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                              capture_output=True, text=True, check=False)
        return float(done.stdout.split()[0]) / 1024 if done.returncode == 0 else 0.0

    def look(self):
        while not self.ends.wait(0.2):
            self.most = max(self.most, self.used())

    @property
    def gib(self):
        return self.most - self.before


def speed(training, tokens):
    def measure(bench, seconds):
        bench.only_real()
        end = time.monotonic() + seconds
        left = lambda: max(end - time.monotonic(), 1)  # noqa: E731
        with MemoryWatch() as watch:
            steps = bench.train(training, "cuda", LARGE_STEPS, left())
        by_graphs = bench.train(training, "cuda", LARGE_STEPS, left(), "--graphs")
        if not furthest(by_graphs, steps) <= GRAPHS_MOST:
            raise RuntimeError(f"losses with --graphs are up to {furthest(by_graphs, steps):.1e} from those without")
        taken = tokens / median_speed(steps) * 1e3
        time_told, memory_told = bench.kit.predicted(training)
        said = [f"{median_speed(steps):,.0f} tokens/s, {taken:.1f} ms a step, predicted {time_told:.1f}",
                f"with --graphs {median_speed(by_graphs):,.0f} tokens/s",
                f"{watch.gib:.1f} GiB of the device, predicted {memory_told:.1f} beside context and libraries"]
        faults = [fault for mode in ("eager", "compile")
                  if (fault := say_of_torch(said, bench, training, mode, tokens, steps, end))]
        if faults:
            raise RuntimeError("; ".join([*faults, *said]))
        return "; ".join(said)
    return measure


def say_of_torch(said, bench, training, mode, tokens, steps, end):
    """Adds to `said` how fast PyTorch is; what is wrong with the losses, which leaves the rest worth telling."""
    try:
        found = by_torch(bench, training, mode, LARGE_STEPS, end)
    except Skip as reason:
        said.append(str(reason))
        return None
    middle = sorted(found["ms"])[len(found["ms"]) // 2]
    said.append(f"PyTorch {mode} {tokens / middle * 1e3:,.0f} tokens/s, {found['peak'] / (1 << 30):.1f} GiB")
    try:
        said.append(compared(bench, training, steps, found))
        return None
    except RuntimeError as error:
        return f"PyTorch {mode}: {error}"


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
        for only in SANITIZED:
            for folder in bench.kit.kernels(bench.options.kernels)[:1]:
                output = bench.run([program, "--tool", tool, "--error-exitcode", 9, bench.kit.tool("weft-rt-kernels"),
                                    folder, "--size", "small", "--only", only], max(end - time.monotonic(), 1),
                                   statuses=(0, 1, 9))
                if "not supported" in output:
                    raise Skip("compute-sanitizer does not support this device here")
                if not re.search(r"ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards", output):
                    raise RuntimeError(output[-1500:])
                tried += sum(map(int, re.findall(r"^(\d+) passed", output, re.MULTILINE)))
        return f"{tried} kernels without errors"
    return measure


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
    for training, tokens in LARGE:
        yield Row(" ".join([training.model, *training.lines.split()]), 180, speed(training, tokens))


def shared_rows():
    for training in SHARED:
        yield Row(f"shared device: {training.model} {training.mesh}", 60, shared(training))


def drill_rows():
    for number in (signal.SIGKILL, signal.SIGSTOP):
        yield Row(f"drill: rank 1 gets {number.name}", 60, drill(number))


def rows():
    """All of them, what is worth most first."""
    yield Row("versions", 60, versions)
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
        yield Row(f"compute-sanitizer {tool}", 60, sanitized(tool))
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
    try:
        return "pass", row.measure(bench, own)
    except Skip as reason:
        return "skipped", str(reason)
    except RuntimeError as error:
        if isinstance(error, Late) and own == seconds:
            return "cut off", "the time is over"
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
