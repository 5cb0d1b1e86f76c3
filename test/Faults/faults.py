#!/usr/bin/python3
#===- faults.py - errors on bad input -----------------------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Gives the compiler and a compiled program invalid input, and checks their errors.

Each must end soon, with the right exit status and the right message on standard error, and leave
files as they were: none new, none changed, nothing temporary. Prints a line for each fault, then
"N passed, N failed"; fails if one failed or none ran.
"""

import argparse
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "Reference"))
import safetensors  # noqa: E402

# Seconds that a command may take; more is a hang.
TIME_LIMIT = 60

MODEL = """version: 1
name: "tiny"
layers: 2
hidden: 8
heads: 2
ffn: 16
norm: RMS_NORM
activation: SWIGLU
positions: ROTARY
vocabulary: 128
"""

RECIPE = """version: 1
sequence_length: 8
global_batch_sequences: 4
adamw {}
schedule { peak_learning_rate: 1e-2 }
steps: 3
precision: F64
"""

# The highest learning rate of a recipe, with settings that increase its effect.
DIVERGING = RECIPE.replace("adamw {}", "sgd { momentum: 0.99 }").replace(
    "1e-2", "100").replace("F64", "F32 z_loss: 1").replace("steps: 3", "steps: 50")

PLAN = """version: 1
mesh { axis { name: "dp" size: 2 } axis { name: "tp" size: 2 } }
sharding { value: "*" dimension: "batch" axes: ["dp"] }
sharding { value: "*" dimension: "kv_heads" axes: ["tp"] }
"""

TEXT = "Data to train on, in bytes below 128; no matter what it says. " * 20

# As many devices as the programs here have ranks.
MACHINE = (SOURCE / "machines" / "laptop.textproto").read_text().replace(
    "devices_per_node: 8", "devices_per_node: 4")


def contents(folder):
    """Returns the contents of all entries of `folder` by name; for other than files, kinds."""
    found = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        found[str(path.relative_to(folder))] = (
            path.read_bytes() if stat.S_ISREG(mode) else stat.S_IFMT(mode))
    return found


class Bench:
    """A folder with valid inputs and programs, and the faults tried so far."""

    def __init__(self, weft, folder, only):
        self.weft, self.folder, self.only = str(Path(weft).resolve()), folder, only
        self.place, self.temporary = folder / "place", folder / "temporary"
        self.place.mkdir()
        self.temporary.mkdir()
        self.environment = dict(os.environ, TMPDIR=str(self.temporary))
        self.passed = self.failed = 0
        for name, text in (("model.textproto", MODEL), ("recipe.textproto", RECIPE),
                           ("machine.textproto", MACHINE), ("text", TEXT),
                           ("diverging.textproto", DIVERGING)):
            self.write(name, text)
        self.make(["compile", *self.described(), "--pin", "dp=2", "--pin", "tp=2", "-o", "train"])
        self.make(["compile", *self.described(recipe="diverging.textproto"), "--pin", "tp=2", "-o",
                   "diverging"])

    def write(self, name, content):
        """Writes a file into the folder where commands run."""
        data = content if isinstance(content, bytes) else content.encode()
        (self.place / name).write_bytes(data)

    def described(self, model="model.textproto", recipe="recipe.textproto"):
        """Returns the arguments that describe a compilation."""
        return [model, "--machine", "machine.textproto", "--recipe", recipe]

    def call(self, command, prefix=()):
        """Runs a command in the folder; returns its result, or None after the time limit."""
        try:
            return subprocess.run([*prefix, *command], cwd=self.place, env=self.environment,
                                  capture_output=True, stdin=subprocess.DEVNULL, text=True,
                                  errors="replace", timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            return None

    def make(self, arguments):
        """Runs weft, which must succeed."""
        done = self.call([self.weft, *arguments])
        if done is None or done.returncode != 0:
            sys.exit(f"weft {' '.join(arguments)}: expected success, got "
                     f"{'a hang' if done is None else done.stderr}")

    def fault(self, what, command, message, status=1, prefix=(), silent=True):
        """Runs `command`, expects `status` and a line of errors that matches all of `message`.

        `prefix` goes before the command. With `silent`, nothing may come on standard output.
        """
        if self.only and self.only not in what:
            return
        before = contents(self.place)
        done = self.call(command, prefix)
        after = contents(self.place)
        faults = (self.wrong(done, message, status, silent), self.left(before, after))
        self.tell(what, "; ".join(filter(None, faults)))

    def wrong(self, done, message, status, silent):
        """Returns the fault in the end of a command, or None."""
        if done is None:
            return f"still running after {TIME_LIMIT} s"
        errors = done.stderr.strip()
        if done.returncode < 0:
            return f"ended by signal {-done.returncode}: {errors[-300:]}"
        if done.returncode != status:
            return f"expected exit status {status}, got {done.returncode}: {errors[-300:]}"
        patterns = [message] if isinstance(message, str) else message
        lines = errors.splitlines()
        for pattern in patterns:
            if not any(re.fullmatch(pattern, line) for line in lines):
                return f"expected '{pattern}', got '{errors[-400:]}'"
        if len(lines) > len(patterns):
            return f"expected {len(patterns)} lines, got '{errors[-400:]}'"
        if silent and done.stdout:
            return f"expected nothing on standard output, got '{done.stdout[:200]}'"
        return None

    def left(self, before, after):
        """Returns the files that changed but should not have, or None."""
        changed = {name for name in before.keys() | after.keys()
                   if before.get(name) != after.get(name)}
        if changed:
            return f"changed {', '.join(sorted(changed))}"
        temporary = sorted(path.name for path in self.temporary.iterdir())
        for name in temporary:
            path = self.temporary / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if temporary:
            return f"left {', '.join(temporary)} in the folder for temporary files"
        return None

    def tell(self, what, fault):
        """Counts and prints one case."""
        self.passed, self.failed = self.passed + (not fault), self.failed + bool(fault)
        print(f"{'FAIL' if fault else 'pass'} {what}" + (f": {fault}" if fault else ""), flush=True)

    def compile(self, what, message, *options, model="model.textproto", recipe="recipe.textproto",
                output="out", **more):
        """Expects a compilation to fail."""
        self.fault(what, [self.weft, "compile", *self.described(model, recipe), *options, "-o",
                          output], message, **more)

    def train(self, what, message, *options, data="text", program="./train", **more):
        """Expects a run to fail."""
        data = ["--data", data] if data else []
        self.fault(what, [program, *data, *options], message, **more)


def descriptions(bench):
    """Mistakes in the files that describe a compilation."""
    bench.write("misspelt.textproto", MODEL.replace("hidden", "hiden"))
    bench.compile("misspelt field", r"misspelt\.textproto:4:1: unknown field 'hiden' in Model, "
                  r"did you mean 'hidden'\?", model="misspelt.textproto")
    bench.write("value.textproto", MODEL.replace("SWIGLU", "SWIGLI"))
    bench.compile("misspelt value", r"value\.textproto:8:13: activation: expected one of .*SWIGLU.*"
                  r", got 'SWIGLI'", model="value.textproto")
    bench.write("twice.textproto", MODEL.replace("hidden: 8", "hidden: 0").replace("heads: 2",
                                                                                 "heads: -1"))
    bench.compile("two mistakes at once", [r"twice\.textproto:4:1: hidden: expected .*, got 0",
                                           r"twice\.textproto:5:1: heads: expected .*, got -1"],
                  model="twice.textproto")
    bench.write("garbage", bytes(range(7, 256)) * 8)
    bench.compile("garbage as model", r"garbage:1:1: expected text, got a byte of value 7",
                  model="garbage")
    bench.compile("program as model", r"train:1:\d+: expected text, got a byte of value \d+",
                  model="train")
    bench.compile("text as module", [r"text:1:1: error: .*", r"Data to train on.*", r" *\^"],
                  "--start-after=plan", model="text")
    bench.write("empty", "")
    bench.compile("empty model", r"empty: .*empty.*", model="empty")
    bench.compile("missing model", r"none\.textproto: .*No such file or directory",
                  model="none.textproto")
    bench.compile("folder as model", r"\.: expected a regular file", model=".")
    bench.compile("endless model", r"/dev/zero: expected a regular file", model="/dev/zero")
    bench.write("rate.textproto", RECIPE.replace("1e-2", "1e30"))
    bench.compile("absurd learning rate", r"rate\.textproto:5:12: schedule\.peak_learning_rate: "
                  r"expected a number above 0 to 100, got 1e\+30", recipe="rate.textproto")
    bench.write("f12.textproto", RECIPE.replace("F64", "F12"))
    bench.compile("unknown precision", r"f12\.textproto:7:12: precision: expected one of .*, "
                  r"got 'F12'", recipe="f12.textproto")


def plans(bench):
    """Splits that do not fit."""
    idle = r"warning: .*[pa]=3 uses 3 of the 4 devices of machine laptop: 1 is idle"
    bench.write("hidden.textproto", "version: 1 mesh { axis { name: 'a' size: 3 } }\n"
                "sharding { dimension: 'hidden' axes: 'a' }\n")
    bench.compile("ops on hidden that an axis does not divide",
                  [r"hidden\.textproto:2:1: axes: a=3 does not divide hidden=8, use one of 1, 2, 4",
                   idle], "--plan", "hidden.textproto")
    bench.write("unpadded.textproto", "version: 1 padding: false mesh { axis { name: 'a' size: 3 } }\n"
                "sharding { dimension: 'batch' axes: 'a' }\n")
    bench.compile("batch that shall not be padded",
                  [r"unpadded\.textproto:2:1: axes: a=3 does not divide batch=4, use one of 1, 2, 4",
                   idle], "--plan", "unpadded.textproto")
    bench.compile("more ranks than the machine has",
                  r"--pin: dp=4 \* tp=2 need 8 devices, machine laptop has 4", "--pin", "dp=4",
                  "--pin", "tp=2")
    bench.compile("unknown pin", r"--pin: unknown name 'dq', did you mean 'dp'\?", "--pin", "dq=2")
    for what, old, new, message in (
            ("unknown axis in a plan", '["tp"]', '["pt"]',
             r"plan\.textproto:4:\d+: sharding\[1\]\.axes\[0\]: unknown axis 'pt'; "
             r"the mesh's axes are dp, tp"),
            ("unknown dimension in a plan", "kv_heads", "kvheads",
             r"plan\.textproto:4:\d+: sharding\[1\]\.dimension: unknown dimension 'kvheads', "
             r"did you mean 'kv_heads'\?"),
            ("axis twice in a plan", '["dp"]', '["dp", "dp"]',
             r"plan\.textproto:3:\d+: sharding\[0\]\.axes\[1\]: expected an axis at most once, "
             r"got 'dp' again"),
            ("dimension that the model lacks", "kv_heads", "positions",
             r"plan\.textproto:4:\d+: .*positions.*")):
        bench.write("plan.textproto", PLAN.replace(old, new))
        bench.compile(what, message, "--plan", "plan.textproto")
    bench.fault("too few ranks at the start", [bench.weft, "run", "-n", "3", "train"],
                r"error: --ranks is 3, but the plan of this program is for 4 ranks \(dp=2, tp=2\); "
                r"compile again for another number of ranks")
    bench.train("--ranks that do not fit", r"error: --ranks is 3, but the plan of this program is "
                r"for 4 ranks \(dp=2, tp=2\); compile again for another number of ranks", "--ranks",
                "3")


def command_lines(bench):
    """Unknown words on the command line."""
    bench.compile("unknown option of weft",
                  r"weft compile: unknown option '--targt', did you mean '--target'\?",
                  "--targt=host")
    bench.compile("unknown target", r"weft compile: option '--target' expects host or cuda, got 'opencl'",
                  "--target", "opencl")
    bench.train("unknown option of a program",
                r"error: unknown option --dta; the nearest is --data", "--dta", "x")
    bench.train("option that is like no other",
                r"error: unknown option --zzzzzzzzzz; --help lists all", "--zzzzzzzzzz")
    bench.train("option without its value", r"error: --steps needs a value, N", "--steps")
    bench.train("negative steps", r"error: --steps is '-1', expected a whole number, 0 or more",
                "--steps", "-1")
    bench.train("two outputs in one file", r"error: --save and --metrics name the same file, 'x'",
                "--save", "x", "--metrics", "./x")
    bench.train("output over the data", r"error: --save would overwrite 'text', which --data reads",
                "--save", "text")


def data_files(bench):
    """Unsuitable training data."""
    bench.train("no data file", r"error: --data is missing: .*", data=None)
    bench.train("missing data file", r"error: cannot read 'none': No such file or directory",
                data="none")
    bench.train("empty data file", r"error: the data file 'empty' is empty", data="empty")
    bench.write("short", "12345678")
    bench.train("too short a data file", r"error: the data file 'short' has 8 tokens, one sample "
                r"needs 9 \(the sequence length and one more\)", data="short")
    bench.train("folder as data", r"error: cannot read '\.': not a regular file", data=".")
    os.mkfifo(bench.place / "pipe")
    bench.train("pipe as data", r"error: cannot read 'pipe': not a regular file", data="pipe")
    bench.write("high", TEXT.encode()[:100] + bytes([200]) + TEXT.encode())
    bench.train("token beyond the vocabulary", r"error: the data file 'high' has the token 200 at "
                r"position 100, the model's vocabulary is 0 to 127", "--save", "out", "--metrics",
                "metrics", data="high")


def token_files(bench):
    """Files of tokens whose headers do not match their content."""
    def numbers(kind, *values):
        return np.array(values, kind).tobytes()

    bench.write("odd.bin", TEXT[:99])
    bench.train("odd number of bytes in a .bin", r"error: the data file 'odd\.bin' ends in \.bin and "
                r"begins with no known header, but has an odd number of bytes, 99, which 16-bit "
                r"tokens do not make; say by --data-format what it is", data="odd.bin")
    bench.train("unknown format", r"error: --data-format is 'csv', expected bytes, nanogpt, llmc or "
                r"megatron", "--data-format", "csv")
    bench.train("text as llm.c's format", r"error: the data file 'text' begins with the number "
                r"\d+, files of llm\.c with 20240520 or 20240801", "--data-format", "llmc")
    bench.write("count.bin", numbers("<i4", 20240520, 1, 7, *[0] * 253) + numbers("<u2", 1, 2))
    bench.train("llm.c's header that lies", r"error: the data file 'count\.bin' has a header that "
                r"says 7 tokens of 2 bytes, but there are 4 bytes after it", data="count.bin")
    bench.write("high.bin", numbers("<u2", *range(100), 500, *range(100)))
    bench.train("16-bit token beyond the vocabulary", r"error: the data file 'high\.bin' has the "
                r"token 500 at position 100, the model's vocabulary is 0 to 127", data="high.bin")
    bench.write("m.idx", b"MMIDIDX\0\0" + numbers("<u8", 1) + bytes([8]) + numbers("<u8", 1, 2)
                + numbers("<i4", 64) + numbers("<i8", 0, 0, 1))
    bench.train("Megatron's index without tokens",
                r"error: cannot read 'm\.bin': No such file or directory", data="m")
    bench.write("m.bin", numbers("<u2", *range(32)))
    bench.train("Megatron's index of a longer file", r"error: the data file 'm\.bin' has 64 bytes, "
                r"expected by its index 128", data="m.bin")
    bench.write("m.bin", numbers("<u2", *range(64)))
    bench.train("output over one of Megatron's files",
                r"error: --save would overwrite 'm\.bin', which --data reads", "--save", "m.bin",
                data="m.idx")
    bench.train("validation data beyond the vocabulary", r"error: the data file 'high' has the "
                r"token 200 at position 100, the model's vocabulary is 0 to 127", "--validation-data",
                "high", "--save", "out")
    bench.train("too little to validate on", r"error: one batch takes 4 samples, there are 1 to "
                r"validate on", "--validation-split", "0.01")
    bench.train("output over the validation data", r"error: --metrics would overwrite 'high', which "
                r"--validation-data reads", "--validation-data", "high", "--metrics", "high")
    # Too large to be checked completely before training.
    bench.write("large.bin", numbers("<u2", *[999]) * ((1 << 24) + 1))
    bench.train("token beyond the vocabulary met while training", r"error: the data file "
                r"'large\.bin' has the token 999 at position \d+, the model's vocabulary is 0 to 127",
                "--quiet", "--save", "out", data="large.bin")
    (bench.place / "large.bin").unlink()


def checkpoints(bench):
    """Checkpoints from which a run cannot resume."""
    done = bench.call(["./train", "--data", "text", "--quiet", "--save", "good"])
    if done is None or done.returncode != 0:
        sys.exit("expected a checkpoint")
    good = (bench.place / "good").read_bytes()
    bench.train("missing checkpoint", r"error: cannot read 'none': No such file or directory",
                "--load", "none")
    for what, content in (("garbage as checkpoint", bytes(range(7, 256)) * 8),
                          ("checkpoint of a few bytes", b"abc"),
                          ("checkpoint cut in its header", good[:1000]),
                          ("checkpoint cut in its values", good[:-8]),
                          ("checkpoint with more behind it", good + b"12345678")):
        bench.write("bad", content)
        bench.train(what, r"error: 'bad' is not a valid safetensors file: .*", "--load", "bad",
                    "--steps", "9")
    tensors = safetensors.load(bench.place / "good")
    # Non-finite values in one layer's weight, of which two ranks of tp hold a half each.
    weight = np.array(tensors["layers.1.mlp.up.weight"])
    weight[9, 3] = np.nan
    parameters = {name: value for name, value in tensors.items() if "/" not in name}
    safetensors.save(bench.place / "nan", {**parameters, "layers.1.mlp.up.weight": weight})
    bench.write("out", "old")
    bench.train("NaN in a checkpoint", r"error: step 0: loss is nan; 'layers\.1\.mlp\.up\.weight' "
                r"held nan already before the step, in element 11 of its shard on rank 1", "--load",
                "nan", "--quiet", "--save", "out", "--save-gradients", "gradients", status=3)
    safetensors.save(bench.place / "shape", {**parameters, "layers.1.mlp.up.weight": weight[:8]})
    bench.train("tensor of another shape", r"error: .*layers\.1\.mlp\.up\.weight.*\[8, 8\].*",
                "--load", "shape")
    parameters.pop("layers.1.mlp.up.weight")
    safetensors.save(bench.place / "fewer", parameters)
    bench.train("checkpoint without a parameter", r"error: .*layers\.1\.mlp\.up\.weight.*",
                "--load", "fewer")


def divergence(bench):
    """A loss that becomes non-finite."""
    bench.write("out", "old")
    bench.train("loss that overflows",
                r"error: step \d+: loss is (nan|inf); the first value that is not finite is "
                r"-?(nan|inf), element \d+ of buffer \d+, written by step instruction \d+ "
                r"\(layers\.\d+[ /].* \(\w+\)\) on rank \d+",
                "--save", "out", "--quiet", program="./diverging", status=3)
    done = bench.call(["./train", "--help"])
    bench.tell("exit status 3 in --help", None if done and "3 if a training or validation loss, "
               "the gradient norm or a number to save is not finite" in done.stdout
               else "expected a sentence on exit status 3")


def divergence_in_stages(bench):
    """A value that becomes non-finite in either stage: it comes to the ranks of the other, too."""
    bench.write("float.textproto", RECIPE.replace("F64", "F32"))
    bench.make(["compile", *bench.described(recipe="float.textproto"), "--pin", "pp=2,accumulation=2,dp=2", "-o",
                "stages"])
    bench.call(["./stages", "--data", "text", "--steps", "1", "--quiet", "--save", "stages.tensors"])
    tensors = safetensors.load(bench.place / "stages.tensors")
    parameters = {name: value for name, value in tensors.items() if "/" not in name}
    for stage in (0, 1):
        name = f"layers.{stage}.mlp.up.weight"
        safetensors.save(bench.place / "large", {**parameters, name: np.full_like(parameters[name], 3e38)})
        bench.train(f"value that overflows in stage {stage}",
                    r"error: step 0: loss is -?(nan|inf); the first value that is not finite is -?(nan|inf), element "
                    r"\d+ of buffer \d+( of frame 0)?, written by step instruction \d+ "
                    rf"\(micro-batch 0/layers\.{stage}/mlp\.up \(\w+\)\) on rank {2 * stage} of class {stage}",
                    "--load", "large", "--quiet", program="./stages", status=3)


# Its update multiplies weights by -999: some overflow that no loss or gradient depends on.
LEAPING = RECIPE.replace("adamw {}", "adamw { weight_decay: 10 }").replace("1e-2", "100").replace(
    "F64", "F32")


def last_update(bench):
    """An update that overflows, without a step after it that would notice."""
    bench.write("leaping.textproto", LEAPING)
    bench.make(["compile", *bench.described(recipe="leaping.textproto"), "--pin", "dp=2", "--pin",
                "tp=2", "-o", "leaping"])
    bench.make(["run", "leaping", "--", "--steps", "0", "--save", "start"])
    weights = {name: np.array(values) for name, values in
               safetensors.load(bench.place / "start").items() if "/" not in name}
    # The text has no such byte, so the row of the table is in no loss.
    weights["embed.tokens.weight"][3, 5] = 1e37
    safetensors.save(bench.place / "large", weights)
    bench.write("out", "old")
    bench.train("weights that overflow in the last update",
                r"error: after 1 steps 'embed\.tokens\.weight' has -inf at \[3, 5\], expected finite "
                r"numbers: nothing of it is saved",
                "--load", "large", "--steps", "1", "--quiet", "--save", "out", program="./leaping",
                status=3)


EXPERTS = MODEL + "experts { experts: 4 experts_per_token: 2 ffn: 8 first_layer: 1 }\n"
# So high that one expert gets all tokens of a sequence after a few steps; 7 of 8 fit.
BOUNDED = RECIPE.replace("adamw {}", "sgd { momentum: 0.9 }").replace("1e-2", "1").replace(
    "steps: 3", "steps: 60") + "routing { buffer_factor: 1.75 }\n"


def buffers(bench):
    """More tokens for an expert than its buffer holds, on one rank and on several."""
    bench.write("experts.textproto", EXPERTS)
    bench.write("bounded.textproto", BOUNDED)
    bench.write("roomy.textproto", BOUNDED.replace("1.75", "2"))
    message = (r"error: step (\d+): layers\.1: expert \d gets 8 tokens of a sequence, its buffer holds "
               r"7, the mean is 4; the step changed nothing, compile with routing\.buffer_factor of at "
               r"least 2")
    bench.make(["compile", *bench.described("experts.textproto", "roomy.textproto"), "-o", "roomy"])
    for pins in ("dp=1", "ep=2", "dp=2,ep=2", "ep=2,accumulation=2"):
        bench.make(["compile", *bench.described("experts.textproto", "bounded.textproto"), "--pin", pins,
                    "-o", "bounded"])
        bench.write("out", "old")
        bench.train(f"an expert's buffer that is too small, {pins}", message, "--quiet", "--save", "out",
                    program="./bounded")
        # Earlier steps remain valid: a program with larger buffers resumes from their checkpoint.
        kept = bench.call(["./bounded", "--data", "text", "--quiet", "--steps", "3", "--save", "kept"])
        more = bench.call(["./roomy", "--data", "text", "--quiet", "--steps", "12", "--load", "kept",
                           "--save", "more"])
        bench.tell(f"going on with more room after {pins}", None if kept and more and
                   kept.returncode == more.returncode == 0 else "expected both runs to succeed")


def outputs(bench):
    """Files that cannot be written."""
    (bench.place / "folder").mkdir()
    missing = r"error: cannot write 'none/x': No such file or directory"
    for option in ("--save", "--metrics", "--save-gradients"):
        bench.train(f"{option} in a missing folder", missing, option, "none/x")
        bench.train(f"{option} over a folder", r"error: cannot write 'folder': Is a directory",
                    option, "folder")
        bench.train(f"{option} on a full device",
                    r"error: cannot write '/dev/full': No space left on device", option,
                    "/dev/full", "--quiet")
    bench.compile("program in a missing folder",
                  r"weft compile: cannot write 'none/x': No such file or directory",
                  output="none/x")
    bench.compile("program over a folder", r"weft compile: cannot write 'folder': it is a folder",
                  output="folder")
    (bench.place / "out.plan.textproto").mkdir()
    bench.write("out", "old")
    bench.compile("plan over a folder",
                  r"weft compile: cannot write 'out\.plan\.textproto': it is a folder")
    (bench.place / "out.plan.textproto").rmdir()
    # Replacing a device by a file, where permitted, would break the machine for everybody.
    for name in ("a", "b", "c"):
        os.mkfifo(bench.place / f"pipe-{name}")
    bench.compile("program over a pipe", r"weft compile: cannot write 'pipe-a': .*",
                  output="pipe-a")
    bench.compile("module over a pipe", r"weft compile: cannot write 'pipe-b': .*",
                  "--stop-after=plan", output="pipe-b")
    bench.train("--save over a pipe that nobody reads", r"error: cannot write 'pipe-c': .*",
                "--save", "pipe-c", "--quiet")


def full_disk(bench):
    """A disk that fills up. Only an administrator can mount one; others get a message."""
    (bench.place / "full").mkdir()
    probe = bench.call(["unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=16k none full"])
    if probe is None or probe.returncode != 0:
        print("left out: a full disk needs the right to mount one")
        return
    # The disk exists for one command, whose exit status says which files it left there.
    script = ("mount -t tmpfs -o size=16k none full && echo old > full/out || exit 90; "
              "\"$@\"; s=$?; "
              "[ \"$(ls -A full)\" = out ] && [ \"$(cat full/out)\" = old ] || exit 91; exit $s")
    prefix = ("unshare", "-m", "sh", "-c", script, "sh")
    message = r"{}: cannot write '(.*/)?full/out': No space left on device"
    for option in ("--save", "--save-gradients"):
        bench.train(f"{option} on a full disk", message.format("error"), option, "full/out",
                    "--quiet", prefix=prefix)
    # Metrics are written during the run, so earlier lines stay.
    bench.train("--metrics on a full disk", message.format("error"), "--metrics", "full/out",
                "--quiet", "--steps", "100000", prefix=(
                    "unshare", "-m", "sh", "-c",
                    "mount -t tmpfs -o size=16k none full || exit 90; exec \"$@\"", "sh"))
    # The object file, which lies beside the program until it is linked, does not fit.
    bench.compile("program on a full disk",
                  r"error: cannot emit '(.*/)?full/out\S*': No space left on device",
                  output="full/out", prefix=prefix)
    bench.compile("module on a full disk", message.format("weft compile"), "--stop-after=plan",
                  output="full/out", prefix=prefix)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default="build/bin/weft", help="the compiler")
    parser.add_argument("--case", help="only faults whose name contains this")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.weft, Path(folder), options.case)
        for group in (descriptions, plans, command_lines, data_files, token_files, checkpoints,
                      divergence, divergence_in_stages, last_update, buffers, outputs, full_disk):
            group(bench)
    print(f"{bench.passed} passed, {bench.failed} failed")
    return 1 if bench.failed or not bench.passed else 0


if __name__ == "__main__":
    sys.exit(main())
