//===- ShareKernels.cpp - one table of kernels for all stages --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Schedule/ShareKernels.h"

#include "EqualKernels.h"
#include "OpKinds.h"
#include "weft/Dialect/Weft/IR/StageMarks.h"
#include "weft/Pipeline/Schedule/Passes.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_SHAREKERNELSPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

/// Names the kernels of one module after the other.
class SharedNames {
public:
  void rename(ModuleOp module);

private:
  StringAttr choose(func::FuncOp kernel);

  EqualKernels kernels;
  llvm::StringSet<> taken;
};

/// Returns the kernel's own name, or if it is taken the next one that is not: "kernel_norm_2" for
/// "kernel_norm_0".
StringAttr SharedNames::choose(func::FuncOp kernel) {
  StringRef own = kernel.getSymName(), stem = own.rtrim("0123456789");
  std::string name = own.str();
  for (unsigned number = 0; !taken.insert(name).second; ++number) {
    name = (stem + Twine(number)).str();
  }
  return StringAttr::get(kernel.getContext(), name);
}

void SharedNames::rename(ModuleOp module) {
  llvm::DenseMap<StringAttr, StringAttr> names;
  llvm::DenseSet<StringAttr> own;
  for (auto kernel : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
    if (!isKernel(kernel)) {
      continue;
    }
    func::FuncOp first = kernels.findOrInsert(kernel);
    StringAttr name = first == kernel ? choose(kernel) : first.getSymNameAttr();
    names[kernel.getSymNameAttr()] = name;
    if (own.insert(name).second) {
      kernel.setSymNameAttr(name);
    } else {
      kernel->erase();
    }
  }
  module.walk([&](LaunchOp launch) {
    launch.setKernelAttr(FlatSymbolRefAttr::get(names.lookup(launch.getKernelAttr().getAttr())));
  });
}

struct ShareKernelsPass : impl::ShareKernelsPassBase<ShareKernelsPass> {
  void runOnOperation() override { shareKernels(stageModulesOf(getOperation())); }
};

} // namespace

void shareKernels(ArrayRef<ModuleOp> stages) {
  SharedNames names;
  for (ModuleOp stage : stages) {
    names.rename(stage);
  }
}

LogicalResult verifySharedKernels(ArrayRef<ModuleOp> stages) {
  llvm::StringMap<func::FuncOp> kernels;
  for (ModuleOp stage : stages) {
    for (auto kernel : stage.getOps<func::FuncOp>()) {
      if (isKernel(kernel) &&
          !areEqual(kernels.try_emplace(kernel.getSymName(), kernel).first->second, kernel)) {
        return emitError(kernel.getLoc())
               << "kernel '" << kernel.getSymName()
               << "' differs from that of an earlier stage; run share-kernels first";
      }
    }
  }
  return success();
}

void shareKernelTable(rt::Programs &programs) {
  std::vector<rt::Kernel> all;
  llvm::StringMap<uint32_t> numbers;
  for (rt::Program &program : programs) {
    std::vector<uint32_t> own;
    for (rt::Kernel &kernel : program.kernels) {
      auto [it, isNew] = numbers.try_emplace(kernel.name, static_cast<uint32_t>(all.size()));
      own.push_back(it->second);
      if (isNew) {
        all.push_back(std::move(kernel));
      }
    }
    for (rt::Body &body : program.bodies) {
      for (rt::Instruction &instruction : body.instructions) {
        if (instruction.opcode == rt::Opcode::Kernel) {
          instruction.target = own[instruction.target];
        }
      }
    }
  }
  for (rt::Program &program : programs) {
    program.kernels = all;
  }
}

} // namespace weft
