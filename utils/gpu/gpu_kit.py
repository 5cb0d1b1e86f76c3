#===- gpu_kit.py - programs and kernels for utils/gpu/check ------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Programs and kernels that gpu-check runs, from a build or from a pack.

A pack is a .tar.xz of a folder: programs, the compiler's report on each (NAME.txt), folders of kernels, the runtime's
libraries, the libraries that programs are linked with and a bare machine may lack, and in a folder of its own the C++
library, which only machines use that have none or an older one.
"""

import itertools
import json
import lzma
import os
import re
import shutil
import subprocess
import tarfile
import threading
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Libraries that programs are linked with and that a machine with a C++ compiler may lack, and the C++ library.
LINKED = re.compile(r"^\s*(lib(?:dnnl|OpenCL|gomp)\.so\S*) => (\S+)", re.MULTILINE)
CXX = re.compile(r"^\s*(lib(?:stdc\+\+|gcc_s)\.so\S*) => (\S+)", re.MULTILINE)
# The loader's exit status and words if a program cannot start for lack of the C++ library, or of a new one.
NO_START, NO_CXX = 127, re.compile(r"libstdc\+\+|libgcc_s|GLIBCXX|CXXABI|GCC_")
# The training data: bytes that are no text, but can be learned.
TEXT = bytes(i * i % 101 for i in range(1 << 21))
# The machine that programs are compiled for, and machines of other devices for predictions.
MACHINE, OTHERS = "h100-8", {"H200": "h200-4"}
# Cores that the work of a program for the host is cut for: it takes no more threads.
CORES = 8
# A pack's programs share most of their code, over distances of megabytes.
PACKED = [{"id": lzma.FILTER_LZMA2, "preset": 3, "dict_size": 64 << 20}]
# Shards of the unit tests, which write one folder of kernels each.
SHARDS = 4


class Late(RuntimeError):
    """The command took too long; `output` is its output so far."""

    def __init__(self, what, output=""):
        super().__init__(what)
        self.output = output


@dataclass(frozen=True)
class Training:
    """A model, lines in place of some of its recipe's, how it is split, whether it drops nothing, as PyTorch's side of
    a comparison does, and lines in place of some of its own."""
    model: str
    lines: str = ""
    mesh: str = ""
    plain: bool = False
    sizes: str = ""

    def name(self, target):
        words = [self.model, "plain" if self.plain else "", self.sizes, self.lines, self.mesh, target]
        return re.sub(r"[^A-Za-z0-9.]+", "-", " ".join(words)).strip("-")

    def describe(self, folder):
        """Returns the files of the model and the recipe; changed ones are written into `folder`."""
        place = ROOT / ("benchmarks" if (ROOT / "benchmarks" / self.model).is_dir() else "examples") / self.model
        model, recipe = place / "model.textproto", folder / f"{self.name('any')}.recipe"
        replaced = re.findall(r"(\w+)(?::| \{)", self.lines)
        # A recipe has one optimizer.
        replaced += ["adamw"] if "muon" in replaced else []
        recipe.write_text(without(place / "recipe.textproto", replaced) + self.lines + "\n")
        if self.plain or self.sizes:
            changed = folder / f"{self.name('any')}.model"
            dropped = ("dropout", "attention_dropout") if self.plain else ()
            changed.write_text(without(model, (*dropped, *re.findall(r"(\w+):", self.sizes))) + self.sizes + "\n")
            model = changed
        return model, recipe


def without(path, fields):
    """The text of a description without the lines of these fields."""
    lines = path.read_text().splitlines(keepends=True)
    return "".join(line for line in lines if re.match(r"\w*", line)[0] not in fields)


class Kit:
    """The programs and kernels in `folder`; with a build, each is made on first use."""

    def __init__(self, folder, build, python="python3"):
        self.folder, self.build, self.python = folder, build, python
        # A lock per program, since concurrent rows may ask for the same one.
        self.making = {}
        self.cxx = [str(folder / "cxx")] if self.needs_cxx() else []

    def environment(self):
        """For what is in the kit, and only for that: libraries beside it, then those of PyTorch's packages, then those
        of a toolkit and a driver where these mostly are."""
        places = [str(self.folder), *self.cxx]
        for site in map(Path, dict.fromkeys(torch_sites(self.python))):
            places += sorted(map(str, [*site.glob("nvidia/*/lib"), *site.glob("nvidia/lib")]))
        if before := os.environ.get("LD_LIBRARY_PATH"):
            places.append(before)
        return {"LD_LIBRARY_PATH": ":".join([*places, "/usr/local/cuda/lib64", "/usr/local/nvidia/lib64"])}

    def needs_cxx(self):
        """Returns true if this machine has no C++ library with which the kit's programs start."""
        tool = self.folder / "weft-rt-kernels"
        if not tool.exists():
            return False
        done = subprocess.run([tool], env={**os.environ, "LD_LIBRARY_PATH": str(self.folder)}, capture_output=True,
                              text=True, check=False)
        return done.returncode == NO_START and bool(NO_CXX.search(done.stderr))

    def path(self, training, target, machine):
        return self.folder / (training.name(target) + ("" if machine == MACHINE else f"-{machine}"))

    def program(self, training, target, machine=MACHINE, described=None):
        """Returns the executable; raises RuntimeError if it cannot be made. The machine may be outside the tree."""
        path = self.path(training, target, machine)
        with self.making.setdefault(path, threading.Lock()):
            if not path.exists():
                if not self.build:
                    self.missing(path)
                self.compile(training, target, described or ROOT / f"machines/{machine}.textproto", path)
        return path

    def compile(self, training, target, described, path):
        model, recipe = training.describe(self.folder)
        if target == "host":
            text, described = described.read_text(), path.with_suffix(".textproto")
            described.write_text(text.replace("device {", f"device {{\n  cores: {CORES}", 1))
        done = subprocess.run([self.build / "bin/weft", "compile", model, "--recipe", recipe, "--machine",
                               described, "--target", target, "--cpu", "x86-64-v3",
                               *(["--pin", training.mesh] if training.mesh else []),
                               "-o", path], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        path.with_suffix(".txt").write_text(done.stderr + done.stdout)

    def predicted(self, training, device=""):
        """Returns the compiler's prediction for a program for devices: milliseconds of a step, on this device's machine
        if there is one, GiB of the arena, and GiB of the device in all; None for an unknown figure."""
        machine = next((file for name, file in OTHERS.items() if name in device), MACHINE)
        path = self.path(training, "cuda", machine).with_suffix(".txt")
        if not path.exists():
            self.program(training, "cuda", machine)
        text = path.read_text()
        return (predicted_time(text), *(gib(re.search(rf"memory of each {whose}: ([\d.]+) ([KMGT])iB", text))
                                        for whose in ("rank", "device")), machine)

    def tool(self, name):
        """Returns the path of an executable of the runtime."""
        path = self.folder / name
        if not path.exists() and self.build:
            path = self.build / "bin" / name
        return path if path.exists() else self.missing(path)

    def kernels(self, only=None):
        """Returns the folders of kernels."""
        found = sorted(self.folder.glob("kernels-*"))
        if found or not self.build:
            return found
        running = []
        for shard in range(1 if only else SHARDS):
            place = self.folder / f"kernels-{shard}"
            environment = dict(os.environ, WEFT_KERNEL_CASES=str(place), GTEST_SHARD_INDEX=str(shard),
                               GTEST_TOTAL_SHARDS=str(1 if only else SHARDS))
            running.append(subprocess.Popen([self.build / "bin/LowerTests", f"--gtest_filter={only or '*'}"],
                                            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                            text=True))
        failures = [child.communicate()[1] for child in running]
        if any(child.returncode for child in running):
            raise RuntimeError("unit tests do not write their kernels: " + "".join(failures)[-2000:])
        return sorted(self.folder.glob("kernels-*"))

    def recorded(self):
        """Returns how many kernels of each size the unit tests recorded, if known; a pack has the numbers in a file."""
        told = self.folder / "recorded"
        return json.loads(told.read_text()) if told.exists() else {}

    def commit(self):
        """Returns the commit of the build, if known; a pack has it in a file."""
        told = self.folder / "commit"
        if told.exists():
            return told.read_text()
        try:
            done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True,
                                  text=True, check=False)
        except OSError:
            return "unknown"
        return done.stdout.strip() or "unknown"

    @staticmethod
    def missing(path):
        raise RuntimeError(f"{path.name} is neither in a build nor in the pack")


def predicted_time(text):
    """Returns the predicted milliseconds of a step, from the compiler's report on a program."""
    time = re.search(r"predicted: ([\d.,]+) ms", text)
    return float(time[1].replace(",", "")) if time else None


def gib(found):
    """Returns the GiB of a match of a number and a unit."""
    units = {"b": 1 << 30, "K": 1 << 20, "M": 1 << 10, "G": 1, "T": 1 / 1024}
    return float(found[1]) / units[found[2][0]] if found else None


def read_steps(metrics):
    return [line for line in map(json.loads, metrics.read_text().splitlines()) if "loss" in line]


def torch_sites(python):
    """Returns the folders of Python packages in which PyTorch may keep CUDA's libraries."""
    try:
        done = subprocess.run([python, "-c", "import sys; print('\\n'.join(path for path in sys.path if path))"],
                              capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines()


def linked_libraries(program, names):
    """Returns the names and files of the libraries of these `names` that a program is linked with."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    return names.findall(done.stdout)


def pack(kit, trainings, timed, tools, path, only=None):
    """Writes a pack with these programs, pairs of training and target, and kernels; returns its size. Of `timed` ones
    there is what is predicted of them on other devices."""
    for training, machine in itertools.product(timed, OTHERS.values()):
        kit.program(training, "cuda", machine).unlink()
    carried = [kit.program(training, target) for training, target in trainings]
    linked = kit.tool("weft-rt-kernels")
    (kit.folder / "cxx").mkdir()
    copied = [*((tool, kit.tool(tool)) for tool in tools), *linked_libraries(linked, LINKED),
              *((f"cxx/{name}", file) for name, file in linked_libraries(linked, CXX)),
              ("libweft-rt-cuda.so.1", kit.build / "lib/libweft-rt-cuda.so.1")]
    for name, file in copied:
        carried.append(kit.folder / name)
        shutil.copy(Path(file).resolve(), carried[-1])
    folders = kit.kernels(only)
    carried += [folder / "kernels.so" for folder in folders]
    for file in carried:
        subprocess.run(["strip", file], check=False)
    (kit.folder / "commit").write_text(kit.commit())
    (kit.folder / "recorded").write_text(json.dumps(count_cases(folders)))
    for left in [path for end in ("recipe", "model", "textproto") for path in kit.folder.glob(f"*.{end}")]:
        left.unlink()
    with lzma.open(path, "w", filters=PACKED) as file, tarfile.open(fileobj=file, mode="w") as archive:
        archive.add(kit.folder, ".")
    return path.stat().st_size


def count_cases(folders):
    large = [case["large"] for folder in folders for case in json.loads((folder / "cases.json").read_text())["cases"]]
    return {"small": len(large) - sum(large), "large": sum(large)}


def unpack(path, folder):
    """Unpacks a pack and returns its folder; a pack that is a folder already stays where it is."""
    if path.is_dir():
        return path
    with tarfile.open(path) as archive:
        archive.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(folder)
    return folder
