#===- gpu_kit.py - what utils/gpu-check runs ---------------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Programs and kernels that gpu-check tries, made by a build here or taken from a pack that a build elsewhere made.

A pack is one .tar.xz of a flat folder: programs, what the compiler said of each (NAME.txt), folders of kernels, the
runtime's libraries, and those that programs are linked with and that a bare machine may lack.
"""

import os
import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# What programs are linked with, besides what every machine with a C++ compiler has.
LINKED = re.compile(r"^\s*(lib(?:dnnl|OpenCL|gomp)\.so\S*) => (\S+)", re.MULTILINE)
# Shards of the unit tests, which write one folder of kernels each.
SHARDS = 4


@dataclass(frozen=True)
class Training:
    """A model, lines in place of some of its recipe's, and how it is split."""
    model: str
    lines: str = ""
    mesh: str = ""

    def name(self, target):
        return re.sub(r"[^A-Za-z0-9.]+", "-", " ".join([self.model, self.lines, self.mesh, target])).strip("-")

    def description(self):
        folder = ROOT / ("benchmarks" if (ROOT / "benchmarks" / self.model).is_dir() else "examples") / self.model
        return folder / "model.textproto", folder / "recipe.textproto"


class Kit:
    """Everything lies in `folder`, made when it is asked for where there is a build."""

    def __init__(self, folder, build):
        self.folder, self.build = folder, build

    def environment(self):
        """For what is in the kit, and only for that: libraries beside it, then those of PyTorch's packages."""
        places = [str(self.folder)]
        for site in {Path(path) for path in torch_sites()}:
            places += sorted(map(str, [*site.glob("nvidia/*/lib"), *site.glob("nvidia/lib")]))
        before = os.environ.get("LD_LIBRARY_PATH")
        return {"LD_LIBRARY_PATH": ":".join([*places, before] if before else places)}

    def program(self, training, target):
        """The executable; raises RuntimeError where it cannot be made."""
        path = self.folder / training.name(target)
        if path.exists() or not self.build:
            return path if path.exists() else self.missing(path)
        model, recipe = training.description()
        changed = path.with_suffix(".recipe")
        fields = re.findall(r"(\w+):", training.lines)
        kept = [line for line in recipe.read_text().splitlines() if not any(line.startswith(f"{f}:") for f in fields)]
        changed.write_text("\n".join([*kept, training.lines, ""]))
        done = subprocess.run([self.build / "bin/weft", "compile", model, "--recipe", changed, "--machine",
                               ROOT / "machines/h100-8.textproto", "--target", target, "--cpu", "x86-64-v3",
                               *(["--pin", training.mesh] if training.mesh else []),
                               "-o", path], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        path.with_suffix(".txt").write_text(done.stderr + done.stdout)
        return path

    def predicted(self, training):
        """What the compiler says of a program for devices: milliseconds of a step, and GiB."""
        self.program(training, "cuda")
        text = (self.folder / training.name("cuda")).with_suffix(".txt").read_text()
        time = re.search(r"predicted: ([\d.,]+) ms", text)
        memory = re.search(r"memory of each rank: ([\d.]+) ([KMG])iB", text)
        return (float(time[1].replace(",", "")) if time else None,
                float(memory[1]) / {"K": 1 << 20, "M": 1 << 10, "G": 1}[memory[2]] if memory else None)

    def tool(self, name):
        """An executable of the runtime."""
        path = self.folder / name
        if not path.exists() and self.build:
            path = self.build / "bin" / name
        return path if path.exists() else self.missing(path)

    def kernels(self, only=None):
        """Folders of kernels."""
        found = sorted(self.folder.glob("kernels-*"))
        if found or not self.build:
            return found
        running = []
        for shard in range(1 if only else SHARDS):
            place = self.folder / f"kernels-{shard}"
            environment = dict(os.environ, WEFT_KERNEL_CASES=str(place), GTEST_SHARD_INDEX=str(shard),
                               GTEST_TOTAL_SHARDS=str(1 if only else SHARDS))
            running.append(subprocess.Popen([self.build / "bin/LowerTests", f"--gtest_filter={only or '*'}"],
                                            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
        failures = [child.communicate()[1] for child in running]
        if any(child.returncode for child in running):
            raise RuntimeError("unit tests do not write their kernels: " + "".join(failures)[-2000:])
        return sorted(self.folder.glob("kernels-*"))

    @staticmethod
    def missing(path):
        raise RuntimeError(f"{path.name} is neither in a build nor in the pack")


def torch_sites():
    """Folders of Python packages, where a PyTorch may keep CUDA's libraries."""
    done = subprocess.run(["python3", "-c", "import site; print('\\n'.join(site.getsitepackages()))"],
                          capture_output=True, text=True, check=False)
    return done.stdout.split()


def linked_libraries(program):
    """Files of libraries that a bare machine may lack."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    return LINKED.findall(done.stdout)


def pack(kit, trainings, tools, path, only=None):
    """Writes a pack with these programs, pairs of training and target, and kernels; returns its size."""
    programs = [kit.program(training, target) for training, target in trainings]
    for tool in tools:
        shutil.copy(kit.tool(tool), kit.folder / tool)
    shutil.copy((kit.build / "lib/libweft-rt-cuda.so.1").resolve(), kit.folder / "libweft-rt-cuda.so.1")
    for name, file in linked_libraries(kit.folder / "weft-rt-kernels"):
        shutil.copy(Path(file).resolve(), kit.folder / name)
    kit.kernels(only)
    for left in [*kit.folder.glob("*.recipe"), *kit.folder.glob("*.textproto")]:
        left.unlink()
    for program in [*programs, *map(kit.folder.joinpath, tools)]:
        subprocess.run(["strip", program], check=False)
    with tarfile.open(path, "w:xz", preset=1) as archive:
        archive.add(kit.folder, ".")
    return path.stat().st_size


def unpack(path, folder):
    """A pack that is a folder already stays where it is."""
    if path.is_dir():
        return path
    with tarfile.open(path) as archive:
        archive.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(folder)
    return folder
