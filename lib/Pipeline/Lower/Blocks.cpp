//===- Blocks.cpp - loops that threads of a block share -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft-rt/DeviceImage.h"
#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Pipeline/Lower/Code.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ScopeExit.h"

namespace weft::lower {

using namespace mlir;

namespace {

/// Threads that can exchange values.
constexpr int64_t kWarpThreads = 32;

/// Rounds of a loop over chunks that become straight code: what they load stays in registers until
/// the next loop over the same chunks.
constexpr int64_t kStraightRounds = 4;

/// Address spaces of devices.
constexpr int64_t kGlobalMemory = 1, kSharedMemory = 3;

} // namespace

//===----------------------------------------------------------------------===//
// Threads and memory of a block
//===----------------------------------------------------------------------===//

ValueRange Code::callDevice(StringRef name, TypeRange results, ValueRange operands) {
  Operation *kernel = entry->getParentOp();
  auto module = kernel->getParentOfType<ModuleOp>();
  auto function = module.lookupSymbol<func::FuncOp>(name);
  if (!function) {
    OpBuilder atStart = OpBuilder::atBlockBegin(module.getBody());
    function =
        func::FuncOp::create(atStart, module.getLoc(), name,
                             builder.getFunctionType(TypeRange(operands.getTypes()), results));
    function.setPrivate();
  }
  return func::CallOp::create(builder, loc, function, operands)->getResults();
}

void Code::barrier() { callDevice("weft_device_barrier", {}, {}); }

Num Code::thread() { return threadNumber; }

Num Code::shuffle(Num value, int64_t mask) {
  Type type = value.getType(), i32 = builder.getI32Type();
  Value bits = arith::ConstantIntOp::create(builder, loc, mask, 32);
  auto exchange = [&](Value word) {
    return callDevice("weft_device_shuffle", {i32}, {word, bits}).front();
  };
  if (sizeOf(type) == 4) {
    Value word = arith::BitcastOp::create(builder, loc, i32, value);
    return num(arith::BitcastOp::create(builder, loc, type, exchange(word)));
  }
  Type i64 = builder.getI64Type();
  Value words = arith::BitcastOp::create(builder, loc, i64, value);
  Value shift = arith::ConstantIntOp::create(builder, loc, 32, 64);
  Value high = arith::ShRUIOp::create(builder, loc, words, shift);
  auto widen = [&](Value word) -> Value {
    Value half = exchange(arith::TruncIOp::create(builder, loc, i32, word));
    return arith::ExtUIOp::create(builder, loc, i64, half);
  };
  Value low = widen(words);
  high = arith::ShLIOp::create(builder, loc, widen(high), shift);
  words = arith::OrIOp::create(builder, loc, low, high);
  return num(arith::BitcastOp::create(builder, loc, type, words));
}

/// Memory of the module, in the address space `space` of devices.
Buffer Code::global(StringRef name, int64_t space, Type type, ArrayRef<int64_t> shape) {
  auto kernel = cast<func::FuncOp>(entry->getParentOp());
  auto module = kernel->getParentOfType<ModuleOp>();
  std::string symbol;
  unsigned number = 0;
  do {
    symbol = (kernel.getName() + "_" + name + "_" + Twine(number++)).str();
  } while (module.lookupSymbol(symbol));
  auto memref =
      MemRefType::get(shape, type, MemRefLayoutAttrInterface(), builder.getI64IntegerAttr(space));
  OpBuilder atStart = OpBuilder::atBlockBegin(module.getBody());
  memref::GlobalOp::create(atStart, loc, symbol, builder.getStringAttr("private"), memref,
                           /*initial_value=*/builder.getUnitAttr(), /*constant=*/false,
                           /*alignment=*/builder.getI64IntegerAttr(64));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(entry);
  return Buffer(*this, memref::GetGlobalOp::create(builder, loc, memref, symbol));
}

Buffer Code::shared(Type type, ArrayRef<int64_t> shape) {
  return global("shared", kSharedMemory, type, shape);
}

Buffer Code::lasting(Type type, ArrayRef<int64_t> shape) {
  return global("lasting", kGlobalMemory, type, shape);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void Code::blocks(int64_t count, int64_t width, function_ref<void(Num)> body) {
  if (!isForDevice()) {
    parallel(count, body);
    return;
  }
  int64_t chunks = width % lanes == 0 ? width / lanes : width;
  int64_t rounds = llvm::divideCeil(chunks, int64_t(rt::kBlockThreads));
  threads = llvm::alignTo(
      llvm::divideCeil(std::max<int64_t>(chunks, 1), std::max<int64_t>(rounds, 1)), kWarpThreads);
  parallel(count, [&](Num i) {
    runner = Runner::Block;
    threadNumber = num(callDevice("weft_device_thread", {builder.getIndexType()}, {}).front());
    body(i);
    runner = Runner::Thread;
  });
  entry->back().setAttr(kThreadsAttrName, builder.getI64IntegerAttr(threads));
}

/// Runs `body` as code of one thread that has taken a round.
template <typename Body> auto Code::asRound(Body body) {
  llvm::scope_exit restore([this, before = runner] { runner = before; });
  runner = Runner::Round;
  return body();
}

Nums Code::carryAcross(Num from, Num to, ArrayRef<Num> start,
                       function_ref<Nums(Num, ArrayRef<Num>)> body) {
  return asRound([&]() -> Nums {
    std::optional<int64_t> first = getConstantIntValue(Value(from)),
                           end = getConstantIntValue(Value(to));
    if (first == int64_t(0) && end && *end % lanes == 0) {
      return carryChunks(*end / lanes, start, body);
    }
    return carry(from + threadNumber, to, threads, start, [&](Num i, ArrayRef<Num> carried) {
      slot = (i - from - threadNumber) / threads;
      return body(i, carried);
    });
  });
}

Nums Code::carryChunks(int64_t count, ArrayRef<Num> start,
                       function_ref<Nums(Num, ArrayRef<Num>)> body) {
  auto chunk = [&](Num number, Num round, ArrayRef<Num> carried) {
    Nums next(carried);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      slot = round * lanes + lane;
      next = body(number * lanes + lane, next);
    }
    return next;
  };
  int64_t rounds = llvm::divideCeil(count, threads);
  if (rounds > kStraightRounds) {
    return carry(threadNumber, index(count), threads, start,
                 [&](Num number, ArrayRef<Num> carried) {
                   return chunk(number, (number - threadNumber) / threads, carried);
                 });
  }
  Nums carried(start);
  for (int64_t round = 0; round < rounds; ++round) {
    Num number = threadNumber + round * threads;
    if ((round + 1) * threads <= count) {
      carried = chunk(number, index(round), carried);
      continue;
    }
    auto yield = [&](ArrayRef<Num> values) {
      scf::YieldOp::create(builder, loc, SmallVector<Value>(values.begin(), values.end()));
    };
    auto guarded = scf::IfOp::create(
        builder, loc, number < count,
        [&](OpBuilder &, Location) { yield(chunk(number, index(round), carried)); },
        [&](OpBuilder &, Location) { yield(carried); });
    for (auto [value, result] : llvm::zip_equal(carried, guarded.getResults())) {
      value = num(result);
    }
  }
  return carried;
}

void Code::across(Num from, Num to, function_ref<void(Num)> body) {
  auto run = [&](Num i, ArrayRef<Num>) {
    body(i);
    return Nums();
  };
  if (runner == Runner::Block) {
    carryAcross(from, to, {}, run);
  } else {
    carry(from, to, 1, {}, run);
  }
}

void Code::once(function_ref<void()> body) {
  if (runner != Runner::Block) {
    body();
    return;
  }
  barrier();
  when(threadNumber == int64_t(0), [&] { asRound(body); });
  barrier();
}

/// Each warp by exchanges, in which all its threads come to the same, then the warps in their
/// order.
Nums Code::combineAcross(Nums values, Combine combine) {
  for (int64_t mask = kWarpThreads / 2; mask > 0; mask /= 2) {
    for (Num &value : values) {
      value = combine(value, shuffle(value, mask));
    }
  }
  int64_t warps = threads / kWarpThreads;
  if (warps == 1) {
    return values;
  }
  Buffer slots = shared(values.front().getType(), {int64_t(values.size()), warps});
  // Threads may still be reading what they took there before.
  barrier();
  Num lane = remainder(threadNumber, kWarpThreads), warp = threadNumber / kWarpThreads;
  when(lane == int64_t(0), [&] {
    for (auto [number, value] : llvm::enumerate(values)) {
      slots.store(value, index(int64_t(number)), warp);
    }
  });
  barrier();
  for (auto [number, value] : llvm::enumerate(values)) {
    value = slots(index(int64_t(number)), index(0));
    for (int64_t other = 1; other < warps; ++other) {
      value = combine(value, slots(index(int64_t(number)), index(other)));
    }
  }
  return values;
}

//===----------------------------------------------------------------------===//
// What rounds keep
//===----------------------------------------------------------------------===//

Kept Code::keep(Type type, int64_t count) {
  if (!isForDevice()) {
    return {scratch(type, {count})};
  }
  int64_t width = count % lanes == 0 ? lanes : 1;
  int64_t rounds = llvm::divideCeil(count / width, threads);
  return {scratch(type, {rounds * width})};
}

Num Code::kept(const Kept &memory, Num round) {
  return memory.memory(isForDevice() ? slot : round);
}

void Code::setKept(const Kept &memory, Num round, Num value) {
  memory.memory.store(value, isForDevice() ? slot : round);
}

} // namespace weft::lower
