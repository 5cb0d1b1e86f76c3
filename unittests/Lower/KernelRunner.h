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

/// A tensor in tests: row-major, each element a double, which holds elements of any type. `Float`
/// is float32 or float64, by the test's parameter. Elements of other float types are rounded when
/// written.
struct Array {
  std::vector<int64_t> shape;
  std::vector<double> data;
  Kind kind = Kind::Float;

  explicit Array(std::vector<int64_t> shape, Kind kind = Kind::Float);
  int64_t size() const { return static_cast<int64_t>(data.size()); }
  /// Returns the row-major position.
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

/// A kernel and its operands. `text` is a module with a kernel @kernel, in which `$f` stands for
/// the float type.
struct KernelCall {
  std::string text;
  std::vector<Array> operands;
  /// Shapes of the results that are not tied.
  std::vector<Array> results;
  std::vector<int64_t> immediates;
  std::vector<int64_t> coordinates;
  EmitOptions options;
  /// Overwrites unspecified elements of results, which may differ between host and device, with the
  /// same values. Optional.
  std::function<void(Outcome &)> settle = {};
};

/// Returns a context with the dialects and interfaces that kernels and their lowering need.
std::unique_ptr<mlir::MLIRContext> makeContext();
/// Returns the module of `text` after the Lower phase, or null.
mlir::OwningOpRef<mlir::ModuleOp> lower(mlir::MLIRContext &context, const std::string &text,
                                        bool devices = false);

/// A test for "f64" and for "f32".
class KernelTest : public testing::TestWithParam<std::string> {
protected:
  /// Compiles the kernel to an object by the Lower and Emit phases, loads and runs it, and does the
  /// same with the device's code on emulated blocks (BlockEmulator.h). Fails the test if a kernel
  /// accesses memory beside its own (GuardedMemory.h), if its results depend on uninitialized
  /// memory of results, of a block or of a module (ModuleMemory.h), or on the order of threads and
  /// blocks, or if the device's results differ from the host's by more than rounding.
  Outcome run(const KernelCall &call);

  bool isF64() const { return GetParam() == "f64"; }
  /// Fails unless all elements agree to 1e-12 (f64) or 2e-6 (f32), times `slack`, of the greatest.
  void expectClose(const Array &actual, const Array &expected, double slack = 1);
  /// Returns the value rounded to the tested float type.
  double rounded(double value) const {
    return isF64() ? value : static_cast<double>(static_cast<float>(value));
  }
};

#define WEFT_INSTANTIATE_FOR_FLOATS(Test)                                                          \
  INSTANTIATE_TEST_SUITE_P(Floats, Test, testing::Values("f64", "f32"),                            \
                           [](const auto &info) { return info.param; })

} // namespace weft::test

#endif // WEFT_UNITTESTS_LOWER_KERNELRUNNER_H
