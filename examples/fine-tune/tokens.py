#!/usr/bin/env python3
#===- tokens.py - texts as a file of tokens --------------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Writes the tokens of texts into a file that --data takes: 32-bit tokens as llm.c has them.

    tokens.py CHECKPOINT/tokenizer.json TOKENS TEXT... [--end '<|endoftext|>']

Needs the package `tokenizers` of PyPI. With --end, that token comes after each text.
"""

import argparse
import struct
import sys
from pathlib import Path

MAGIC, VERSION, HEADER_NUMBERS = 20240801, 7, 256


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer", help="tokenizer.json of a checkpoint")
    parser.add_argument("tokens", type=Path, help="the file to write")
    parser.add_argument("texts", nargs="+", type=Path, metavar="TEXT", help="a file in UTF-8")
    parser.add_argument("--end", help="the token to put after each text")
    options = parser.parse_args()

    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(options.tokenizer)
    end = []
    if options.end is not None:
        end = [tokenizer.token_to_id(options.end)]
        if end == [None]:
            sys.exit(f"error: {options.tokenizer}: expected a token '{options.end}', got none")
    tokens = []
    for path in options.texts:
        tokens += tokenizer.encode(path.read_text("utf-8"), add_special_tokens=False).ids + end
    header = [MAGIC, VERSION, len(tokens)] + [0] * (HEADER_NUMBERS - 3)
    options.tokens.write_bytes(struct.pack(f"<{HEADER_NUMBERS}i", *header)
                               + struct.pack(f"<{len(tokens)}I", *tokens))
    print(f"{options.tokens}: {len(tokens)} tokens of {len(options.texts)} texts")


if __name__ == "__main__":
    main()
