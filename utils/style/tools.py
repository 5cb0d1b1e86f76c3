#===- tools.py - clang-format, clang-tidy and ruff as checks of style ------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Checks that run a tool of others on files, and turn its output into violations."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tree import Violation

BUILD = Path(__file__).resolve().parents[2] / "build"
RUFF = "0.17.6"
MOST_TIDIED = 8


class Missing(Exception):
    """A tool, or what it needs, is not there: the check is left out."""


class Failure(Exception):
    """A tool failed for a reason other than a violation."""


def installed(tool):
    if not shutil.which(tool):
        raise Missing(f"{tool} is not installed; utils/setup installs it")
    return tool


def run(tree, command):
    done = subprocess.run(command, cwd=tree.root, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def run_batches(tree, command, paths, size):
    """Runs the command with a batch of files each, as many at a time as there are processors."""
    batches = [paths[i:i + size] for i in range(0, len(paths), size)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda batch: run(tree, [*command, *batch]), batches))


def diagnostics(tree, results, pattern):
    """Violations where the output has lines by the pattern, whose groups are path, line and message."""
    found = []
    for status, output in results:
        matches = re.findall(pattern, output, re.M)
        if status and not matches:
            raise Failure(output.strip())
        found += [Violation(os.path.relpath(tree.root / path, tree.root), int(line), message)
                  for path, line, message in matches]
    return found


def clang_format(tree):
    tool = installed("clang-format-22")
    paths = [file.path for file in tree.of_kind("c++")]
    command = [tool, "-i"] if tree.fix else [tool, "--dry-run", "-Werror"]
    return diagnostics(tree, run_batches(tree, command, paths, 40), r"^(\S+?):(\d+):\d+: error: (.*)")


def clang_tidy(tree):
    """Checks the changed files, at most MOST_TIDIED, and reports nothing of headers that have not changed."""
    tool = installed("clang-tidy-22")
    changed = tree.changed()
    database = tree.root / "build/compile_commands.json"
    if not database.exists():
        raise Missing("there is no build/compile_commands.json; utils/build writes it")
    known = {os.path.realpath(os.path.join(entry["directory"], entry["file"]))
             for entry in json.loads(database.read_text())}
    paths = [file.path for file in tree.of_kind("c++")
             if file.path in changed and str(tree.root / file.path) in known]
    if len(paths) > MOST_TIDIED:
        print(f"style: clang-tidy checks {MOST_TIDIED} of {len(paths)} changed files, "
              f"not {', '.join(paths[MOST_TIDIED:])}")
    command = [tool, "-p", "build", "--quiet"]
    results = run_batches(tree, command, paths[:MOST_TIDIED], 1)
    found = diagnostics(tree, results, r"^(\S+?):(\d+):\d+: (?:error|warning): (.*)")
    return [each for each in found if each.path in changed or "[clang-diagnostic-error" in each.message]


def install_ruff():
    """The path of ruff in build/style-tools, where pip installs it unless it is there."""
    folder = BUILD / f"style-tools/ruff-{RUFF}"
    tool = folder / "bin/ruff"
    if tool.exists():
        return str(tool)
    print(f"style: installing ruff {RUFF} into build/style-tools", flush=True)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        parts = tempfile.TemporaryDirectory(dir=folder.parent, ignore_cleanup_errors=True)
    except OSError as error:
        raise Missing(f"cannot write into build/style-tools: {error.strerror}") from error
    with parts:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
                   "--retries", "1", "--timeout", "10", "--target", f"{parts.name}/ruff", f"ruff=={RUFF}"]
        done = subprocess.run(command, capture_output=True, text=True,
                              env={**os.environ, "PIP_ROOT_USER_ACTION": "ignore"})
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            raise Missing(f"pip could not install ruff {RUFF}: {reason}")
        try:
            os.rename(f"{parts.name}/ruff", folder)
        except OSError:
            # Another process may have been first.
            if not tool.exists():
                raise
    return str(tool)


def ruff(tree):
    paths = [file.path for file in tree.of_kind("python")]
    if not paths:
        return []
    tool = install_ruff()
    command = [tool, "check", "--no-cache", "--quiet", "--output-format", "concise", *(["--fix"] if tree.fix else [])]
    return diagnostics(tree, [run(tree, [*command, *paths])], r"^(.+?):(\d+):\d+: (.*)")
