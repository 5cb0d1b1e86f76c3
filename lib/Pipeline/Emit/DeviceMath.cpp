//===- DeviceMath.cpp - mathematical functions for devices ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a host the functions come from the C library, and LLVM turns some of its intrinsics into calls
// of them. On a device they come from the toolkit, under the same names after `__nv_`.
//
//===----------------------------------------------------------------------===//

#include "DeviceParts.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Transforms/IPO/Internalize.h"

namespace weft {

using namespace llvm;

/// Returns the C library's name, for doubles, of an intrinsic that devices have no instruction for;
/// empty for other intrinsics.
static StringRef libraryNameOf(Intrinsic::ID intrinsic) {
  switch (intrinsic) {
  case Intrinsic::sin:
    return "sin";
  case Intrinsic::cos:
    return "cos";
  case Intrinsic::tan:
    return "tan";
  case Intrinsic::tanh:
    return "tanh";
  case Intrinsic::exp:
    return "exp";
  case Intrinsic::exp2:
    return "exp2";
  case Intrinsic::log:
    return "log";
  case Intrinsic::log2:
    return "log2";
  case Intrinsic::log10:
    return "log10";
  case Intrinsic::pow:
    return "pow";
  default:
    return "";
  }
}

/// Returns the library's name of a function that `module` declares; empty if it has none.
static std::string libraryNameOf(const Function &function) {
  if (!function.isIntrinsic()) {
    return function.getName().str();
  }
  std::string name = libraryNameOf(function.getIntrinsicID()).str();
  return name.empty() ? "" : name + (function.getReturnType()->isFloatTy() ? "f" : "");
}

Error linkMath(llvm::Module &module, StringRef libdevice) {
  SMDiagnostic problem;
  std::unique_ptr<llvm::Module> library = parseIRFile(libdevice, problem, module.getContext());
  if (!library) {
    return createStringError("cannot read '" + libdevice + "': " + problem.getMessage());
  }
  library->setTargetTriple(module.getTargetTriple());
  library->setDataLayout(module.getDataLayout());
  SmallVector<std::pair<Function *, std::string>> called;
  for (Function &function : module) {
    std::string name = function.isDeclaration() ? libraryNameOf(function) : "";
    if (!name.empty()) {
      called.emplace_back(&function, std::move(name));
    }
  }
  for (auto &[function, name] : called) {
    const Function *found = library->getFunction("__nv_" + name);
    if (!found || found->getFunctionType() != function->getFunctionType()) {
      return createStringError("there is no '" + function->getName() + "' on devices");
    }
    function->replaceAllUsesWith(
        module.getOrInsertFunction(found->getName(), function->getFunctionType()).getCallee());
    function->eraseFromParent();
  }
  auto internalize = [](llvm::Module &linked, const StringSet<> &added) {
    internalizeModule(linked, [&](const GlobalValue &value) {
      return !value.hasName() || !added.contains(value.getName());
    });
  };
  bool failed =
      Linker::linkModules(module, std::move(library), Linker::LinkOnlyNeeded, internalize);
  return failed ? createStringError("cannot link '" + libdevice + "'") : Error::success();
}

} // namespace weft
