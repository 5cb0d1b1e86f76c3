//===- WeftOptimizerOp.td - the optimizer and its numbers ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_OPTIMIZER_OP_TD
#define WEFT_OPTIMIZER_OP_TD

include "weft/Dialect/Weft/IR/WeftOpBase.td"

def Weft_OptimizerKind : Weft_Enum<"OptimizerKind", "which optimizer", [
  I32EnumAttrCase<"AdamW", 0, "adamw">,
  I32EnumAttrCase<"SGD", 1, "sgd">,
  I32EnumAttrCase<"Muon", 2, "muon">,
]>;
def Weft_OptimizerKindAttr : EnumAttr<Weft_Dialect, Weft_OptimizerKind, "optimizer_kind">;

/// The factor on Muon's orthogonalized update of a matrix with r rows and c columns. Spectral:
/// sqrt(max(1, r / c)). RMS: 0.2 sqrt(max(r, c)), so that elements of updates are about as large as
/// AdamW's.
def Weft_MuonScale : Weft_Enum<"MuonScale", "how large Muon's updates are", [
  I32EnumAttrCase<"Spectral", 0, "spectral">,
  I32EnumAttrCase<"RMS", 1, "rms">,
]>;
def Weft_MuonScaleAttr : EnumAttr<Weft_Dialect, Weft_MuonScale, "muon_scale">;

def Weft_OptimizerOp : Weft_Op<"optimizer"> {
  let summary = "the optimizer and its hyperparameters";
  let description = [{
    A module has at most one; Differentiate replaces it by update functions. The formulas are those
    of `docs/Numerics.md`. `clip` is the global gradient norm to clip to, 0 for none. Muon updates
    parameters that are matrices by `momentum`, `nesterov`, `iterations` and `scale`, and the others
    like AdamW, at `other_rate` times the learning rate; with `iterates_in_bf16` its matmuls are
    those of bf16. With `gradients_in_bf16` each gradient is rounded to bf16 before anything else.
    `loss_scale` is the factor on the loss in the first step, 0 for no scaling. After
    `scale_interval` steps in a row without a skip (0: never) it is multiplied by `scale_factor`; a
    skipped step divides it by `scale_factor`.

    **Constraints:**
    - optimizer_c1: rates and decays are not negative, beta1, beta2 and momentum lie in [0, 1).
    - optimizer_c2: warm-up and total number of steps are not negative.
    - optimizer_c3: Muon has 1 to 100 iterations.
    - optimizer_c4: a loss scale is 0, or 1 to 2^24; its interval is not negative, its factor at
      least 1.
  }];
  let arguments = (ins Weft_OptimizerKindAttr:$kind, F64Attr:$learning_rate,
      DefaultValuedAttr<F64Attr, "0.9">:$beta1, DefaultValuedAttr<F64Attr, "0.999">:$beta2,
      DefaultValuedAttr<F64Attr, "1e-8">:$epsilon, DefaultValuedAttr<F64Attr, "0.0">:$momentum,
      DefaultValuedAttr<F64Attr, "0.0">:$weight_decay, DefaultValuedAttr<F64Attr, "0.0">:$clip,
      UnitAttr:$nesterov, DefaultValuedAttr<I64Attr, "5">:$iterations,
      DefaultValuedAttr<Weft_MuonScaleAttr, "MuonScale::RMS">:$scale,
      DefaultValuedAttr<F64Attr, "1.0">:$other_rate,
      Weft_DecayKindAttr:$decay, I64Attr:$warmup_steps, I64Attr:$total_steps,
      F64Attr:$final_fraction, DefaultValuedAttr<F64Attr, "0.0">:$loss_scale,
      DefaultValuedAttr<I64Attr, "0">:$scale_interval,
      DefaultValuedAttr<F64Attr, "2.0">:$scale_factor, UnitAttr:$iterates_in_bf16,
      UnitAttr:$gradients_in_bf16);
  let assemblyFormat = [{
    `` $kind `learning_rate` $learning_rate `decay` `` $decay `warmup` $warmup_steps
    `steps` $total_steps `final` $final_fraction attr-dict
  }];
  let hasVerifier = 1;
}

#endif // WEFT_OPTIMIZER_OP_TD
