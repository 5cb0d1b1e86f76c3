//===- KernelObject.cpp - machine code of one kernel ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelObject.h"

#include "CodeCache.h"
#include "CodeGeneration.h"

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Support/MemoryBuffer.h"

namespace weft {

using namespace llvm;
namespace LLVMIR = mlir::LLVM;

namespace {

/// The arguments between the coordinates and the part.
template <typename Range> auto operandsAmong(Range &&arguments) {
  return drop_end(drop_begin(arguments), kPartArguments);
}

/// Returns "kernel_norm" for "kernel_norm_12": numbers tell the kernels of one executable apart.
StringRef stemOf(StringRef name) {
  StringRef stem = name.rtrim("0123456789");
  return stem.size() < name.size() && stem.consume_back("_") ? stem : name;
}

/// Returns `kernel` and the symbols that it refers to, directly or indirectly.
SetVector<mlir::Operation *> referencedSymbols(mlir::Operation *kernel,
                                               const mlir::SymbolTable &symbols) {
  SetVector<mlir::Operation *> found;
  found.insert(kernel);
  for (size_t i = 0; i < found.size(); ++i) {
    std::optional<mlir::SymbolTable::UseRange> uses = mlir::SymbolTable::getSymbolUses(found[i]);
    if (!uses) {
      continue;
    }
    for (const mlir::SymbolTable::SymbolUse &use : *uses) {
      if (mlir::Operation *symbol = symbols.lookup(use.getSymbolRef().getRootReference())) {
        found.insert(symbol);
      }
    }
  }
  return found;
}

/// Makes a module of the kernel, named by its stem, and the symbols that it refers to.
mlir::OwningOpRef<mlir::ModuleOp> isolate(LLVMIR::LLVMFuncOp kernel,
                                          const mlir::SymbolTable &symbols) {
  auto all = mlir::cast<mlir::ModuleOp>(symbols.getOp());
  mlir::OwningOpRef<mlir::ModuleOp> alone =
      mlir::ModuleOp::create(mlir::UnknownLoc::get(kernel.getContext()));
  for (mlir::NamedAttribute attribute : all->getDiscardableAttrs()) {
    if (attribute.getNameDialect() && attribute.getNameDialect()->getNamespace() != "weft") {
      alone->getOperation()->setAttr(attribute.getName(), attribute.getValue());
    }
  }
  for (mlir::Operation *symbol : referencedSymbols(kernel, symbols)) {
    mlir::Operation *copy = symbol->clone();
    alone->push_back(copy);
    if (symbol == kernel) {
      mlir::SymbolTable::setSymbolName(copy, stemOf(kernel.getName()));
    }
  }
  return alone;
}

/// Makes kernels internal, as only their wrappers call them, but never inlines them: pointers known
/// to be distinct stay plain function arguments.
void prepareFunctions(Module &module, Sanitizer sanitize) {
  for (Function &function : module) {
    if (function.isDeclaration()) {
      continue;
    }
    function.setLinkage(GlobalValue::InternalLinkage);
    function.addFnAttr(Attribute::NoInline);
    function.setDoesNotThrow();
    if (sanitize == Sanitizer::Address) {
      function.addFnAttr(Attribute::SanitizeAddress);
    } else if (sanitize == Sanitizer::Thread) {
      function.addFnAttr(Attribute::SanitizeThread);
    }
  }
}

constexpr StringLiteral kWrapperName = "weft_run";

/// Adds a `weft::rt::KernelFunction` that calls `kernel`.
void addWrapper(Module &module, Function *kernel) {
  LLVMContext &context = module.getContext();
  auto *wrapper =
      Function::Create(wrapperType(context), GlobalValue::ExternalLinkage, kWrapperName, module);
  wrapper->setVisibility(GlobalValue::HiddenVisibility);
  wrapper->setDoesNotThrow();
  IRBuilder<> builder(BasicBlock::Create(context, "entry", wrapper));
  SmallVector<Value *> arguments = {wrapper->getArg(2)};
  unsigned buffers = 0, immediates = 0;
  for (const Argument *argument : operandsAmong(make_pointer_range(kernel->args()))) {
    bool isBuffer = argument->getType()->isPointerTy();
    unsigned index = isBuffer ? buffers++ : immediates++;
    Value *place = builder.CreateConstInBoundsGEP1_64(argument->getType(),
                                                      wrapper->getArg(isBuffer ? 0 : 1), index);
    arguments.push_back(builder.CreateLoad(argument->getType(), place));
  }
  for (unsigned i = 0; i < kPartArguments; ++i) {
    arguments.push_back(wrapper->getArg(i + 3));
  }
  builder.CreateCall(kernel, arguments);
  builder.CreateRetVoid();
}

} // namespace

KernelOperands operandsOf(LLVMIR::LLVMFuncOp kernel) {
  KernelOperands operands;
  for (mlir::Type type : operandsAmong(kernel.getArgumentTypes())) {
    ++(mlir::isa<LLVMIR::LLVMPointerType>(type) ? operands.buffers : operands.immediates);
  }
  return operands;
}

FunctionType *wrapperType(LLVMContext &context) {
  Type *pointer = PointerType::getUnqual(context), *number = Type::getInt64Ty(context);
  return FunctionType::get(Type::getVoidTy(context),
                           {pointer, pointer, pointer, number, number, number},
                           /*isVarArg=*/false);
}

Expected<KernelSource> makeSource(LLVMIR::LLVMFuncOp kernel, const mlir::SymbolTable &symbols,
                                  TargetMachine &machine, const HostTarget &target) {
  std::string stem = stemOf(kernel.getName()).str();
  mlir::OwningOpRef<mlir::ModuleOp> alone = isolate(kernel, symbols);
  LLVMContext context;
  Expected<std::unique_ptr<Module>> code = translate(*alone, "kernel", machine, context);
  if (!code) {
    return code.takeError();
  }
  prepareFunctions(**code, target.sanitize);
  addWrapper(**code, (*code)->getFunction(stem));
  KernelSource source;
  raw_string_ostream stream(source.bitcode);
  WriteBitcodeToFile(**code, stream);
  source.key = keyOf({target.triple.str(), target.cpu, target.features,
                      std::to_string(target.optLevel), nameOf(target.sanitize), source.bitcode});
  source.wrapper = (kWrapperName + "_" + stem + "_" + source.key).str();
  return source;
}

Expected<std::string> compileSource(const KernelSource &source, const HostTarget &target) {
  LLVMContext context;
  Expected<std::unique_ptr<Module>> code =
      parseBitcodeFile(MemoryBufferRef(source.bitcode, "kernel"), context);
  if (!code) {
    return code.takeError();
  }
  (*code)->getFunction(kWrapperName)->setName(source.wrapper);
  return compile(**code, target);
}

} // namespace weft
