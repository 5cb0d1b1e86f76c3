//===- Cases.h - kernels to be tried on a device -----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What unit tests of kernels leave for a device, in a folder: `kernels.so`, the object
// that the compiler makes of all their kernels, for devices and for the host;
// `cases.json`, which kernel is called with what; `cases.bin`, operands that are not
// made by their seed. KernelCases.h in unittests/Lower writes it.
//
// A case has a reference: a kernel of the same text whose floating-point operands are
// float64, which the host runs.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_KERNELS_CASES_H
#define WEFT_RT_KERNELS_CASES_H

#include "support/MappedFile.h"
#include "weft-rt/DeviceImage.h"
#include "weft-rt/Program.h"

#include <string>
#include <vector>

namespace weft::rt::kernels {

/// An operand of a kernel. The reference's has as many elements.
struct CaseBuffer {
  ElementType type = ElementType::F32, referenceType = ElementType::F32;
  uint64_t count = 0;
  Access access = Access::Read;
  /// Where it begins in `cases.bin`; -1 where it is made: numbers between `least` and `most`.
  int64_t offset = -1;
  uint64_t seed = 0;
  double least = 0, most = 0;

  uint64_t bytes() const { return count * sizeOf(type); }
};

struct Case {
  std::string name;
  /// Numbers of kernels.
  uint32_t kernel = 0, reference = 0;
  /// Whether it is there for its time too, and runs by itself.
  bool isLarge = false;
  std::vector<int64_t> immediates, coordinates;
  std::vector<CaseBuffer> buffers;
};

/// What is in a folder. `code[i]` is that of `kernels[i]`; it is never unloaded.
struct Cases {
  std::vector<std::string> kernels;
  std::vector<Case> cases;
  MappedFile data;
  const KernelCode *code = nullptr;
  std::span<const DeviceImage> images;
};

/// Fails with a reason on what is not such a folder. Who wrote it is trusted: it is code.
bool readCases(const std::string &folder, Cases &cases, std::string &error);

/// The operand's elements: those that it has before the kernel runs, or of one that is only
/// written, bytes that stand for no number.
std::vector<char> makeOperand(const CaseBuffer &buffer, std::span<const char> data);

/// Of `count` elements.
double elementAt(ElementType type, const char *elements, uint64_t index);
/// The same elements in another type.
std::vector<char> converted(ElementType from, std::span<const char> elements, ElementType to);

} // namespace weft::rt::kernels

#endif // WEFT_RT_KERNELS_CASES_H
