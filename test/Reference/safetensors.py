#===- safetensors.py - reads and writes tensors by name --------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""The safetensors file format: 8 bytes of header length, a JSON header, then the raw values."""

import json
import os
import struct

import numpy as np

# NumPy has no bf16, the upper half of a float32.
TYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32}


def load(path):
    """The tensors of the file at `path`, as a dictionary from name to array; BF16 as float32."""
    with open(path, "rb") as file:
        data = file.read()
    if len(data) < 8:
        raise ValueError(f"{path}: expected 8 bytes of header length, got {len(data)}")
    (length,) = struct.unpack("<Q", data[:8])
    if length > len(data) - 8:
        raise ValueError(f"{path}: header of {length} bytes is longer than the file")
    header = json.loads(data[8 : 8 + length])
    body = memoryview(data)[8 + length :]
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        is_half = entry["dtype"] == "BF16"
        if entry["dtype"] not in TYPES and not is_half:
            raise ValueError(f"{path}: tensor {name} has type {entry['dtype']}, expected one of "
                             + ", ".join([*TYPES, "BF16"]))
        begin, end = entry["data_offsets"]
        dtype = np.dtype(np.uint16 if is_half else TYPES[entry["dtype"]]).newbyteorder("<")
        count = int(np.prod(entry["shape"], dtype=np.int64))
        if end - begin != count * dtype.itemsize or end > len(body) or begin < 0:
            raise ValueError(f"{path}: tensor {name} does not fit its place in the file")
        array = np.frombuffer(body[begin:end], dtype).reshape(entry["shape"])
        tensors[name] = (array.astype(np.uint32) << 16).view(np.float32) if is_half else array
    return tensors


def save(path, tensors):
    """Writes `tensors` beside `path`, then renames, so that no reader sees half a file."""
    names = {np.dtype(value).str[1:]: key for key, value in TYPES.items()}
    header, offset = {}, 0
    for name, array in tensors.items():
        header[name] = {
            "dtype": names[array.dtype.str[1:]],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    beside = f"{path}.part"
    with open(beside, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            file.write(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes())
    os.replace(beside, path)
