//===- Cases.h - test cases of kernels for a device --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Unit tests of kernels write a folder of cases for devices: `kernels.so`, the compiled
// code of all their kernels, for devices and for the host; `cases.json`, the calls of
// kernels; `cases.bin`, operands that are not generated from a seed. KernelCases.h in
// unittests/Lower writes it.
//
// Each case has a reference, which the host runs: the same kernel with float64 in place of
// other floating-point types.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_KERNELS_CASES_H
#define WEFT_RT_KERNELS_CASES_H

#include "support/MappedFile.h"
#include "weft-rt/DeviceImage.h"
#include "weft-rt/Program.h"
#include "weft-rt/Status.h"

#include <memory>
#include <new>
#include <string>
#include <vector>

namespace weft::rt::kernels {

/// An operand of a kernel. The reference's operand has the same number of elements.
struct CaseBuffer {
  ElementType type = ElementType::F32, referenceType = ElementType::F32;
  uint64_t count = 0;
  Access access = Access::Read;
  /// The operand's offset in `cases.bin`; -1 for random numbers between `least` and `most`.
  int64_t offset = -1;
  uint64_t seed = 0;
  double least = 0, most = 0;

  uint64_t bytes() const { return count * sizeOf(type); }
};

struct Case {
  std::string name;
  /// Indices into `Cases::kernels`.
  uint32_t kernel = 0, reference = 0;
  /// True for a case that is also timed, and runs alone.
  bool isLarge = false;
  std::vector<int64_t> immediates, coordinates;
  std::vector<CaseBuffer> buffers;
};

/// The contents of a folder. `code[i]` belongs to `kernels[i]`, and is never unloaded.
struct Cases {
  std::vector<std::string> kernels;
  std::vector<Case> cases;
  std::unique_ptr<const MappedFile> data;
  const KernelCode *code = nullptr;
  std::span<const DeviceImage> images;
};

/// Allocates memory as kernels need it: aligned to kAlignment, and to a multiple of that, since a
/// host's kernel may read to the end of the last.
template <typename T> struct AlignedAllocator {
  using value_type = T;
  AlignedAllocator() = default;
  template <typename U> AlignedAllocator(const AlignedAllocator<U> & /*other*/) {}
  T *allocate(size_t count) {
    return static_cast<T *>(::operator new(padded(count), std::align_val_t(kAlignment)));
  }
  void deallocate(T *memory, size_t count) {
    ::operator delete(memory, padded(count), std::align_val_t(kAlignment));
  }
  bool operator==(const AlignedAllocator &) const = default;

private:
  static size_t padded(size_t count) { return (count * sizeof(T) / kAlignment + 1) * kAlignment; }
};
/// The elements of an operand on the host.
using Elements = std::vector<char, AlignedAllocator<char>>;

/// Reads a folder of cases. The folder must be trusted, since its code is run.
Result<Cases> readCases(const std::string &folder);

/// Returns the operand's elements before the kernel runs; for an operand that is only written,
/// bytes that are no finite number. The elements do not depend on the number of threads.
Elements makeOperand(const CaseBuffer &buffer, std::span<const char> data, int64_t threads);

/// Converts elements to another type.
Elements converted(ElementType from, std::span<const char> elements, ElementType to,
                   int64_t threads);

} // namespace weft::rt::kernels

#endif // WEFT_RT_KERNELS_CASES_H
