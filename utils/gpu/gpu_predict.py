#===- gpu_predict.py - predictions from results of utils/gpu/check -----------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Makes a machine's file from a run of gpu-check, and compares its predictions with the run's times."""

import json
import subprocess

from gpu_kit import predicted_time
from gpu_speed import TIME_MOST, beside


def predict(kit, result, trainings):
    """Writes the file beside `result`, whose rows are named as in `trainings`; returns the exit status."""
    machine = result.with_suffix(".textproto")
    try:
        rows = json.loads(result.read_text())["rows"]
        figures = {row["what"]: row.get("figures", {}) for row in rows}
        write_machine(kit, figures.get("weft calibrate", {}), machine)
        print(f"gpu-check: {machine}")
        for what, training in trainings.items():
            if "step_ms" in figures.get(what, {}):
                program = kit.program(training, "cuda", "calibrated", machine)
                told = predicted_time(program.with_suffix(".txt").read_text())
                print(f"{what}: a step took {beside(figures[what]['step_ms'], told, 'ms', TIME_MOST)}")
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        print(f"gpu-check: cannot predict by {result}: {error}")
        return 1
    return 0


def write_machine(kit, figures, machine):
    """Writes the machine's file: with a build it is in the result; from a pack's measurements it is made here, without
    kernels' rates."""
    if "machine" in figures:
        machine.write_text(figures["machine"])
        return
    if "measured" not in figures:
        raise RuntimeError("it has no row of weft calibrate that passed")
    measured = kit.folder / "measured.json"
    measured.write_text(figures["measured"])
    done = subprocess.run([kit.build / "bin/weft", "calibrate", "--measured", measured, "--name", "calibrated",
                           "-o", machine],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
