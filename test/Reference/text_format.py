#===- text_format.py - reads Protobuf's text format ------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Enough of Protobuf's text format for our descriptions.

A message becomes a dictionary from field name to the list of its values, in the order of the
text. Values are bool, int, float, str (both strings and enum names) or again a dictionary. The
reader knows no schema: that the compiler reads the same file with one is part of the test.
"""

import re

TOKEN = re.compile(
    r"""\s+|\#[^\n]*"""
    r"""|(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    r"""|(?P<number>-?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?f?)|-?inf\b|nan\b)"""
    r"""|(?P<name>[A-Za-z_][A-Za-z0-9_.]*)"""
    r"""|(?P<mark>[{}<>:\[\],;])"""
)


def _tokens(text):
    place = 0
    while place < len(text):
        match = TOKEN.match(text, place)
        if not match:
            line = text.count("\n", 0, place) + 1
            raise ValueError(f"line {line}: unexpected '{text[place]}'")
        place = match.end()
        if match.lastgroup:
            yield match.lastgroup, match.group()
    yield "end", ""


class _Reader:
    def __init__(self, text):
        self.tokens = list(_tokens(text))
        self.place = 0

    def peek(self):
        return self.tokens[self.place]

    def take(self):
        self.place += 1
        return self.tokens[self.place - 1]

    def message(self, close):
        fields = {}
        while self.peek() != close:
            kind, name = self.take()
            if kind != "name":
                raise ValueError(f"expected a field name, got '{name}'")
            if self.peek() == ("mark", ":"):
                self.take()
            fields.setdefault(name, []).extend(self.values())
            while self.peek() in (("mark", ","), ("mark", ";")):
                self.take()
        self.take()
        return fields

    def values(self):
        if self.peek() != ("mark", "["):
            return [self.value()]
        self.take()
        values = []
        while self.peek() != ("mark", "]"):
            values.append(self.value())
            if self.peek() == ("mark", ","):
                self.take()
        self.take()
        return values

    def value(self):
        kind, text = self.take()
        if (kind, text) == ("mark", "{"):
            return self.message(("mark", "}"))
        if (kind, text) == ("mark", "<"):
            return self.message(("mark", ">"))
        if kind == "string":
            joined = _unquote(text)
            while self.peek()[0] == "string":
                joined += _unquote(self.take()[1])
            return joined
        if kind == "number":
            return _number(text)
        if kind == "name":
            return {"true": True, "false": False}.get(text, text)
        raise ValueError(f"expected a value, got '{text}'")


def _unquote(text):
    escapes = {"n": "\n", "t": "\t", "r": "\r"}
    return re.sub(r"\\(.)", lambda match: escapes.get(match[1], match[1]), text[1:-1])


def _number(text):
    if re.fullmatch(r"-?0[xX].*", text):
        return int(text, 16)
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    return float(text.rstrip("f") if "inf" not in text else text)


def parse(text):
    """The message that `text` spells."""
    return _Reader(text).message(("end", ""))
