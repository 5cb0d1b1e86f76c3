#!/usr/bin/python3
#===- device_call_table.py - the page of calls to a device's libraries --------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Compares docs/DeviceCalls.md with the code and with the headers of CUDA's libraries.

    device_call_table.py [--headers FOLDER]

Each function that the runtime looks up must be in the page and the other way round, likewise each attribute and type.
The runtime's functions that the page names must be those of DriverTable.h. The errors of each function must be those
that the header lists, if the headers are of the page's version. The runtime's tests must have the page's cases. Prints
a line for each difference, and the number of functions compared; fails if there is a difference. Without headers it
says so and compares the rest.
"""

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BACKEND = SOURCE / "runtime" / "backends" / "cuda"
COMMON = ("DEINITIALIZED", "NOT_INITIALIZED", "INVALID_CONTEXT", "INVALID_VALUE")
# Errors of earlier work: an example, which the driver documents for kernels.
EARLIER = "ILLEGAL_ADDRESS"
# Names in the code that are no attributes: results, versions, types, and words of messages.
NO_ATTRIBUTES = re.compile(r"CUDA_ERROR_.*|CUDA_SUCCESS|CUDA_MEMCPY2D|CUDA_(?:HOME|VERSION)|CUBLAS_STATUS_.*|"
                           r"NCCL_VERSION|NCCL_COMM_BLOCKING|NCCL_WIN_ENABLE|ncclSuccess|ncclInProgress|ncclUnhandledCudaError")
ATTRIBUTE = re.compile(r"\b(?:CU_[A-Z0-9_]+|CUDA_[A-Z0-9_]+|CUBLASLT_\w+|CUBLAS_[A-Z0-9_]+\w*|NCCL_[A-Z_]+|"
                       r"nccl(?:Float|Int|Bfloat)\w+|nccl(?:Sum|Max|Min|Prod|Avg|Success|InProgress)|"
                       r"nccl(?:UnhandledCuda|System|Internal|Remote)Error)\b")
FUNCTION = re.compile(r"(?:cu[A-Z]|cublasLt|nccl[A-Z]|cudnnGet|nvrtc)\w+")


@dataclass
class Function:
    """A row of the page."""

    name: str
    through: list
    errors: list
    ends: set

    def codes(self, headers):
        """Returns the documented errors, by name with their numbers."""
        prefix = "CUBLAS_STATUS_" if self.name.startswith("cublas") else "CUDA_ERROR_"
        names = []
        for error in self.errors:
            if error == "all":
                names += [name for name in headers.codes if name.startswith("nccl")]
            else:
                names += [prefix + each for each in {"common": COMMON, "earlier": (EARLIER,)}.get(error, (error,))]
        return {name: headers.codes[name] for name in names}


class Headers:
    """What the headers in a folder say."""

    def __init__(self, folder):
        self.driver, self.matmuls, self.communication = (
            (folder / name).read_text(errors="replace") for name in ("cuda.h", "cublasLt.h", "nccl.h"))
        statuses = (folder / "cublas_api.h").read_text(errors="replace")
        found = re.findall(r"^\s*((?:CUDA_ERROR|CUBLAS_STATUS)_\w+)\s*=\s*(\d+)", self.driver + statuses, re.MULTILINE)
        results = re.search(r"typedef enum \{([^}]*)\} ncclResult_t;", self.communication)[1]
        found += [(name, number) for name, number in re.findall(r"(nccl\w+)\s*=\s*(\d+)", results)
                  if name not in ("ncclSuccess", "ncclInProgress", "ncclNumResults")]
        self.codes = {name: int(number) for name, number in found}
        version = int(re.search(r"#define CUDA_VERSION (\d+)", self.driver)[1])
        nccl = [re.search(rf"#define NCCL_{part} (\d+)", self.communication)[1] for part in ("MAJOR", "MINOR", "PATCH")]
        self.versions = [f"CUDA {version // 1000}.{version % 1000 // 10}", "nccl.h of " + ".".join(nccl)]

    def comment(self, text, name):
        """Returns the comment before a function's declaration; None without one."""
        found = re.search(rf"/\*\*((?:(?!\*/).)*)\*/\s*(?:CUresult|cublasStatus_t)\s+\w+\s+{name}\(", text, re.DOTALL)
        return found and found[1]

    def errors(self, name):
        """Returns the errors that the header lists for a function, as the page writes them; None if it lists none."""
        if name.startswith("cublas"):
            comment = self.comment(self.matmuls, name)
            return comment and [error for error in re.findall(r"\\retval\s+CUBLAS_STATUS_(\w+)", comment)
                                if error != "SUCCESS"]
        comment = self.comment(self.driver, name)
        listed = comment and re.search(r"\\return(.*?)(?:\\note|\\sa|\Z|\n \*\n)", comment, re.DOTALL)
        errors = re.findall(r"CUDA_ERROR_(\w+)", listed[1]) if listed else []
        if set(COMMON) <= set(errors):
            errors = ["common", *(error for error in errors if error not in COMMON)]
        return errors + (["earlier"] if comment and "notefnerr" in comment else []) if listed else None


def listed(cell):
    return [word.strip() for word in cell.split(",") if word.strip()]


def functions_of(page):
    """Returns the functions of the page's first three tables."""
    found = []
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 6:
            found.append(Function(cells[0].strip("`"), listed(cells[1]), listed(cells[2]),
                                  {end for end in cells[4].split(" or ")}))
    return found


def first_names(page):
    return re.findall(r"^\| `(\w+)`", page, re.MULTILINE)


def cases_of(page):
    """Returns the names of the tests in the table of limits."""
    section = page.split("## Cases at the borders", 1)[1].split("\n## ", 1)[0]
    return [name for line in section.splitlines()[4:] if line.startswith("| ")
            for name in listed(line.strip("| ").rsplit(" | ", 1)[1]) if name != "cases"]


def without_comments(text):
    return re.sub(r"//.*", "", text)


def differences(page, headers):
    """Returns a line for each difference."""
    functions = functions_of(page)
    names = first_names(page)
    code = {path.name: without_comments(path.read_text()) for path in sorted(BACKEND.glob("*.[ch]*"))}
    called = set(re.findall(r"X\(\w+, (\w+)\)", code["Calls.h"]))
    called |= {name for text in code.values() for name in re.findall(r'dlsym\(\*?\w+, "(\w+)"\)', text)}
    used = {name for text in code.values() for name in ATTRIBUTE.findall(text)}
    used = {name for name in used if not NO_ATTRIBUTES.fullmatch(name)}
    own = set(re.findall(r"\(\*(\w+)\)\(", (BACKEND / "DriverTable.h").read_text()))
    found = [f"{name} is in the page twice" for name in sorted({name for name in names if names.count(name) > 1})]
    told = {name for name in names if FUNCTION.fullmatch(name) and not ATTRIBUTE.fullmatch(name)}
    for missing, where in ((called - told, "the page lacks the function"), (told - called, "the code does not look up"),
                           (used - set(names), "the page lacks the attribute"),
                           (set(names) - told - used, "the code does not use")):
        found += [f"{where} {name}" for name in sorted(missing)]
    through = {name for function in functions for name in function.through if name != "all"}
    found += [f"DriverTable.h has no {name}" for name in sorted(through - own)]
    tests = "".join(path.read_text() for path in (SOURCE / "runtime" / "tests").rglob("*Test.cpp"))
    found += [f"there is no test {name}" for name in cases_of(page)
              if not re.search(rf'(?:\{{"{name}"|TEST(?:_[FP])?\(\w+,\s*{name}\))', tests)]
    for function in functions if headers else []:
        expected = headers.errors(function.name) if not function.name.startswith("nccl") else None
        if expected is not None and expected != function.errors:
            errors = ", ".join(function.errors)
            found.append(f"{function.name}: expected the errors {', '.join(expected)}, got {errors}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--headers", type=Path, help="the folder of cuda.h")
    options = parser.parse_args()
    page = (SOURCE / "docs" / "DeviceCalls.md").read_text()
    headers = Headers(options.headers) if options.headers and (options.headers / "cuda.h").exists() else None
    if not headers:
        print("there are no headers to compare errors with")
    elif any(version not in page for version in headers.versions):
        print(f"the headers are of other versions than the page: {', '.join(headers.versions)}")
        headers = None
    found = differences(page, headers)
    for line in found:
        print(line)
    print(f"{len(functions_of(page))} functions, {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
