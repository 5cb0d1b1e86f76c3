#===- gpu_device.py - libraries and kernels, tried by utils/gpu/check --------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Rows of gpu-check that test the parts below a program: the device, libraries, collectives and kernels."""

import json
import os
import re
import shutil
import time

from gpu_bench import LIBRARIES, Skip, wanted
from gpu_kit import Late
from gpu_process import query_device

TOOLS = ("weft-rt-kernels", "weft-rt-cuda-plugin-test", "weft-rt-conformance-cuda", "weft-rt-calibrate")
# A sanitizer makes kernels slow, so it runs only these.
SANITIZED = "NormTest,MapTest,EmbeddingTest,CrossEntropyTest,BF16Test"
# Of a folder's kernels, after which no more are tried.
FAULTS = 4
# Bandwidths of devices in bytes per second, by data sheets; the shares of them that norms must reach, on an H200 3.7e12
# and 3.4e12 bytes per second; and the share of a copy's rate that other kernels of at least so many bytes must reach,
# except those limited by computation.
BANDWIDTHS = {"H200": 4.8e12, "H100 80GB HBM3": 3.35e12}
NORMS = {"Norm.": 3.7 / 4.8, "NormGrad.": 3.4 / 4.8}
COPIED, LARGE_BYTES, COMPUTES = 0.85, 64e6, "Attention"
# Duration of the host's part of a calibration, in seconds.
CALIBRATION = 8


def versions(bench, seconds):
    end = time.monotonic() + seconds
    device, reason = query_device("name,driver_version,memory.total,memory.used,clocks.max.sm")
    bench.said.append(device or f"nothing by nvidia-smi ({reason})")
    try:
        found = bench.ask_torch(end - time.monotonic())
        bench.said.append(f"PyTorch {found['torch']}, NCCL {found['nccl']}, cuDNN {found['cudnn']}")
    except Skip as none:
        bench.said.append(str(none))
    bench.said += [reason for library, reason in bench.missing().items() if library in LIBRARIES and reason]


def run_tests(bench, seconds, tool, *words):
    """Returns the numbers of passed and skipped tests; raises with the failed tests and the first one's output."""
    output = bench.run([bench.kit.tool(tool), *words], seconds, {"WEFT_RT_CUDA": str(bench.plugin())}, statuses=(0, 1))
    passed, failed, skipped = (list(dict.fromkeys(
        re.findall(rf"^\[ +{state} +\] (\S+\.[^\s,]+)", output, re.MULTILINE)))
                               for state in ("OK", "FAILED", "SKIPPED"))
    if failed:
        said = re.search(r"^\S+: Failure\n(?s:.*?)(?=^\S+: Failure|^\[|\Z)", output, re.MULTILINE)
        raise RuntimeError(f"{len(failed)} tests fail: {', '.join(failed)[:500]}: "
                           f"{said[0][:600] if said else output[-600:]}")
    if not passed:
        raise RuntimeError("no test has passed: " + output[-600:])
    return len(passed), len(skipped)


def functions(tests):
    """Tests functions of the driver or of a library by tests of weft-rt-cuda-plugin-test, as --gtest_filter names them.
    """
    def measure(bench, seconds):
        bench.only_real()
        passed, skipped = run_tests(bench, seconds, "weft-rt-cuda-plugin-test", f"--gtest_filter={tests}")
        if skipped:
            raise RuntimeError(f"{skipped} tests were skipped")
        return f"{passed} tests"
    return measure


def conformance(bench, seconds):
    """Runs the conformance tests; those of more ranks than devices skip themselves."""
    # A simulator has many devices, and takes minutes for all.
    some = [] if bench.is_real else ["--gtest_filter=*Collectives.AllReduce/1*"]
    passed, skipped = run_tests(bench, seconds, "weft-rt-conformance-cuda", *some)
    return f"{passed} tests, {skipped} skipped, as those of more ranks than devices"


class Tried:
    """The results of kernels, in all folders or in one."""

    def __init__(self):
        self.cases, self.wrong, self.faults = [], [], []

    def add(self, other):
        self.cases += other.cases
        self.wrong += other.wrong
        self.faults += other.faults

    def read(self, report):
        """Reads the output of weft-rt-kernels so far; returns the last kernel that it tried, and its error."""
        if not report.exists():
            return "", ""
        told = json.loads(report.read_text())
        self.cases += told["cases"]
        self.wrong += [f"{case['name']}: {case['fault']}" for case in told["cases"] if case["fault"]]
        return told["trying"], told["fault"]

    def bad(self):
        """Returns the failures; empty if there are none."""
        wrong = f"{len(self.wrong)} of {len(self.cases)} kernels are wrong: " + "; ".join(self.wrong[:8])
        faults = "the device fails: " + "; ".join(self.faults)
        return "; ".join([*([faults] if self.faults else []), *([wrong] if self.wrong else [])])


def try_folder(bench, folder, end, words, tried):
    """Runs a folder's kernels and adds the results to `tried`. After a fault nothing works in the process any more, so
    another process runs the remaining kernels."""
    report, skipped = bench.folder / "report.json", 0
    while len(tried.faults) < FAULTS:
        report.unlink(missing_ok=True)
        before, died, late = len(tried.cases), "", None
        try:
            bench.run([bench.kit.tool("weft-rt-kernels"), folder, "--json", report, "--skip", skipped, *words],
                      end - time.monotonic(), statuses=(0, 1))
        except Late as error:
            late = error
        except RuntimeError as error:
            died = str(error)
        trying, fault = tried.read(report)
        if late:
            raise late
        if not report.exists():
            fault = died or "weft-rt-kernels ended without a report"
        elif died:
            fault = f"{trying}: {died}" if trying else died
        if not fault:
            return
        tried.faults.append(fault)
        if not trying:
            return
        skipped += len(tried.cases) - before + 1


def try_kernels(bench, seconds, describe, *words):
    """Runs the kernels of all folders and reports each as it ends. Raises with all failures."""
    whole, end = Tried(), time.monotonic() + seconds
    folders = bench.kit.kernels(bench.options.kernels)
    if not folders:
        raise Skip("the pack has no kernels")
    late = None
    for folder in folders:
        own = Tried()
        try:
            try_folder(bench, folder, end, words, own)
        except Late as error:
            late = error
        whole.add(own)
        if own.cases or own.faults:
            bad = ((own.wrong, "wrong"), (own.faults, "at which it fails"))
            bench.said.append(", ".join([f"{folder.name}: {describe(own.cases)}",
                                         *(f"{len(some)} {what}" for some, what in bad if some)]))
        if late:
            break
    if whole.bad():
        raise RuntimeError("; ".join([whole.bad(), *([str(late)] if late else [])]))
    if late:
        raise late
    if not whole.cases:
        raise Skip("none is among the kernels of the pack")
    return whole.cases


def errors_of(cases):
    # Null stands for what is infinite.
    most = max((float("inf") if case["error"] is None else case["error"] for case in cases), default=0)
    return f"{len(cases)} kernels, off from float64 by at most {most:.1e} of the largest"


def small_kernels(bench, seconds):
    cases = try_kernels(bench, seconds, errors_of, "--size", "small")
    expected = bench.kit.recorded().get("small", len(cases))
    if len(cases) != expected:
        raise RuntimeError(f"{len(cases)} kernels were tried, expected the {expected} that were recorded")
    return errors_of(cases)


def ceilings(kind):
    """Measures the peak rates of "copies", which need no library, or of "matmuls"."""
    def measure(bench, seconds):
        report = bench.folder / "report.json"
        bench.run([bench.kit.tool("weft-rt-kernels"), "--ceilings", kind, "--json", report], seconds)
        found = json.loads(report.read_text())["ceilings"]
        bench.found.ceilings.update(found)
        bench.figures["ceilings"] = found
        if kind == "copies":
            return f"{found['copied_bytes_per_second'] * 1e-9:,.0f} GB/s ({found['libraries']})"
        return (f"of bf16 {found['product_flops_per_second'] * 1e-12:,.1f} TFLOP/s, in FP8 "
                f"{found['byte_product_flops_per_second'] * 1e-12:,.1f} ({found['libraries']})")
    return measure


def large_kernels(bench, seconds):
    bench.only_real()
    most = bench.found.ceilings.get("copied_bytes_per_second")
    cases = try_kernels(bench, seconds,
                        lambda cases: "; ".join(speed_of(case, most, bench.options.device) for case in cases),
                        "--size", "large")
    missed = sum(is_met is False for is_met, _ in (judged(case, most, bench.options.device) for case in cases))
    return f"{len(cases)} kernels, {missed} of them slower than wanted"


def judged(case, copied, device):
    """Returns whether a kernel reaches its target speed, if it has one, and the target."""
    name, speed = case["name"].removeprefix("Large."), case["bytes"] / case["seconds"] if case["seconds"] else 0
    bandwidth = next((bytes_per_second for model, bytes_per_second in BANDWIDTHS.items() if model in device), 0)
    norm = next((share for start, share in NORMS.items() if name.startswith(start)), 0)
    least = norm * bandwidth if norm else COPIED * copied if copied else 0
    if not speed or not least or name.startswith(COMPUTES) or case["bytes"] < LARGE_BYTES:
        return None, ""
    return speed >= least, f"{least * 1e-9:,.0f} GB/s"


def speed_of(case, copied, device):
    name = case["name"].removeprefix("Large.")
    if not case["seconds"]:
        return f"{name} not measured"
    speed = case["bytes"] / case["seconds"]
    share = f" ({speed / copied:.0%})" if copied else ""
    return f"{name} {speed * 1e-9:,.0f} GB/s{share}" + wanted(*judged(case, copied, device))


def sanitized(tool, only=SANITIZED):
    """Runs the small kernels with one of `only` in their names, all if it is empty, under a tool of compute-sanitizer.
    """
    def measure(bench, seconds):
        program = shutil.which("compute-sanitizer", path=os.environ["PATH"] + ":/usr/local/cuda/bin")
        if not program:
            raise Skip("there is no compute-sanitizer")
        end, tried = time.monotonic() + seconds, 0
        for folder in bench.kit.kernels(bench.options.kernels):
            command = [program, "--tool", tool, "--error-exitcode", 9, bench.kit.tool("weft-rt-kernels"), folder,
                       "--size", "small", *(["--only", only] if only else [])]
            try:
                tried += count_sanitized(bench.run(command, end - time.monotonic(), statuses=(0, 1, 9)))
            except Late:
                if not tried:
                    raise
                bench.said.append(f"no time for those of {folder.name} and later ones")
                break
        if not tried:
            raise RuntimeError("no kernel has run")
        return f"{tried} kernels without errors"
    return measure


def count_sanitized(output):
    """Returns the number of kernels without findings of a sanitizer; a folder may have none. Raises on a finding or a
    wrong result."""
    if re.search("not supported", output, re.IGNORECASE):
        raise Skip("compute-sanitizer does not support this device here")
    counts = re.search(r"^(\d+) passed, (\d+) failed$", output, re.MULTILINE)
    # Without a call of CUDA there is nothing to sum up.
    if counts and counts[0] == "0 passed, 0 failed" and "SUMMARY" not in output:
        return 0
    if (not counts or int(counts[2])
            or not re.search(r"ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards", output)):
        raise RuntimeError(output[-1500:])
    return int(counts[1])


def calibrate(bench, seconds):
    """Calibrates one device, since all would take longer. From a pack, which has no compiler, gives measurements
    without a machine's file."""
    bench.only_real()
    weft = bench.kit.build and bench.kit.build / "bin/weft"
    file = bench.folder / "machine.textproto"
    command = ([weft, "calibrate", "--target", "cuda", "--ranks", 1, "--quick", "-o", file] if weft else
               [bench.kit.tool("weft-rt-calibrate"), 1, CALIBRATION, "cuda"])
    try:
        output = bench.run(command, seconds).strip()
    except Late as late:
        bench.said.append(" ".join(late.output.split()))
        raise
    text = file.read_text() if weft else output
    bench.figures["machine" if weft else "measured"] = text
    return " ".join(text.split())
