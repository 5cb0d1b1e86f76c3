#!/usr/bin/python3
#===- gpu_check_parts.py - parts of utils/gpu/check that take no build -------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Tests how utils/gpu/check handles ranks, PyTorch and tools that end early, late, or without output.

Prints a line for each case, then "N passed, N failed"; fails if one failed.
"""

import contextlib
import io
import json
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "utils/gpu"))
import gpu_bench  # noqa: E402  pylint: disable=wrong-import-position
import gpu_device  # noqa: E402  pylint: disable=wrong-import-position
import gpu_kit  # noqa: E402  pylint: disable=wrong-import-position
import gpu_predict  # noqa: E402  pylint: disable=wrong-import-position
import gpu_process  # noqa: E402  pylint: disable=wrong-import-position
import gpu_ranks  # noqa: E402  pylint: disable=wrong-import-position
import gpu_results  # noqa: E402  pylint: disable=wrong-import-position
import gpu_rows  # noqa: E402  pylint: disable=wrong-import-position
import gpu_speed  # noqa: E402  pylint: disable=wrong-import-position
import gpu_torch  # noqa: E402  pylint: disable=wrong-import-position
from gpu_kit import Late, Training  # noqa: E402  pylint: disable=wrong-import-position
from gpu_process import Process  # noqa: E402  pylint: disable=wrong-import-position

# Rank 0 is gone at once, the other stays.
GONE = ["sh", "-c", "[ $RANK = 0 ] && { echo it is lost >&2; exit 1; }; sleep 60"]
STAYS = ["sleep", "60"]
SAID = '{"losses": [1], "ms": [1]}'
OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"
REFUSED = "torch._dynamo.exc.Unsupported: a call"
CRASH = "RuntimeError: CUDA error: an illegal memory access was encountered\\nSearch for it"
TAKEN = ("device 0 of rank 0: 4.00 GiB of 79.2 GiB taken, by anybody; 1024 MiB before the run and by its context, "
         "3.00 GiB since then, predicted 2.50 GiB\n")
SANITIZED = "{} passed, {} failed\n========= ERROR SUMMARY: {} errors\n"


class Bench:
    def __init__(self, folder):
        self.folder = folder
        self.passed = self.failed = 0

    def expect(self, what, call, kind, text):
        """Expects a call to return or raise a value of this kind with this text in it."""
        start = time.monotonic()
        try:
            got = call()
        except Exception as error:  # pylint: disable=broad-exception-caught  # Any is compared.
            got = error
        is_good = type(got) is kind and text in str(got) and time.monotonic() - start < 20
        self.passed, self.failed = self.passed + is_good, self.failed + (not is_good)
        print("pass" if is_good else "FAIL", what, "" if is_good else repr(got), flush=True)

    def script(self, name, text):
        path = self.folder / name
        path.write_text("#!/bin/sh\n" + text + "\n")
        path.chmod(0o755)
        return path

    def torch(self, text, mode="eager", seconds=10):
        """Tests training with a fake PyTorch."""
        return lambda: gpu_torch.train(self.script("python", text), Training("gpt2-tiny"), self.folder, self.folder,
                                       "cpu", mode, 4, seconds)


def ranks(bench):
    bench.expect("a drill without steps",
                 lambda: gpu_ranks.drill(GONE, signal.SIGKILL, os.environ, bench.folder / "no", 30),
                 RuntimeError, "does not come to its third step: rank 0 ends with status 1: it is lost")
    bench.expect("a rank that fails at once", lambda: gpu_ranks.run(GONE, 2, os.environ, 30), RuntimeError,
                 "rank 0 ends with status 1: it is lost")
    bench.expect("ranks that take too long", lambda: gpu_ranks.run(STAYS, 2, os.environ, 0.3), Late,
                 "not finished after")
    bench.expect("a drill that takes too long", lambda: gpu_ranks.drill(STAYS, signal.SIGKILL, os.environ,
                                                                        bench.folder / "no", 0.3), Late, "third step")
    steps = ["sh", "-c", f"printf 'a\\nb\\nc\\n' > {bench.folder}/steps; exec sleep 60"]
    for what, most, kind in (("does not end", 1, RuntimeError), ("has no time to end", 9, Late)):
        def drilled(most=most):
            gpu_ranks.ENDED = most
            return gpu_ranks.drill(steps, signal.SIGKILL, os.environ, bench.folder / "steps", 4)
        bench.expect(f"a drill whose other rank {what}", drilled, kind, "the other rank does not end in ")
    bench.expect("ranks that are done", lambda: gpu_ranks.run(["true"], 2, os.environ, 30), type(None), "None")
    tell = ["sh", "-c",
            f"echo ${{CUDA_VISIBLE_DEVICES-all}} $LOCAL_RANK $WEFT_SHARE_DEVICE $NCCL_HOSTID > {bench.folder}/$RANK"]
    for what, seen, shares, expected in (
            ("share a device", None, True, ["0 0 1 weft-0", "0 1 1 weft-1"]),
            ("share the first that they see", "2,3", True, ["2 0 1 weft-0", "2 1 1 weft-1"]),
            ("have devices of their own", None, False, ["all 0", "all 1"]),
            ("have devices of those that they see", "2,3", False, ["2,3 0", "2,3 1"])):
        def told(seen=seen, shares=shares):
            base = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
            gpu_ranks.run(tell, 2, {**base, **({"CUDA_VISIBLE_DEVICES": seen} if seen else {})}, 30, shares)
            return [(bench.folder / str(rank)).read_text().strip() for rank in range(2)]
        bench.expect(f"ranks that {what}", told, list, str(expected))


# In place of a program of several ranks: what its losses are says how it was started.
PROGRAM = """
[ "${RANK:-0}" = 0 ] || exit 0
loss=1
[ -n "$RANK" ] && loss=2
[ -n "$NCCL_HOSTID" ] && loss=3
while [ $# -gt 1 ]; do
  [ $1 = --metrics ] && metrics=$2
  shift
done
[ $1 = --graphs ] && loss=4
for step in 1 2 3 4 5 6 7 8 9 10; do echo '{"loss": '$loss'}'; done > $metrics
"""


def splits(bench):
    """Tests how rows start several ranks and compare them."""
    def measured(way, words, loss):
        program = bench.script("program", PROGRAM)
        own = SimpleNamespace(kit=SimpleNamespace(program=lambda *_: program), folder=bench.folder, text=bench.folder,
                              environment={name: value for name, value in os.environ.items() if name != "RANK"},
                              only_real=lambda: None)
        own.found = gpu_bench.Found(steps={Training("llama-tiny"): [{"loss": loss}] * 20})
        own.run = lambda *given: gpu_bench.Bench.run(own, *given)
        return lambda: gpu_rows.split(Training("llama-tiny", mesh="dp=2,tp=2"), way, words)(own, 30)

    for way, words, loss in ((gpu_rows.OWN, "", 1), (gpu_rows.PROCESSES, "", 2), (gpu_rows.SHARE, "", 3),
                             (gpu_rows.OWN, "--graphs", 4), (gpu_rows.PROCESSES, "--graphs", 4)):
        bench.expect(" ".join([way, *words.split()]), measured(way, words, loss), str,
                     "4 ranks, losses up to 0.0e+00 from one rank's in 10 steps")
    bench.expect("losses that are not one rank's", measured(gpu_rows.OWN, "", 1.1), RuntimeError,
                 "losses are up to 9.1e-02 from one rank's, expected at most 1e-04")
    for devices, expected in ((1, 0), (2, 8), (8, 8)):
        bench.expect(f"rows of devices of their own: {devices} devices", lambda devices=devices: sum(
            row.what.startswith(gpu_rows.OWN) for row in gpu_rows.rows(devices=devices)), int, str(expected))


def torch(bench):
    bench.expect("PyTorch that does not end", bench.torch(f"echo '{SAID}'; sleep 60", seconds=3), dict, "losses")
    bench.expect("PyTorch that takes too long", bench.torch("sleep 60", seconds=0.3), Late, "not finished after")
    for what, said, mode, kind in (("little memory", OUT_OF_MEMORY, "eager", gpu_torch.Unable),
                                   ("a model that it does not compile", REFUSED, "compile", gpu_torch.Unable),
                                   ("a fault of the compiler that is not asked", REFUSED, "eager", RuntimeError),
                                   ("a crash", CRASH, "compile", RuntimeError)):
        bench.expect(f"PyTorch: {what}", bench.torch(f"printf '{said}\\n' >&2; exit 1", mode), kind,
                     said.split("\\n", maxsplit=1)[0])
    bench.expect("no PyTorch", lambda: gpu_torch.ask("/no/python"), tuple, "(None, '/no/python: No such file")
    bench.expect("a Python that does not answer", lambda: gpu_torch.ask(bench.script("python", "sleep 60"), 0.3), tuple,
                 "(None, ")


def float32(bench):
    """Tests the comparison with losses in float32, which PyTorch's are 10 % from."""
    case = gpu_rows.Models().large[0]

    def measured(ours, theirs):
        run = gpu_speed.Run([{"loss": ours}], 1, 1)
        own = SimpleNamespace(only_real_if_large=lambda: None, said=[], figures={},
                              train=lambda training, *_: [{"loss": 1 if "precision: F32" in training.lines else 2}],
                              found=gpu_bench.Found(speeds={case: run} if ours else {}, theirs=theirs))
        return lambda: "; ".join([gpu_speed.beside_float32(case)(own, 10), *own.said])

    theirs = {(case, "eager"): [1.1], (case, "compile"): [1.05]}
    bench.expect("losses nearer to float32's than PyTorch's are", measured(1.02, theirs), str,
                 "up to 2.0e-02 from those in float32 in 12 steps; PyTorch's eager 1.0e-01, compile 5.0e-02")
    bench.expect("losses further from float32's", measured(1.3, theirs), RuntimeError,
                 "losses are up to 3.0e-01 from those in float32, expected at most 2 times as far as PyTorch's")
    bench.expect("no losses of PyTorch's", measured(1, {}), gpu_bench.Skip, "there are no runs in bf16 to compare with")
    bench.expect("no losses of ours", measured(0, theirs), gpu_bench.Skip, "there are no runs in bf16 to compare with")
    kept = SimpleNamespace(found=gpu_bench.Found())
    gpu_rows.keep(kept, [{"what": f"PyTorch eager: {gpu_rows.named(case.training)}", "state": "FAIL",
                          "figures": {"PyTorch's": [1.1]}}], gpu_rows.Models())
    bench.expect("PyTorch's losses of an earlier call", lambda: kept.found.theirs[case, "eager"], list, "[1.1]")


def tools(bench):
    bench.expect("kernels without errors", lambda: gpu_device.count_sanitized(SANITIZED.format(3, 0, 0)), int, "3")
    bench.expect("kernels with errors", lambda: gpu_device.count_sanitized(SANITIZED.format(3, 0, 2)), RuntimeError,
                 "2 errors")
    bench.expect("kernels that are wrong", lambda: gpu_device.count_sanitized(SANITIZED.format(2, 1, 0)), RuntimeError,
                 "1 fai")
    bench.expect("no kernels", lambda: gpu_device.count_sanitized("0 passed, 0 failed\n"), int, "0")
    bench.expect("no call of CUDA, and kernels", lambda: gpu_device.count_sanitized("3 passed, 0 failed\n"),
                 RuntimeError, "3 pas")
    bench.expect("a device that is not supported", lambda: gpu_device.count_sanitized("Error: Device not supported"),
                 gpu_rows.Skip, "does not support")
    bench.script("nvidia-smi", "echo NVIDIA T1, 580.159.03, 81559 MiB")
    bench.expect("a device", lambda: gpu_process.find_device({}), tuple, "('NVIDIA T1, 580.159.03, 81559 MiB', '')")
    bench.script("nvidia-smi", "echo no device >&2; exit 9")
    bench.expect("no device", lambda: gpu_process.find_device({}), tuple, "(None, 'no device; ")
    driver = gpu_process.DRIVER
    for what, text, expected in (("four devices", "print('NVIDIA T1, CUDA 13.0, 8 MiB')\nprint(4)", "4"),
                                 ("no driver", "import sys; sys.exit('no driver')", "1")):
        gpu_process.DRIVER = text
        bench.expect(f"devices that programs see: {what}", lambda: gpu_process.count_devices({}), int, expected)
    gpu_process.DRIVER = driver
    bench.expect("memory", lambda: gpu_speed.taken_memory(TAKEN), str,
                 "of the device 4.00 GiB, of these 1.00 before it and by "
                 "its context, then 3.00 GiB, predicted 2.50 GiB (+20.0%)")
    bench.expect("memory that is not as predicted", lambda: gpu_speed.taken_memory(TAKEN), str,
                 "(wanted within 1%: MISSED)")
    bench.expect("memory that is not told", lambda: gpu_speed.taken_memory("memory: 1 KiB") == "", bool, "True")
    bench.expect("time as predicted", lambda: gpu_speed.beside(1.05, 1, "ms", 0.1, " once calibrated"), str,
                 "(+5.0%) (wanted within 10% once calibrated: met)")
    bench.script("stays", "sleep 60 & echo $!; wait")

    def left():
        with Process([bench.folder / "stays"], None) as process:
            while not process.output:
                time.sleep(0.01)
            child = int(process.output)
        end = time.monotonic() + 5
        while Path(f"/proc/{child}/stat").exists() and time.monotonic() < end:
            if Path(f"/proc/{child}/stat").read_text().split()[2] == "Z":
                break
            time.sleep(0.01)
        return time.monotonic() < end

    bench.expect("what a process has started", left, bool, "True")


def calibration(bench):
    """One device is measured, with a compiler and without."""
    (bench.folder / "build/bin").mkdir(parents=True)
    tell = 'words="$*"\nwhile [ $# -gt 1 ]; do [ $1 = -o ] && echo "$words" > $2; shift; done\necho "$words"'
    tool = bench.script("build/bin/weft", tell)
    for what, build, expected in (("a build", bench.folder / "build", "calibrate --target cuda --ranks 1 --quick -o "),
                                  ("a pack", None, "1 8 cuda")):
        own = SimpleNamespace(kit=SimpleNamespace(build=build, tool=lambda _: tool), folder=bench.folder, said=[],
                              figures={}, environment=dict(os.environ), only_real=lambda: None)
        own.run = lambda *given, own=own: gpu_bench.Bench.run(own, *given)
        bench.expect(f"weft calibrate from {what}", lambda own=own: gpu_device.calibrate(own, 10), str, expected)


# In place of weft-rt-kernels: of three kernels the second is wrong, and what is tried next, by number, ends as FATE
# says.
KERNELS = """
while [ $# -gt 0 ]; do
  case $1 in --json) json=$2;; --skip) skip=$2;; esac; shift
done
case='{"name": "NAME", "fault": "FAULT", "error": 0, "bytes": 0, "seconds": 0}'
cases= trying= fault= number=0
for name in A B C; do
  [ $number -lt $skip ] || {
    trying=$name
    echo '{"cases": ['$cases'], "trying": "'$name'", "fault": ""}' > $json
    [ $name != FATED ] || { FATE; }
    [ -z "$fault" ] || break
    [ $name = B ] && wrong=wrong || wrong=
    echo pass $name: right
    cases="$cases${cases:+, }"$(echo "$case" | sed "s/NAME/$name/; s/FAULT/$wrong/")
    trying=
  }
  number=$((number + 1))
done
echo '{"cases": ['$cases'], "trying": "'$trying'", "fault": "'$fault'"}' > $json
"""


def kernels(bench):
    """Tests the report on kernels if a device, a tool or the time fails at one of them."""
    (bench.folder / "kernels-0").mkdir()

    def tried(fated, fate, seconds=10, recorded=None):
        tool = bench.script("kernels", KERNELS.replace("FATED", fated).replace("FATE", fate))
        kit = SimpleNamespace(kernels=lambda _: [bench.folder / "kernels-0"], tool=lambda _: tool,
                              recorded=lambda: recorded or {})
        own = SimpleNamespace(kit=kit, folder=bench.folder, said=[],
                              options=SimpleNamespace(kernels=None, device="NVIDIA H200"), environment=dict(os.environ))
        own.run = lambda *words, **more: gpu_bench.Bench.run(own, *words, **more)

        def told():
            try:
                result = gpu_device.small_kernels(own, seconds)
            except RuntimeError as error:
                result = f"{type(error).__name__}: {error}"
            return "; ".join([result, *own.said])
        return told

    wrong = "1 of {} kernels are wrong: B: wrong"
    of_two = "; kernels-0: 2 kernels, off from float64 by at most 0.0e+00 of the largest, 1 wrong"
    bench.expect("a kernel that is wrong", tried("D", ":"), str, "RuntimeError: " + wrong.format(3))
    bench.expect("a kernel that a device fails at", tried("A", "fault='A: it is lost'"), str,
                 "RuntimeError: the device fails: A: it is lost; " + wrong.format(2) + of_two + ", 1 at which it fails")
    bench.expect("a kernel at which the tool dies", tried("C", "echo killed >&2; exit 9"), str,
                 "RuntimeError: the device fails: C: killed; " + wrong.format(2) + of_two + ", 1 at which it fails")
    bench.expect("a kernel that takes too long", tried("B", "sleep 60", 3), str,
                 " s, 1 passed and 0 failed so far, at last: pass A: right; kernels-0: 1 kernels, ")
    bench.expect("a tool that says nothing", tried("A", "rm $json; echo broken >&2; exit 9"), str,
                 "RuntimeError: the device fails: broken; kernels-0: 0 kernels, ")
    bench.expect("a number that is infinite", lambda: gpu_device.errors_of([{"error": None}]), str, "at most inf of")
    bench.expect("all that were recorded", tried("A", "skip=2", recorded={"small": 5}), str,
                 "RuntimeError: 2 kernels were tried, expected the 5 that were recorded")


def bars(bench):
    """Tests the targets of kernels' speeds."""
    def said(name, seconds, device, size=1e9):
        return lambda: gpu_device.speed_of({"name": f"Large.{name}", "bytes": size, "seconds": seconds}, 4e12, device)

    for what, given, expected in (
            ("a norm", ("Norm.rms", 2.5e-4, "NVIDIA H200"), "Norm.rms 4,000 GB/s (100%) (wanted 3,700 GB/s: met)"),
            ("its gradient", ("NormGrad.rms", 3e-4, "NVIDIA H200"), "(wanted 3,400 GB/s: MISSED)"),
            ("a norm of another device", ("Norm.rms", 4e-4, "NVIDIA H100 80GB HBM3"), "(wanted 2,582 GB/s: MISSED)"),
            ("any other kernel", ("Cast", 2.5e-4, "NVIDIA L4"), "(wanted 3,400 GB/s: met)")):
        bench.expect(f"speed of {what}", said(*given), str, expected)
    for what, given, expected in (
            ("attention", ("Attention", 1, "NVIDIA H200"), "Attention 1 GB/s (0%)"),
            ("a norm of a device that nobody knows", ("Norm.rms", 1, "NVIDIA L4"), "Norm.rms 1 GB/s (0%)"),
            ("what is small", ("Cast", 1e-3, "NVIDIA H200", 1e6), "Cast 1 GB/s (0%)"),
            ("what was too short", ("Cast", 0, "NVIDIA H200"), "Cast not measured")):
        bench.expect(f"nothing is wanted of {what}", lambda given=given, told=expected: said(*given)() == told, bool,
                     "True")


# In place of weft, which says of a machine with this text that a step takes 100 ms.
COMPILER = """
while [ $# -gt 1 ]; do
  case $1 in -o) output=$2;; --machine|--measured) given=$2;; calibrate) calibrates=1;; esac; shift
done
[ "$(cat $given)" = good ] || { echo "it is bad" >&2; exit 1; }
[ -z "$calibrates" ] || echo good > $output
echo "predicted: 100.0 ms a step"
"""


def predictions(bench):
    """Tests predictions from a run's results."""
    (bench.folder / "bin").mkdir()
    bench.script("bin/weft", COMPILER)
    result = bench.folder / "result.json"

    def predicted(figures):
        if figures is not None:
            result.write_text(json.dumps({"rows": [{"what": "weft calibrate", "figures": figures}, {"what": "versions"},
                                                   {"what": "gpt2-tiny", "figures": {"step_ms": 105}}]}))
        place = Path(tempfile.mkdtemp(dir=bench.folder))

        def told():
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                status = gpu_predict.predict(gpu_kit.Kit(place, bench.folder), result,
                                             {"gpt2-tiny": Training("gpt2-tiny"), "other": Training("llama-tiny")})
            return f"{status} {said.getvalue()}"
        return told()

    time_told = "a step took 105.00 ms, predicted 100.00 ms (+5.0%) (wanted within 10%: met)\n"
    for what, figures, expected in (
            ("what a pack has measured", {"measured": "good"},
             f"0 gpu-check: {result.with_suffix('.textproto')}\ngpt2-tiny: {time_told}"),
            ("a machine", {"machine": "good"}, time_told),
            ("a bad measurement", {"measured": "bad"}, "1 gpu-check: cannot predict by "),
            ("none", {}, "it has no row of weft calibrate that passed")):
        bench.expect(f"predictions by {what}", lambda figures=figures: predicted(figures), str, expected)
    result.write_text("nothing")
    bench.expect("predictions by no results", lambda: predicted(None), str, "1 gpu-check: cannot predict by ")


def states(bench):
    """Tests how a row ends that has some measurements, or lacks a library."""
    def raises(error, left, missing=""):
        def measure(own, _):
            own.said.append("half of it")
            raise error
        own = SimpleNamespace(said=[], figures={}, printed="", missing=lambda: {gpu_bench.NCCL: missing})
        own.need = lambda libraries: gpu_bench.Bench.need(own, libraries)
        row = gpu_rows.Row("row", 5, measure, libraries=(gpu_bench.CUBLASLT, gpu_bench.NCCL))
        return lambda: gpu_rows.measured(row, SimpleNamespace(is_real=True, for_row=lambda: own), [], left)

    bench.expect("the end of a row's time", raises(Late("late"), 30), tuple,
                 "('cut off', 'after 0 s, planned 5: late; half of it', {})")
    bench.expect("a tool that the kit lacks", raises(OSError(13, "denied"), 30), tuple, "('FAIL', 'PermissionError: ")
    bench.expect("what cannot be shown", raises(gpu_rows.Skip("none"), 30), tuple,
                 "('skipped', 'none; half of it', {})")
    bench.expect("no time for it", raises(Late("late"), 4), tuple, "('not run', '4 s left, needs 5', {})")
    bench.expect("a missing library", raises(Late("late"), 30, "cannot load it"), tuple,
                 "('skipped', 'cannot load it', {})")
    bench.expect("a library that fails", raises(RuntimeError("it fails"), 30, "cannot use it"), tuple,
                 "('FAIL', 'it fails; half of it', {})")


def calls(bench):
    """Tests which rows later calls run, and which figures of earlier ones they know."""
    whole = list(gpu_rows.rows())
    states = {whole[0].what: "told", whole[1].what: "FAIL", whole[2].what: "pass", whole[3].what: "cut off",
              whole[4].what: "skipped", whole[5].what: "not run", **{row.what: "pass" for row in whole[6:]}}
    first = [{"what": what, "state": state} for what, state in states.items()]
    later = [row.what for row in gpu_rows.later_rows()]
    expected = [whole[5].what, whole[3].what, *later, whole[1].what, whole[4].what]
    bench.expect("a second call", lambda: [row.what for row in gpu_rows.rows_after(first)] == expected, bool, "True")
    bench.expect("seconds of a row that was cut off", lambda: gpu_rows.rows_after(first)[1].seconds / whole[3].seconds,
                 float, "2.0")
    second = [{"what": what, "state": "pass"} for what in expected[:-2]]
    second.append({"what": whole[1].what, "state": "not run"})
    both = gpu_results.merge(first, second, "c0ffee")
    bench.expect("a third call", lambda: [row.what for row in gpu_rows.rows_after(both)], list,
                 str([whole[1].what, whole[4].what]))
    result = bench.folder / "calls.json"
    result.write_text(json.dumps({"rows": [{"what": "a", "state": "FAIL"}, {"what": "b", "state": "pass"}]}))
    newer = bench.folder / "newer.json"
    newer.write_text(json.dumps({"commit": "c0ffee", "rows": [{"what": "a", "state": "pass"},
                                                              {"what": "b", "state": "not run"}]}))
    bench.expect("results of two calls", lambda: gpu_results.read_earlier([result, newer]), list, str(
        [{"commit": "c0ffee", "what": "a", "state": "pass"}, {"commit": "unknown", "what": "b", "state": "pass"}]))
    names = [row.what for row in (*whole, *gpu_rows.later_rows())]
    bench.expect("names of rows", lambda: len(set(names)) == len(names), bool, "True")

    def kept():
        models, found = gpu_rows.Models(), gpu_bench.Found()
        case = models.large[0]
        run = {"steps": [{"loss": 1}], "per_second": 2, "arena": 3}
        gpu_rows.keep(SimpleNamespace(found=found),
                      [{"what": gpu_rows.named(case.training), "state": "pass", "figures": {"run": run}},
                       {"what": "ceilings of copies", "state": "pass", "figures": {"ceilings": {"copied": 4}}},
                       {"what": "versions", "state": "told"}], models)
        return found.speeds[case], found.ceilings
    bench.expect("figures of earlier calls", kept, tuple,
                 "(Run(steps=[{'loss': 1}], per_second=2, arena=3), {'copied': 4})")


def order(bench):
    """Tests that a row which ends first is told first, beside one that runs."""
    went = threading.Event()

    def measure(what):
        def wait(_, seconds):
            # The other row can only be told while this one still waits.
            if what == "first" and not went.wait(seconds):
                raise RuntimeError("the other row is not told")
            return what
        return wait
    some = [gpu_rows.Row(what, 20, measure(what), processors=1) for what in ("first", "second")]
    whole, gpu_rows.rows = gpu_rows.rows, lambda *_: some
    os_affinity, os.sched_getaffinity = os.sched_getaffinity, lambda _: range(2)
    options = SimpleNamespace(reduced=False, devices=1, only="", slower=None, library="/no/library",
                              python="/no/python")
    kit = SimpleNamespace(environment=lambda: {})

    def told():
        all_told = []
        with contextlib.redirect_stdout(io.StringIO()):
            for rows in gpu_rows.run(kit, options, bench.folder, time.monotonic() + 30):
                all_told.append([row["what"] for row in rows])
                went.set()
        return all_told
    bench.expect("rows as they end, in their order", told, list, "[['second'], ['first', 'second']]")
    gpu_rows.rows, os.sched_getaffinity = whole, os_affinity


def seconds(bench):
    """Tests how much of the remaining time rows may take."""
    row, needed = gpu_rows.Row("row", 10, None), gpu_rows.Row("needed", 20, None, needed=True)
    for what, later, left, expected in (
            ("enough for all", [row, needed], 100, 20), ("nothing to spare", [row, needed], 30, 10),
            ("some to spare", [needed, row], 35, 15), ("rows that nobody needs", [row, row], 20, 20),
            ("not enough for what is needed later", [needed], 25, 20), ("not enough", [], 9, 0)):
        bench.expect(f"seconds: {what}", lambda given=(row, later, left): gpu_rows.allowed(*given), int, str(expected))
    for is_reduced in (False, True):
        left = gpu_rows.SECONDS - gpu_rows.whole(is_reduced)
        bench.expect("seconds of all rows", lambda left=left: left >= 0, bool, "True")
    for what, some, expected in (("the longest last", [row, row, needed], 30),
                                 ("the longest first", [needed, row, row], 20)):
        bench.expect(f"seconds of rows beside one another: {what}", lambda some=some: gpu_rows.makespan(some, 2), int,
                     str(expected))
    order = [row.needed for row in gpu_rows.rows()]
    bench.expect("what is needed comes first", lambda: order == sorted(order, reverse=True), bool, "True")
    bench.expect("what --help says", gpu_rows.plan, str, "compute-sanitizer synccheck\n")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
        bench = Bench(Path(folder))
        for part in (ranks, splits, torch, float32, tools, calibration, kernels, bars, predictions, states,
                     calls, order, seconds):
            part(bench)
    print(f"{bench.passed} passed, {bench.failed} failed")
    return bench.failed > 0


if __name__ == "__main__":
    sys.exit(main())
