//===- DeviceEntries.cpp - entry points of kernels on devices -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceParts.h"

#include "weft-rt/DeviceImage.h"

#include "llvm/IR/ConstantRange.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace weft {

using namespace llvm;

/// Returns the numbers of the kernel's arguments in the order of an entry's: the coordinates and
/// buffers, then immediates.
static SmallVector<unsigned> argumentsOf(Function &kernel) {
  SmallVector<unsigned> buffers, immediates;
  for (const Argument &argument : drop_end(kernel.args(), kPartArguments)) {
    (argument.getType()->isPointerTy() ? buffers : immediates).push_back(argument.getArgNo());
  }
  buffers.append(immediates);
  return buffers;
}

/// Declares the function of an entry.
static Function *declareEntry(Function &kernel, unsigned phase, int64_t threads) {
  SmallVector<Type *> types;
  SmallVector<AttributeSet> attributes;
  for (unsigned number : argumentsOf(kernel)) {
    types.push_back(kernel.getArg(number)->getType());
    attributes.push_back(kernel.getAttributes().getParamAttrs(number));
  }
  LLVMContext &context = kernel.getContext();
  auto *type = FunctionType::get(Type::getVoidTy(context), types, /*isVarArg=*/false);
  auto *entry = Function::Create(type, GlobalValue::ExternalLinkage,
                                 kernel.getName() + "_phase_" + Twine(phase), kernel.getParent());
  entry->setAttributes(AttributeList::get(context, {}, {}, attributes));
  entry->setCallingConv(CallingConv::PTX_Kernel);
  if (threads != 0) {
    entry->addFnAttr("nvvm.reqntid", std::to_string(threads));
    entry->addFnAttr(Attribute::Convergent);
  } else {
    entry->addFnAttr("nvvm.maxntid", std::to_string(rt::kBlockThreads));
  }
  // A multiprocessor has 65,536 registers: 128 for a thread.
  entry->addFnAttr("nvvm.minctasm", threads > rt::kBlockThreads ? "1" : "2");
  entry->setDoesNotThrow();
  return entry;
}

static Value *readNumber(IRBuilder<> &builder, Intrinsic::ID id) {
  return builder.CreateZExt(builder.CreateIntrinsic(id, {}), builder.getInt64Ty());
}

/// Returns the number of this thread among all blocks' threads, and their number.
static std::pair<Value *, Value *> threadOf(IRBuilder<> &builder) {
  Value *perBlock = readNumber(builder, Intrinsic::nvvm_read_ptx_sreg_ntid_x);
  Value *before =
      builder.CreateMul(readNumber(builder, Intrinsic::nvvm_read_ptx_sreg_ctaid_x), perBlock);
  return {builder.CreateAdd(before, readNumber(builder, Intrinsic::nvvm_read_ptx_sreg_tid_x)),
          builder.CreateMul(perBlock, readNumber(builder, Intrinsic::nvvm_read_ptx_sreg_nctaid_x))};
}

/// Returns the number of this block, and the number of blocks.
static std::pair<Value *, Value *> blockOf(IRBuilder<> &builder) {
  return {readNumber(builder, Intrinsic::nvvm_read_ptx_sreg_ctaid_x),
          readNumber(builder, Intrinsic::nvvm_read_ptx_sreg_nctaid_x)};
}

/// The most operands of a kernel for which loops over iterations keep a running address each: two
/// registers, where a thread has 128.
constexpr size_t kMostAddresses = 12;

/// Returns `number`, less than `count`, in a way that hides from LLVM how it comes to be.
static Value *hide(IRBuilder<> &builder, Value *number, uint64_t count) {
  auto *type = FunctionType::get(number->getType(), {number->getType()}, /*isVarArg=*/false);
  auto *move = InlineAsm::get(type, "mov.u64 $0, $1;", "=l,l", /*hasSideEffects=*/false);
  CallInst *hidden = builder.CreateCall(type, move, {number});
  hidden->addRangeRetAttr(ConstantRange(APInt(64, 0), APInt(64, std::max<uint64_t>(count, 1))));
  return hidden;
}

/// A thread, or a block if `threads` take an iteration together, runs the iteration of its own
/// number, then strides by the number of threads or blocks, so that neighbors access neighboring
/// memory.
static void addEntry(Function &kernel, unsigned phase, int64_t iterations, int64_t threads) {
  Function *entry = declareEntry(kernel, phase, threads);
  LLVMContext &context = kernel.getContext();
  auto *begin = BasicBlock::Create(context, "begin", entry);
  auto *loop = BasicBlock::Create(context, "loop", entry);
  auto *body = BasicBlock::Create(context, "body", entry);
  auto *end = BasicBlock::Create(context, "end", entry);
  IRBuilder<> builder(begin);
  auto [first, step] = threads != 0 ? blockOf(builder) : threadOf(builder);
  builder.CreateBr(loop);

  builder.SetInsertPoint(loop);
  PHINode *at = builder.CreatePHI(builder.getInt64Ty(), 2, "at");
  at->addIncoming(first, begin);
  builder.CreateCondBr(builder.CreateICmpULT(at, builder.getInt64(uint64_t(iterations))), body,
                       end);

  builder.SetInsertPoint(body);
  SmallVector<Value *> arguments(kernel.arg_size());
  for (auto [number, argument] :
       zip_equal(argumentsOf(kernel), make_pointer_range(entry->args()))) {
    arguments[number] = argument;
  }
  unsigned part = unsigned(kernel.arg_size()) - kPartArguments;
  Value *own = entry->arg_size() > kMostAddresses ? hide(builder, at, uint64_t(iterations)) : at;
  arguments[part] = builder.getInt64(phase);
  arguments[part + 1] = own;
  arguments[part + 2] = builder.CreateNUWAdd(own, builder.getInt64(1));
  builder.CreateCall(&kernel, arguments);
  at->addIncoming(builder.CreateNUWAdd(at, step), body);
  builder.CreateBr(loop);

  builder.SetInsertPoint(end);
  builder.CreateRetVoid();
}

void addEntries(llvm::Module &module, const KernelIterations &iterations,
                const KernelIterations &threads) {
  for (Function &function : make_early_inc_range(module)) {
    auto phases = iterations.find(function.getName());
    if (phases == iterations.end()) {
      continue;
    }
    function.setLinkage(GlobalValue::InternalLinkage);
    // The phase is constant in an entry, so the code of other phases is removed.
    function.addFnAttr(Attribute::AlwaysInline);
    auto shared = threads.find(function.getName());
    if (shared != threads.end()) {
      function.addFnAttr(Attribute::Convergent);
    }
    for (auto [phase, count] : enumerate(phases->second)) {
      addEntry(function, unsigned(phase), count,
               shared == threads.end() ? 0 : shared->second[phase]);
    }
  }
}

} // namespace weft
