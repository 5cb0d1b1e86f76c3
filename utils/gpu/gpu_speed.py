#===- gpu_speed.py - training, tried by utils/gpu/check ----------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Rows of gpu-check that compare losses, speed and memory with the host's and PyTorch's."""

import json
import re
import statistics
import time
from dataclasses import dataclass, replace

import gpu_torch
from gpu_bench import THREADS, Skip, furthest, median_speed, wanted
from gpu_kit import CORES, TEXT, Late, gib

# Steps before the timed ones, in which both sides choose their algorithms, and steps whose losses are compared.
WARM, COMPARED = 5, 12
# Largest relative distance of a step's time and of the device's memory from the prediction.
TIME_MOST, MEMORY_MOST = 0.1, 0.01
# Runs with and without graphs have the same bits with --deterministic, as rows of that name show. Otherwise cuDNN's
# gradients of attention differ in last bits from run to run, and roundings grow where a loss leaps, as llama-1b's in
# its seventh step: of two equal runs in FP8, the losses of the twelfth were 1.69 and 2.53 on an H200. Before that step,
# losses were up to 4e-4 apart in bf16, and 9e-3 in FP8.
GRAPHED = 6
GRAPHS_MOST, GRAPHS_MOST_FP8 = 5e-3, 5e-2
# How many times as far from float32's losses as PyTorch's in bf16 ours may be, whose residual stream is bf16.
FURTHER = 2
# Tokens of a document, if the data has documents, and the byte that ends one.
DOCUMENT, END = 1021, 255
# Steps of which the last ones' kernels are timed.
PROFILED = 12


@dataclass(frozen=True)
class Speed:
    """A training to time, its steps and tokens per step, and the targets: tokens per second, or a share of the device's
    peak; a multiple of PyTorch's compiled speed; and a share of PyTorch's memory. Losses may be `apart` from PyTorch's,
    if not as others of their precision."""
    training: object
    tokens: int
    timed: int
    per_second: float = 0
    share: float = 0
    faster: float = 0
    smaller: float = 0
    apart: float = 0


@dataclass
class Run:
    """A run of Weft's program: the losses of its first steps, tokens per second, and GiB of the arena."""
    steps: list
    per_second: float
    arena: float


def losses(training, steps, most, is_large=False):
    def measure(bench, seconds):
        if is_large:
            bench.only_real_if_large()
        end = time.monotonic() + seconds
        device = bench.train(training, "cuda", steps, seconds)
        bench.found.steps[training] = device
        host = bench.train(training, "host", steps, end - time.monotonic(), threads=CORES if is_large else THREADS)
        away = furthest(device, host)
        if not away <= most:
            raise RuntimeError(f"losses are up to {away:.1e} from the host's, expected at most {most:.0e}")
        return f"losses up to {away:.1e} from the host's in {steps} steps, {median_speed(device):,.0f} tokens/s"
    return measure


def resumed(training, steps):
    """Compares the losses of a run that resumes at half of its steps with those of one that does not."""
    def measure(bench, seconds):
        end = time.monotonic() + seconds
        whole = bench.train(training, "cuda", steps, seconds)
        folder = bench.folder / "checkpoints"
        parts = [bench.train(training, "cuda", last, end - time.monotonic(), "--checkpoint-dir", folder)
                 for last in (steps // 2, steps)]
        expect_same_bits(sum(parts, []), whole, "a run that resumes")
        return f"the same bits in {steps} steps, resumed after {len(parts[0])}"
    return measure


def repeated(training, steps, is_large=False):
    """Compares the losses of two runs with --deterministic, and of one that issues its steps as graphs."""
    def measure(bench, seconds):
        if is_large:
            bench.only_real_if_large()
        end = time.monotonic() + seconds
        first, second, graphs = (bench.train(training, "cuda", steps, end - time.monotonic(), "--deterministic", *more)
                                 for more in ((), (), ("--graphs",)))
        expect_same_bits(second, first, "a second run with --deterministic")
        expect_same_bits(graphs, first, "a run with --deterministic and --graphs")
        return (f"the same bits in {steps} steps of two runs and of one with --graphs, "
                f"{median_speed(second):,.0f} tokens/s")
    return measure


def expect_same_bits(got, expected, what):
    got, expected = ([step["loss"] for step in steps] for steps in (got, expected))
    if got != expected:
        raise RuntimeError(f"{what} has other losses: {got}, expected {expected}")


def beside_torch(training, steps):
    """Compares with losses of PyTorch eager, on the device, or with a simulator on the processor."""
    def measure(bench, seconds):
        end = time.monotonic() + seconds
        bench.ask_torch(seconds)
        device = bench.train(training, "cuda", steps, end - time.monotonic())
        return compared(training, device, by_torch(bench, training, "eager", steps, end))
    return measure


def by_torch(bench, training, mode, steps, end, *warm):
    """Runs PyTorch; skips the row if PyTorch cannot run it or takes too long."""
    try:
        return gpu_torch.train(bench.options.python, training, bench.folder, bench.text,
                               "cuda" if bench.is_real else "cpu", mode, steps, max(end - time.monotonic(), 1), *warm)
    except (gpu_torch.Unable, Late) as reason:
        raise Skip(str(reason)) from None


def compared(training, ours, theirs, apart=0):
    """Returns the distance of losses from PyTorch's; raises if it is more than `apart`, or too large for the precision.
    """
    away, most = gpu_torch.furthest(ours, theirs), apart or gpu_torch.MOST[precision(training)]
    if not away <= most:
        raise RuntimeError(f"losses are up to {away:.1e} from PyTorch's {theirs['torch']}, expected at most {most:.0e}")
    return f"losses up to {away:.1e} from PyTorch's in {len(ours)} steps"


def precision(training):
    found = re.search(r"precision: (\w+)", training.lines)
    return found[1] if found else "F32"


def told(number, unit, digits=1):
    return f"{number:,.{digits}f} {unit}" if number is not None else "nothing"


def beside(number, predicted, unit, most, when=""):
    """Returns the text of a figure and its distance from the prediction, which must be at most `most`."""
    text = f"{number:,.2f} {unit}, predicted {told(predicted, unit, 2)}"
    if not predicted:
        return text
    off = number / predicted - 1
    return f"{text} ({off:+.1%})" + wanted(abs(off) <= most, f"within {most:.0%}{when}")


def speed(case):
    """Times steps of Weft's program after a warm-up, once issued call by call and once as graphs."""
    def measure(bench, seconds):
        bench.only_real_if_large()
        end = time.monotonic() + seconds

        def mean(*options):
            steps = bench.train(case.training, "cuda", WARM + case.timed, end - time.monotonic(), "--no-progress",
                                *options)
            return steps, statistics.fmean(step["ms"] for step in steps[WARM:])

        milliseconds, arena, _, machine = bench.kit.predicted(case.training, bench.options.device)
        steps, taken = mean()
        per_second = case.tokens / taken * 1e3
        bench.found.speeds[case] = Run([{"loss": step["loss"]} for step in steps[:COMPARED]], per_second,
                                             arena)
        bench.figures |= {"step_ms": taken, "run": vars(bench.found.speeds[case])}
        # Null if a machine's file has no peak.
        share = (steps[-1].get("peak_share") or 0) * steps[-1]["ms"] / taken
        bench.said.append(f"{per_second:,.0f} tokens/s"
                          + wanted(per_second >= case.per_second, case.per_second and f"{case.per_second:,.0f}")
                          + f", {share:.1%} of the peak that the program's machine has"
                          + wanted(share >= case.share, case.share and f"{case.share:.0%}"))
        bench.said.append(f"a step takes {beside(taken, milliseconds, 'ms', TIME_MOST, ' once calibrated')} "
                          f"by {machine}, in the mean of {case.timed} after {WARM}")
        memory = taken_memory(bench.printed)
        bench.said.append(f"arena {told(arena, 'GiB', 2)}" + (f"; {memory}" if memory else ""))
        by_graphs, taken = mean("--graphs")
        bench.figures["losses with --graphs"] = [step["loss"] for step in by_graphs[:COMPARED]]
        bench.said.append(f"with --graphs {case.tokens / taken * 1e3:,.0f} tokens/s")
        away = furthest(by_graphs[:GRAPHED], steps[:GRAPHED])
        if not away <= (GRAPHS_MOST_FP8 if "fp8" in case.training.lines else GRAPHS_MOST):
            raise RuntimeError(f"losses with --graphs are up to {away:.1e} from those without in {GRAPHED} steps")
        if not memory:
            raise RuntimeError("the run does not say what it has taken of the device")
    return measure


def profile(training):
    """Times a program's instructions one by one, beside their predicted times."""
    def measure(bench, seconds):
        bench.only_real_if_large()
        found = profiled(bench, training, seconds)
        bench.figures["profile"] = found
        step = found["step"]
        return f"a step {in_milliseconds(step)}, of it " + ", ".join(
            f"{line['class']} {in_milliseconds(line)}"
            for line in sorted(found["classes"], key=lambda line: -line["seconds"]))
    return measure


def in_milliseconds(line):
    return f"{line['seconds'] * 1e3:,.2f} ms, predicted {line['predicted_seconds'] * 1e3:,.2f}"


def profiled(bench, training, seconds, environment=None):
    """Returns the profile of a run of a few steps."""
    file = bench.folder / "profile"
    bench.train(training, "cuda", PROFILED, seconds, "--profile", file, environment=environment)
    return json.loads(file.read_text())


def taken_memory(printed):
    """Returns the device's memory that a run reports at its end, where the use is greatest, or nothing."""
    found = re.search(r"^device 0 of rank 0: (.+) of .+ taken, by anybody; (.+) before the run .+, (.+) since then, "
                      r"predicted (.+)$", printed, re.MULTILINE)
    if not found:
        return ""
    whole, before, since, predicted = (gib(re.match(r"([\d.]+) (\w+)", text)) for text in found.groups())
    return (f"of the device {whole:.2f} GiB, of these {before:.2f} before it and by its context, then "
            + beside(since, predicted, "GiB", MEMORY_MOST))


def torch_speed(case, mode):
    """Times PyTorch in the same way, and compares losses."""
    def measure(bench, seconds):
        bench.only_real_if_large()
        end = time.monotonic() + seconds
        bench.ask_torch(seconds)
        theirs = by_torch(bench, case.training, mode, WARM + case.timed, end, WARM)
        per_second = case.tokens / statistics.fmean(theirs["ms"]) * 1e3
        bench.said.append(f"PyTorch {theirs['torch']} {mode}: {per_second:,.0f} tokens/s, " + ", ".join(
            f"{what} {theirs[name] / (1 << 30):.2f} GiB" for name, what in
            (("peak", "at most"), ("reserved", "reserved"), ("device", "of the device")) if name in theirs))
        ours = bench.found.speeds.get(case)
        if not ours:
            raise Skip("there is no run of ours to compare with")
        is_wanted = mode == "compile"
        faster, smaller = ours.per_second / per_second, ours.arena * (1 << 30) / theirs["peak"]
        bench.said.append(f"ours is {faster:.2f} times as fast"
                          + wanted(faster >= case.faster, is_wanted and case.faster)
                          + f", its arena {smaller:.2f} times theirs at most"
                          + wanted(smaller <= case.smaller, is_wanted and case.smaller))
        if precision(case.training) == "BF16":
            bench.said.append("autocast keeps a residual of float32 where ours is bf16, "
                              "its attention is flash or cuDNN's")
        theirs["losses"] = theirs["losses"][:COMPARED]
        bench.found.theirs[case, mode] = theirs["losses"]
        bench.figures |= {"losses": [step["loss"] for step in ours.steps], "PyTorch's": theirs["losses"]}
        return compared(case.training, ours.steps, theirs, case.apart)
    return measure


def exact(training):
    """Returns the same training in float32."""
    return replace(training, lines=re.sub(r"precision: \w+", "precision: F32", training.lines))


def beside_float32(case):
    """Compares how far our losses in bf16 are from ours in float32 with how far PyTorch's are. Roundings that a
    training lets grow move both; only those of one side are a fault of that side."""
    def measure(bench, seconds):
        bench.only_real_if_large()
        ours = bench.found.speeds.get(case)
        theirs = {mode: losses for (other, mode), losses in bench.found.theirs.items() if other == case}
        if not ours or not theirs:
            raise Skip("there are no runs in bf16 to compare with")
        float32 = bench.train(exact(case.training), "cuda", COMPARED, seconds)
        bench.figures["losses"] = [step["loss"] for step in float32]
        away = furthest(ours.steps, float32)
        others = {mode: furthest([{"loss": loss} for loss in losses], float32) for mode, losses in theirs.items()}
        bench.said.append("PyTorch's " + ", ".join(f"{mode} {far:.1e}" for mode, far in others.items()))
        if not away <= max(gpu_torch.MOST["BF16"], FURTHER * max(others.values())):
            raise RuntimeError(f"losses are up to {away:.1e} from those in float32, expected at most {FURTHER} times "
                               "as far as PyTorch's")
        return f"losses up to {away:.1e} from those in float32 in {COMPARED} steps"
    return measure


def attention(plain, documents):
    """Milliseconds of the same attention: as it is, within documents, and by the compiler's kernels, since what is in
    place of cuDNN there is no library."""
    def measure(bench, seconds):
        bench.only_real_if_large()
        end = time.monotonic() + seconds
        hidden = bench.folder / "hidden"
        hidden.mkdir()
        (hidden / "libcudnn.so.9").write_text("none")
        without = {"LD_LIBRARY_PATH": f"{hidden}:{bench.environment['LD_LIBRARY_PATH']}"}
        bench.text = bench.folder / "documents"
        bench.text.write_bytes(bytes(END if i % DOCUMENT == 0 else byte for i, byte in enumerate(TEXT)))
        times = {}
        for what, training, environment in (("as it is", plain, None), ("within documents", documents, None),
                                            ("by the compiler's kernels", plain, without)):
            times[what] = attention_times(bench, training, end - time.monotonic(), environment)
            bench.said.append(f"{what} {times[what][0]:.3f} ms forward, {times[what][1]:.3f} ms backward")
        ratio = sum(times["within documents"]) / sum(times["as it is"])
        return f"within documents of {DOCUMENT} tokens it takes {ratio:.2f} times as long"
    return measure


def attention_times(bench, training, seconds, environment):
    """Returns the milliseconds of a call on the device, forward and backward."""
    found = {line["class"]: line for line in profiled(bench, training, seconds, environment)["classes"]}
    missing = {"attention", "attention_grad"} - set(found)
    if missing:
        raise RuntimeError(f"the profile has no {', '.join(sorted(missing))}")
    return [found[kind]["seconds"] / found[kind]["calls"] * 1e3 for kind in ("attention", "attention_grad")]
