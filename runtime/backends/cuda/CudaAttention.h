//===- CudaAttention.h - attention that a device's library does -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which instructions of a rank's program the library does in place of the compiler's
// code is settled at the start, once for all that are alike.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_CUDAATTENTION_H
#define WEFT_RT_BACKENDS_CUDA_CUDAATTENTION_H

#include "backends/cuda/Library.h"
#include "weft-rt/Program.h"

#include <map>

namespace weft::rt::cuda {

class CudaAttention {
public:
  CudaAttention(const Program &program, const Library &library)
      : program(program), library(library) {}

  /// Asks the library for each that a rank at `coordinates` does. It may refuse; gives a text if it
  /// fails.
  Library::Result prepare(Library::Handle device, std::span<const int64_t> coordinates,
                          bool isDeterministic);
  void free(Library::Handle device);

  /// Of an instruction of that kernel with these immediates, which are the program's own; 0 where
  /// the compiler's code does it.
  Library::Handle find(uint32_t kernel, const int64_t *immediates) const;
  /// `operands` are the instruction's.
  Library::Result run(Library::Handle device, Library::Handle stream, Library::Handle prepared,
                      uint32_t kernel, void *const *operands) const;

  /// A line for each reason why the compiler's code does an attention of the step, and how many; ""
  /// if the library does all.
  std::string refusals() const;

private:
  Library::Result prepareOne(Library::Handle device, const Instruction &instruction,
                             std::span<const int64_t> coordinates, bool isDeterministic);

  const Program &program;
  const Library &library;
  /// What was made, by the kernel and the immediates' values; 0 where it was not.
  std::map<std::pair<uint32_t, std::vector<int64_t>>, Library::Handle> made;
  /// The same, found without comparing them.
  std::map<std::pair<uint32_t, const int64_t *>, Library::Handle> known;
  /// Why not.
  std::map<std::pair<uint32_t, std::vector<int64_t>>, std::string> reasons;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_CUDAATTENTION_H
