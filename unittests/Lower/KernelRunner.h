//===- KernelRunner.h - compiles kernels and runs them -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_LOWER_KERNELRUNNER_H
#define WEFT_UNITTESTS_LOWER_KERNELRUNNER_H

#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "weft/Pipeline/Emit/Emit.h"

namespace weft::test {

enum class Kind { Float, Int32, Int64, BFloat16, Float16, E4M3, E5M2 };

/// A tensor as the tests hold it: row-major, every element a double, which an element of any type
/// fits in. `Float` is float32 or float64, by the test's parameter. What is written as another
/// float type is rounded.
struct Array {
  std::vector<int64_t> shape;
  std::vector<double> data;
  Kind kind = Kind::Float;

  explicit Array(std::vector<int64_t> shape, Kind kind = Kind::Float);
  int64_t size() const { return static_cast<int64_t>(data.size()); }
  /// Row-major position.
  int64_t at(std::initializer_list<int64_t> indices) const;
  double &operator()(std::initializer_list<int64_t> indices) { return data[at(indices)]; }
  double operator()(std::initializer_list<int64_t> indices) const { return data[at(indices)]; }
  /// "3x5xf32".
  std::string type(const std::string &floatType) const;
};

/// Elements between -1 and 1, the same for the same salt, and exact in float32.
Array randomArray(std::vector<int64_t> shape, unsigned salt);
/// `value` rounded to bf16, to f16.
double roundedToBF16(double value);
double roundedToF16(double value);
/// Integers from `least` to `most`.
Array randomIds(std::vector<int64_t> shape, int64_t least, int64_t most, unsigned salt);
Array counter(int64_t value);

/// The elements as a kernel sees them.
std::vector<char> bytesOf(const Array &array, bool isF64);

/// Runs `body` with the indices of each element of `shape`, in row-major order.
void forEach(const std::vector<int64_t> &shape,
             const std::function<void(const std::vector<int64_t> &)> &body);

/// Results of a run; `operands` as they are after it.
struct Outcome {
  std::vector<Array> operands, results;
};

/// What a test gives a kernel. `text` is a module with a kernel @kernel, in which `$f` stands for
/// the float type.
struct KernelCall {
  std::string text;
  std::vector<Array> operands;
  /// Shapes of the results that are not tied.
  std::vector<Array> results;
  std::vector<int64_t> immediates;
  std::vector<int64_t> coordinates;
  EmitOptions options;
  /// Puts the same in the place of what a host and a device may leave as they like, if there is
  /// such.
  std::function<void(Outcome &)> settle = {};
};

/// A context that has all that kernels and their lowering need.
std::unique_ptr<mlir::MLIRContext> makeContext();
/// The module of `text` after the Lower phase, or null.
mlir::OwningOpRef<mlir::ModuleOp> lower(mlir::MLIRContext &context, const std::string &text,
                                        bool devices = false);

/// A test for "f64" and for "f32".
class KernelTest : public testing::TestWithParam<std::string> {
protected:
  /// Compiles to an object by the Lower and Emit phases, loads and runs it, and does the same with
  /// what a device would run, whose blocks are emulated (BlockEmulator.h). The test fails if a
  /// kernel touches what is beside its memory (GuardedMemory.h), if its result depends on what
  /// results held before, on what memory of a block or a module held (ModuleMemory.h), or on the
  /// order of threads and blocks, and if the device's differs from the host's by more than
  /// rounding.
  Outcome run(const KernelCall &call);

  bool isF64() const { return GetParam() == "f64"; }
  /// Fails unless all elements agree to 1e-12 (f64) or 2e-6 (f32), times `slack`, of the greatest.
  void expectClose(const Array &actual, const Array &expected, double slack = 1);
  /// The value as the tested float type holds it.
  double rounded(double value) const {
    return isF64() ? value : static_cast<double>(static_cast<float>(value));
  }
};

#define WEFT_INSTANTIATE_FOR_FLOATS(Test)                                                          \
  INSTANTIATE_TEST_SUITE_P(Floats, Test, testing::Values("f64", "f32"),                            \
                           [](const auto &info) { return info.param; })

} // namespace weft::test

#endif // WEFT_UNITTESTS_LOWER_KERNELRUNNER_H
