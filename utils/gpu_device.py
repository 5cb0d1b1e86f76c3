#===- gpu_device.py - libraries and kernels, tried by utils/gpu-check --------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""How rows of gpu-check measure what is below a program: the device, libraries, collectives and kernels."""

import json
import os
import re
import shutil
import time

from gpu_bench import Skip
from gpu_kit import Late
from gpu_process import query_device

TOOLS = ("weft-rt-kernels", "weft-rt-cuda-plugin-test", "weft-rt-conformance-cuda", "weft-rt-calibrate")
# Kernels that are enough for a sanitizer, which makes them slow.
SANITIZED = "NormTest,MapTest,EmbeddingTest,CrossEntropyTest,BF16Test"
# Of what a machine's calibration takes on the host, in seconds.
CALIBRATION = 8


def versions(bench, seconds):
    bench.only_real()
    end = time.monotonic() + seconds
    device, reason = query_device("name,driver_version,memory.total,memory.used,clocks.max.sm")
    bench.said.append(device or f"nothing by nvidia-smi ({reason})")
    try:
        found = bench.ask_torch(end - time.monotonic())
        bench.said.append(f"PyTorch {found['torch']}, NCCL {found['nccl']}, cuDNN {found['cudnn']}")
    except Skip as none:
        bench.said.append(str(none))


def run_tests(bench, seconds, tool, *words):
    """Tests that have passed, and that were skipped; raises with those that fail, and what the first of them says."""
    output = bench.run([bench.kit.tool(tool), *words], seconds, {"WEFT_RT_CUDA": str(bench.plugin())}, statuses=(0, 1))
    passed, failed, skipped = (list(dict.fromkeys(re.findall(rf"^\[ +{state} +\] (\S+\.[^\s,]+)", output, re.MULTILINE)))
                               for state in ("OK", "FAILED", "SKIPPED"))
    if failed:
        said = re.search(r"^\S+: Failure\n(?s:.*?)(?=^\S+: Failure|^\[|\Z)", output, re.MULTILINE)
        raise RuntimeError(f"{len(failed)} tests fail: {', '.join(failed)[:500]}: {said[0][:600] if said else output[-600:]}")
    if not passed:
        raise RuntimeError("no test has passed: " + output[-600:])
    return len(passed), len(skipped)


def functions(bench, seconds):
    bench.only_real()
    passed, skipped = run_tests(bench, seconds, "weft-rt-cuda-plugin-test",
                                "--gtest_filter=Cuda*.*-*.SaysThatThereIsNoDriver")
    if skipped:
        raise RuntimeError(f"{skipped} tests were skipped")
    return f"{passed} tests"


def conformance(bench, seconds):
    """Of more ranks than devices nothing is tried."""
    # A stand-in has many devices, and takes minutes for all.
    some = [] if bench.is_real else ["--gtest_filter=*Collectives.AllReduce/1*"]
    passed, skipped = run_tests(bench, seconds, "weft-rt-conformance-cuda", *some)
    return f"{passed} tests, {skipped} skipped, as those of more ranks than devices"


def try_kernels(bench, seconds, *words):
    """What weft-rt-kernels says of all folders of kernels."""
    reports, end = [], time.monotonic() + seconds
    for folder in bench.kit.kernels(bench.options.kernels):
        report = bench.folder / "report.json"
        bench.run([bench.kit.tool("weft-rt-kernels"), folder, "--json", report, *words], end - time.monotonic(),
                  statuses=(0, 1))
        if not report.exists():
            raise RuntimeError("weft-rt-kernels ended without a report")
        reports.append(json.loads(report.read_text()))
        report.unlink()
        if reports[-1]["fault"]:
            raise RuntimeError(reports[-1]["fault"])
    if not reports:
        raise Skip("the pack has no kernels")
    cases = [case for report in reports for case in report["cases"]]
    if not cases:
        raise Skip("none is among the kernels of the pack")
    wrong = [f"{case['name']}: {case['fault']}" for case in cases if case["fault"]]
    if wrong:
        raise RuntimeError(f"{len(wrong)} of {len(cases)} kernels are wrong: " + "; ".join(wrong[:8]))
    return cases


def small_kernels(bench, seconds):
    cases = try_kernels(bench, seconds, "--size", "small")
    return f"{len(cases)} kernels, off from float64 by at most {max(case['error'] for case in cases):.1e} of the largest"


def ceilings(bench, seconds):
    report = bench.folder / "report.json"
    folders = bench.kit.kernels(bench.options.kernels)
    if not folders:
        raise Skip("the pack has no kernels")
    bench.run([bench.kit.tool("weft-rt-kernels"), folders[0], "--only", "none", "--ceilings", "--json", report], seconds)
    found = json.loads(report.read_text())["ceilings"]
    bench.found.ceilings.update(found)
    return (f"copies {found['copied_bytes_per_second'] * 1e-9:,.0f} GB/s, products of bf16 "
            f"{found['product_flops_per_second'] * 1e-12:,.1f} TFLOP/s, of eight bits "
            f"{found['byte_product_flops_per_second'] * 1e-12:,.1f} ({found['libraries']})")


def large_kernels(bench, seconds):
    bench.only_real()
    cases = try_kernels(bench, seconds, "--size", "large")
    most = bench.found.ceilings.get("copied_bytes_per_second")
    said = []
    for case in cases:
        speed = case["bytes"] / case["seconds"] if case["seconds"] else 0
        share = f" ({speed / most:.0%})" if most else ""
        said.append(f"{case['name'].removeprefix('Large.')} {speed * 1e-9:,.0f} GB/s{share}")
    return "; ".join(said)


def sanitized(tool):
    def measure(bench, seconds):
        bench.only_real()
        program = shutil.which("compute-sanitizer", path=os.environ["PATH"] + ":/usr/local/cuda/bin")
        if not program:
            raise Skip("there is no compute-sanitizer")
        end, tried = time.monotonic() + seconds, 0
        for folder in bench.kit.kernels(bench.options.kernels):
            command = [program, "--tool", tool, "--error-exitcode", 9, bench.kit.tool("weft-rt-kernels"), folder, "--size",
                       "small", "--only", SANITIZED]
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
    """Kernels that a sanitizer has nothing against, of which a folder may have none; raises if there is one that it has,
    or that is wrong."""
    if re.search("not supported", output, re.IGNORECASE):
        raise Skip("compute-sanitizer does not support this device here")
    counts = re.search(r"^(\d+) passed, (\d+) failed$", output, re.MULTILINE)
    if (not counts or int(counts[2])
            or not re.search(r"ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards", output)):
        raise RuntimeError(output[-1500:])
    return int(counts[1])


def calibrate(bench, seconds):
    """A pack has no compiler, which makes a machine's file of what is measured."""
    bench.only_real()
    weft = bench.kit.build and bench.kit.build / "bin/weft"
    if not weft:
        return bench.run([bench.kit.tool("weft-rt-calibrate"), 1, CALIBRATION, "cuda"], seconds).strip()
    file = bench.folder / "machine.textproto"
    bench.run([weft, "calibrate", "--target", "cuda", "--quick", "-o", file], seconds)
    return " ".join(file.read_text().split())
