#===- check_rivals.py - strategies are predicted beside a plan as alone ----===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Fails if a strategy's time and memory beside a plan are not those of its own report:
check_rivals.py REPORT STRATEGY OWN-REPORT"""

import re
import sys

report, strategy, own = sys.argv[1:]
with open(report, encoding="utf-8") as file:
    line = next(line for line in file if line.startswith(f"  {strategy} "))
with open(own, encoding="utf-8") as file:
    text = file.read()
seconds = re.search(r"predicted: ([0-9.]+ m?s) a step", text)[1]
memory = re.search(r"memory of each rank: ([0-9.]+ .*?B),", text)[1]
assert seconds in line and memory in line, f"{line.strip()}, but by itself {seconds}, {memory}"
