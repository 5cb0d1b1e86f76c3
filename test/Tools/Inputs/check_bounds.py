#===- check_bounds.py - bounds of reports are below their predictions -----===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Fails if a report of weft plan has a bound above the predicted time, or if none of the reports has one below it,
or each has: check_bounds.py REPORT..."""

import re
import sys


def milliseconds(text, pattern):
    found = re.search(pattern + r" ([0-9.]+) (m?s)", text)
    return found and float(found[1]) * {"ms": 1, "s": 1000}[found[2]]


bounds = 0
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        report = file.read()
    predicted, bound = (milliseconds(report, pattern)
                        for pattern in ("predicted:", "no plan that fits adds up to less than"))
    bounds += bound is not None
    assert bound is None or bound <= predicted, f"{path}: {bound} ms bound {predicted} ms"
assert 0 < bounds < len(sys.argv) - 1, f"{bounds} of {len(sys.argv) - 1} reports have a bound"
