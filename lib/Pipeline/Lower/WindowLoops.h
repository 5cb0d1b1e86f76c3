//===- WindowLoops.h - loops over windows on images ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The innermost loop has no conditions for windows that reach out of the image: loops run only over
// the places inside.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_LOWER_WINDOWLOOPS_H
#define WEFT_LIB_PIPELINE_LOWER_WINDOWLOOPS_H

#include "weft/Dialect/Weft/IR/Windows.h"
#include "weft/Pipeline/Lower/Code.h"

namespace weft::lower {

/// Windows over images, with the numbers of places of inputs and outputs.
class WindowLoops {
public:
  WindowLoops(Code &code, llvm::ArrayRef<Window> windows, llvm::ArrayRef<int64_t> inputs,
              llvm::ArrayRef<int64_t> outputs)
      : code(code), windows(windows), inputs(inputs), outputs(outputs) {}

  using Places = llvm::ArrayRef<Num>;
  /// Runs `body(k…)` for all places of the window.
  void overWindow(llvm::function_ref<void(Places)> body);
  /// Runs `body(outputs, inputs)` for all outputs whose place `k` in the window is inside of the
  /// image, the last dimension innermost.
  void overOutputs(Places k, llvm::function_ref<void(Places, Places)> body);
  /// Returns the sum over the places of `overOutputs`, starting from `start`; additions of the
  /// innermost loop may be reordered.
  Num sumOverOutputs(Places k, Num start, llvm::function_ref<Num(Places, Places)> term);
  /// Carries values over all places of the window of output `p` inside of the image, in row-major
  /// order.
  Nums carryWindow(Places p, llvm::ArrayRef<Num> start,
                   llvm::function_ref<Nums(Places, llvm::ArrayRef<Num>)> body);

  /// Returns the first place that `carryWindow` visits.
  Nums firstPlace(Places p);

private:
  struct Range {
    Num from, to;
  };
  /// Returns the outputs in dimension `dim` whose place `k` of the window is inside; and the places
  /// of the window of output `p` that are inside.
  Range outputsInside(size_t dim, Num k);
  Range windowInside(size_t dim, Num p);
  /// The first returns the least i of 0, 1, … `limit` with i * step >= distance, or `limit`; the
  /// second returns how many of 0, 1, … `limit` - 1 have i * step <= distance.
  Num leastReaching(Num distance, int64_t step, int64_t limit);
  Num countUpTo(Num distance, int64_t step, int64_t limit);
  Num inputAt(size_t dim, Num p, Num k);

  Code &code;
  llvm::ArrayRef<Window> windows;
  llvm::ArrayRef<int64_t> inputs, outputs;
};

} // namespace weft::lower

#endif // WEFT_LIB_PIPELINE_LOWER_WINDOWLOOPS_H
