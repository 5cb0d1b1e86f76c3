//===- KernelCases.h - kernels of tests, for a device to run -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// If the environment variable WEFT_KERNEL_CASES names a folder, tests write their kernels and
// operands into it, for weft-rt-kernels (runtime/kernels), which needs no compiler, runs the
// kernels on a device and checks the results.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_LOWER_KERNELCASES_H
#define WEFT_UNITTESTS_LOWER_KERNELCASES_H

#include "KernelRunner.h"

namespace weft::test {

bool recordsKernels();

/// Records `call` as the test runs it, with `floatType` for `$f`.
void recordKernel(const KernelCall &call, const std::string &floatType);

/// An operand that weft-rt-kernels makes itself: numbers between `least` and `most`.
struct MadeOperand {
  std::vector<int64_t> shape;
  Kind kind = Kind::Float;
  double least = -1, most = 1;

  int64_t size() const;
};

/// A kernel whose time is measured too. In `text`, `$a` is the type of operands of kind BFloat16,
/// `$f` that of Float, which is float64 in the reference.
struct LargeKernel {
  std::string name, text;
  std::vector<MadeOperand> operands, results;
  /// The type of `$a` in the reference: f32 if the kernel converts it to `$f`.
  std::string referenceActivation = "f64";
};
void recordLargeKernel(const LargeKernel &kernel);

/// Returns the text with types in place of `$a` and `$f`.
std::string withTypes(std::string text, const std::string &activation, const std::string &number);

} // namespace weft::test

#endif // WEFT_UNITTESTS_LOWER_KERNELCASES_H
