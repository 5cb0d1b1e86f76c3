#===- check_bounds.py - bounds of reports are below their predictions -----===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Plans a model on a mesh, and with each of some pins on as many ranks. Fails unless every report has a bound that lies
below its predicted time and below those of all other plans, pinned ones and rivals: check_bounds.py MESH PINS...
-- COMMAND..., where COMMAND is weft plan with the model and its sizes."""

import re
import subprocess
import sys

UNITS = {"ms": 1, "s": 1000}
# Of two printed times with three decimals.
ROUNDING = 0.001


def milliseconds(pattern, report):
    return [float(number) * UNITS[unit] for number, unit in re.findall(pattern + r" +([0-9.]+) (m?s)", report)]


def plan(command, *options):
    report = subprocess.run([*command, *options], capture_output=True, text=True, check=True).stdout
    (predicted,), (bound,) = (milliseconds(pattern, report) for pattern in ("predicted:", "takes less than"))
    assert 0 < bound <= predicted + ROUNDING, f"{options}: bound {bound} ms, predicted {predicted} ms"
    return report, bound, predicted


split = sys.argv.index("--")
mesh, *pins = sys.argv[1:split]
command = sys.argv[split + 1:]
report, bound, _ = plan(command, "--mesh", mesh)
others = milliseconds(r"zero=\d(?:, ep=\w+)?", report) + [plan(command, "--alone", "--pin", pin)[2] for pin in pins]
assert len(others) > len(pins), f"no rivals in {report}"
for predicted in others:
    assert bound <= predicted + ROUNDING, f"bound {bound} ms, another plan takes {predicted} ms"
