#===- __init__.py - a fake PyTorch, for utils/gpu/rehearse -------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Answers as PyTorch does to utils/gpu/check, and computes nothing.

benchmarks/torch_step.py ends when it imports this: its losses are those of Weft's last run with as many steps, times
WEFT_FAKE_FACTOR, so rows of gpu-check that compare with PyTorch have something to compare.
"""

import json
import os
import sys
from pathlib import Path

__version__ = "fake"


class _Module:
    def __init__(self, answers):
        self.__dict__ |= {name: lambda answer=answer: answer for name, answer in answers.items()}


cuda = _Module({"is_available": True})
cuda.nccl, backends = _Module({"version": None}), _Module({})
backends.cudnn = _Module({"version": None})


def _train(words):
    """Prints what torch_step.py prints."""
    options = dict(zip(words[1::2], words[2::2], strict=False))
    steps = int(options["--warm"]) + int(options["--steps"])
    # In folders of rows beside that of the model's files: the row's own, or an earlier one's.
    rows = Path(options["--recipe"]).parents[1]
    runs = sorted(rows.glob("*/metrics"), key=lambda file: (file.parent == Path(options["--recipe"]).parent,
                                                            file.stat().st_mtime))
    losses = [[line["loss"] for line in map(json.loads, run.read_text().splitlines()) if "loss" in line]
              for run in runs]
    found = next((some for some in reversed(losses) if len(some) == steps), [])
    factor = float(os.environ.get("WEFT_FAKE_FACTOR", "1"))
    print(json.dumps({"torch": __version__, "ms": [1.0] * int(options["--steps"]), "peak": 1 << 30,
                      "reserved": 2 << 30, "device": 3 << 30, "losses": [loss * factor for loss in found]}), flush=True)


if Path(sys.argv[0]).name == "torch_step.py":
    _train(sys.argv)
    sys.exit()
