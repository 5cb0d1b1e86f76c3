#===- test_check_style.py - tests of the checks of style -------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Each check reports a violation planted into a repository of its own, and nothing in a clean file."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
CHECK = SOURCE / "utils" / "check-style"
LICENSE = ("Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.",
           "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception")


def source(name, body, comment="//"):
    """A file with its header."""
    lines = ["===- " + f"{name} - a test", "", *LICENSE, ""]
    return "".join(f"{comment}{' ' if line and '===' not in line else ''}{line}\n" for line in lines) + body


def python(name, body):
    return source(name, body, "#")


class CheckStyle(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = Path(place.name)
        self.git("init", "--quiet")
        for name in (".clang-format", "ruff.toml"):
            shutil.copy(SOURCE / name, self.root)

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=self.root, check=True)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.git("add", "--force", name)

    def run_check(self, *arguments, **environment):
        return subprocess.run([CHECK, "--root", self.root, *arguments], cwd=self.root, capture_output=True, text=True,
                              env={**os.environ, **environment})

    def check(self, name, *expected):
        """The check prints lines that begin in these ways, and no others, and a summary."""
        done = self.run_check("--only", name)
        lines = [line for line in done.stdout.splitlines() if not line.startswith("style: installing")]
        if any("is left out" in line for line in lines):
            self.skipTest(lines[0])
        self.assertEqual(done.stderr, "")
        self.assertEqual(len(lines), len(expected) + 1, done.stdout)
        for line, beginning in zip(lines, expected):
            self.assertTrue(line.startswith(beginning), f"expected '{beginning}', got '{line}'")
        self.assertRegex(lines[-1], rf"^style: \d+ files, {len(expected)} violations$")
        self.assertEqual(done.returncode, 1 if expected else 0)

    def test_clang_format(self):
        self.write("clean.cpp", "int a = 1;\n")
        self.check("clang-format")
        self.write("wrong.cpp", "int a = 1;\nint  b=2;\n")
        done = self.run_check("--only", "clang-format")
        self.assertIn("wrong.cpp:2: code should be clang-formatted", done.stdout)
        self.assertNotIn("clean.cpp", done.stdout)
        self.assertEqual(self.run_check("--only", "clang-format", "--fix").returncode, 0)
        self.assertEqual((self.root / "wrong.cpp").read_text(), "int a = 1;\nint b = 2;\n")

    def test_clang_tidy(self):
        (self.root / ".clang-tidy").write_text(
            "Checks: '-*,readability-braces-around-statements'\nHeaderFilterRegex: '.*'\n")
        wrong = "int f(int a) {\n  if (a)\n    return 1;\n  return 2;\n}\n"
        for name, text in (("clean.cpp", "int f(int a) { return a; }\n"), ("old.cpp", wrong), ("old.h", wrong)):
            self.write(name, text)
        self.git("commit", "--quiet", "--message", "a")
        self.write("wrong.cpp", wrong)
        self.assertIn("clang-tidy is left out: there is no build/compile_commands.json",
                      self.run_check("--only", "clang-tidy", "--since", "HEAD").stdout)
        (self.root / "build").mkdir()
        (self.root / "build/compile_commands.json").write_text(json.dumps([
            {"directory": str(self.root), "file": name, "command": f"clang++-22 -c {name}"}
            for name in ("clean.cpp", "old.cpp", "wrong.cpp")]))
        done = self.run_check("--only", "clang-tidy", "--since", "HEAD")
        self.assertIn("wrong.cpp:2: statement should be inside braces", done.stdout)
        self.assertEqual(done.returncode, 1)
        self.git("commit", "--quiet", "--message", "b")
        self.write("clean.cpp", "#include \"old.h\"\nint g(int a) { return f(a); }\n")
        done = self.run_check("--only", "clang-tidy", "--since", "HEAD")
        self.assertEqual((done.returncode, done.stdout), (0, "style: 4 files, 0 violations\n"))
        # Without a revision, what the last commit changed counts too.
        self.assertEqual(self.run_check("--only", "clang-tidy").returncode, 1)

    def test_ruff(self):
        self.write("clean.py", "import os\n\nprint(os.name)\n")
        self.check("ruff")
        self.write("wrong.py", "import os\n")
        self.write("script", "#!/usr/bin/python3\nprint(undefined)\n")
        self.check("ruff", "script:2: F821 ", "wrong.py:1: F401 ")

    def test_widths(self):
        wide = "word " * 30
        self.write("clean.cpp", f'// {"word " * 18}end\nauto a = R"(\n{wide}end)";\n// See https://{"x" * 120}\n')
        self.write("clean.md", f"| {wide}|\n\n```\n{wide}end\n```\n\n    {wide}end\n\n{'word ' * 20}"
                   f"[a link](docs/{'x' * 40})\n\n- list\n\n# {wide}end\n")
        self.write("clean.mlir", f"// CHECK: {wide}end\n")
        self.check("widths")
        self.write("wrong.cpp", f"\n// {wide}end\n")
        self.write("wrong.md", f"- {wide}end\n\n      {wide}end\n")
        self.write("wrong.py", f"# {wide}end\n")
        self.check("widths", "wrong.cpp:2: expected at most 100 columns, got 156",
                   "wrong.md:1: expected at most 120 columns, got 155",
                   "wrong.md:3: expected at most 120 columns, got 159",
                   "wrong.py:1: expected at most 120 columns, got 155")

    def test_blanks(self):
        self.write("fuzz/corpus/any", "a \t")
        self.write("empty", "")
        self.write("wrong.txt", "a \nb\tc\nd")
        self.write("lines.txt", "a\n\n\n")
        self.check("widths", "lines.txt:3: an empty line at the end of the file",
                   "wrong.txt:1: blanks at the end of the line", "wrong.txt:2: a tab, expected blanks",
                   "wrong.txt:3: no newline at the end of the file")
        self.run_check("--only", "widths", "--fix")
        self.assertEqual((self.root / "wrong.txt").read_text(), "a\nb\tc\nd\n")
        self.assertEqual((self.root / "lines.txt").read_text(), "a\n")
        self.assertEqual((self.root / "fuzz/corpus/any").read_text(), "a \t")
        self.check("widths", "wrong.txt:2: a tab")

    def test_headers(self):
        self.write("clean.h", source("clean.h", "int a;\n"))
        self.write("clean", "#!/bin/bash\n" + python("clean", "true\n"))
        self.write("notes.md", "# Notes\n")
        self.check("headers")
        self.write("none.td", "// Nothing.\n")
        self.write("moved.cpp", source("old.cpp", "int a;\n"))
        self.check("headers", "moved.cpp:1: the header does not begin with 'moved.cpp - '",
                   "none.td:1: no license header, expected 'Part of the Weft project")

    def test_length(self):
        self.write("clean.py", "pass\n" * 600)
        self.write("long.md", "a\n" * 700)
        self.check("length")
        self.write("long.py", "pass\n" * 601)
        self.check("length", "long.py:601: expected at most 600 lines, got 601")

    def test_todo(self):
        self.write("clean.md", "No " + "TO" "DOs.\n")
        self.check("todo")
        self.write("wrong.cpp", "int a;\n// FIX" "ME: later\n")
        self.check("todo", "wrong.cpp:2: 'FIX" "ME' promises something for later")

    def test_paths(self):
        self.write("clean.md", "A folder's root/, src/" "work/ and https://a.org/" "root\n")
        self.check("paths")
        self.write("wrong.md", "\nIn /wo" "rk/main and `/ro" "ot/x`.\n")
        self.check("paths", "wrong.md:2: '/ro" "ot' is a folder", "wrong.md:2: '/wo" "rk' is a folder")

    def test_sources(self):
        self.write("lib/CMakeLists.txt", "add_library(a STATIC sub/Named.cpp)\nfoo(Stem)  # Comment.cpp\n")
        self.write("lib/sub/Named.cpp", "")
        self.write("lib/Stem.cpp", "")
        self.check("sources")
        self.write("lib/NotNamed.cpp", "")
        self.write("lib/Comment.cpp", "")
        self.check("sources", "lib/Comment.cpp:1: no CMakeLists.txt names 'Comment.cpp'",
                   "lib/NotNamed.cpp:1: no CMakeLists.txt names 'NotNamed.cpp'")

    def test_links(self):
        self.write("docs/other.md", "# A `b_c` (d), and *e*!\n\n## Twice\n\n## Twice\n\n```\n# Code\n```\n"
                   "\n<a id=\"given\"></a>\n")
        self.write("clean.md", "[a](docs/other.md#a-b_c-d-and-e) [b](docs#x) [c](https://a.org) [d](#here)\n[over\n"
                   "lines](docs/other.md#twice-1) `[x](none.md)` [e](docs/other.md#given)\n\n## Here\n"
                   "\n```\n[y](none.md)\n```\n")
        self.check("links")
        self.write("wrong.md", "[a](none.md)\n[b](docs/other.md#code)\n\n[c](#here)\n[d]: docs/other.md#twice-2\n")
        self.check("links", "wrong.md:1: the link leads to 'none.md', which is no tracked file or folder",
                   "wrong.md:2: the link leads to 'docs/other.md#code', and docs/other.md has no such heading",
                   "wrong.md:4: the link leads to '#here'", "wrong.md:5: the link leads to 'docs/other.md#twice-2'")

    def test_glossary(self):
        self.write("docs/Glossary.md",
                   "```refused\n(?i)\\bslab\\b  -> shard\n\\bGate\\b\n[a-z]Scrap(?![a-z])  -> Part\n```\n")
        self.write("clean.cpp", "// A gate to slabs.\n")
        self.check("glossary")
        self.write("wrong.cpp", "int a;\n// A Slab at the Gate.\n")
        self.write("slab.txt", "\n")
        self.check("glossary", "slab.txt:1: refused word 'slab' in the file's name, expected 'shard'",
                   "wrong.cpp:2: refused word 'Gate'", "wrong.cpp:2: refused word 'Slab', expected 'shard'")

    def test_files_and_errors(self):
        self.write("a/one.md", "a \n")
        self.write("b/two.md", "a \n")
        done = self.run_check("--only", "widths", "a")
        self.assertIn("style: 1 files, 1 violations", done.stdout)
        self.assertIn("a/one.md:1: ", done.stdout)
        self.assertEqual(self.run_check("--only", "widths", "none").returncode, 2)
        self.assertEqual(self.run_check("--only", "clang-tidy", "--since", "none").returncode, 2)
        self.assertIn("clang-tidy is left out, because it takes minutes", self.run_check("a").stdout)

    def test_checkout_without_git(self):
        self.write("a.md", "TO" + "DO\n")
        self.write("build/b.md", "TO" + "DO\n")
        shutil.rmtree(self.root / ".git")
        self.check("todo", "a.md:1: ")

    def test_missing_tool(self):
        folder = self.root / "bin"
        folder.mkdir()
        (folder / "git").symlink_to(shutil.which("git"))
        arguments = ("--only", "clang-format")
        done = self.run_check(*arguments, PATH=str(folder))
        self.assertIn("clang-format is left out: clang-format-22 is not installed", done.stdout)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.run_check(*arguments, "--strict", PATH=str(folder)).returncode, 1)


if __name__ == "__main__":
    unittest.main()
