#===- documents.py - checks of links and words in documents ----------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Links of Markdown files that lead nowhere, and words that docs/Glossary.md refuses."""

import os
import re
from urllib.parse import unquote

from tree import Violation

GLOSSARY = "docs/Glossary.md"
FENCE = re.compile(r"^( {0,3}(?:[-*>] +)?)(`{3,}|~{3,})[^\n]*\n.*?(?:^ *\2[`~]*[ ]*$|\Z)", re.M | re.S)


def blank(match):
    """As many lines, without anything in them."""
    return re.sub(r"[^\n]", "", match[0])


def mask_code(text):
    """The text of a document with the lines of code and comments emptied."""
    text = FENCE.sub(blank, text)
    text = re.sub(r"<!--.*?-->", blank, text, flags=re.S)
    # Indented code stands behind an empty line, and not in a list.
    lines, code, listed = text.split("\n"), False, False
    for i, line in enumerate(lines):
        if not line.strip():
            continue
        indented = line.startswith("    ")
        code = indented and not listed and (code or i == 0 or not lines[i - 1].strip())
        if not indented:
            listed = bool(re.match(r" {0,3}(?:[-*+]|\d+\.) ", line)) or (listed and line.startswith(" "))
        if code:
            lines[i] = ""
    return "\n".join(lines)


def is_table(line):
    return line.lstrip(" >").startswith("|")


def anchor(heading):
    """The anchor that GitHub gives a heading."""
    heading = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    if "`" not in heading:
        heading = re.sub(r"<[^>]+>", "", heading)
    heading = re.sub(r"(?<!\w)[_*]+(?=\S)|(?<=\S)[_*]+(?!\w)", "", heading)
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(text):
    """All anchors of a document: of headings, and given ones."""
    found, seen = set(re.findall(r"<a\s+(?:id|name)=\"([^\"]+)\"", text)), {}
    for heading in re.findall(r"^ {0,3}#{1,6} +(.*?)(?: +#+)? *$", mask_code(text), re.M):
        name = anchor(heading)
        count = seen.get(name, 0)
        seen[name] = count + 1
        found.add(f"{name}-{count}" if count else name)
    return found


def targets(text):
    """The line and the target of each link."""
    text = mask_code(text)
    text = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", lambda match: re.sub(r"[^\n]", "x", match[0]), text)
    for match in re.finditer(r"\]\(\s*<?([^()\s<>]+(?:\([^()\s]*\)[^()\s<>]*)?)>?(?:\s+\"[^\"]*\")?\s*\)", text):
        yield text.count("\n", 0, match.start(1)) + 1, match[1]
    for match in re.finditer(r"^ {0,3}\[[^\]]+\]: +<?([^\s<>]+)", text, re.M):
        yield text.count("\n", 0, match.start(1)) + 1, match[1]


def links(tree):
    """Every link to a tracked file or folder, or to an anchor, leads there."""
    folders = {os.path.dirname(path) for path in tree.tracked}
    folders |= {parent for folder in folders for parent in parents(folder)}
    known = {}
    for file in tree.of_kind("markdown"):
        for line, target in targets(file.text):
            if re.match(r"[a-z][a-z+.-]*:|//", target, re.I):
                continue
            name, _, fragment = unquote(target).partition("#")
            path = file.path if not name else os.path.normpath(
                name.lstrip("/") if name.startswith("/") else os.path.join(os.path.dirname(file.path), name))
            if path not in tree.tracked and path not in folders:
                yield Violation(file.path, line, f"the link leads to '{target}', which is no tracked file or folder")
            elif fragment and path.endswith(".md"):
                if path not in known:
                    known[path] = anchors((tree.root / path).read_text())
                if fragment not in known[path]:
                    yield Violation(file.path, line, f"the link leads to '{target}', and {path} has no such heading")


def parents(folder):
    while folder:
        folder = os.path.dirname(folder)
        yield folder or "."


def refused_words(text):
    """Pairs of a regular expression and the word to use in its place, which may be empty."""
    block = re.search(r"^```refused\n(.*?)^```$", text, re.M | re.S)
    for line in block[1].splitlines() if block else ():
        pattern, _, expected = line.partition("  -> ")
        if pattern.strip():
            # Flags of the whole expression become flags of a group, so that expressions can be joined.
            yield re.sub(r"^\(\?([a-z]+)\)(.*)$", r"(?\1:\2)", pattern.rstrip()), expected.strip()


def glossary(tree):
    """No tracked text file, and no name of one, has a word that the glossary refuses."""
    page = tree.root / GLOSSARY
    words = list(refused_words(page.read_text())) if page.exists() else []
    if not words:
        return
    patterns = [(re.compile(pattern), expected) for pattern, expected in words]
    joined = re.compile("|".join(f"(?:{pattern})" for pattern, _ in words), re.M)
    for file in tree.files:
        if file.path == GLOSSARY or file.text is None:
            continue
        if joined.search(file.path):
            yield from refuse(file.path, 1, file.path, patterns, " in the file's name")
        if joined.search(file.text):
            for number, line in enumerate(file.lines, 1):
                if joined.search(line):
                    yield from refuse(file.path, number, line, patterns)


def refuse(path, number, line, patterns, where=""):
    for pattern, expected in patterns:
        if match := pattern.search(line):
            wanted = f", expected '{expected}'" if expected else ""
            yield Violation(path, number, f"refused word '{match[0]}'{where}{wanted}")
