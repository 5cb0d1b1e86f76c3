//===- WindowLoops.h - loops over windows on images ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A window that reaches out of its image has no condition in the innermost loop: the loops run
// only over what lies inside.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_LOWER_WINDOWLOOPS_H
#define WEFT_LIB_PIPELINE_LOWER_WINDOWLOOPS_H

#include "weft/Dialect/Weft/IR/Windows.h"
#include "weft/Pipeline/Lower/Code.h"

namespace weft::lower {

/// Windows over the places of images, with the numbers of places before and after.
class WindowLoops {
public:
  WindowLoops(Code &code, llvm::ArrayRef<Window> windows, llvm::ArrayRef<int64_t> inputs,
              llvm::ArrayRef<int64_t> outputs)
      : code(code), windows(windows), inputs(inputs), outputs(outputs) {}

  using Places = llvm::ArrayRef<Num>;
  /// Runs `body(k…)` for all places of the window.
  void overWindow(llvm::function_ref<void(Places)> body);
  /// Runs `body(outputs, inputs)` for all outputs whose place `k` in the window lies inside of the
  /// image, the last dimension innermost.
  void overOutputs(Places k, llvm::function_ref<void(Places, Places)> body);
  /// The sum over what `overOutputs` runs over, starting from `start`; additions of the innermost
  /// loop may be reordered.
  Num sumOverOutputs(Places k, Num start, llvm::function_ref<Num(Places, Places)> term);
  /// Carries values over all places inside of the image that output `p` sees, in row-major order.
  Nums carryWindow(Places p, llvm::ArrayRef<Num> start,
                   llvm::function_ref<Nums(Places, llvm::ArrayRef<Num>)> body);

  /// The first place that `carryWindow` comes to.
  Nums firstPlace(Places p);

private:
  struct Range {
    Num from, to;
  };
  /// Outputs in dimension `dim` that see an input at `k`, and places of the window at `p` that are
  /// inside.
  Range outputsInside(size_t dim, Num k);
  Range windowInside(size_t dim, Num p);
  /// The least of 0, 1, … `limit` with `step` times it at least `distance`; how many of 0, 1, …
  /// `limit` have `step` times them at most `distance`.
  Num leastReaching(Num distance, int64_t step, int64_t limit);
  Num countUpTo(Num distance, int64_t step, int64_t limit);
  Num inputAt(size_t dim, Num p, Num k);

  Code &code;
  llvm::ArrayRef<Window> windows;
  llvm::ArrayRef<int64_t> inputs, outputs;
};

} // namespace weft::lower

#endif // WEFT_LIB_PIPELINE_LOWER_WINDOWLOOPS_H
