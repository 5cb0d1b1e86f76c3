//===- Passes.td - the proof of a program's meaning ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_MEANING_PASSES_TD
#define WEFT_MEANING_PASSES_TD

include "mlir/Pass/PassBase.td"

def ProveMeaningPass : Pass<"prove-meaning", "::mlir::ModuleOp"> {
  let summary = "proves that the ranks compute what the model says";
  let description = [{
    Compares a module after Partition with the module before Plan, which `whole` names. The pass
    changes nothing; it fails at the first op that computes something else. `weft compile` runs the
    same proof in every compilation. `docs/Meaning.md` says how it works and what it assumes.

    Given the whole program

    ```mlir
    %0 = weft.read @x : tensor<4x8xf64>
    %1 = weft.contract "bh->h"(%0) : (tensor<4x8xf64>) -> tensor<8xf64>
    weft.observe "sum", %1 : tensor<8xf64>
    ```

    whose ranks each have some rows of @x, this fails, as ranks observe parts of a sum:

    ```mlir
    %0 = weft.read @x : tensor<2x8xf64>
    %1 = weft.contract "bh->h"(%0) : (tensor<2x8xf64>) -> tensor<8xf64>
    weft.observe "sum", %1 layout tensor<8xf64, …[{} ]> : tensor<8xf64>
    ```

    and with an all-reduce of the sum between the two last ops it succeeds.
  }];
  let options = [
    Option<"whole", "whole", "std::string", "",
           "file of the module before Plan">,
  ];
}

#endif // WEFT_MEANING_PASSES_TD
