#===- text.py - checks of style that look at lines of text -----------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Widths of lines, blanks at their ends, headers with the license, lengths of files, and words for later."""

import os
import re

from documents import is_table, mask_code
from tree import Tree, Violation

# Kinds without an entry, as tests, whose lines are what they check, may be as wide as they need.
WIDTHS = {"c++": 100, "markdown": 120, "python": 120, "shell": 120, "td": 120, "proto": 120, "cmake": 120,
          "textproto": 120}
LONGEST = 600
# Files that may be longer, each with the reason.
LONGER = {}
LICENSE = ("Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.",
           "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception")


def raw_strings(text):
    """The lines of C++ that raw strings begin, fill or end, which clang-format leaves as they are."""
    inside = set()
    for match in re.finditer(r'R"(\w*)\(.*?\)\1"', text, re.S):
        first = text.count("\n", 0, match.start()) + 1
        inside.update(range(first, first + match[0].count("\n") + 1))
    return inside


def may_be_wide(line, width):
    """Whether nothing can break the line: an address or another word reaches over its end."""
    words = line.split()
    return "://" in line or len(words) < 2 or line.startswith("#include ") or len(max(words, key=len)) > width - 20


def width_of(file, line):
    """What counts of the line: in a document, addresses of links do not."""
    if file.kind != "markdown":
        return len(line)
    return 0 if is_table(line) or line.startswith("#") else len(re.sub(r"(?<=\])\([^()]*\)", "", line))


def wide_lines(file):
    width = WIDTHS.get(file.kind)
    if not width or not any(len(line) > width for line in file.lines):
        return
    exempt = raw_strings(file.text) if file.kind == "c++" else set()
    lines = mask_code(file.text).split("\n") if file.kind == "markdown" else file.lines
    for number, line in enumerate(lines, 1):
        if width_of(file, line) > width and number not in exempt and not may_be_wide(line, width):
            yield Violation(file.path, number, f"expected at most {width} columns, got {width_of(file, line)}")


def widths(tree):
    for file in tree.files:
        if file.kind == "data" or not file.text:
            continue
        if tree.fix:
            fixed = re.sub(r"[ \t]+$", "", file.text, flags=re.M).rstrip("\n") + "\n"
            if fixed != file.text:
                file.write(fixed)
        yield from wide_lines(file)
        for number, line in enumerate(file.lines, 1):
            if line != line.rstrip():
                yield Violation(file.path, number, "blanks at the end of the line")
            if "\t" in line:
                yield Violation(file.path, number, "a tab, expected blanks")
        if not file.text.endswith("\n"):
            yield Violation(file.path, len(file.lines), "no newline at the end of the file")
        elif file.text.endswith("\n\n"):
            yield Violation(file.path, len(file.lines) - 1, "an empty line at the end of the file")


def headers(tree):
    """Every source file begins with a line that names it, and the license."""
    for file in tree.of_kind("c++", "python", "shell", "td", "proto"):
        beginning = file.lines[:12]
        for expected in LICENSE:
            if not any(expected in line for line in beginning):
                yield Violation(file.path, 1, f"no license header, expected '{expected}'")
                break
        else:
            name = os.path.basename(file.path)
            if not any(re.search(rf"\W{re.escape(name)} - ", line) for line in beginning[:3]):
                yield Violation(file.path, 1, f"the header does not begin with '{name} - ' and a purpose")


def length(tree):
    for file in tree.of_kind("c++", "python", "shell", "td"):
        count = file.text.count("\n")
        if count > LONGEST and file.path not in LONGER:
            yield Violation(file.path, count, f"expected at most {LONGEST} lines, got {count}")


def find(tree, pattern, message):
    for file in tree.files:
        if file.kind == "data" or not pattern.search(file.text):
            continue
        for number, line in enumerate(file.lines, 1):
            for match in pattern.finditer(line):
                yield Violation(file.path, number, message.format(match[0]))


def todo(tree):
    return find(tree, re.compile(r"\b(?:TO[D]O|FIX[M]E|X{3})\b"),
                "'{}' promises something for later; refuse what is missing with an error")


def paths(tree):
    return find(tree, re.compile(r"(?<![\w.}>$*)])/(?:work|root)(?=/|\b)"), "'{}' is a folder of one machine")


def sources(tree):
    """Every C++ source is named by the CMakeLists.txt of its folder or of one above: a test that none names never
    runs."""
    lists = {os.path.dirname(file.path): file.text for file in Tree(tree.root).of_kind("cmake")}
    for file in tree.of_kind("c++"):
        if not file.path.endswith(".cpp") or not lists:
            continue
        folder, name = os.path.split(file.path)
        while True:
            listed = re.sub(r"#.*", "", lists.get(folder, ""))
            if re.search(rf"(?<![\w.-]){re.escape(name)}\b|(?<![\w.-]){re.escape(name[:-4])}\b|GLOB", listed):
                break
            if not folder:
                yield Violation(file.path, 1, f"no CMakeLists.txt names '{name}'")
                break
            folder = os.path.dirname(folder)
