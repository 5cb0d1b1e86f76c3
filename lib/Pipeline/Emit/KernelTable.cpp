//===- KernelTable.cpp - what an executable carries besides kernels ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelTable.h"

#include "llvm/IR/IRBuilder.h"

namespace weft {

using namespace llvm;

namespace {

Error fail(const Twine &message) { return createStringError(inconvertibleErrorCode(), message); }

/// How many buffers and immediates a kernel takes.
struct Operands {
  size_t buffers = 0, immediates = 0;
  bool operator==(const Operands &) const = default;
};

/// The arguments between the coordinates and the part.
auto operandArguments(Function &kernel) {
  return drop_end(drop_begin(make_pointer_range(kernel.args())), kPartArguments);
}

Operands operandsOf(Function &kernel) {
  Operands operands;
  for (const Argument *argument : operandArguments(kernel)) {
    ++(argument->getType()->isPointerTy() ? operands.buffers : operands.immediates);
  }
  return operands;
}

/// A `weft::rt::KernelFunction` that calls `kernel`.
Function *makeWrapper(Module &module, Function *kernel) {
  LLVMContext &context = module.getContext();
  Type *pointer = PointerType::getUnqual(context), *number = Type::getInt64Ty(context);
  auto *type =
      FunctionType::get(Type::getVoidTy(context),
                        {pointer, pointer, pointer, number, number, number}, /*isVarArg=*/false);
  auto *wrapper =
      Function::Create(type, GlobalValue::InternalLinkage, "weft_run_" + kernel->getName(), module);
  wrapper->setDoesNotThrow();
  IRBuilder<> builder(BasicBlock::Create(context, "entry", wrapper));
  SmallVector<Value *> arguments = {wrapper->getArg(2)};
  unsigned buffers = 0, immediates = 0;
  for (const Argument *argument : operandArguments(*kernel)) {
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
  return wrapper;
}

/// `weft::rt::KernelCode`.
StructType *codeType(LLVMContext &context) {
  Type *pointer = PointerType::getUnqual(context);
  return StructType::get(context, {pointer, Type::getInt64Ty(context), pointer, pointer});
}

/// A constant that only the tables know.
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

Constant *makeCode(Module &module, Function *wrapper, ArrayRef<int64_t> iterations,
                   Constant *device) {
  LLVMContext &context = module.getContext();
  return ConstantStruct::get(
      codeType(context), {wrapper, ConstantInt::get(Type::getInt64Ty(context), iterations.size()),
                          makeNumbers(module, iterations), device});
}

Error checkInstructions(const std::vector<rt::Instruction> &instructions,
                        const rt::Program &program, ArrayRef<Operands> expected) {
  for (const rt::Instruction &instruction : instructions) {
    if (instruction.opcode != rt::Opcode::Kernel) {
      continue;
    }
    const rt::Kernel &kernel = program.kernels[instruction.target];
    Operands got{kernel.operandCount(instruction), instruction.immediates.size()};
    const Operands &want = expected[instruction.target];
    if (!(got == want)) {
      return fail("kernel '" + program.kernels[instruction.target].name + "' takes " +
                  Twine(want.buffers) + " buffers and " + Twine(want.immediates) +
                  " immediates, an instruction gives it " + Twine(got.buffers) + " and " +
                  Twine(got.immediates));
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

Error addKernelTable(Module &module, const rt::Program &program, const KernelIterations &iterations,
                     const KernelIterations &deviceIterations,
                     const KernelIterations &deviceThreads) {
  LLVMContext &context = module.getContext();
  SmallVector<Constant *> codes;
  SmallVector<Operands> operands;
  for (const rt::Kernel &kernel : program.kernels) {
    Function *function = module.getFunction(kernel.name);
    auto phases = iterations.find(kernel.name);
    if (!function || function->isDeclaration() || function->arg_size() <= kPartArguments ||
        phases == iterations.end()) {
      return fail("kernel '" + kernel.name + "' has no code");
    }
    operands.push_back(operandsOf(*function));
    auto onDevice = deviceIterations.find(kernel.name);
    Constant *device =
        onDevice == deviceIterations.end()
            ? ConstantPointerNull::get(PointerType::getUnqual(context))
            : makePhases(module, onDevice->second, deviceThreads.lookup(kernel.name));
    codes.push_back(makeCode(module, makeWrapper(module, function), phases->second, device));
  }
  for (const auto *instructions : {&program.init, &program.step, &program.evaluate}) {
    if (Error error = checkInstructions(*instructions, program, operands)) {
      return error;
    }
  }
  auto *tableType = ArrayType::get(codeType(context), codes.size());
  addGlobal(module, "weft_kernels", ConstantArray::get(tableType, codes));
  std::vector<char> bytes = rt::serialize(program);
  addGlobal(module, "weft_program",
            ConstantDataArray::getString(context, StringRef(bytes.data(), bytes.size()),
                                         /*AddNull=*/false));
  addGlobal(module, "weft_program_size", ConstantInt::get(Type::getInt64Ty(context), bytes.size()));
  return Error::success();
}

} // namespace weft
