#===- lit.cfg.py - how lit finds and runs the tests of this folder -----------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------------------------===#

import os

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
