//===- ModuleMemory.cpp - memory in modules of kernels for devices --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModuleMemory.h"

#include "BlockEmulator.h"

#include <cstring>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace weft::test {

namespace {

using namespace mlir;

/// The address space of what threads of a block share.
constexpr unsigned kSharedMemory = 3;
/// Of what is loaded as a vector.
constexpr size_t kVectorAlignment = 16;

/// From its start to the guard behind it.
size_t roundUp(const ModuleMemory &memory) { return llvm::alignTo(memory.bytes, kVectorAlignment); }

/// Its offset from the guard before it.
size_t startOf(const ModuleMemory &memory) {
  return kGuardBytes + roundToPages(memory.bytes) - roundUp(memory);
}

ModuleMemory describe(LLVM::GlobalOp global) {
  size_t count = 1;
  Type type = global.getGlobalType();
  while (auto array = dyn_cast<LLVM::LLVMArrayType>(type)) {
    count *= array.getNumElements();
    type = array.getElementType();
  }
  size_t each = llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
  return {global.getSymName().str(), count * each, each, global.getAddrSpace() == kSharedMemory,
          type.isInteger()};
}

/// Memory with guards in the place of `global`, under its name for all to see, and who asks for it
/// gets what is between them.
void addGuards(LLVM::GlobalOp global, const ModuleMemory &memory) {
  OpBuilder builder(global);
  auto type =
      LLVM::LLVMArrayType::get(builder.getI8Type(), 2 * kGuardBytes + roundToPages(memory.bytes));
  auto guarded = LLVM::GlobalOp::create(builder, global.getLoc(), type, /*isConstant=*/false,
                                        LLVM::Linkage::External, memory.name, Attribute(),
                                        roundToPages(1), global.getAddrSpace());
  builder.createBlock(&guarded.getInitializerRegion());
  Value zero = LLVM::ZeroOp::create(builder, global.getLoc(), type);
  LLVM::ReturnOp::create(builder, global.getLoc(), zero);
  global.erase();
}

void moveBehindGuard(LLVM::AddressOfOp address, size_t start) {
  OpBuilder builder(address);
  builder.setInsertionPointAfter(address);
  auto moved = LLVM::GEPOp::create(builder, address.getLoc(), address.getType(),
                                   builder.getI8Type(), address, {LLVM::GEPArg(int32_t(start))});
  address.getResult().replaceAllUsesExcept(moved, moved);
}

/// Tells before each access of shared memory what it touches.
void announceAccesses(ModuleOp devices) {
  OpBuilder builder = OpBuilder::atBlockBegin(devices.getBody());
  Type i64 = builder.getI64Type();
  auto pointer = LLVM::LLVMPointerType::get(devices.getContext(), kSharedMemory);
  auto none = LLVM::LLVMVoidType::get(devices.getContext());
  auto touch = LLVM::LLVMFuncOp::create(builder, devices.getLoc(), "weft_test_touch",
                                        LLVM::LLVMFunctionType::get(none, {pointer, i64, i64}));
  auto announce = [&](Operation *op, Value address, Type type, bool isWrite) {
    if (address.getType() != pointer) {
      return;
    }
    builder.setInsertionPoint(op);
    auto constant = [&](int64_t value) -> Value {
      return LLVM::ConstantOp::create(builder, op->getLoc(), i64, value);
    };
    int64_t bytes = int64_t(DataLayout::closest(op).getTypeSize(type).getFixedValue());
    LLVM::CallOp::create(builder, op->getLoc(), touch,
                         ValueRange{address, constant(bytes), constant(isWrite)});
  };
  devices.walk([&](Operation *op) {
    if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
      announce(op, load.getAddr(), load.getType(), false);
    } else if (auto store = dyn_cast<LLVM::StoreOp>(op)) {
      announce(op, store.getAddr(), store.getValue().getType(), true);
    }
  });
}

} // namespace

std::vector<ModuleMemory> guardMemory(ModuleOp devices) {
  std::vector<ModuleMemory> parts;
  std::vector<LLVM::GlobalOp> globals(devices.getOps<LLVM::GlobalOp>().begin(),
                                      devices.getOps<LLVM::GlobalOp>().end());
  for (LLVM::GlobalOp global : globals) {
    if (global.getAddrSpace() != 0) {
      parts.push_back(describe(global));
      addGuards(global, parts.back());
    }
  }
  devices.walk([&](LLVM::AddressOfOp address) {
    for (const ModuleMemory &part : parts) {
      if (address.getGlobalName() == part.name) {
        moveBehindGuard(address, startOf(part));
      }
    }
  });
  for (auto kernel : devices.getOps<LLVM::LLVMFuncOp>()) {
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
      kernel.removeArgAttr(i, LLVM::LLVMDialect::getAlignAttrName());
    }
  }
  announceAccesses(devices);
  return parts;
}

GuardedModule::GuardedModule(void *library, std::vector<ModuleMemory> given)
    : parts(std::move(given)) {
  for (const ModuleMemory &part : parts) {
    auto *guarded = static_cast<char *>(dlsym(library, part.name.c_str()));
    char *start = guarded + startOf(part);
    starts.push_back(start);
    closeGuard(part.name, guarded, start);
    closeGuard(part.name, start + roundUp(part), start);
    if (part.isShared) {
      watchShared(start, part.bytes, part.elementBytes);
    }
  }
}

GuardedModule::~GuardedModule() {
  forgetShared();
  for (size_t i = 0; i < parts.size(); ++i) {
    dropGuard(starts[i] - startOf(parts[i]));
    dropGuard(starts[i] + roundUp(parts[i]));
  }
}

void GuardedModule::fill(const Fill &with) {
  filled = with;
  for (size_t i = 0; i < parts.size(); ++i) {
    std::memset(starts[i] - startOf(parts[i]) + kGuardBytes, fillOf(parts[i]),
                roundToPages(parts[i].bytes));
  }
}

void GuardedModule::fillShared() const {
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].isShared) {
      std::memset(starts[i], fillOf(parts[i]), parts[i].bytes);
    }
  }
}

void GuardedModule::expectWithin() const {
  for (size_t i = 0; i < parts.size(); ++i) {
    const char *start = starts[i], *pages = start - startOf(parts[i]) + kGuardBytes;
    const char *end = start + roundUp(parts[i]);
    expectFilled(parts[i].name, pages, start, start, fillOf(parts[i]));
    expectFilled(parts[i].name, start + parts[i].bytes, end, start, fillOf(parts[i]));
  }
}

void GuardedModule::expectWatched() const {
  bool hasShared = llvm::any_of(parts, [](const auto &part) { return part.isShared; });
  EXPECT_TRUE(!hasShared || wasSharedTouched()) << "nobody is seen to touch shared memory";
}

} // namespace weft::test
