#!/usr/bin/python3
#===- hostile_plans.py - plans, pins and meshes that are wrong on purpose ---===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Mutates plans, pins and meshes, and gives them to weft's commands.

    hostile_plans.py --bin bin --count 4000 --jobs 2                cases 0 to 3999
    hostile_plans.py --bin bin --seed 7 --count 1 --folder place    case 7, whose files stay in place/7

A command must accept or refuse every text, within two minutes of a processor and 6 GB: the widest meshes that are
accepted take one. It fails if it crashes, takes
more, refuses without an error, or with one that has no place in a file or option, one that quotes the IR's
locations, or one that does not say what is expected; if it leaves a file behind when it refuses; and if a plan
that it writes is another one when it is read again. Prints a line for each case that fails, with the command,
then the number of cases for each kind of error, and "N passed, N failed".
"""

import argparse
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import random_descriptions
from random_plans import CRASHES, kind_of

# Of a processor, so that other work on the machine does not count.
SECONDS = 120
MEMORY = 6 << 30
# Of any kind: a command that sleeps.
MOST_SECONDS = 900

SMALL_MODEL = """version: 1 name: "small" layers: 2 hidden: 16 heads: 4 kv_heads: 2 ffn: 24 norm: RMS_NORM
activation: SWIGLU positions: ROTARY vocabulary: 96"""
# With dimensions that the other does not have.
OTHER_MODEL = """version: 1 name: "other" layers: 2 hidden: 12 heads: 3 head_size: 4 ffn: 20 norm: LAYER_NORM
activation: GELU positions: LEARNED maximum_length: 32 vocabulary: 61 attention_window: 3
experts { experts: 4 experts_per_token: 2 }"""
RECIPES = ("precision: F32 adamw {}", "precision: BF16 muon {}", "precision: F32 sgd { momentum: 0.9 }",
           "precision: BF16 mixed { gradient_accumulation: BF16 } adamw {}")
RECIPE = """version: 1 sequence_length: 12 global_batch_sequences: 8 steps: 4
schedule {{ peak_learning_rate: 0.01 }} {}"""

NUMBERS = ("0", "1", "-1", "2", "3", "5", "7", "16", "1048576", "1048577", "2147483647", "2147483648", "4294967296",
           "-9223372036854775808", "9223372036854775807", "9223372036854775808", "18446744073709551616",
           "99999999999999999999999999", "1e3", "0x10", "010", "2.0", "inf", "nan", "true", "'2'", "[2, 2]", "[]", "{}")
WORDS = ("*", "**", "*a*e*i*", "", "dp", "tp", "x", "dp:(1)2", "tp:(2)1", "tp:(0)2", "tp:(1)9223372036854775807",
         "tp:(1)2:(1)2", "tp:", "tp:(1)", ":(1)2", "TP", "d\\000p", "a\\nb", "\\377\\376", "\u00fc", "loc(", "%s%n",
         "batch", "keys", "terms", "terms0", "terms99", "factor0", "factor3", "factor99", "hidden", "d0", "history",
         "micro_batch", "mlp.up", "mlp.up/contract/1", "attention", "embed*", "gradient/*", "master/*", "adam_m/*",
         "optimizer*", "tokens", "layers.0.*", "*/padding/*", "a" * 64, "a" * 65, "a" * 256, "b" * 257)
ODD_BYTES = (b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n", b"\r", b"\x1b[31m", b"\x7f", b"\xc3(", b"#", b"{", b"}",
             b'"', b"'", b"\\", b":", b";", b",", b"\t", b"\n" * 50)
PINS = ("dp", "fsdp", "ep", "tp", "cp", "sp", "zero", "accumulation", "pq", "DP", "", "batch")
FIELDS = ('accumulation: {n}', 'padding: false', 'padding: true', 'version: {n}',
          'mesh {{ axis {{ name: "x" size: {n} }} }}',
          'sharding {{ dimension: "{w}" axes: ["{a}"] }}', 'sharding {{ value: "{w}" dimension: "batch" }}',
          'sharding {{ value: "{w}" dimension: "{d}" axes: ["{a}"] priority: {n} }}',
          'sharding {{ value: "{w}" dimension: "{d}" axes: ["{a}", "{b}"] }}',
          'home {{ value: "{w}" dimension: "{d}" axes: ["{a}"] }}',
          'home {{ value: "*" dimension: "{d}" axes: ["{a}"] }}',
          'home {{ value: "gradient/*" dimension: "terms" axes: ["{a}"] }}',
          'home {{ dimension: "{w}" priority: {n} }}')

SEEDS = (
    """version: 1
mesh {
  axis { name: "dp" size: 2 }
  axis { name: "tp" size: 4 }
}
sharding { value: "*" dimension: "batch" axes: ["dp"] }
sharding { value: "*" dimension: "kv_heads" axes: ["tp:(1)2"] }
sharding { value: "*" dimension: "group" axes: ["tp:(2)2"] }
sharding { value: "*" dimension: "ffn" axes: ["tp"] }
home { value: "*" dimension: "hidden" axes: ["dp"] priority: 1 }
home { value: "head.*" dimension: "hidden" }
""",
    """version: 1
mesh {
  axis { name: "dp" size: 6 sub_axes: [2, 3] }
  axis { name: "ep" size: 2 }
}
sharding { value: "*" dimension: "batch" axes: ["dp", "ep"] priority: 2 }
sharding { value: "mlp*" dimension: "experts" axes: ["ep"] }
sharding { value: "mlp.up/contract/2" dimension: "factor1" axes: ["dp:(1)2"] priority: 3 }
sharding { value: "*" dimension: "terms" axes: ["ep"] priority: 9 }
home { value: "adam_m/*" dimension: "vocab" axes: ["dp:(2)3"] }
accumulation: 2
padding: true
""",
    """version: 1
mesh { axis { name: "cp" size: 3 } axis { name: "x" size: 2 } }
sharding { value: "*" dimension: "sequence" axes: ["cp"] }
sharding { value: "attention" dimension: "keys" axes: ["cp"] }
sharding { value: "*" dimension: "vocab" axes: ["x"] }
home { value: "*" dimension: "hidden" axes: ["cp", "x"] }
""",
)


@dataclass
class Case:
    """A command without its program, with names of files in braces, and the files."""

    arguments: list
    files: dict
    kind: str


class Drawer:
    """Draws one case."""

    def __init__(self, seed):
        self.draw = random_descriptions.Draw(seed)
        self.draw.is_large = False
        self.pick, self.chance, self.random = self.draw.pick, self.draw.chance, self.draw.random

    def case(self):
        model, other = self.pick(((SMALL_MODEL, False), (OTHER_MODEL, True)))
        recipe = RECIPE.format(self.pick(RECIPES))
        machine = random_descriptions.MACHINE.format(
            name="hostile", nodes=2, devices=16, memory=1 << 34, peak="", bandwidth=1e10,
            cluster=random_descriptions.CLUSTER)
        files = {"model.textproto": model.encode(), "recipe.textproto": recipe.encode(),
                 "machine.textproto": machine.encode()}
        kind = self.pick(("plan", "plan", "plan", "pin", "mesh"))
        if kind == "plan":
            files["plan.textproto"] = self.plan(other)
            split = ["--plan", "{plan.textproto}"]
        elif kind == "pin":
            split = [part for text in self.pins() for part in ("--pin", text)]
        else:
            split = ["--mesh", self.mesh(), *(["--pin", self.pins()[0]] if self.chance(0.2) else [])]
        return Case(self.command(split), files, kind)

    def command(self, split):
        described = ["--machine", "{machine.textproto}", "--recipe", "{recipe.textproto}"]
        kind = self.random.random()
        if kind < 0.8:
            target = ["--target", "cuda"] if self.chance(0.15) else []
            return ["weft", "plan", "{model.textproto}", *described, *split, "--alone", *target, "--output", "{out}"]
        if kind < 0.87:
            return ["weft", "compile", "{model.textproto}", *described, *split, "--stop-after",
                    self.pick(("plan", "partition", "schedule")), "-o", "{out}"]
        if kind < 0.94:
            return ["weft", "explain", self.pick(("head.weight", "layers.0.mlp.up.weight", "mlp.up", self.pick(WORDS))),
                    "--model", "{model.textproto}", *described, *split]
        return ["weft", "verify", "{model.textproto}", *described, *split]

    # Plans

    def plan(self, other):
        """Returns the bytes of a plan's file."""
        source = self.random.random()
        if source < 0.5:
            text = self.pick(SEEDS)
        else:
            model = {"hidden": 12 if other else 16, "positions": "LEARNED" if other else "ROTARY",
                     "experts": other}
            text = random_descriptions.text_of(random_descriptions.plan_of(self.draw, model))
        # Half of the plans only contradict themselves or the model.
        if self.chance(0.5):
            for _ in range(self.pick((1, 1, 2, 4))):
                text = self.entries(text)
            return text.encode()
        for _ in range(self.pick((1, 1, 2))):
            text = self.pick((self.tokens, self.fields, self.words, self.numbers))(text)
        data = text.encode()
        return self.bytes(data) if self.chance(0.2) else data

    def entries(self, text):
        """Adds an entry with names that exist, or leaves out, doubles or turns around one."""
        axes = re.findall(r'name: "(\w+)" size: (\d+)|\bname: "(\w+)"\s+size: (\d+)', text)
        sizes = {first or second: int(size or other) for first, size, second, other in axes}
        parts = [*sizes, *(f"{name}:(1){part}" for name, size in sizes.items() for part in (2, 3) if size % part == 0),
                 *(f"{name}:(2){size // 2}" for name, size in sizes.items() if size in (4, 6))] or ["x"]
        lines = text.splitlines(keepends=True) or ["\n"]
        written = [at for at, line in enumerate(lines) if line.startswith(("sharding {", "home {")) and "}" in line]
        way = self.random.randrange(8)
        if way == 0 and written:
            del lines[self.pick(written)]
        elif way == 1 and written:
            at = self.pick(written)
            lines[at] = lines[at].replace("sharding", "?").replace("home", "sharding").replace("?", "home")
        elif way == 2 and written:
            lines.append(lines.pop(self.pick(written)))
        elif way == 3:
            lines.append(self.pick(("padding: false\n", "accumulation: 2\n", "accumulation: 3\n")))
        else:
            value = self.pick((*random_descriptions.VALUES, "mlp.up/contract/1", "mlp.down/contract/2", "attention/*",
                               "*.weight"))
            count = min(len(parts), self.pick((0, 1, 1, 1, 2)))
            chosen = ", ".join(f'"{part}"' for part in self.random.sample(parts, count))
            dimension = self.pick((*random_descriptions.ANY_DIMENSION, "factor0", "factor1", "factor2", "terms",
                                   "terms0"))
            priority = self.pick(("", "", "priority: 1 ", "priority: 7 "))
            field = self.pick(("sharding", "sharding", "home"))
            lines.append(f'{field} {{ value: "{value}" dimension: "{dimension}" axes: [{chosen}] {priority}}}\n')
        return "".join(lines)

    def name(self):
        return self.pick(WORDS)

    def number(self):
        return self.pick(NUMBERS)

    def tokens(self, text):
        """Moves, copies, leaves out or swaps words and signs."""
        tokens = re.findall(r"\w+|\s+|[^\w\s]", text) or [" "]
        begin = self.random.randrange(len(tokens))
        end = min(len(tokens), begin + self.pick((1, 1, 2, 4, 12)))
        to = self.random.randrange(len(tokens))
        part = tokens[begin:end]
        way = self.random.randrange(4)
        if way == 0:
            del tokens[begin:end]
        elif way == 1:
            tokens[to:to] = part
        elif way == 2:
            tokens[begin], tokens[to] = tokens[to], tokens[begin]
        else:
            tokens[begin:end] = [self.pick((self.name(), self.number()))]
        return "".join(tokens)

    def fields(self, text):
        """Adds a field with any content, or doubles or leaves out a line."""
        lines = text.splitlines(keepends=True) or [""]
        at = self.random.randrange(len(lines))
        axes = re.findall(r'name: "(\w+)"', text) or ["x"]
        way = self.random.randrange(6)
        if way == 0:
            lines.insert(self.random.randrange(len(lines)), lines[at])
        elif way == 1:
            del lines[at]
        elif way == 2 and lines[at].startswith(("sharding", "home")):
            lines[at] = lines[at].replace("sharding", "?").replace("home", "sharding").replace("?", "home")
        else:
            lines.append(self.pick(FIELDS).format(
                n=self.number(), w=self.name(), d=self.pick(random_descriptions.ANY_DIMENSION),
                a=self.pick((*axes, *axes, self.name())), b=self.pick(axes)) + "\n")
        return "".join(lines)

    def words(self, text):
        """Replaces a name."""
        names = list(re.finditer(r'"[^"]*"', text))
        if not names:
            return text + self.name()
        found = self.pick(names)
        word = self.pick((f'"{self.name()}"', found[0], self.pick(names)[0], f'"{"n" * self.pick((300, 70000))}"'))
        return text[:found.start()] + word + text[found.end():]

    def numbers(self, text):
        """Replaces a number."""
        found = list(re.finditer(r"\b\d+\b", text))
        if not found:
            return text + " " + self.number()
        one = self.pick(found)
        return text[:one.start()] + self.number() + text[one.end():]

    def bytes(self, data):
        """Damages a file."""
        at = self.random.randrange(len(data) + 1)
        way = self.random.randrange(6)
        if way == 0:
            return data[:at]
        if way == 1:
            return b"\xef\xbb\xbf" + data
        if way == 2:
            return data.replace(b"\n", b"\r\n")
        if way == 3:
            return data.decode(errors="replace").encode("utf-16")
        if way == 4:
            return data * self.pick((2, 100, 3000))
        return data[:at] + self.pick(ODD_BYTES) + data[at:]

    # Pins and meshes

    def pins(self):
        """Returns texts of --pin, which no shell or kernel refuses."""
        pins = [f"{name}={value}" for name, value in random_descriptions.pins_of(self.draw, {"experts": True}).items()]
        for _ in range(self.pick((0, 0, 1, 1, 2))):
            mode = self.pick(("", "", ":ring", ":gather", ":all-to-all", ":", ":x"))
            pin = f"{self.pick(PINS)}={self.number()}{mode}"
            pins.insert(self.random.randrange(len(pins) + 1), self.pick((pin, self.pick(pins), self.name(), "")))
        if self.chance(0.5):
            pins = [",".join(pins)]
        return [self.option(pin) for pin in pins] or [""]

    def mesh(self):
        if self.chance(0.4):  # Of which most are right.
            return self.option(",".join(f"{name}=" + "x".join(map(str, sizes))
                                        for name, sizes in random_descriptions.mesh_of(self.draw).items()))
        names = ("a", "b", "dp", "tp", self.name(), "")
        axes = []
        for _ in range(self.pick((1, 2, 2, 3, 3, 5, 12, 40))):
            sizes = [self.pick(("2", "2", "2", "3", "4", self.number())) if self.chance(0.4) else "2"
                     for _ in range(self.pick((1, 1, 1, 2, 5)))]
            axes.append(self.pick((f"{chr(97 + len(axes) % 26)}{len(axes)}", self.pick(names))) +
                        self.pick(("=", "=", "=", "=", "=", "", "==")) + "x".join(sizes))
        return self.option(",".join(axes))

    def option(self, text):
        text = text.replace("\\000", "\x01").replace("\\n", "\n")
        if self.chance(0.05):
            at = self.random.randrange(len(text) + 1)
            text = text[:at] + self.pick(("\x1b[31m", "\n", "\t", "\udcff", ",", "=", " ", "y" * 50000)) + text[at:]
        return text


@dataclass
class Done:
    status: int
    output: str
    errors: str


def call(command):
    """Runs a command with limits."""
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    try:
        done = subprocess.run([str(part).encode(errors="surrogateescape") for part in command], capture_output=True,
                              timeout=MOST_SECONDS, preexec_fn=limit)
    except subprocess.TimeoutExpired:
        return Done(-1, "", "")
    return Done(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


# Errors of the whole of a plan, which no place in it causes.
WHOLE = ("fits into", "needs more memory", "of memory", "memory_bytes", "is not the plan's")
# Words of errors that say what would be right.
EXPECTED = re.compile(r"expected|unknown|did you mean|use |near is|only |missing|already|at most|does not divide|"
                      r"cannot be padded|is empty|expects |needs? |cannot |no |not ")


def fault_of_errors(errors):
    """Returns what is wrong with the errors of a command that refuses, or None."""
    lines = [line for line in errors.splitlines()
             if line.strip() and not re.match(r"\s|warning: |.*\bnote: |.*: warning: ", line)]
    if not lines:
        return "refuses without an error"
    for line in lines:
        if line.startswith("loc(") or re.match(r"<unknown>|\S*: error: apply-plan: plan:", line):
            return "has no place: " + line
        place = re.match(r"(\S*textproto(:\d+:\d+)?: |--?[a-z-]+: |weft [a-z]+: )", line)
        if not place and not any(word in line for word in WHOLE):
            return "has no place: " + line
        if not EXPECTED.search(line):
            return "does not say what is expected: " + line
        if any(ord(c) < 32 or ord(c) == 127 for c in line):
            return "prints control characters"
        if len(line) > 2000:
            return f"prints {len(line)} characters: {line[:80]}"
    return None


class Runner:
    def __init__(self, tools, folder):
        self.tools, self.folder = tools, folder

    def run(self, seed):
        """Returns the command, "accepted" or "refused" or "failed", and why."""
        case = Drawer(seed).case()
        place = self.folder / str(seed)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for name, data in case.files.items():
            (place / name).write_bytes(data)
        command = [str(place / part[1:-1]) if re.fullmatch(r"\{[a-z.]+\}", part) else part for part in case.arguments]
        command[0] = self.tools / command[0]
        done = call(command)
        return command, *self.outcome(case, command, done, place)

    def outcome(self, case, command, done, place):
        if done.status not in (0, 1) or any(word in done.errors for word in CRASHES):
            tail = done.errors.strip().splitlines()[-1:] or [""]
            return "failed", f"ends with status {done.status}: {tail[0][:200]}"
        left = sorted(path.name for path in place.iterdir() if path.name not in case.files)
        if done.status == 1:
            if left:
                return "failed", "leaves " + ", ".join(left)
            if fault := fault_of_errors(done.errors):
                return "failed", fault
            first = next(line for line in done.errors.splitlines() if not line.startswith("warning: "))
            return "refused", first
        if left not in ([], ["out"]):
            return "failed", "leaves " + ", ".join(left)
        if command[1] == "plan" and (fault := self.fault_of_written(command, done, place)):
            return "failed", fault
        return "accepted", ""

    def fault_of_written(self, command, done, place):
        """Reads a written plan again, which must be the same."""
        split = next(at for at, part in enumerate(command) if part in ("--pin", "--mesh", "--plan"))
        end = command.index("--alone")
        again = call([*command[:split], "--plan", place / "out", *command[end:-1], place / "again"])
        if again.status != 0:
            return f"does not read what it wrote, status {again.status}: {again.errors.strip()[-300:]}"
        hashes = [re.search(r"plan ([0-9a-f]{16})$", run.output, re.MULTILINE) for run in (done, again)]
        if not all(hashes) or hashes[0][1] != hashes[1][1]:
            return "reads another plan than it wrote"
        if memory_of(done) != memory_of(again):
            return f"plans another program by what it wrote: {memory_of(done)} and {memory_of(again)}"
        return None


def memory_of(done):
    found = re.search(r"^memory of each rank: .*? at the peak", done.output, re.MULTILINE)
    return (found and found[0], re.search(r"^predicted: .*", done.output, re.MULTILINE)[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, required=True, help="folder of weft and weft-opt")
    parser.add_argument("--seed", type=int, default=0, help="the first case")
    parser.add_argument("--count", type=int, default=120, help="cases")
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time")
    parser.add_argument("--folder", help="where files go and stay; default: a temporary one")
    options = parser.parse_args()
    counts, kinds = Counter(), Counter()
    folder = Path(options.folder or tempfile.mkdtemp(prefix="hostile-plans-")).resolve()
    runner = Runner(options.bin.resolve(), folder)
    seeds = range(options.seed, options.seed + options.count)
    with ThreadPoolExecutor(options.jobs) as pool:
        for seed, (command, outcome, reason) in zip(seeds, pool.map(runner.run, seeds)):
            counts[outcome] += 1
            if reason:
                kinds[outcome, kind_of(reason)[:160]] += 1
            if outcome == "failed":
                shown = shlex.join(str(part)[:300] for part in command)
                print(f"FAIL {seed}: {reason[:500]}\n  {shown}", flush=True)
            if not options.folder and outcome != "failed":
                shutil.rmtree(folder / str(seed))
    for (outcome, reason), count in kinds.most_common():
        print(f"  {count} {outcome}: {reason}")
    print(f"{counts['accepted']} accepted, {counts['refused']} refused")
    print(f"{counts['accepted'] + counts['refused']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] or not counts["accepted"] or not counts["refused"] else 0


if __name__ == "__main__":
    sys.exit(main())
