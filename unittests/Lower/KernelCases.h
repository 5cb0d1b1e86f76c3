//===- KernelCases.h - kernels of tests, for a device to run -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the environment variable WEFT_KERNEL_CASES names a folder, tests leave there the kernels
// that they run and their operands, for weft-rt-kernels (runtime/kernels), which needs no compiler
// and judges what a device makes of them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_LOWER_KERNELCASES_H
#define WEFT_UNITTESTS_LOWER_KERNELCASES_H

#include "KernelRunner.h"

namespace weft::test {

bool recordsKernels();

/// `call` as the test runs it, with `floatType` for `$f`.
void recordKernel(const KernelCall &call, const std::string &floatType);

/// An operand that is made where it is needed: numbers between `least` and `most`.
struct MadeOperand {
  std::vector<int64_t> shape;
  Kind kind = Kind::Float;
  double least = -1, most = 1;

  int64_t size() const;
};

/// A kernel that is there for its time too. In `text`, `$a` is the type of operands that are
/// marked as BFloat16, `$f` that of Float, which is float64 in the reference.
struct LargeKernel {
  std::string name, text;
  std::vector<MadeOperand> operands, results;
  /// What `$a` is there: f32, where the kernel converts it to `$f`.
  std::string referenceActivation = "f64";
};
void recordLargeKernel(const LargeKernel &kernel);

/// The text with types in the places of `$a` and `$f`.
std::string withTypes(std::string text, const std::string &activation, const std::string &number);

} // namespace weft::test

#endif // WEFT_UNITTESTS_LOWER_KERNELCASES_H
