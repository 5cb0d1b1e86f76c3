#!/usr/bin/python3
#===- overview.py - excerpts in pages equal the tools' output ---------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""Makes every excerpt of docs/Overview.md and docs/reference-claims.md again, and fails if a page
differs.

In a page an excerpt is a code block below a comment that says where it comes from:

    <!-- excerpt
    run: weft compile $tiny --stop-after=plan | weft-opt
    in: @layer_forward
    show: weft.contract "bsgrd
    show: weft.reshard .. weft.yield
    hide: [0-9.]+ ms
    -->

    run   a shell command, in the source folder; $tiny and $llama are arguments of `weft compile`
          that describe a model, $out is a folder for what commands write; later ones find it there;
          test/Overview/functions.sh defines functions
    in    look only below the first line that matches (may be left out)
    show  lines to show, in their order: the next that matches, or with A .. B all from the next
          that matches A to the first after it that matches B; without any, everything
    hide  what matches differs from run to run, and is shown as …

Patterns are regular expressions. What lies between two shown parts is shown as "...", indentation
that all lines share is taken away, and lines are broken at 100 columns.
"""

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent.parent
PAGES = [SOURCE / "docs" / name for name in ("Overview.md", "reference-claims.md")]
VARIABLES = {
    "tiny": "test/Overview/model.textproto --machine machines/laptop.textproto "
            "--recipe test/Overview/recipe.textproto --pin dp=2,tp=2,sp=false,zero=0",
    "llama": "examples/llama-tiny/model.textproto --machine machines/laptop.textproto "
             "--recipe examples/llama-tiny/recipe.textproto",
}
# Seconds that a command may take.
TIME_LIMIT = 120

EXCERPT = re.compile(r"<!-- excerpt\n(?P<spec>.*?)-->\n```(?P<language>\w*)\n(?P<text>.*?)^```$",
                     re.DOTALL | re.MULTILINE)


class PageError(Exception):
    """A page's excerpt asks for output that does not exist."""


def parse_spec(text):
    """(command, pattern or None, parts to show, patterns to hide) of an excerpt's comment."""
    command, within, shown, hidden = None, None, [], []
    for line in text.splitlines():
        key, _, value = line.strip().partition(": ")
        if key == "run":
            command = value
        elif key == "in":
            within = value
        elif key == "show":
            shown.append(value)
        elif key == "hide":
            hidden.append(value)
        else:
            raise PageError(f"expected run, in, show or hide, got '{line}'")
    if not command:
        raise PageError(f"expected run, got '{text.strip()}'")
    return command, within, shown, hidden


class Shell:
    """Runs commands in the source folder, each once."""

    def __init__(self, tools, out):
        path = f"{Path(tools).resolve()}{os.pathsep}{os.environ['PATH']}"
        functions = str(Path(__file__).with_name("functions.sh"))
        self.environment = dict(os.environ, PATH=path, out=str(out), BASH_ENV=functions, **VARIABLES)
        self.outputs = {}

    def lines(self, command):
        """What `command` prints, standard output and errors, line by line."""
        if command not in self.outputs:
            done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=SOURCE,
                                  env=self.environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=TIME_LIMIT)
            if done.returncode != 0:
                raise PageError(f"{command}: exit status {done.returncode}: {done.stdout[-500:]}")
            self.outputs[command] = done.stdout.splitlines()
        return self.outputs[command]


def find(lines, pattern, start):
    """The number of the first line from `start` on that matches."""
    for number in range(start, len(lines)):
        if re.search(pattern, lines[number]):
            return number
    raise PageError(f"no line matches '{pattern}'")


def pick(lines, within, shown):
    """The lines to show, with "..." where some were left out."""
    if not shown:
        return list(lines)
    at = find(lines, within, 0) if within else 0
    picked, last = [], None
    for part in shown:
        first, _, end = part.partition(" .. ")
        begin = find(lines, first, at)
        until = find(lines, end, begin + 1) if end else begin
        if last is not None and begin > last + 1:
            picked.append("...")
        picked += lines[begin : until + 1]
        at, last = until + 1, until
    return picked


def shape(lines, hidden):
    """The text as it stands in the page."""
    kept = [line for line in lines if line.strip() and line != "..."]
    indent = min(len(line) - len(line.lstrip()) for line in kept)
    shaped = []
    for line in lines:
        line = line if line == "..." else line[indent:]
        for pattern in hidden:
            line = re.sub(pattern, "…", line)
        margin = " " * (len(line) - len(line.lstrip()))
        shaped += textwrap.wrap(line, 100, subsequent_indent=margin + "    ",
                                break_long_words=False, break_on_hyphens=False) or [""]
    return "\n".join(shaped) + "\n"


def renew(page, shell):
    """The page with every excerpt made again."""

    def excerpt(match):
        command, within, shown, hidden = parse_spec(match["spec"])
        try:
            text = shape(pick(shell.lines(command), within, shown), hidden)
        except PageError as error:
            raise PageError(f"excerpt of '{command}': {error}") from error
        head = match[0][: match.start("text") - match.start()]
        return f"{head}{text}```"

    renewed, count = EXCERPT.subn(excerpt, page)
    if count != page.count("<!-- excerpt") or not count:
        raise PageError(f"expected a code block below each of {page.count('<!-- excerpt')} "
                        f"comments, got {count}")
    return renewed


def check(path, shell, update):
    """Makes one page again; returns 1 if it differs, unless it is to be updated."""
    page = path.read_text()
    try:
        renewed = renew(page, shell)
    except (PageError, subprocess.TimeoutExpired) as error:
        print(f"{path.name}: {error}")
        return 1
    if update:
        path.write_text(renewed)
    elif renewed != page:
        print("\n".join(difflib.unified_diff(page.splitlines(), renewed.splitlines(), path.name,
                                             "what the tools print", lineterm="")))
        print(f"{path.name} shows something else than the tools print; --update writes it anew")
        return 1
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", default="build/bin", help="the folder of weft and weft-opt")
    parser.add_argument("--update", action="store_true", help="write the pages anew")
    options = parser.parse_args()
    status = 0
    with tempfile.TemporaryDirectory() as out:
        shell = Shell(options.tools, out)
        for page in PAGES:
            status |= check(page, shell, options.update)
    return status


if __name__ == "__main__":
    sys.exit(main())
