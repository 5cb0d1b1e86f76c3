#!/usr/bin/python3
#===- random_plans.py - `weft verify` verifies whatever compiles ------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Draws models, recipes and plans, and runs `weft verify` and `weft compile` on each.

    random_plans.py --weft bin/weft --count 2000 --jobs 2                cases 0 to 1999
    random_plans.py --weft bin/weft --seed 7 --count 1 --folder place    case 7, whose files stay in place/7

A case passes if it is verified, or if `weft compile` refuses it with an error. It fails if it compiles and is
not verified, or if a command crashes, hangs or gives no reason. Prints a line for each case; for one that
fails a smaller one that fails alike, and how to run it again; the shares of what became of each way to
describe a plan; the number of cases for each kind of message; and "N passed, N failed". Fails if a case
failed, or if fewer than half of them were verified.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import random_descriptions

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "Onnx"))
import graphs  # noqa: E402

# Far more than any case takes, for machines that are busy.
SECONDS = 900
# Runs that make a case that fails smaller.
ATTEMPTS = 120
# Verified cases of which one is compiled too: verify plans as compile does, but compiles only small models.
COMPILED_OF = 4
# What weft says of entries that contradict each other, or the lengths, once those that overruled them are gone: the
# entries of one axis for two dimensions, and shards of a dimension that is not padded any more.
CONTRADICTIONS = ("expected an axis for one dimension of", "expected shards that divide")
CRASHES = ("internal error", "prove-meaning", "Stack dump", "PLEASE submit", "Assertion", "LLVM ERROR",
           "terminate called", "Sanitizer")


@dataclass
class Call:
    """A command that has ended."""

    status: int | None  # None: it hung
    output: str
    errors: str

    def fault(self):
        """Returns how the command broke, or None if it succeeded or gave a reason."""
        if self.status is None:
            return f"not done after {SECONDS} s"
        if self.status not in (0, 1) or any(word in self.errors for word in CRASHES):
            return f"crashed with status {self.status}"
        return None if self.status == 0 or self.reason() else "failed without a reason"

    def reason(self):
        """Returns the first error: a line that says so, or the last of a tool, behind its remarks."""
        lines = [line.strip() for line in self.errors.splitlines()
                 if line.strip() and not line.startswith(" ") and not re.search("(warning|note): ", line)]
        return next((line for line in lines if "error: " in line), lines[-1] if lines else "")


def call(*command):
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                              timeout=SECONDS, errors="replace")
    except subprocess.TimeoutExpired:
        return Call(None, "", "")
    return Call(done.returncode, done.stdout, done.stderr)


@dataclass
class Outcome:
    """What became of a case: "verified", "refused" or "failed", and why."""

    kind: str
    reason: str = ""


def lengths_of_graphs():
    """Returns for the name of each graph the length of its sequences, 0 for images."""
    made = {name: make() for name, make in graphs.MODELS.items()}
    return {name: graph.shape[1] if graph.kind == graphs.INT64 else 0 for name, graph in made.items()}


class Runner:
    def __init__(self, weft, folder, compiles_all):
        self.weft, self.folder, self.compiles_all = weft, folder, compiles_all
        self.lengths = lengths_of_graphs()

    def run(self, seed):
        """Runs a case; returns its outcome, its tags, and more to print."""
        case = random_descriptions.descriptions_of(seed, self.lengths)
        place = self.folder / str(seed)
        arguments = self.write(case, place)
        if isinstance(arguments, Outcome):
            return arguments, case.tags, ""
        outcome = self.outcome(arguments, place, self.compiles_all or seed % COMPILED_OF == 0)
        is_of_plan = case.edits >= 0 and outcome.reason.startswith(str(place / "plan.textproto"))
        if is_of_plan and not any(words in outcome.reason for words in CONTRADICTIONS):
            outcome.kind = "failed"  # Its entries are weft's own, or cut by fewer axes.
        return outcome, case.tags, self.smaller(arguments, place, outcome) if outcome.kind == "failed" else ""

    def write(self, case, place):
        """Writes the files of a case; returns its arguments, or an outcome if there is no plan."""
        place.mkdir(parents=True, exist_ok=True)
        for name, text in case.files.items():
            (place / name).write_text(text)
        model = place / "model.textproto"
        if case.graph:
            graphs.MODELS[case.graph]().write(place / f"{case.graph}.textproto")
            call(self.weft, "import", place / f"{case.graph}.textproto", "-o", place / "imported")
            model = place / "imported/model.textproto"
        arguments = [model, *(place / part[1:-1] if part.startswith("{") else part for part in case.arguments)]
        return arguments if case.edits < 0 else self.use_written_plan(case, arguments, place)

    def use_written_plan(self, case, arguments, place):
        """Returns the arguments with the plan that weft writes, without some of its entries."""
        path = place / "plan.textproto"
        done = call(self.weft, "plan", *arguments, "--alone", "--output", path)
        if fault := done.fault():
            return Outcome("failed", "plan " + fault)
        if done.status:
            return Outcome("refused", done.reason())
        layers = re.search(r"^layers: (\d+)", case.files.get("model.textproto", ""), re.MULTILINE)
        path.write_text(random_descriptions.edited_plan(path.read_text(), case.edits, int(layers[1]) if layers else 0))
        split = next(at for at, part in enumerate(arguments) if part in ("--pin", "--mesh"))
        return [*arguments[:split], "--plan", path]

    def outcome(self, arguments, place, compiles):
        """Verifies, and compiles what is not verified; with `compiles` also what is."""
        verified = call(self.weft, "verify", *arguments)
        if fault := verified.fault():
            return Outcome("failed", "verify " + fault)
        if verified.status == 0 and "\nverified: " not in verified.output:
            return Outcome("failed", "verify does not say that it is verified")
        if verified.status == 0 and not compiles:
            return self.verified(verified)
        compiled = call(self.weft, "compile", *arguments, "-o", place / "program")
        for made in place.glob("program*"):
            made.unlink()
        if fault := compiled.fault():
            return Outcome("failed", "compile " + fault)
        if compiled.status == 0:
            return Outcome("failed", verified.reason()) if verified.status else self.verified(verified)
        # Verify does not check memory.
        if verified.status == 0 and "memory" not in compiled.reason():
            return Outcome("failed", "verified, but " + compiled.reason())
        return Outcome("refused", compiled.reason())

    @staticmethod
    def verified(done):
        """Returns the outcome of a verified case, with what the small model does not have of it."""
        missing = [line.split("  ")[1] for line in done.output.splitlines() if line.endswith("not kept")]
        return Outcome("verified", "without " + ", ".join(missing) if missing else "")

    def smaller(self, arguments, place, outcome):
        """Removes fields, entries and pins, as long as the case fails alike. Returns how to run what is left."""
        kind, left = kind_of(outcome.reason), ATTEMPTS

        def fails(attempt):
            nonlocal left
            left -= 1
            return left >= 0 and kind_of(self.outcome(attempt, place, True).reason) == kind

        for name in ("plan", "recipe", "model"):
            path = place / f"{name}.textproto"
            if path in arguments:
                path.with_suffix(".drawn").write_text(path.read_text())
                shrink_file(path, lambda: fails(arguments))
        if "--pin" in arguments:
            at = arguments.index("--pin") + 1
            for pin in arguments[at].split(","):
                rest = ",".join(other for other in arguments[at].split(",") if other != pin)
                if rest and fails([*arguments[:at], rest, *arguments[at + 1:]]):
                    arguments[at] = rest
        text = "".join(f"{path.name}:\n{path.read_text()}" for path in sorted(place.glob("*.textproto"))
                       if path.name != "machine.textproto")
        words = " ".join(map(str, arguments))
        return f"  {self.outcome(arguments, place, True).reason}\n  weft verify {words}\n{text}"


def shrink_file(path, fails):
    """Leaves out fields and blocks of fields of a text file, from the last to the first, while `fails()`."""
    lines = path.read_text().splitlines(keepends=True)
    for begin in reversed(range(len(lines))):
        depth, end = 0, begin
        while end < len(lines) and (end == begin or depth > 0):
            depth += lines[end].count("{") - lines[end].count("}")
            end += 1
        if depth != 0:
            continue  # The end of a block.
        rest = lines[:begin] + lines[end:]
        path.write_text("".join(rest))
        if fails():
            lines = rest
    path.write_text("".join(lines))


def kind_of(reason):
    """Returns a message without its numbers, names and places."""
    reason = re.sub(r"'[^']*'|\"[^\"]*\"", "'…'", reason)
    reason = re.sub(r"^\S*?([a-z]+\.(textproto|onnx)):\d+:\d+", r"\1", reason)
    return re.sub(r"\d[\d.e+-]*", "N", reason)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default="build/bin/weft", help="the compiler")
    parser.add_argument("--seed", type=int, default=0, help="the first case")
    parser.add_argument("--count", type=int, default=40, help="cases")
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time")
    parser.add_argument("--compile", action="store_true",
                        help=f"compile every case, in place of one of {COMPILED_OF} of those verified")
    parser.add_argument("--folder", help="where files go and stay; default: a temporary one")
    options = parser.parse_args()

    counts, kinds, shares = Counter(), Counter(), Counter()
    folder = Path(options.folder or tempfile.mkdtemp(prefix="random-plans-")).resolve()
    runner = Runner(Path(options.weft).resolve(), folder, options.compile)
    seeds = range(options.seed, options.seed + options.count)
    with ThreadPoolExecutor(options.jobs) as pool:
        for seed, (outcome, tags, more) in zip(seeds, pool.map(runner.run, seeds)):
            counts[outcome.kind] += 1
            for tag in tags:
                shares[tag, outcome.kind] += 1
            if outcome.reason:
                kinds[outcome.kind, kind_of(outcome.reason)] += 1
            print(f"{'FAIL' if outcome.kind == 'failed' else 'pass'} {seed} ({', '.join(tags)}): "
                  f"{outcome.kind}" + (f": {outcome.reason}" if outcome.reason else ""), flush=True)
            if more:
                print(f"{more}again: random_plans.py --seed {seed} --count 1 --folder {folder}", flush=True)
            if not options.folder and outcome.kind != "failed":
                shutil.rmtree(folder / str(seed))
    if not options.folder and not counts["failed"]:
        folder.rmdir()
    for (kind, reason), count in kinds.most_common():
        print(f"  {count} {kind}: {reason}")
    for tag in sorted({tag for tag, _ in shares}):
        print(f"  {tag}: " + ", ".join(f"{shares[tag, kind]} {kind}" for kind in ("verified", "refused", "failed")))
    print(f"{counts['verified']} verified, {counts['refused']} refused")
    print(f"{counts['verified'] + counts['refused']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] or 2 * counts["verified"] < options.count else 0


if __name__ == "__main__":
    sys.exit(main())
