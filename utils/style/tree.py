#===- tree.py - the tracked files that the checks of style read ------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""The tracked files of a checkout, each with its kind and its text, and what a check finds in them."""

import os
import subprocess
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple

# Inputs of fuzz targets, whose every byte has a purpose.
DATA = ("fuzz/corpus/",)
KINDS = {
    ".cpp": "c++", ".h": "c++", ".c": "c++", ".def": "c++",
    ".py": "python", ".sh": "shell", ".td": "td", ".proto": "proto", ".cmake": "cmake",
    ".md": "markdown", ".mlir": "test", ".test": "test", ".textproto": "textproto",
}


class GitError(Exception):
    pass


class Violation(NamedTuple):
    path: str
    line: int
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.message}"


class File:
    """A tracked file. Its text is read when it is first asked for."""

    def __init__(self, root, path):
        self.root, self.path = root, path

    @cached_property
    def text(self):
        """None for what is no text."""
        data = (self.root / self.path).read_bytes()
        try:
            return None if b"\0" in data else data.decode()
        except UnicodeDecodeError:
            return None

    @property
    def lines(self):
        return self.text.split("\n")

    @cached_property
    def kind(self):
        path = PurePosixPath(self.path)
        if self.path.startswith(DATA) or self.text is None:
            return "data"
        if path.name == "CMakeLists.txt":
            return "cmake"
        if path.suffix in KINDS:
            return KINDS[path.suffix]
        first = self.text.partition("\n")[0]
        if first.startswith("#!"):
            return "python" if "python" in first else "shell"
        return "other"

    def write(self, text):
        (self.root / self.path).write_text(text)
        self.text = text


class Tree:
    """What a run of checks works on: the checkout, the chosen files, and the options."""

    def __init__(self, root, chosen=(), fix=False, since=None):
        self.root, self.fix, self.since = Path(root).resolve(), fix, since
        # Deleted files, and links to files, are not checked.
        self.tracked = {path for path in self.listed()
                        if path and (self.root / path).is_file() and not (self.root / path).is_symlink()}
        paths = self.tracked & self.relative(chosen) if chosen else self.tracked
        self.files = [File(self.root, path) for path in sorted(paths)]

    def listed(self):
        """The tracked files; without git's data, as in an unpacked archive, all files but those of builds."""
        if (self.root / ".git").exists():
            return self.git("ls-files", "-z").split("\0")
        found = []
        for folder, inside, names in os.walk(self.root):
            inside[:] = [name for name in inside if not name.startswith("build") and name != "__pycache__"]
            found += [os.path.relpath(os.path.join(folder, name), self.root) for name in names]
        return found

    def git(self, *arguments):
        # The checkout may belong to another user, as in a container.
        command = ["git", "-c", "safe.directory=*", "-C", str(self.root), *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise GitError(f"'{' '.join(command)}' failed: {done.stderr.strip()}")
        return done.stdout

    def relative(self, chosen):
        """The chosen files, and those in chosen folders, as paths from the root."""
        found = set()
        for name in chosen:
            path = Path(os.path.relpath(os.path.realpath(name), self.root)).as_posix()
            inside = {each for each in self.tracked if path in (each, ".") or each.startswith(path + "/")}
            if not inside and not os.path.exists(name):
                raise GitError(f"expected a file or a folder, '{name}' is not there")
            found |= inside
        return found

    def of_kind(self, *kinds):
        return [file for file in self.files if file.kind in kinds]

    def changed(self):
        """Paths that differ from the revision, in commits since or not committed yet."""
        return set(self.git("diff", "--name-only", "-z", self.since or "HEAD~1", "--").split("\0"))
