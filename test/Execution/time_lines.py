#!/usr/bin/python3
#===- time_lines.py - time lines show what reports print -------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Writes time lines of programs, predicted and measured, and compares them with what reports print.

    time_lines.py --bin bin

A predicted time line must have the step time and the work of each stage that `weft explain --schedule` prints, and the
peak of `--memory`; a measured one the times, waiting and bytes of each class of instructions that the same run's
--profile has, and both the same tracks, actions and instructions. Arrows must go from each send to its receive. Prints
a line for each case, then "N passed, N failed"; fails if one failed or none ran.

If the Python of WEFT_PERFETTO_PYTHON (else this one) has the package `perfetto` from PyPI, its descriptors must read
the same packets. Perfetto's trace processor is not part of that package, and was never tried.
"""

import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict

from device_code import has_no_toolkit
from examples_bench import ROOT, Bench, main_of, run
from trace_file import Trace, read

UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
WAIT, ACTION, STEP = "wait", "action", "step"
TORCHRUN = ROOT / "runtime/tests/torchrun.py"
# Example, pins, and the ranks of a rank class.
CASES = (
    ("llama-tiny", "pp=2,dp=2,accumulation=4", 2),
    ("llama-tiny", "pp=3,accumulation=4,schedule=gpipe", 1),
    ("llama-tiny", "pp=2,chunks=2,accumulation=4", 1),
    ("llama-tiny", "dp=2,tp=2", 4),
)
DEVICE_CASES = (("llama-tiny", "pp=2,dp=2,zero=1,accumulation=2", 2), ("llama-tiny", "dp=2,zero=3", 2))
# Reads a trace by Perfetto's descriptors, and prints its packets.
READ_BY_PERFETTO = """
import json, sys
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto
def plain(value):
    if isinstance(value, bytes):
        return value.decode()
    return fields(value) if hasattr(value, "ListFields") else value
def fields(message):
    if len(UnknownFieldSet(message)):
        sys.exit("there are unknown fields")
    return {kind.name: plain(value) if not hasattr(value, "append") else [plain(each) for each in value]
            for kind, value in message.ListFields()}
trace = perfetto.Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())
json.dump([fields(packet) for packet in trace.packet], sys.stdout)
"""


def seconds_of(text):
    """The seconds of a text such as "3.757 ms", and how much it may be rounded."""
    value, unit = re.fullmatch(r"([\d.]+) (m?s)", text).groups()
    scale = 1 if unit == "s" else 1e-3
    return float(value) * scale, 0.51e-3 * scale


def is_near(nanoseconds, text):
    value, rounding = seconds_of(text)
    # Slices begin and end at whole nanoseconds.
    return abs(1e-9 * nanoseconds - value) <= rounding + 1e-8


def stage_of(names):
    """The stage in the name of a rank's track; 0 without stages."""
    found = re.match(r"stage (\d+), ", names[1])
    return int(found[1]) if found else 0


def total(slices):
    return sum(one.duration for one in slices)


def busy(slices, waits):
    """The time in which the slices of some instructions do not wait."""
    inside = {id(one) for one in slices}
    return total(slices) - total(one for one in waits if id(one.parent) in inside)


def ranks_of(trace):
    """The names of the tracks of ranks, in order."""
    return sorted({names[:2] for names in trace.tracks.values() if len(names) > 1},
                  key=lambda names: int(names[1].rsplit(" ", 1)[1]))


def work_of(trace, *names):
    """The slices of instructions."""
    return [one for one in trace.of(*names) if one.category not in (WAIT, ACTION, STEP)]


class TimeLinesBench(Bench):
    # The environment of programs for devices.
    simulator = None

    def explained(self, *arguments):
        return run([self.tools / "weft", "explain", "train", *arguments], self.folder)

    def predicted(self, *arguments):
        """The time line of `weft explain`."""
        printed = self.explained("--timeline", "predicted", *arguments)
        size = (self.folder / "predicted").stat().st_size
        line = r"a step of \S+ m?s as predicted, on ranks? .*: .* in 'predicted', for ui.perfetto.dev"
        if not re.search(line, printed):
            raise RuntimeError(f"explain prints '{printed}' on a file of {size} bytes")
        return read(self.folder / "predicted")

    def measured(self, *arguments, launcher=()):
        """The time line of steps 1 and 2, which the profile of a run of three steps has, too; the profiles of rank
        classes; and what is printed."""
        printed = run([*launcher, "./train", "--data", "text", "--steps", 3, "--profile", "profile", "--timeline",
                       "measured", "--timeline-steps", "1-2", *arguments], self.folder, self.simulator)
        profiles = json.loads((self.folder / "profile").read_text())
        return read(self.folder / "measured"), profiles if isinstance(profiles, list) else [profiles], printed

    def fault_of_predicted(self):
        """Compares with what the reports of the compiler print; returns a sentence about a fault, or None."""
        trace, schedule = self.predicted(), self.explained("--schedule")
        steps = trace.of(category=STEP)
        step = re.search(r"a step of (\S+ m?s) as predicted", schedule)[1]
        if not is_near(max(one.end for one in steps), step):
            return f"a step ends after {max(one.end for one in steps)} ns, and is printed as {step}"
        all_printed = re.findall(r"^(?:stage \d+, )?ranks? .*, works for (\S+ m?s)", schedule, re.MULTILINE)
        if len(all_printed) != len(ranks_of(trace)):
            return f"{len(all_printed)} stages work, and {len(ranks_of(trace))} ranks have tracks"
        for names, printed in zip(ranks_of(trace), all_printed):
            works = total(trace.of(*names, category=STEP)) - total(trace.of(*names, category=WAIT))
            if not is_near(works, printed):
                return f"{names[1]} works for {works} ns, and {printed} is printed"
        return self.fault_of_memory(trace) or self.fault_of_arrows(trace)

    def fault_of_memory(self, trace):
        memory = self.explained("--memory")
        for names in ranks_of(trace):
            found = re.search(r"memory of each rank" + (f" of class {stage_of(names)}" if "class" in memory else "") +
                              r": .*, in use ([\d.]+) (\w+) at the peak \(step", memory)
            most = max(value for _, value in trace.counters[names + ("memory in use",)])
            if found and abs(most / (float(found[1]) * UNITS[found[2]]) - 1) > 0.005:
                return f"{names[1]} uses at most {most} bytes, and {found[1]} {found[2]} are printed"
            if not found and "at the peak (step" in memory:
                return f"no peak of {names[1]} is printed"
        return None

    def fault_of_profile(self, trace, profiles, ranks):
        """Compares each class of instructions with the run's profile; returns a sentence about a fault, or None."""
        for stage, profile in enumerate(profiles):
            own = [one for one in trace.slices if stage_of(one.track) == stage]
            share = profile["steps"] * ranks
            waits = [one for one in own if one.category == WAIT]
            waited = total(waits) / share
            if abs(waited - 1e9 * profile["step"]["waiting_seconds"]) > 1e-3 * waited + 1000:
                return f"stage {stage} waits for {waited} ns, and {profile['step']['waiting_seconds']} s in the profile"
            for line in profile["classes"]:
                slices = [one for one in own if one.category == line["class"]]
                found = {"calls": len(slices) / share, "seconds": 1e-9 * busy(slices, waits) / share,
                         "bytes": sum(one.arguments["bytes"] for one in slices) / share,
                         "flops": sum(one.arguments["flops"] for one in slices) / share}
                for name, value in found.items():
                    if abs(value - line[name]) > 1e-6 * abs(value) + (1e-9 * len(slices) if name == "seconds" else 0.5):
                        return f"{line['class']} of stage {stage}: {name} {value}, in the profile {line[name]}"
        return None

    @staticmethod
    def fault_of_shape(trace):
        """Checks how slices lie in each other; returns a sentence about a fault, or None."""
        for one in trace.slices:
            above = one.parent.category if one.parent else None
            if one.category == WAIT:
                right = above not in (None, STEP, ACTION, WAIT)
            elif one.track[2] == "communication":
                right = above is None
            else:
                right = above == {STEP: None, ACTION: STEP}.get(one.category, ACTION)
            if not right:
                return f"'{one.name}' of {one.track} lies in {above}"
            if one.parent and not one.parent.begin <= one.begin <= one.end <= one.parent.end:
                return f"'{one.name}' goes beyond '{one.parent.name}'"
        for names in ranks_of(trace):
            for step in trace.of(*names, category=STEP):
                # The host does one thing at a time, so its instructions and waiting are all of a step.
                inside = [one for one in trace.of(*names) if one.parent and one.parent.parent is step]
                if trace.of(*names, "communication") == [] and total(inside) != step.duration:
                    return f"instructions of {names[1]} take {total(inside)} ns of a step of {step.duration} ns"
        return None

    @staticmethod
    def fault_of_arrows(trace):
        """Each send must have an arrow to a receive that ends later, and nothing else to it."""
        ends = Counter()
        for first, second in trace.arrows():
            if first.category != second.category or first.track == second.track:
                return f"an arrow goes from '{first.name}' to '{second.name}'"
            if first.category != "transfer":
                continue
            if not first.name.endswith("(send)") or not second.name.endswith("(receive)"):
                return f"an arrow goes from '{first.name}' to '{second.name}'"
            if first.begin > second.end:
                return f"'{second.name}' ends before '{first.name}' begins"
            ends.update((id(first), id(second)))
        moves = [one for one in trace.slices if one.category == "transfer"]
        without = [one.name for one in moves if ends[id(one)] != 1]
        return f"of {len(moves)} transfers, these have not one arrow: {without[:3]}" if without else None

    @staticmethod
    def fault_of_names(predicted, measured):
        """The same tracks, actions and instructions, in the same order in each step."""
        for names in ranks_of(predicted):
            other = (names[0].replace("predicted", "measured"),) + names[1:]
            for pick in (lambda one: one.category == ACTION, lambda one: one.category not in (STEP, ACTION, WAIT)):
                first, second = ([(one.track[2:], one.name, one.category, str(one.arguments))
                                  for one in trace.of(*own) if pick(one)]
                                 for trace, own in ((predicted, names), (measured, other)))
                if first * 2 != second:
                    return f"{names[1]}: {len(first)} slices in a predicted step, {len(second)} in two measured ones"
        return None

    def fault_of_measured(self, ranks, launcher=(), several=False):
        """Compares a run with the prediction and its own profile; returns a sentence about a fault, or None. The
        simulator's devices end a step long before a busy host notices, so arrows of their ranks may be lost."""
        predicted = self.predicted()
        everyone = f"0-{ranks * len(ranks_of(predicted)) - 1}"
        trace, profiles, printed = self.measured("--timeline-ranks", everyone, launcher=launcher)
        told = re.search(r"the time line of steps 1 to 2 is in 'measured'(, clocks of ranks agree within [\d.]+ ms)?\n",
                         printed)
        if not told or (told[1] is not None) != several:
            return f"the run prints {told and told[0]} on its time line"
        return (self.fault_of_shape(trace) or self.fault_of_names(predicted, trace) or
                self.fault_of_profile(trace, profiles, ranks) or
                (None if self.simulator else self.fault_of_arrows(trace)))

    def fault_of_actions(self):
        """Without instructions, actions and waiting are the same."""
        whole, short = self.predicted(), self.predicted("--timeline-detail", "actions")
        for category in (STEP, ACTION, WAIT):
            first, second = ([(one.track, one.name, one.begin, one.end) for one in trace.of(category=category)]
                             for trace in (whole, short))
            if first != second or (not first and category != WAIT):
                return f"{len(first)} slices of {category} become {len(second)} others"
        most = defaultdict(int)
        for trace in (whole, short):
            for names, values in trace.counters.items():
                most[names] ^= max(value for _, value in values)
        if work_of(short) or any(most.values()):
            return "there are instructions, or another peak"
        return None

    def fault_of_both(self):
        """Files of both kinds may be joined."""
        self.predicted()
        self.measured()
        parts = [(self.folder / name).read_bytes() for name in ("predicted", "measured")]
        both, alone = Trace(b"".join(parts)), [Trace(part) for part in parts]
        if len(both.slices) != sum(len(one.slices) for one in alone):
            return "slices are lost"
        if len(both.arrows()) != sum(len(one.arrows()) for one in alone):
            return "arrows are lost"
        return None

    def fault_of_perfetto(self, python):
        """Perfetto's descriptors must read the same packets."""
        for name in ("predicted", "measured"):
            theirs = json.loads(run([python, "-c", READ_BY_PERFETTO, name], self.folder))
            if theirs != read(self.folder / name).packets:
                return f"Perfetto's descriptors read other packets in the {name} time line"
        return None


def check_devices(bench):
    """Programs with two streams, on the simulator. Devices measure instructions one after another."""
    if reason := has_no_toolkit(bench.tools):
        print(f"skipped devices: {reason}")
        return
    bench.machine = "h100-8"
    bench.simulator = {**os.environ,
                       "WEFT_RT_CUDA": str(bench.tools.parent / "lib/libweft-rt-cuda-simulator-plugin.so")}
    for name, pins, ranks in DEVICE_CASES:
        bench.describe(name, "", "")
        bench.compiled("--pin", pins, "--target", "cuda")
        what = f"{name}, {pins}, on devices"
        bench.tell(f"{what}: predicted", bench.fault_of_predicted)
        bench.tell(f"{what}: measured", bench.fault_of_measured, ranks)
    bench.machine, bench.simulator = "laptop", None


def check_all(bench):
    for name, pins, ranks in CASES:
        bench.describe(name, "", "")
        bench.compiled("--pin", pins)
        what = f"{name}, {pins}"
        bench.tell(f"{what}: predicted", bench.fault_of_predicted)
        bench.tell(f"{what}: measured", bench.fault_of_measured, ranks)
    check_devices(bench)
    name, pins, ranks = CASES[0]
    bench.describe(name, "", "")
    bench.compiled("--pin", pins)
    bench.tell("processes", bench.fault_of_measured, ranks, (sys.executable, TORCHRUN, "-n", 4), True)
    bench.tell("actions alone", bench.fault_of_actions)
    bench.tell("both in one file", bench.fault_of_both)
    python = os.environ.get("WEFT_PERFETTO_PYTHON", sys.executable)
    found = subprocess.run([python, "-c", "import perfetto.protos.perfetto.trace.perfetto_trace_pb2"],
                           capture_output=True, text=True, check=False)
    if found.returncode == 0:
        bench.tell("Perfetto's descriptors", bench.fault_of_perfetto, python)
    else:
        print(f"skipped beside Perfetto's descriptors: {(found.stderr.strip().splitlines() or ['no reason'])[-1]}")


if __name__ == "__main__":
    sys.exit(main_of(__doc__, TimeLinesBench, check_all))
