#===- test_layers.py - tests that no include runs upwards ------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Compares the includes of the compiler and the runtime with the house that docs/Overview.md draws."""

import re
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
CODE = {".cpp", ".h", ".td", ".def"}
# Where quoted includes are looked for, besides the folder of the file.
ROOTS = ("include", "runtime", "runtime/include", "lib", "tools/weft")


class Room:
    """A line of the picture. A room of several names, or of files in place of a folder, is known by the first."""

    def __init__(self, names, includes, place):
        self.names, self.includes, self.place = names, includes, place

    def __str__(self):
        return self.names[0]


def expand(name):
    """"a{b,c}" is "ab" and "ac"."""
    match = re.fullmatch(r"(.*)\{(.*)\}", name)
    return [match[1] + each for each in match[2].split(",")] if match else [name]


class House:
    def __init__(self, text):
        """Reads the picture out of the page."""
        picture = re.search(r"^<!-- the house -->\n```\n(.*?)^```$", text, re.M | re.S)
        if not picture:
            raise ValueError("there is no picture behind '<!-- the house -->'")
        self.rooms, self.buildings = {}, []
        lines = re.sub(r"\n {8,}", " ", picture[1])
        listed = []
        for line in lines.splitlines():
            if building := re.match(r"(\w+)/", line):
                self.buildings.append(building[1])
            elif line.strip():
                names, arrow, includes = line.partition("->")
                if not arrow or not self.buildings:
                    raise ValueError(f"no room: '{line}'")
                names = [self.full(each) for name in names.split() for each in expand(name)]
                listed.append(Room(names, includes.split(), len(listed)))
                self.rooms.update({name: listed[-1] for name in names})
        for room in listed:
            room.includes = self.allowed(room, room.includes)

    def full(self, name):
        building = self.buildings[-1]
        return building if name == "*" else f"{building}/{name}"

    def allowed(self, room, words):
        """The rooms that a room may include. All lie below it, so that no circle of includes is possible."""
        building = room.names[0].split("/")[0]
        rooms = set()
        for word in words:
            if word.endswith("*"):
                inside = word[:-1] or building + "/"
                rooms.update(each for name, each in self.rooms.items()
                             if name.startswith(inside) and each.place > room.place)
            else:
                below = self.rooms.get(f"{building}/{word}") or self.rooms.get(word)
                if not below:
                    raise ValueError(f"{room} -> {word}: there is no room of this name")
                if below.place <= room.place:
                    raise ValueError(f"{room} -> {word}: this room does not lie below it")
                rooms.add(below)
        return rooms

    def room_of(self, path):
        """The room of a file: the one with the longest matching name."""
        path = re.sub(r"^include/weft/", "lib/", path)
        names = [name for name in self.rooms
                 if path.startswith(name + "/") or path.rpartition(".")[0] == name]
        return self.rooms[max(names, key=len)] if names else None

    def mistakes(self, root):
        """A line for each include that leads upwards, or along no arrow of the picture."""
        found = []
        for top in (*self.buildings, "include/weft"):
            for file in sorted((root / top).rglob("*")):
                if file.suffix in CODE and file.is_file():
                    found += self.mistakes_of(root, file)
        for name in self.rooms:
            header = re.sub(r"^lib/", "include/weft/", name)
            if not any((root / place).is_dir() or list((root / place).parent.glob(Path(place).name + ".*"))
                       for place in (name, header)):
                found.append(f"{name}: the picture has this room, but there is no such folder")
        return found

    def mistakes_of(self, root, file):
        path = str(file.relative_to(root))
        room = self.room_of(path)
        if not room:
            return [f"{path}: the picture has no room for it"]
        found = []
        for name in re.findall(r'^\s*(?:#\s*)?include "([^"]+)"', file.read_text(), re.M):
            if path.startswith("runtime/") and name.startswith(("mlir/", "llvm/")):
                found.append(f"{path}: includes {name}, but the runtime is built without LLVM")
            for place in (file.parent / name, *(root / each / name for each in ROOTS)):
                if place.is_file():
                    other = self.room_of(str(place.resolve().relative_to(root.resolve())))
                    if other and other is not room and other not in room.includes:
                        way = "runs upwards" if other.place < room.place else "has no arrow"
                        found.append(f"{path}: includes {name}, which {way}: {room} -> {other}")
                    break
        return found


class Layers(unittest.TestCase):
    def test_no_include_runs_upwards(self):
        house = House((SOURCE / "docs/Overview.md").read_text())
        self.assertEqual(house.mistakes(SOURCE), [])


PICTURE = """
<!-- the house -->
```
lib/          the compiler
  Plan        -> Cost runtime/include
  Cost        ->

runtime/      the runtime
  tests       -> *
  training    -> support
  support     -> include
  include     ->
```
"""


class Planted(unittest.TestCase):
    """A small house into which includes are planted."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.house = House(PICTURE)
        self.write("lib/Plan/Plan.cpp", '#include "weft/Plan/Plan.h"\n#include "Solve.h"\n')
        self.write("lib/Plan/Solve.h", '#include "weft/Cost/Cost.h"\n#include "weft-rt/Program.h"\n')
        self.write("lib/Cost/Cost.cpp", '#include "weft/Cost/Cost.h"\n')
        self.write("include/weft/Plan/Plan.h", "")
        self.write("include/weft/Cost/Cost.h", "")
        self.write("runtime/training/Trainer.cpp", '#include "support/Text.h"\n#include "training/Trainer.h"\n')
        self.write("runtime/training/Trainer.h", "")
        self.write("runtime/support/Text.h", '#include "weft-rt/Program.h"\n')
        self.write("runtime/include/weft-rt/Program.h", "")
        self.write("runtime/tests/TextTest.cpp", '#include "support/Text.h"\n')

    def write(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def expect(self, *mistakes):
        self.assertEqual(self.house.mistakes(self.root), list(mistakes))

    def test_a_house_in_order(self):
        self.expect()

    def test_upwards_in_the_runtime(self):
        self.write("runtime/support/Json.cpp", '#include "support/Text.h"\n#include "training/Trainer.h"\n')
        self.expect("runtime/support/Json.cpp: includes training/Trainer.h, which runs upwards: "
                    "runtime/support -> runtime/training")

    def test_upwards_in_the_compiler(self):
        self.write("include/weft/Cost/Cost.h", '#include "weft/Plan/Plan.h"\n')
        self.expect("include/weft/Cost/Cost.h: includes weft/Plan/Plan.h, which runs upwards: lib/Cost -> lib/Plan")

    def test_upwards_by_a_neighbours_name(self):
        self.write("runtime/support/Json.h", '#include "../training/Trainer.h"\n')
        self.expect("runtime/support/Json.h: includes ../training/Trainer.h, which runs upwards: "
                    "runtime/support -> runtime/training")

    def test_downwards_without_an_arrow(self):
        self.write("lib/Cost/Cost.cpp", '#include "support/Text.h"\n')
        self.expect("lib/Cost/Cost.cpp: includes support/Text.h, which has no arrow: lib/Cost -> runtime/support")

    def test_llvm_in_the_runtime(self):
        self.write("runtime/support/Json.h", '#include "llvm/Support/JSON.h"\n')
        self.expect("runtime/support/Json.h: includes llvm/Support/JSON.h, but the runtime is built without LLVM")

    def test_a_folder_without_a_room(self):
        self.write("lib/Driver/Compile.cpp", "")
        self.expect("lib/Driver/Compile.cpp: the picture has no room for it")

    def test_a_room_without_a_folder(self):
        (self.root / "runtime/tests/TextTest.cpp").unlink()
        (self.root / "runtime/tests").rmdir()
        self.expect("runtime/tests: the picture has this room, but there is no such folder")

    def test_a_picture_that_points_upwards(self):
        for line, text in (("  include     -> tests", "does not lie below it"),
                           ("  include     -> cellar", "no room of this")):
            with self.assertRaisesRegex(ValueError, text):
                House(PICTURE.replace("  include     ->\n", line + "\n"))
        with self.assertRaisesRegex(ValueError, "there is no picture"):
            House("")


if __name__ == "__main__":
    unittest.main()
