#===- tokenizers.py - a tokenizer whose tokens are bytes -------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""What examples/fine-tune/tokens.py asks of the package of this name, for tests without PyPI."""

from types import SimpleNamespace


class Tokenizer:
    @staticmethod
    def from_file(path):
        open(path).close()
        return Tokenizer()

    def encode(self, text, add_special_tokens):
        assert not add_special_tokens
        return SimpleNamespace(ids=list(text.encode()))

    def token_to_id(self, token):
        return 0 if token == "<end>" else None
