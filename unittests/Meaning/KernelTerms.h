//===- KernelTerms.h - what kernels compute, as numbers --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A term is a tensor as one number: a hash of what computes it. Sums of terms are sums of
// the numbers, so that their order does not matter. Any other op is a function of which
// only its name, its attributes and its operands are known. Shares no code with the proof
// of meaning.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_MEANING_KERNELTERMS_H
#define WEFT_UNITTESTS_MEANING_KERNELTERMS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace weft::test {

using Term = uint64_t;

/// Returns a number that depends on all of these and their order.
Term hashOf(std::span<const Term> terms);
Term hashOf(std::string_view text);

class KernelTerms {
public:
  /// The modules after Schedule of all stages, which must outlive this object.
  explicit KernelTerms(std::span<const mlir::ModuleOp> modules);

  /// Returns the results of a kernel. REQUIRES: a module has it.
  std::vector<Term> run(const std::string &kernel, std::span<const int64_t> numbers,
                        std::span<const Term> tensors);
  /// Returns, for each result, the number of the tensor in whose place it lies; -1 for one that
  /// has a place of its own. REQUIRES: a module has the kernel.
  std::vector<int64_t> tiedOf(const std::string &kernel) const;
  /// Returns the number of tensors that the kernel reads.
  size_t tensorCount(const std::string &kernel) const;

private:
  std::map<std::string, mlir::func::FuncOp> kernels;
  /// The results of calls, by a hash of the call.
  std::unordered_map<Term, std::vector<Term>> known;
};

} // namespace weft::test

#endif // WEFT_UNITTESTS_MEANING_KERNELTERMS_H
