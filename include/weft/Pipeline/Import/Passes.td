//===- Passes.td - the passes that close Import ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_IMPORT_PASSES_TD
#define WEFT_PIPELINE_IMPORT_PASSES_TD

include "mlir/Pass/PassBase.td"

def VerifyImportPass : Pass<"verify-import", "::mlir::ModuleOp"> {
  let summary = "checks the conditions that the phases after Import rely on";
  let description = [{
    Reads only. After Import, also of a module that was written by hand:

    - there are the inputs `seed` and `step_number`, either `tokens` and `targets` or `images` and
      `labels`, and exactly one optimizer;
    - `@loss()` has no arguments, returns one floating-point number, and assigns to statistics only;
    - `@init()` has no arguments and no results, and assigns to every parameter and statistic
      exactly once;
    - `@evaluate()`, if there is one, has no arguments and no results, and assigns to no variable;
    - the first argument of every private function is an index: the number of the layer, or of the
      part of a sequence;
    - no tensor has a sharding yet.

    ```mlir
    weft.variable parameter @head.weight ["vocab", "hidden"] decay : tensor<256x128xf32>
    // error: verify-import: parameter 'head.weight' is assigned 0 times in @init, expected once
    ```
  }];
}

#endif // WEFT_PIPELINE_IMPORT_PASSES_TD
