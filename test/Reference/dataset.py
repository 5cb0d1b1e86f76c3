#===- dataset.py - the order of the training data --------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Batches from a file of bytes, in the order that docs/Numerics.md defines."""

import numpy as np

import generator


class Permutation:
    """A keyed bijection of {0 .. count-1}: four Feistel rounds, repeated until inside."""

    def __init__(self, count, key):
        self.count, self.key = count, key
        self.half = 0
        while 4**self.half < count:
            self.half += 1

    def __call__(self, index):
        index = self._encrypt(index)
        while index >= self.count:
            index = self._encrypt(index)
        return index

    def _encrypt(self, number):
        mask = (1 << self.half) - 1
        left, right = number >> self.half, number & mask
        for turn in range(4):
            drawn = int(generator.bits(self.key, turn, np.array([right]))[0])
            left, right = right, left ^ (drawn & mask)
        return left << self.half | right


class Dataset:
    """The samples of the file at `path`; every byte is a token."""

    def __init__(self, path, sequence_length, batch, seed):
        self.tokens = np.fromfile(path, np.uint8).astype(np.int64)
        self.length, self.batch_size, self.seed = sequence_length, batch, seed
        self.samples = (self.tokens.size - 1) // sequence_length
        if self.samples < 1:
            raise ValueError(f"{path}: {self.tokens.size} bytes are less than one sample")

    def sample_at(self, index):
        """Number in the file of global sample `index`."""
        epoch, place = divmod(index, self.samples)
        stream = generator.fnv1a("data order")
        key = int(generator.bits(self.seed, stream, np.array([epoch]))[0])
        return Permutation(self.samples, key)(place)

    def batch(self, step):
        """Tokens and targets of `step`, each [batch, sequence]."""
        first = step * self.batch_size
        return self._rows([self.sample_at(first + row) for row in range(self.batch_size)])

    def batch_in_order(self, number):
        """The same for batch `number` of a validation, which takes samples in the file's order."""
        first = number * self.batch_size
        return self._rows(range(first, first + self.batch_size))

    def _rows(self, samples):
        starts = [sample * self.length for sample in samples]
        rows = np.stack([self.tokens[start : start + self.length + 1] for start in starts])
        return rows[:, :-1], rows[:, 1:]
