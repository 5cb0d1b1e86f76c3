#===- gpu_results.py - results of several calls of utils/gpu/check -----------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""The rows that earlier calls of gpu-check have written."""

import json


def read_earlier(paths):
    """Returns the rows of earlier calls, each with its commit, the newest of each name."""
    rows = {}
    for path in paths:
        told = json.loads(path.read_text())
        rows |= newest(rows, [{"commit": told.get("commit", "unknown"), **row} for row in told["rows"]])
    return list(rows.values())


def merge(earlier, rows, commit):
    """Returns all rows, those of this call in place of earlier ones of the same name."""
    before = {row["what"]: row for row in earlier}
    return list((before | newest(before, [{**row, "commit": commit} for row in rows])).values())


def newest(before, rows):
    """Returns by name the rows that are worth more than those `before`: one that was not run shows nothing."""
    return {row["what"]: row for row in rows if row["state"] != "not run" or row["what"] not in before}
