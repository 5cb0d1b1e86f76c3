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

/// Reads a folder of cases. The folder must be trusted, since its code is run.
Result<Cases> readCases(const std::string &folder);

/// Returns the operand's elements before the kernel runs; for an operand that is only written,
/// bytes that are no finite number.
std::vector<char> makeOperand(const CaseBuffer &buffer, std::span<const char> data);

/// Converts elements to another type.
std::vector<char> converted(ElementType from, std::span<const char> elements, ElementType to);

} // namespace weft::rt::kernels

#endif // WEFT_RT_KERNELS_CASES_H
