#===- lit.cfg.py - configuration of lit for the tests of this folder ---------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------------------------===#

import os
import subprocess

import lit.formats

config.name = "weft"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.weft_build, "test")

# Tools by their plain names: ours, and FileCheck, not and split-file of LLVM.
tools = [os.path.join(config.weft_build, "bin"), config.llvm_tools]
config.environment["PATH"] = os.pathsep.join(tools + [config.environment["PATH"]])
# A failed check shows its input without being asked.
config.environment["FILECHECK_OPTS"] = "-enable-var-scope --dump-input=fail"

config.substitutions += [
    ("%weft_source", config.weft_source),
    ("%weft_build", config.weft_build),
]

# Of CUDA there may be nothing; what needs its tools says so, as the compiler does where it looks for them.
if "CUDA_HOME" in os.environ:
    config.environment["CUDA_HOME"] = os.environ["CUDA_HOME"]
probe = subprocess.run(["weft-translate", "--kernels-to-ptx"], input="", capture_output=True, text=True,
                       env=config.environment, check=False)
if probe.returncode == 0:
    config.available_features.add("cuda-toolkit")
else:
    lit_config.note(f"skipping what needs a CUDA toolkit: {probe.stderr.strip()}")
