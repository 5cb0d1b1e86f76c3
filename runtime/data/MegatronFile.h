//===- MegatronFile.h - tokens in the files of Megatron-LM ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PREFIX.idx, byte by byte (Megatron-LM, megatron/core/datasets/indexed_dataset.py):
//
//   9      "MMIDIDX" and two zeros
//   8      version, 1
//   1      type of a token: 1 uint8, 2 int8, 3 int16, 4 int32, 5 int64, 6 float64,
//          7 float32, 8 uint16
//   8, 8   number n of sequences, number m of entries of the document index
//   4 n    length of each sequence in tokens
//   8 n    byte of PREFIX.bin at which it begins
//   8 m    document d is the sequences from entry d to before entry d + 1
//
// Sequences must lie one after another, as Megatron's own tools write them, so that
// PREFIX.bin holds all documents in order. Other indexes are refused, as are the
// modes at the end of an index for multimodal data.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_DATA_MEGATRONFILE_H
#define WEFT_RT_DATA_MEGATRONFILE_H

#include "data/TokenFile.h"

namespace weft::rt {

/// Opens the files and checks the whole index, in time proportional to the number of sequences.
Result<std::unique_ptr<TokenSource>> openMegatron(const std::string &prefix);

} // namespace weft::rt

#endif // WEFT_RT_DATA_MEGATRONFILE_H
