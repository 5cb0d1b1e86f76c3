//===- KernelTable.cpp - the tables in an executable ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelTable.h"

#include "llvm/IR/Constants.h"

namespace weft {

using namespace llvm;

namespace {

/// The section of images in an executable, by which utils/gpu/inspect finds them.
constexpr StringRef kImagesSection = ".weft_images";

/// `weft::rt::KernelCode`.
StructType *codeType(LLVMContext &context) {
  Type *pointer = PointerType::getUnqual(context);
  return StructType::get(context, {pointer, Type::getInt64Ty(context), pointer, pointer});
}

/// Adds a private constant.
Constant *makeHidden(Module &module, Constant *value) {
  return new GlobalVariable(module, value->getType(), /*isConstant=*/true,
                            GlobalValue::InternalLinkage, value);
}

Constant *makeNumbers(Module &module, ArrayRef<int64_t> numbers) {
  SmallVector<uint64_t> values(numbers);
  return makeHidden(module, ConstantDataArray::get(module.getContext(), values));
}

/// A `weft::rt::DevicePhases`.
Constant *makePhases(Module &module, ArrayRef<int64_t> iterations, ArrayRef<int64_t> threads) {
  SmallVector<int64_t> all(threads);
  all.resize(iterations.size());
  Type *number = Type::getInt64Ty(module.getContext());
  Constant *members[] = {ConstantInt::get(number, iterations.size()),
                         makeNumbers(module, iterations), makeNumbers(module, all)};
  return makeHidden(module, ConstantStruct::getAnon(members));
}

/// Declares the wrapper of another object file, or returns the declaration for an earlier kernel
/// with the same code.
Constant *declareWrapper(Module &module, StringRef name) {
  FunctionCallee callee = module.getOrInsertFunction(name, wrapperType(module.getContext()));
  auto *wrapper = cast<Function>(callee.getCallee());
  wrapper->setVisibility(GlobalValue::HiddenVisibility);
  return wrapper;
}

Constant *makeCode(Module &module, const KernelEntry &entry) {
  LLVMContext &context = module.getContext();
  Constant *device = entry.deviceIterations.empty()
                         ? ConstantPointerNull::get(PointerType::getUnqual(context))
                         : makePhases(module, entry.deviceIterations, entry.deviceThreads);
  return ConstantStruct::get(codeType(context),
                             {declareWrapper(module, entry.wrapper),
                              ConstantInt::get(Type::getInt64Ty(context), entry.iterations.size()),
                              makeNumbers(module, entry.iterations), device});
}

Error checkInstructions(const std::vector<rt::Instruction> &instructions,
                        const rt::Program &program, ArrayRef<KernelEntry> entries) {
  for (const rt::Instruction &instruction : instructions) {
    if (instruction.opcode != rt::Opcode::Kernel) {
      continue;
    }
    const rt::Kernel &kernel = program.kernels[instruction.target];
    KernelOperands got{kernel.operandCount(instruction), instruction.immediates.size()};
    const KernelOperands &want = entries[instruction.target].operands;
    if (!(got == want)) {
      return createStringError("kernel '" + program.kernels[instruction.target].name + "' takes " +
                               Twine(want.buffers) + " buffers and " + Twine(want.immediates) +
                               " immediates, an instruction gives it " + Twine(got.buffers) +
                               " and " + Twine(got.immediates));
    }
  }
  return Error::success();
}

void addGlobal(Module &module, StringRef name, Constant *value) {
  auto *global = new GlobalVariable(module, value->getType(), /*isConstant=*/true,
                                    GlobalValue::ExternalLinkage, value, name);
  global->setAlignment(Align(64));
}

/// A `weft::rt::DeviceImage`.
Constant *makeImage(Module &module, unsigned architecture, bool isPtx, StringRef bytes) {
  LLVMContext &context = module.getContext();
  Constant *data = ConstantDataArray::getString(context, bytes, /*AddNull=*/isPtx);
  auto *place = new GlobalVariable(module, data->getType(), /*isConstant=*/true,
                                   GlobalValue::InternalLinkage, data);
  place->setAlignment(Align(64));
  place->setSection(kImagesSection);
  Constant *members[] = {ConstantInt::get(Type::getInt32Ty(context), architecture),
                         ConstantInt::get(Type::getInt8Ty(context), isPtx), place,
                         ConstantInt::get(Type::getInt64Ty(context), bytes.size() + isPtx)};
  return ConstantStruct::getAnon(members);
}

} // namespace

void addImages(Module &module, const DeviceImages &images) {
  SmallVector<Constant *> all;
  for (const Cubin &cubin : images.cubins) {
    all.push_back(makeImage(module, cubin.architecture, /*isPtx=*/false, cubin.bytes));
  }
  all.push_back(makeImage(module, kPtxArchitecture, /*isPtx=*/true, images.ptx));
  auto *type = ArrayType::get(all.front()->getType(), all.size());
  addGlobal(module, "weft_images", ConstantArray::get(type, all));
  addGlobal(module, "weft_image_count",
            ConstantInt::get(Type::getInt64Ty(module.getContext()), all.size()));
}

Error addKernelTable(Module &module, ArrayRef<rt::Program> programs,
                     ArrayRef<KernelEntry> entries) {
  LLVMContext &context = module.getContext();
  SmallVector<Constant *> codes;
  for (const KernelEntry &entry : entries) {
    codes.push_back(makeCode(module, entry));
  }
  for (const rt::Program &program : programs) {
    for (const rt::Body &body : program.bodies) {
      if (Error error = checkInstructions(body.instructions, program, entries)) {
        return error;
      }
    }
  }
  auto *tableType = ArrayType::get(codeType(context), codes.size());
  addGlobal(module, "weft_kernels", ConstantArray::get(tableType, codes));
  std::vector<char> bytes = rt::serialize({programs.data(), programs.size()});
  addGlobal(module, "weft_program",
            ConstantDataArray::getString(context, StringRef(bytes.data(), bytes.size()),
                                         /*AddNull=*/false));
  addGlobal(module, "weft_program_size", ConstantInt::get(Type::getInt64Ty(context), bytes.size()));
  return Error::success();
}

} // namespace weft
