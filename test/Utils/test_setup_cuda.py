#===- test_setup_cuda.py - tests of checks of CUDA toolkits ----------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Tests how utils/setup-cuda and runtime/CudaHeaders.cmake judge made-up toolkits. Installs nothing."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
SETUP = SOURCE / "utils" / "setup-cuda"
HEADERS = SOURCE / "runtime" / "CudaHeaders.cmake"


class Toolkit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.kit = self.make("kit", "13.0", (2, 28, 9))

    def make(self, name, cuda, nccl):
        """A toolkit of these versions; returns its folder."""
        kit = self.root / name
        major, minor = cuda.split(".")
        files = {"bin/ptxas": f"#!/bin/sh\necho 'Cuda compilation tools, release {cuda}, V{cuda}.1'\n",
                 "nvvm/libdevice/libdevice.10.bc": "",
                 "include/cuda.h": f"#define CUDA_VERSION {int(major) * 1000 + int(minor) * 10}\n",
                 "include/cublasLt.h": "",
                 "include/nccl.h": "".join(f"#define NCCL_{part} {number}\n"
                                           for part, number in zip(("MAJOR", "MINOR", "PATCH"), nccl))}
        for file, text in files.items():
            path = kit / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (kit / "bin/ptxas").chmod(0o755)
        return kit


class Setup(Toolkit):
    def check(self, arguments, status, text, **variables):
        done = subprocess.run([SETUP, *arguments, self.root / "build"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False,
                              env={**os.environ, "CUDA_HOME": str(self.kit), **variables})
        self.assertEqual(done.stdout, f"setup-cuda: {text}\n")
        self.assertEqual(done.returncode, status)
        self.assertFalse((self.root / "build").exists())

    def test_a_toolkit_that_does(self):
        self.check([], 0, f"there is a toolkit in {self.kit}")

    def test_one_file_is_missing(self):
        (self.kit / "include/nccl.h").unlink()
        self.check([], 0, f"there is a toolkit in {self.kit}")
        self.check(["--runtime"], 1, f"CUDA_HOME names '{self.kit}', which has no include/nccl.h; "
                   "unset it or name another")

    def test_an_old_assembler(self):
        self.kit = self.make("old", "12.4", (2, 28, 9))
        self.check([], 1, f"CUDA_HOME names '{self.kit}', which is of CUDA 12.4, expected 12.8 or newer; "
                   "unset it or name another")
        self.kit = self.make("new", "12.10", (2, 28, 9))
        self.check([], 0, f"there is a toolkit in {self.kit}")

    def test_old_collectives(self):
        self.kit = self.make("old", "13.0", (2, 26, 5))
        self.check([], 0, f"there is a toolkit in {self.kit}")
        self.check(["--runtime"], 1, f"CUDA_HOME names '{self.kit}', which has an include/nccl.h of NCCL "
                   "2.26.5, expected 2.27.3 or newer; unset it or name another")

    def test_tools_that_show_code(self):
        for tool in ("cuobjdump", "nvdisasm"):
            (self.kit / "bin" / tool).touch(0o755)
        self.check(["--inspect"], 0, f"there is a toolkit in {self.kit}")
        self.check(["--runtime", "--inspect", "more"], 2, "expected [--runtime] [--inspect] [BUILD], got 'more "
                   f"{self.root / 'build'}'")

    def test_no_pip(self):
        python = self.root / "bin/python3"
        python.parent.mkdir()
        python.write_text("#!/bin/sh\nexit 1\n")
        python.chmod(0o755)
        for option in ("--runtime", "--inspect"):
            self.check([option], 1, "expected python3 with pip, 'python3 -m pip' fails; utils/setup installs "
                       "Debian's python3-pip", PATH=f"{python.parent}:{os.environ['PATH']}")


class Headers(Toolkit):
    def check(self, kits, include, why):
        script = self.root / "find.cmake"
        script.write_text(f'include({HEADERS})\nweft_find_cuda_headers(include why {" ".join(map(str, kits))})\n'
                          'message(NOTICE "${include}|${why}")\n')
        done = subprocess.run(["cmake", "-P", script], stderr=subprocess.PIPE, text=True, check=True)
        self.assertEqual(done.stderr, f"{include}|{why}\n")

    def test_the_first_that_does(self):
        old = self.make("old", "12.4", (2, 28, 9))
        self.check([self.root / "none", old, self.kit], self.kit / "include", "")

    def test_none_does(self):
        self.check([self.root / "none", self.root / "other"], "", "there is no cuda.h, cublasLt.h and nccl.h in "
                   f"{self.root}/none, {self.root}/other")
        toolkit = self.make("toolkit", "12.4", (2, 28, 9))
        nccl = self.make("nccl", "13.0", (2, 27, 2))
        self.check([toolkit, nccl], "", f"{toolkit}/include/cuda.h is of CUDA 12.4, expected 12.8 or newer, "
                   f"{nccl}/include/nccl.h is of NCCL 2.27.2, expected 2.27.3 or newer")


if __name__ == "__main__":
    unittest.main()
