#!/usr/bin/python3
#===- gpu_check.py - utils/gpu/check, without a GPU --------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Runs utils/gpu/check on the simulator for devices: from a build, and from a pack that a build has made.

    gpu_check.py --bin bin

Rows that a simulator can test must pass, other rows must be skipped, and planted faults must fail. Needs a CUDA toolkit
for compiling, and no device. Prints a line for each case, then "N passed, N failed"; fails if one failed or none ran.
"""

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from device_code import has_no_toolkit

CHECK = Path(__file__).resolve().parents[2] / "utils/gpu/check"
KERNELS = "*FunctionTest.Sqrt/*"
# A Python with a fake PyTorch, whose losses are those of the run before, TIMES times.
FAKE_TORCH = f"""#!/bin/sh
PYTHONPATH={CHECK.parent}/fakes WEFT_FAKE_FACTOR=TIMES exec {sys.executable} "$@"
"""


class Bench:
    def __init__(self, binaries):
        self.build = binaries.parent
        self.plugin = self.build / "lib" / "libweft-rt-cuda-simulator-plugin.so"
        self.passed = self.failed = 0

    def expect(self, what, status, patterns, *options, **environment):
        """Expects all patterns in the output of gpu-check."""
        done = subprocess.run([str(word) for word in (CHECK, *options)], capture_output=True, text=True, check=False,
                              env={**os.environ, **environment})
        said = done.stdout + done.stderr
        is_good = done.returncode == status and all(re.search(one, said, re.MULTILINE) for one in patterns)
        self.passed, self.failed = self.passed + is_good, self.failed + (not is_good)
        print("pass" if is_good else "FAIL", what, "" if is_good else f"{done.returncode}: {said}", flush=True)

    def expect_here(self, what, status, patterns, *options, **environment):
        self.expect(what, status, patterns, "--build", self.build, "--library", self.plugin, "--python", "/no/python",
                    *options, **environment)


def from_build(bench):
    bench.expect("no device", 0, [r"^gpu-check: there is no CUDA device here", r"^unproven remain:$"],
                 PATH="/usr/bin:/bin")
    bench.expect("no results of an earlier call", 1,
                 [r"^gpu-check: cannot read results of an earlier call: .*/no/results\.json"], "--after",
                 "/no/results.json")
    bench.expect_here("losses", 0, [r"^pass gpt2-tiny: losses up to .* from the host's in 20 steps, .* tokens/s$",
                                    r"^skipped beside PyTorch: gpt2-tiny: there is no PyTorch: .*/no/python",
                                    r"^1 passed, 0 failed$"], "--only", "gpt2-tiny$")
    bench.expect_here("drills", 0, [r"^pass drill: rank 1 gets SIGKILL: exit status 5 after",
                                    r"^pass drill: rank 1 gets SIGSTOP: exit status 6 after"], "--only", "drill")
    bench.expect_here("what needs a device", 1, [r"^skipped shared device: llama-tiny dp=2: this needs a device",
                                                 r"^0 passed, 0 failed$"], "--only", "llama-tiny dp=2")
    bench.expect_here("devices of their own", 0, [
        r"^pass own devices: llama-tiny dp=2 --graphs: 2 ranks, losses up to .* from one rank's in 10 steps$",
        "^1 passed, 0 failed$"], "--only", "own devices: llama-tiny dp=2 --graphs", WEFT_SIMULATOR_DEVICES="2")
    bench.expect_here("no time", 1, [r"^not run gpt2-tiny: 0 s left, needs 6$"], "--only", "gpt2-tiny$",
                      "--seconds", "0")
    bench.expect_here("not enough time", 1, [r"^cut off gpt2-tiny: after \d+ s, planned 6: not finished after . s",
                                             r"^\d cut off or not run$", r"^0 passed, 0 failed$"], "--only",
                      "gpt2-tiny$", "--seconds", "4", WEFT_SIMULATOR_SLOW="0:0:50")
    bench.expect_here("a device that fails", 1, [r"^FAIL gpt2-tiny: error: device 0 of rank 0, in "
                                                 r"\w+ instruction \d+ .*: launch: it is lost$"],
                      "--only", "gpt2-tiny$", WEFT_SIMULATOR_FAIL="launch:30")


def on_a_device(bench, folder):
    """Tests tables on a machine with a device, of which there is only a fake nvidia-smi."""
    asks = folder / "nvidia-smi"
    asks.write_text("#!/bin/sh\necho 'NVIDIA T1, 580.159.03, 81559 MiB'\n")
    asks.chmod(0o755)
    said = [r"^told versions: NVIDIA T1, .*; there is no PyTorch: ", r"^0 passed, 0 failed$",
            r"^written: .*-nvidia-t1\.md and \.json$"]
    bench.expect("a table", 1, said, "--build", bench.build, "--only", "versions", "--python", "/no/python", "--out",
                 folder / "tables", PATH=f"{folder}:/usr/bin:/bin")
    tables = [path.read_text() for path in (folder / "tables").glob("*-nvidia-t1.md")]
    if len(tables) != 1 or "\n| versions | told | NVIDIA T1, " not in tables[0]:
        sys.exit(f"expected a table, got {tables}")


def from_pack(bench, folder):
    pack = folder / "gpu.tar.xz"
    bench.expect("a pack", 0, [r"^gpu-check: .*gpu\.tar\.xz, [\d.]+ MiB$"], "--build", bench.build, "--pack", pack,
                 "--only", "gpt2-tiny", "--kernels", KERNELS)
    with tarfile.open(pack) as archive:
        names = {name.removeprefix("./") for name in archive.getnames()}
    missing = {"gpt2-tiny-cuda", "gpt2-tiny-plain-cuda", "gpt2-tiny-host", "gpt2-tiny-cuda.txt", "commit", "recorded",
               "weft-rt-kernels", "libweft-rt-cuda.so.1", "weft-rt-cuda-plugin-test", "kernels-0/kernels.so",
               "kernels-0/cases.json"} - names
    if missing or not any(name.startswith("libdnnl") for name in names):
        sys.exit(f"the pack lacks {sorted(missing)}, and has {sorted(names)}")
    bench.expect("a pack without a device", 77, [r"^unproven remain:$"], "--from", pack, PATH="/usr/bin:/bin")
    bench.expect("losses from a pack", 0, [r"^pass gpt2-tiny: losses up to"], "--from", pack, "--library", bench.plugin,
                 "--only", "^gpt2-tiny$")
    for what, factor, status, pattern in (
            ("PyTorch's losses", 1, 0, r"^pass beside PyTorch: gpt2-tiny: losses up to 0\.0e\+00 from PyTorch's in 20"),
            ("losses that are not PyTorch's", 1.001, 1,
             r"^FAIL beside PyTorch: gpt2-tiny: losses are up to 1\.0e-03 from PyTorch's fake, "
             r"expected at most 1e-05$")):
        fake = folder / f"python-{factor}"
        fake.write_text(FAKE_TORCH.replace("TIMES", str(factor)))
        fake.chmod(0o755)
        bench.expect(what, status, [pattern], "--from", pack, "--library", bench.plugin, "--python", fake,
                     "--only", "beside PyTorch: gpt2-tiny")
    bench.expect("kernels from a pack", 0, [r"^pass kernels, small: 2 kernels, off from float64 by at most",
                                            r"^skipped kernels, large", r"^1 skipped, which shows nothing$"],
                 "--from", pack, "--library", bench.plugin, "--only", "kernels")
    bench.expect("what a pack lacks", 1,
                 [r"^FAIL mixtral-tiny: mixtral-tiny-cuda is neither in a build nor in the pack$"],
                 "--from", pack, "--library", bench.plugin, "--only", "mixtral-tiny$")


def large_models(bench, folder):
    """Tests the path of large models with small ones: programs, speed and memory, PyTorch, and attention."""
    pack, fake = folder / "reduced.tar.xz", folder / "python-1"
    bench.expect("a reduced pack", 0, [r"^gpu-check: .*reduced\.tar\.xz"], "--build", bench.build, "--pack", pack,
                 "--reduced", "--only", "llama-1b", "--kernels", KERNELS)
    with tarfile.open(pack) as archive:
        names = archive.getnames()
    others = [name for name in names if "h200" in name]
    if len(others) != 2 or not all(name.endswith("-cuda-h200-4.txt") for name in others):
        sys.exit(f"expected what is predicted of an H200, got {others}")
    there = ("--from", pack, "--library", bench.plugin, "--reduced", "--python", fake, "--only")
    told = (r"llama-1b .*: losses up to 0\.0e\+00 from PyTorch's in 12 steps; PyTorch fake {}: 256,000 tokens/s, "
            r"at most 1\.00 GiB, reserved 2\.00 GiB, of the device 3\.00 GiB; ours is .* times as fast{}, its arena")
    bench.expect("large models", 0, [
        r"^pass llama-1b .*: [\d,]+ tokens/s, .* of the peak .*\(wanted 50%: MISSED\); a step takes .* ms, "
        r"predicted .* ms \(\+.*%\) \(wanted within 10% once calibrated: MISSED\) by h100-8, .*; "
        r"arena .* GiB; of the device .* GiB, .* predicted .* GiB .*; with --graphs [\d,]+ tokens/s$",
        "^pass PyTorch eager: " + told.format("eager", ""),
        "^pass PyTorch compile: " + told.format("compile", r" \(wanted 1\.05: MISSED\)"),
        r"^pass float32: llama-1b .*: losses up to .* from those in float32 in 12 steps; PyTorch's eager .*, compile ",
        r"^pass llama-1b .*: losses up to .* from the host's in 2 steps",
        r"^pass profile: llama-1b .*: a step [\d.,]+ ms, predicted [\d.]+, of it .*matmul [\d.]+ ms, predicted",
        r"^pass llama-1b .* fp8 .*: [\d,]+ tokens/s, ", "^8 passed, 0 failed$"], *there, "llama-1b")
    bench.expect("attention", 0,
                 [r"^pass attention within documents: within documents of 1021 tokens it takes .*; as it is .* ms "
                                  r"forward, .*; within documents .*; by the compiler's kernels .* ms backward$"],
                 *there, "attention within")
    bench.expect("a large model that is not reduced", 1, [r"^skipped llama-1b precision: BF16: this needs a device"],
                 *there[:4], "--only", "llama-1b precision", "--python", "/no/python")
    bench.expect("no compiled PyTorch of a run that there is not", 1,
                 [r"^skipped PyTorch compile: llama-1b .*: there is no run of ours to compare with; "
                  r"PyTorch fake compile: "],
                 *there, "PyTorch compile")


def elsewhere(bench, folder):
    """Tests machines that lack something, or have another kind of it."""
    pack = folder / "gpu.tar.xz"
    broken = folder / "broken.tar.xz"
    broken.write_bytes(pack.read_bytes()[:100000])
    for what, file in (("a pack that is cut off", broken), ("no pack", folder / "nowhere")):
        bench.expect(what, 1, [r"^gpu-check: cannot unpack "], "--from", file, "--library", bench.plugin)
    bench.expect("collectives from a pack", 0, [r"^pass conformance: \d+ tests, 0 skipped"], "--from", pack,
                 "--library", bench.plugin, "--only", "conformance")
    # A driver, and neither nvidia-smi nor a place to write to.
    fakes = bench.build / "runtime/fake-cuda"
    bench.expect("a device that only the driver tells", 1, [
        r"^told versions: nothing by nvidia-smi .*; there is no PyTorch: ",
        r"^gpu-check: cannot write into /proc/nowhere: "],
        "--from", pack, "--only", "versions", "--python", "/no/python", "--out", "/proc/nowhere", PATH="/usr/bin:/bin",
        LD_LIBRARY_PATH=str(fakes))
    bench.expect("kernels that a device does not run", 1, [
        r"^FAIL kernels, small: the device fails: device 0 of rank 0, in \w+ instruction .*: cuModuleGetFunction",
        "^skipped kernels, large: none is among "],
        "--from", pack, "--only", "kernels", "--out", folder / "fake", PATH="/usr/bin:/bin", LD_LIBRARY_PATH=str(fakes))
    bench.expect("functions that a driver does not have", 1, [
        r"^FAIL functions of the driver: \d tests fail: .*CudaDevice.RunsPTX: \S*: Failure ",
        r"^pass functions of cuBLASLt: 1 tests$"],
        "--from", pack, "--only", "functions", "--out", folder / "fake", PATH="/usr/bin:/bin",
        LD_LIBRARY_PATH=str(fakes))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of weft, LowerTests and weft-rt-kernels")
    options = parser.parse_args()
    if reason := has_no_toolkit(options.bin):
        print(f"skipped: {reason}")
        return 77
    bench = Bench(options.bin.resolve())
    from_build(bench)
    with tempfile.TemporaryDirectory() as folder:
        on_a_device(bench, Path(folder))
        if (bench.build / "lib/libweft-rt-cuda.so.1").exists():
            from_pack(bench, Path(folder))
            elsewhere(bench, Path(folder))
            large_models(bench, Path(folder))
    print(f"{bench.passed} passed, {bench.failed} failed")
    return bench.failed > 0 or bench.passed == 0


if __name__ == "__main__":
    sys.exit(main())
