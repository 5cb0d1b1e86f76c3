//===- DeviceBlocks.cpp - cooperation of the threads of a block -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceParts.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace weft {

using namespace llvm;

/// Replaces each call of `name` by the instructions that `make` builds.
static void replaceCalls(llvm::Module &module, StringRef name,
                         function_ref<Value *(IRBuilder<> &, CallInst &)> make) {
  Function *function = module.getFunction(name);
  if (!function) {
    return;
  }
  for (User *user : make_early_inc_range(function->users())) {
    auto *call = cast<CallInst>(user);
    IRBuilder<> builder(call);
    call->replaceAllUsesWith(make(builder, *call));
    call->eraseFromParent();
  }
  function->eraseFromParent();
}

void linkBlocks(llvm::Module &module) {
  replaceCalls(module, "weft_device_thread", [](IRBuilder<> &builder, CallInst &call) {
    Value *number = builder.CreateIntrinsic(Intrinsic::nvvm_read_ptx_sreg_tid_x, {});
    return builder.CreateZExt(number, call.getType());
  });
  replaceCalls(module, "weft_device_barrier", [](IRBuilder<> &builder, CallInst &) {
    return builder.CreateIntrinsic(Intrinsic::nvvm_barrier_cta_sync_aligned_all,
                                   {builder.getInt32(0)});
  });
  // All 32 threads take part, and each gets the value of one of them.
  replaceCalls(module, "weft_device_shuffle", [](IRBuilder<> &builder, CallInst &call) {
    return builder.CreateIntrinsic(Intrinsic::nvvm_shfl_sync_bfly_i32,
                                   {builder.getInt32(~0u), call.getArgOperand(0),
                                    call.getArgOperand(1), builder.getInt32(31)});
  });
  replaceCalls(module, "weft_device_round", [](IRBuilder<> &builder, CallInst &call) {
    Value *rounded = builder.CreateFPTrunc(call.getArgOperand(0), builder.getBFloatTy());
    return builder.CreateBitCast(rounded, builder.getInt16Ty());
  });
  // Results below the least normal number are 0: without that the instruction takes three more.
  replaceCalls(module, "weft_device_exp2", [](IRBuilder<> &builder, CallInst &call) {
    return builder.CreateIntrinsic(Intrinsic::nvvm_ex2_approx_ftz, {call.getType()},
                                   {call.getArgOperand(0)});
  });
  // The threads of a warp wait for each other, and then see each other's writes.
  replaceCalls(module, "weft_device_warp_barrier", [](IRBuilder<> &builder, CallInst &) {
    return builder.CreateIntrinsic(Intrinsic::nvvm_bar_warp_sync, {builder.getInt32(~0u)});
  });
}

} // namespace weft
