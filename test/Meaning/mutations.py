#===- mutations.py - mistakes in a partitioned module --------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Mistakes to make in the text of a module after Partition. Each kind finds the lines where it can
be made and changes one. A mistake may leave a module that is not valid, or that computes the same.
"""

import re


def other(source, options, unlike):
    """Draws one of `options` that is not `unlike`; None if there is none."""
    left = sorted(set(option for option in options if option != unlike))
    return source.choice(left) if left else None


class Text:
    """The lines of a module, with what mistakes need to know of them."""

    def __init__(self, text):
        self.lines = text.splitlines()
        mesh = next(line for line in self.lines if line.startswith("#mesh = "))
        self.axes = re.findall(r'"([^"]+)"=', mesh)
        self.sizes = [int(size) for size in re.findall(r"=(\d+)", mesh.split("<", 1)[1])]
        # In which function, and which block of it, a line is.
        self.blocks, block = [], 0
        for line in self.lines:
            block += bool(re.match(r"\s*(func\.func|\^bb|})", line))
            self.blocks.append(block)

    def with_line(self, number, line):
        return "\n".join(self.lines[:number] + [line] + self.lines[number + 1:]) + "\n"


def change(pattern, replace):
    """A kind of mistake: `replace(text, number, match, source)` gives other text for a match of
    `pattern` in a line, or None."""

    def make(text, source):
        places = [(number, match) for number, line in enumerate(text.lines)
                  for match in re.finditer(pattern, line)]
        source.shuffle(places)
        for number, match in places[:20]:
            new = replace(text, number, match, source)
            if new is not None and new != match.group():
                line = text.lines[number]
                return text.with_line(number, line[:match.start()] + new + line[match.end():])
        return None

    return make


def other_axes(text, _, match, source):
    """Other axes, with groups of the same size where that can be."""
    axes = re.findall(r'"([^"]+)"', match.group())
    choices = [[axis] for axis in text.axes] + [axes[::-1], axes[:-1], axes + [
        axis for axis in text.axes if axis not in axes][:1]]
    drawn = other(source, [" , ".join(f'"{axis}"' for axis in choice) for choice in choices if choice],
                  " , ".join(f'"{axis}"' for axis in axes))
    return drawn and f"over [{drawn}]"


def other_axis(text, _, match, source):
    drawn = other(source, text.axes, match.group(1))
    return drawn and f'weft.axis_index "{drawn}"'


def value_like(text, number, name):
    """Values of the type of `name` that stand before the line in its function."""
    types = {}
    for line in range(number - 1, -1, -1):
        found = text.lines[line]
        if text.blocks[line] != text.blocks[number] and "func.func" not in found:
            continue
        if "func.func" in found:
            for argument, kind in re.findall(r"(%arg\d+): (tensor<[^>]*>)", found):
                types.setdefault(argument, kind)
            break
        match = re.match(r"\s*(%[\w.]+) = .*-> (tensor<[^>]*>)\s*\{?$", found) or re.match(
            r"\s*(%[\w.]+) = weft\.read .* : (tensor<[^>]*>)$", found)
        if match:
            types.setdefault(match.group(1), match.group(2))
    kind = types.get(name)
    return [value for value, own in types.items() if own == kind and kind]


def other_operand(text, number, match, source):
    drawn = other(source, value_like(text, number, match.group(2)), match.group(2))
    return drawn and match.group(1) + drawn


def other_argument(text, number, match, source):
    """Another value of the same type in a call of a layer: another weight, or a copy of one from before."""
    arguments = match.group(2).split(", ")
    at = source.randrange(len(arguments))
    drawn = other(source, value_like(text, number, arguments[at]), arguments[at])
    return drawn and match.group(1) + ", ".join(arguments[:at] + [drawn] + arguments[at + 1:]) + ")"


def exchanged_collectives(text, source):
    """The results of two collectives of one block and one type, each used in the other's place from there on."""
    found = [(number, match.group(1), match.group(2)) for number, line in enumerate(text.lines)
             if (match := re.match(r"\s*(%[\w.]+) = weft\.(?:all_|reduce_scatter|permute).* : (.*)", line))]
    pairs = [(one, two) for at, one in enumerate(found) for two in found[at + 1:]
             if text.blocks[one[0]] == text.blocks[two[0]] and one[2] == two[2]]
    if not pairs:
        return None
    (_, one, _), (begin, two, _) = source.choice(pairs)
    names = {one: two, two: one}
    lines = text.lines[:]
    for number in range(begin + 1, len(lines)):
        if text.blocks[number] == text.blocks[begin]:
            lines[number] = re.sub(r"%[\w.]+", lambda match: names.get(match.group(), match.group()), lines[number])
    return "\n".join(lines) + "\n"


def other_variable(text, number, match, source):
    kind = text.lines[number].split(" : ")[-1]
    same = [re.search(r"weft\.read (@\S+)", line).group(1) for line in text.lines
            if "weft.read @" in line and line.split(" : ")[-1] == kind]
    drawn = other(source, same, match.group(1))
    return drawn and f"weft.read {drawn}"


def other_index(text, number, match, source):
    """A constant of the function in the place of a rank's or a micro-batch's number."""
    return (drawn := other(source, [
        found.group(1) for line in text.lines[max(0, number - 60):number]
        if (found := re.match(r"\s*(%[\w.]+) = (?:arith\.constant \d+ : index|weft\.axis_index)",
                              line))], match.group(2))) and match.group(1) + drawn


def other_number(_text, _number, match, source):
    value = int(match.group(2))
    return match.group(1) + str(source.choice([value + 1, max(value - 1, 0), 2 * value]))


def other_scale(_text, _number, match, source):
    value = float(match.group(1))
    return f"arith.constant {source.choice([value * 2, value + 1, -value]):.6e}"


def other_sources(_text, _number, match, source):
    numbers = match.group(1).split(", ")
    drawn = numbers[:]
    source.shuffle(drawn)
    return f"from [{', '.join(drawn)}]"


def other_equation(_text, _number, match, source):
    """Two letters of one term change places."""
    terms = re.split(r"(,|->)", match.group(1))
    at = source.randrange(0, len(terms), 2)
    if len(terms[at]) < 2:
        return None
    one, two = source.sample(range(len(terms[at])), 2)
    letters = list(terms[at])
    letters[one], letters[two] = letters[two], letters[one]
    terms[at] = "".join(letters)
    return f'weft.contract "{"".join(terms)}"'


def other_scalar_op(_text, _number, match, source):
    return other(source, ["arith.addf", "arith.subf", "arith.mulf", "arith.maximumf"], match.group())


def swapped(_text, _number, match, _source):
    return f"{match.group(1)}{match.group(3)}, {match.group(2)}"


def other_reduction(_text, _number, match, source):
    return f"weft.{match.group(1)} {other(source, ['sum', 'max'], match.group(2))}"


KINDS = {
    "groups": change(r'over \[[^\]]*\]', other_axes),
    "axes of offsets": change(r'weft\.axis_index "([^"]+)"', other_axis),
    "reductions": change(r"weft\.(all_reduce|reduce_scatter) (sum|max)", other_reduction),
    "operators": change(r"arith\.(addf|subf|mulf|maximumf)\b", other_scalar_op),
    "operands": change(r"(weft\.(?:contract \"[^\"]*\"\(|norm rms |norm layer |all_reduce sum |"
                       r"all_gather |reduce_scatter sum |attention\(|rotary |slice |partial ))"
                       r"(%[\w.#]+)", other_operand),
    "arguments of calls": change(r"(weft\.call @\w+\()([^)]*)\)", other_argument),
    "exchanged collectives": exchanged_collectives,
    "variables": change(r"weft\.read (@\S+)", other_variable),
    "scalar operands": change(r"(arith\.(?:subf|divf) )(%[\w.]+), (%[\w.]+)", swapped),
    "offsets": change(r"(= arith\.constant )(\d+)(?= : index)", other_number),
    "sizes": change(r"(of array<i64: |columns array<i64: |of \[)(\d+)", other_number),
    "scales": change(r"arith\.constant (-?\d\.\d+e[+-]\d+)(?= : f64)", other_scale),
    "masks of padding": change(r"(= arith\.constant )(\d+)(?= : i32)", other_number),
    "roots and slices": change(r"(weft\.(?:partial|slice) .* index )(%[\w.]+)", other_index),
    "permutations": change(r"from \[([\d, ]+)\]|from array<i32: ([\d, ]+)>", other_sources),
    "transpositions": change(r'weft\.contract "([^"]+)"', other_equation),
    "micro-batches": change(r"(weft\.select %[\w.]+\[)(%[\w.]+)", other_index),
}
