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

/// The number of threads that can exchange values.
constexpr int64_t kWarpThreads = 32;

/// The most rounds of a loop over chunks that are unrolled: loaded values then stay in registers
/// until the next loop over the same chunks.
constexpr int64_t kStraightRounds = 4;

/// So many rounds keep a large device busy with a warp for each: 132 multiprocessors run 16 each.
constexpr int64_t kManyRounds = int64_t(132) * 16;

/// Rows with fewer chunks are not cut at aligned addresses.
constexpr int64_t kLeastPeeled = 64;

/// An address space of devices.
constexpr int64_t kGlobalMemory = 1;

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

Num Code::exp2OrZero(Num a) {
  return num(callDevice("weft_device_exp2", {a.getType()}, {a}).front());
}

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

/// Returns memory of the module, in the address space `space` of devices.
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

bool Code::fitsWarp(int64_t count, int64_t width) const {
  return count >= kManyRounds && width % lanes == 0 &&
         width / lanes <= kStraightRounds * kWarpThreads;
}

int64_t Code::countRounds(int64_t width) const {
  return isForDevice() && llvm::divideCeil(width, width % lanes == 0 ? lanes : 1) <= kWarpThreads
             ? rt::kBlockThreads / kWarpThreads
             : 1;
}

void Code::blocks(int64_t count, int64_t width, function_ref<void(Num)> body, Rounds rounds) {
  if (!isForDevice()) {
    parallel(count, body);
    return;
  }
  bool isRow = rounds.areRows && width % lanes != 0 && width >= kLeastPeeled * lanes;
  int64_t chunks = width % lanes == 0 || isRow ? width / lanes : width;
  bool fits = rounds.fitWarps && fitsWarp(count, width);
  if (count > 1 && (fits || chunks <= kWarpThreads)) {
    warps(count, chunks, body, rounds);
    return;
  }
  int64_t most =
      chunks > 2 * int64_t(rt::kBlockThreads) ? rt::kMostBlockThreads : rt::kBlockThreads;
  int64_t turns = llvm::divideCeil(chunks, most);
  threads = llvm::alignTo(
      llvm::divideCeil(std::max<int64_t>(chunks, 1), std::max<int64_t>(turns, 1)), kWarpThreads);
  parallel(count, [&](Num i) {
    runner = Runner::Block;
    threadNumber = num(callDevice("weft_device_thread", {builder.getIndexType()}, {}).front());
    row = isRow ? Row{count, width, i} : Row{};
    body(i);
    row = {};
    runner = Runner::Thread;
  });
  entry->back().setAttr(kThreadsAttrName, builder.getI64IntegerAttr(threads));
}

/// Rounds that a warp takes, or less than a warp: a block takes several of them. Rounds of one warp
/// wait for each other where its threads exchange values.
void Code::warps(int64_t count, int64_t chunks, function_ref<void(Num)> body, Rounds rounds) {
  chunks = std::min(chunks, kWarpThreads);
  int64_t each = rt::kBlockThreads / int64_t(llvm::PowerOf2Ceil(uint64_t(chunks)));
  bool isShared = rounds.areAlike && count % each == 0;
  each = isShared ? each : rt::kBlockThreads / kWarpThreads;
  threads = rt::kBlockThreads / each;
  parallel(llvm::divideCeil(count, each), [&](Num block) {
    Num all = num(callDevice("weft_device_thread", {builder.getIndexType()}, {}).front());
    threadNumber = remainder(all, threads);
    Num i = block * each + all / threads;
    auto run = [&] {
      runner = Runner::Block;
      body(i);
      runner = Runner::Thread;
    };
    if (count % each == 0) {
      run();
    } else {
      when(i < count, run);
    }
  });
  entry->back().setAttr(kThreadsAttrName, builder.getI64IntegerAttr(rt::kBlockThreads));
}

bool Code::keepsLittle(int64_t count) const {
  return count % lanes == 0 && llvm::divideCeil(count / lanes, threads) <= 2;
}

/// Runs `body` as code of one thread in its round.
template <typename Body> auto Code::asRound(Body body) {
  llvm::scope_exit restore([this, before = runner] { runner = before; });
  runner = Runner::Round;
  return body();
}

Nums Code::carryAcross(Num from, Num to, ArrayRef<Num> start,
                       function_ref<Nums(Num, ArrayRef<Num>)> body) {
  return carryTogether(from, to, start, [&](ArrayRef<Num> rounds, ArrayRef<Num> carried) {
    Nums next(carried);
    for (auto [lane, round] : llvm::enumerate(rounds)) {
      slot = lane == 0 ? firstSlot : firstSlot + int64_t(lane);
      next = body(round, next);
    }
    return next;
  });
}

Nums Code::carryTogether(Num from, Num to, ArrayRef<Num> start, Together body) {
  return asRound([&]() -> Nums {
    std::optional<int64_t> first = getConstantIntValue(Value(from)),
                           end = getConstantIntValue(Value(to));
    if (row.number && first == int64_t(0) && end == row.columns) {
      return carryRow(start, body);
    }
    if (first == int64_t(0) && end && *end % lanes == 0) {
      return carryChunks(*end / lanes, start, body);
    }
    return carry(from + threadNumber, to, threads, start, [&](Num i, ArrayRef<Num> carried) {
      firstSlot = (i - from - threadNumber) / threads;
      return body(ArrayRef<Num>(i), carried);
    });
  });
}

Nums Code::carryChunks(int64_t count, ArrayRef<Num> start, Together body) {
  auto chunk = [&](Num number, Num round, ArrayRef<Num> carried) {
    Num first = number * lanes;
    Nums members;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      members.push_back(neighbor(first, lane));
    }
    firstSlot = round * lanes;
    return body(members, carried);
  };
  int64_t whole = count / threads, rounds = llvm::divideCeil(count, threads), done = 0;
  Nums carried(start);
  if (rounds > kStraightRounds) {
    done = whole / kStraightRounds * kStraightRounds;
    carried = carry(index(0), index(done), kStraightRounds, carried,
                    [&](Num first, ArrayRef<Num> before) {
                      Nums next(before);
                      for (int64_t i = 0; i < kStraightRounds; ++i) {
                        Num round = i == 0 ? first : first + i;
                        next = chunk(round * threads + threadNumber, round, next);
                      }
                      return next;
                    });
  }
  for (int64_t round = done; round < rounds; ++round) {
    Num number = threadNumber + round * threads;
    if (round < whole) {
      carried = chunk(number, index(round), carried);
    } else {
      carried =
          carryIf(number < count, carried, [&] { return chunk(number, index(round), carried); });
    }
  }
  return carried;
}

Nums Code::carryByFours(Num from, Num to, int64_t step, ArrayRef<Num> start,
                        function_ref<Nums(Num, ArrayRef<Num>)> body, int64_t together) {
  Nums carried(start);
  carried.push_back(from);
  carried = carry(from, to - (together - 1) * step, together * step, carried,
                  [&](Num i, ArrayRef<Num> before) {
                    Nums next(before.drop_back());
                    for (int64_t number = 0; number < together; ++number) {
                      next = body(number == 0 ? i : i + number * step, next);
                    }
                    next.push_back(i + together * step);
                    return next;
                  });
  Num rest = carried.pop_back_val();
  return carry(rest, to, step, carried, body);
}

/// The elements before the first and after the last whole chunk are less than a chunk each, and one
/// round of some threads.
Nums Code::carryRow(ArrayRef<Num> start, Together body) {
  firstSlot = index(0); // Nothing is kept.
  Num first = row.number * row.columns, end = first + row.columns;
  Num firstChunk = (first + (lanes - 1)) / lanes, endChunk = end / lanes;
  auto at = [&](Num number) {
    Num column = number - first;
    places.push_back(Element{{row.number, column}, {row.rows, row.columns}, number});
    return column;
  };
  auto chunk = [&](Num number, ArrayRef<Num> before) {
    Nums members;
    places.clear();
    for (int64_t lane = 0; lane < lanes; ++lane) {
      members.push_back(at(lane == 0 ? number * lanes : number * lanes + lane));
    }
    return body(members, before);
  };
  Nums carried = carryByFours(firstChunk + threadNumber, endChunk, threads, start, chunk);
  places.clear();
  Num isBefore = threadNumber < lanes;
  Num number = select(isBefore, first + threadNumber, endChunk * lanes + (threadNumber - lanes));
  Num limit = select(isBefore, firstChunk * lanes, end);
  return carryIf(number < limit, carried, [&] { return body(number - first, carried); });
}

/// Returns the results of `body` if `condition` holds, else `carried`.
Nums Code::carryIf(Num condition, ArrayRef<Num> carried, function_ref<Nums()> body) {
  auto yield = [&](ArrayRef<Num> values) {
    scf::YieldOp::create(builder, loc, SmallVector<Value>(values.begin(), values.end()));
  };
  auto guarded = scf::IfOp::create(
      builder, loc, condition, [&](OpBuilder &, Location) { yield(body()); },
      [&](OpBuilder &, Location) { yield(carried); });
  return llvm::map_to_vector<4>(guarded.getResults(), [&](Value value) { return num(value); });
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
  auto meet = [&] {
    if (threads <= kWarpThreads) {
      callDevice("weft_device_warp_barrier", {}, {});
    } else {
      barrier();
    }
  };
  meet();
  when(threadNumber == int64_t(0), [&] { asRound(body); });
  meet();
}

/// First each warp exchanges values, so that all its threads have the same, then the warps are
/// combined in their order.
Nums Code::combineAcross(Nums values, Combine combine) {
  for (int64_t mask = std::min(threads, kWarpThreads) / 2; mask > 0; mask /= 2) {
    for (Num &value : values) {
      value = combine(value, shuffle(value, mask));
    }
  }
  int64_t warps = threads / kWarpThreads;
  if (warps <= 1) {
    return values;
  }
  Buffer slots = shared(values.front().getType(), {int64_t(values.size()), warps});
  // Threads may still be reading the results of an earlier call there.
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

Num Code::addUnfused(Num a, Num b) { return num(arith::AddFOp::create(builder, loc, a, b)); }

Nums Code::sumAcross(Nums values) {
  return combineAcross(std::move(values), [&](Num a, Num b) { return addUnfused(a, b); });
}

Nums Code::carryParts(Num first, Num end, int64_t step, ArrayRef<Num> start,
                      function_ref<Nums(Num, ArrayRef<Num>)> body) {
  return asRound([&] {
    return carryByFours(first, end, step, start, [&](Num part, ArrayRef<Num> carried) {
      Num chunk = (part * threads + threadNumber) * lanes;
      Nums next(carried);
      for (int64_t lane = 0; lane < lanes; ++lane) {
        next = body(neighbor(chunk, lane), next);
      }
      return next;
    });
  });
}

Nums Code::sumsOfParts(Type type, Num first, Num end, int64_t step, int64_t count,
                       function_ref<Nums(Num)> terms) {
  Nums zeros(count, real(type, 0));
  return sumAcross(carryParts(first, end, step, zeros, [&](Num i, ArrayRef<Num> carried) {
    Nums next = terms(i);
    for (auto [total, term] : llvm::zip_equal(carried, next)) {
      term = addInAnyOrder(total, term);
    }
    return next;
  }));
}

Num Code::maximumOfParts(Num least, Num first, Num end, int64_t step, function_ref<Num(Num)> term) {
  Nums own = carryParts(first, end, step, {least}, [&](Num i, ArrayRef<Num> carried) {
    return Nums{max(carried.front(), term(i))};
  });
  return combineAcross(own, [&](Num a, Num b) { return max(a, b); }).front();
}

//===----------------------------------------------------------------------===//
// Memory of rounds
//===----------------------------------------------------------------------===//

Kept Code::keep(Type type, int64_t count) {
  int64_t width = count % lanes == 0 ? lanes : 1;
  int64_t rounds = llvm::divideCeil(count / width, threads);
  return {scratch(type, {rounds * width})};
}

Num Code::kept(const Kept &memory) { return memory.memory(slot); }

void Code::setKept(const Kept &memory, Num value) { memory.memory.store(value, slot); }

} // namespace weft::lower
