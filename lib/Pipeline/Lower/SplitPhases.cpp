//===- SplitPhases.cpp - splits kernels into phases that threads share ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "weft/Pipeline/Lower/HostLowering.h"
#include "weft/Pipeline/Lower/Passes.h"

namespace weft {

#define GEN_PASS_DEF_SPLITPHASESPASS
#include "weft/Pipeline/Lower/Passes.h.inc"

using namespace mlir;

namespace {

/// The memrefs that ops read or write.
struct Touched {
  llvm::SmallPtrSet<Value, 8> read, written;
  /// Whether they are a loop that writes elements of its own, see kApartAttrName.
  bool isApart = false;

  void add(const Touched &other) {
    read.insert_range(other.read);
    written.insert_range(other.written);
    isApart |= other.isApart;
  }
};

/// Ops of a kernel's entry block that run together: one parallel loop, or several ops that one
/// thread runs once.
struct PhaseOps {
  scf::ParallelOp loop;
  SmallVector<Operation *> serial;
  Touched touched;

  int64_t countIterations() {
    return loop ? *getConstantIntValue(loop.getUpperBound().front()) : 1;
  }
  /// How many threads take a round together; 0 for single threads.
  int64_t countThreads() {
    auto count = loop ? loop->getAttrOfType<IntegerAttr>(kThreadsAttrName) : nullptr;
    return count ? count.getInt() : 0;
  }
  /// The bytes of memory that its blocks of threads share.
  int64_t countSharedBytes() const;
  /// At the last op: it may use ops that stand between those of the phase but are not part of it.
  Operation *lastOp() { return loop ? loop.getOperation() : serial.back(); }
};

int64_t PhaseOps::countSharedBytes() const {
  llvm::SmallPtrSet<Value, 8> memrefs(touched.read);
  memrefs.insert_range(touched.written);
  int64_t bytes = 0;
  for (Value memref : memrefs) {
    auto type = cast<MemRefType>(memref.getType());
    if (type.getMemorySpaceAsInt() == lower::kSharedMemory) {
      bytes += type.getNumElements() * type.getElementTypeBitWidth() / 8;
    }
  }
  return bytes;
}

/// Returns true if one of the two writes elements that the other reads or writes.
bool conflict(const Touched &a, const Touched &b) {
  bool areApart = a.isApart && b.isApart;
  auto meet = [areApart](const auto &written, const Touched &other) {
    return llvm::any_of(written, [&](Value memref) {
      return other.read.contains(memref) || (!areApart && other.written.contains(memref));
    });
  };
  return meet(a.written, b) || meet(b.written, a);
}

/// Phases that run as one: their iterations follow each other.
struct JoinedPhase {
  SmallVector<PhaseOps *, 1> members;
  int64_t threads, sharedBytes;
};

/// The most phases that run as one: every thread looks for its own.
constexpr size_t kMostJoined = 16;

/// Blocks of joined phases share the memory of all members. With more, fewer blocks run at once.
constexpr int64_t kMostSharedBytes = 8192;

/// Turns a parallel loop into a sequential one over [from, to).
void makeSerial(scf::ParallelOp loop, Value from, Value to) {
  OpBuilder builder(loop);
  auto serial = scf::ForOp::create(builder, loop.getLoc(), from, to, loop.getStep().front());
  Block &body = *loop.getBody();
  body.getTerminator()->erase();
  serial.getBody()->getOperations().splice(serial.getBody()->begin(), body.getOperations());
  loop.getInductionVars().front().replaceAllUsesWith(serial.getInductionVar());
  loop.erase();
}

class PhaseSplitter {
public:
  PhaseSplitter(func::FuncOp kernel, bool joins)
      : kernel(kernel), entry(kernel.front()), joins(joins) {}

  LogicalResult run();

private:
  bool isOwnMemory(Value memref) const {
    return memref.getDefiningOp<memref::AllocaOp>() != nullptr;
  }
  Touched touchedBy(Operation *op) const;
  bool findPhases();
  bool canSplit() const;
  bool passesOnOwnMemory() const;
  void joinPhases();
  JoinedPhase *findPlace(PhaseOps &phase);
  void addArguments();
  Value makeTest(OpBuilder &builder, arith::CmpIPredicate predicate, Value a, int64_t b);
  void wrap(PhaseOps &phase, Value condition, Value from, Value to);
  void wrapPart(PhaseOps &phase, Value isThis, int64_t first);
  int64_t wrapAll(ArrayRef<PhaseOps *> members, unsigned number);

  func::FuncOp kernel;
  Block &entry;
  const bool joins;
  SmallVector<PhaseOps> phases;
  SmallVector<JoinedPhase> joined;
  /// Memrefs that every thread reads before all phases.
  llvm::SmallPtrSet<Value, 8> readFirst;
  /// The arguments that select the part to run.
  Value phaseNumber, begin, end;
};

Touched PhaseSplitter::touchedBy(Operation *op) const {
  Touched touched;
  op->walk([&](Operation *inner) {
    auto effects = dyn_cast<MemoryEffectOpInterface>(inner);
    if (!effects) {
      return;
    }
    SmallVector<MemoryEffects::EffectInstance> list;
    effects.getEffects(list);
    for (const MemoryEffects::EffectInstance &effect : list) {
      Value memref = effect.getValue();
      while (memref && memref.getDefiningOp() && isa<ViewLikeOpInterface>(memref.getDefiningOp())) {
        memref = cast<ViewLikeOpInterface>(memref.getDefiningOp()).getViewSource();
      }
      if (memref && isa<MemoryEffects::Write>(effect.getEffect())) {
        touched.written.insert(memref);
      } else if (memref && isa<MemoryEffects::Read>(effect.getEffect())) {
        touched.read.insert(memref);
      }
    }
  });
  return touched;
}

/// Sorts the ops of the entry block into phases. Ops that write only the kernel's own memory stay
/// in place, and every thread runs them; returns false if the kernel cannot be split.
bool PhaseSplitter::findPhases() {
  for (Operation &op : entry.without_terminator()) {
    Touched touched = touchedBy(&op);
    auto loop = dyn_cast<scf::ParallelOp>(op);
    bool writes = llvm::any_of(touched.written, [&](Value memref) { return !isOwnMemory(memref); });
    if (!writes && !loop) {
      readFirst.insert_range(touched.read);
      continue;
    }
    touched.isApart = loop && loop->hasAttr(kApartAttrName);
    if (loop || phases.empty() || phases.back().loop) {
      phases.emplace_back();
      phases.back().loop = loop;
    }
    phases.back().touched.add(touched);
    if (!loop) {
      phases.back().serial.push_back(&op);
    }
  }
  return canSplit();
}

/// Returns true if a phase reads from the kernel's own memory what another one writes: each phase
/// has a copy of that memory.
bool PhaseSplitter::passesOnOwnMemory() const {
  for (const PhaseOps &phase : phases) {
    for (Value memref : phase.touched.written) {
      bool isReadElsewhere = llvm::any_of(phases, [&](const PhaseOps &other) {
        return &other != &phase && other.touched.read.contains(memref);
      });
      if (isOwnMemory(memref) && isReadElsewhere) {
        return true;
      }
    }
  }
  return false;
}

/// Returns true if every op that all threads run gives the same result before all phases, and no
/// phase needs a value or the kernel's own memory from another one.
bool PhaseSplitter::canSplit() const {
  auto isWritten = [&](Value memref) {
    return llvm::any_of(
        phases, [&](const PhaseOps &phase) { return phase.touched.written.contains(memref); });
  };
  if (llvm::any_of(readFirst, isWritten) || passesOnOwnMemory()) {
    return false;
  }
  for (const PhaseOps &phase : phases) {
    for (Operation *op : phase.serial) {
      for (Operation *user : op->getUsers()) {
        if (!llvm::is_contained(phase.serial, entry.findAncestorOpInBlock(*user))) {
          return false;
        }
      }
    }
  }
  return true;
}

void PhaseSplitter::addArguments() {
  Type index = IndexType::get(kernel.getContext());
  for (Value *argument : {&phaseNumber, &begin, &end}) {
    (void)kernel.insertArgument(kernel.getNumArguments(), index, {}, kernel.getLoc());
    *argument = kernel.getArguments().back();
  }
}

/// Returns the earliest joined phase that `phase` may be part of: one of as many threads, where
/// neither that nor a later one touches what the phase writes, or writes what it touches.
JoinedPhase *PhaseSplitter::findPlace(PhaseOps &phase) {
  JoinedPhase *place = nullptr;
  for (JoinedPhase &other : llvm::reverse(joined)) {
    if (llvm::any_of(other.members, [&](const PhaseOps *member) {
          return conflict(member->touched, phase.touched);
        })) {
      break;
    }
    if (other.threads == phase.countThreads() && other.members.size() < kMostJoined &&
        other.sharedBytes + phase.countSharedBytes() <= kMostSharedBytes) {
      place = &other;
    }
  }
  return place;
}

void PhaseSplitter::joinPhases() {
  for (PhaseOps &phase : phases) {
    JoinedPhase *place = joins ? findPlace(phase) : nullptr;
    if (!place) {
      joined.push_back({{}, phase.countThreads(), 0});
      place = &joined.back();
    }
    place->members.push_back(&phase);
    place->sharedBytes += phase.countSharedBytes();
  }
}

Value PhaseSplitter::makeTest(OpBuilder &builder, arith::CmpIPredicate predicate, Value a,
                              int64_t b) {
  Value bound = arith::ConstantIndexOp::create(builder, kernel.getLoc(), b);
  return arith::CmpIOp::create(builder, kernel.getLoc(), predicate, a, bound);
}

/// Lets `phase` run only if `condition` holds, where there is one; a loop from `from` to `to`.
void PhaseSplitter::wrap(PhaseOps &phase, Value condition, Value from, Value to) {
  if (condition) {
    OpBuilder builder(phase.lastOp());
    Block *body = scf::IfOp::create(builder, kernel.getLoc(), condition, /*withElseRegion=*/false)
                      .thenBlock();
    for (Operation *op : phase.serial) {
      op->moveBefore(body->getTerminator());
    }
    if (phase.loop) {
      phase.loop->moveBefore(body->getTerminator());
    }
  }
  if (phase.loop) {
    makeSerial(phase.loop, from, to);
  }
}

/// A phase whose first iteration is number `first` of a joined one. The bounds are those that LLVM
/// folds where only one iteration runs.
void PhaseSplitter::wrapPart(PhaseOps &phase, Value isThis, int64_t first) {
  OpBuilder builder(phase.lastOp());
  Location loc = kernel.getLoc();
  int64_t count = phase.countIterations();
  Value isOwn = arith::AndIOp::create(
      builder, loc, makeTest(builder, arith::CmpIPredicate::slt, begin, first + count),
      makeTest(builder, arith::CmpIPredicate::sgt, end, first));
  if (isThis) {
    isOwn = arith::AndIOp::create(builder, loc, isThis, isOwn);
  }
  Value from, to;
  if (phase.loop) {
    Value offset = arith::ConstantIndexOp::create(builder, loc, first);
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
    Value all = arith::ConstantIndexOp::create(builder, loc, count);
    from = arith::MaxSIOp::create(builder, loc, arith::SubIOp::create(builder, loc, begin, offset),
                                  zero);
    to =
        arith::MinSIOp::create(builder, loc, arith::SubIOp::create(builder, loc, end, offset), all);
  }
  wrap(phase, isOwn, from, to);
}

/// Lets the phases of `members` run as phase `number`, and returns its iterations.
int64_t PhaseSplitter::wrapAll(ArrayRef<PhaseOps *> members, unsigned number) {
  int64_t iterations = 0;
  for (PhaseOps *phase : members) {
    int64_t count = phase->countIterations();
    Value isThis;
    if (joined.size() > 1) {
      OpBuilder builder(phase->lastOp());
      isThis = makeTest(builder, arith::CmpIPredicate::eq, phaseNumber, number);
    }
    if (members.size() == 1) {
      wrap(*phase, isThis, begin, end);
    } else {
      wrapPart(*phase, isThis, iterations);
    }
    iterations += count;
  }
  return iterations;
}

LogicalResult PhaseSplitter::run() {
  bool splits = findPhases();
  addArguments();
  bool hasBlocks = llvm::any_of(phases, [](PhaseOps &phase) { return phase.countThreads() != 0; });
  if (hasBlocks && !splits) {
    return kernel.emitOpError("has loops for blocks of threads, but cannot be cut into phases");
  }
  SmallVector<int64_t> iterations, threads;
  if (splits) {
    joinPhases();
    for (auto [number, phase] : llvm::enumerate(joined)) {
      threads.push_back(phase.threads);
      iterations.push_back(wrapAll(phase.members, number));
    }
  }
  kernel.walk([&](scf::ParallelOp loop) {
    makeSerial(loop, loop.getLowerBound().front(), loop.getUpperBound().front());
  });
  if (iterations.empty()) {
    iterations = {1};
  }
  kernel->setAttr(kIterationsAttrName, DenseI64ArrayAttr::get(kernel.getContext(), iterations));
  if (hasBlocks) {
    kernel->setAttr(kThreadsAttrName, DenseI64ArrayAttr::get(kernel.getContext(), threads));
  }
  return success();
}

struct SplitPhasesPass : impl::SplitPhasesPassBase<SplitPhasesPass> {
  using SplitPhasesPassBase::SplitPhasesPassBase;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function.isDeclaration() && failed(PhaseSplitter(function, forDevices).run())) {
        return signalPassFailure();
      }
    }
  }
};

} // namespace

} // namespace weft
