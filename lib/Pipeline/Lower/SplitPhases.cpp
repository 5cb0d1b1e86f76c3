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

  void add(const Touched &other) {
    read.insert_range(other.read);
    written.insert_range(other.written);
  }
};

/// Ops of a kernel's entry block that run together: one parallel loop, or several ops that one
/// thread runs once.
struct PhaseOps {
  scf::ParallelOp loop;
  SmallVector<Operation *> serial;
  Touched touched;
};

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
  explicit PhaseSplitter(func::FuncOp kernel) : kernel(kernel), entry(kernel.front()) {}

  LogicalResult run();

private:
  bool isOwnMemory(Value memref) const {
    return memref.getDefiningOp<memref::AllocaOp>() != nullptr;
  }
  Touched touchedBy(Operation *op) const;
  bool findPhases();
  bool canSplit() const;
  bool passesOnOwnMemory() const;
  SmallVector<int64_t> threadsOfPhases();
  void addArguments();
  void wrap(const PhaseOps &phase, unsigned number, int64_t &iterations);

  func::FuncOp kernel;
  Block &entry;
  SmallVector<PhaseOps> phases;
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

void PhaseSplitter::wrap(const PhaseOps &phase, unsigned number, int64_t &iterations) {
  // At the last op: it may use ops that stand between those of the phase but are not part of it.
  OpBuilder builder(phase.loop ? phase.loop : phase.serial.back());
  Location loc = kernel.getLoc();
  Block *body = nullptr;
  if (phases.size() > 1) {
    Value own = arith::ConstantIndexOp::create(builder, loc, number);
    Value isThis = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, phaseNumber, own);
    body = scf::IfOp::create(builder, loc, isThis, /*withElseRegion=*/false).thenBlock();
  }
  auto moveIn = [&](Operation *op) {
    if (body) {
      op->moveBefore(body->getTerminator());
    }
  };
  iterations = 1;
  if (scf::ParallelOp loop = phase.loop) {
    iterations = *getConstantIntValue(loop.getUpperBound().front());
    moveIn(loop);
    makeSerial(loop, begin, end);
    return;
  }
  llvm::for_each(phase.serial, moveIn);
}

/// Returns how many threads take a round of each phase together; 0 for single threads.
SmallVector<int64_t> PhaseSplitter::threadsOfPhases() {
  return llvm::map_to_vector(phases, [](PhaseOps &phase) -> int64_t {
    auto count = phase.loop ? phase.loop->getAttrOfType<IntegerAttr>(kThreadsAttrName) : nullptr;
    return count ? count.getInt() : 0;
  });
}

LogicalResult PhaseSplitter::run() {
  bool splits = findPhases();
  addArguments();
  SmallVector<int64_t> threads = threadsOfPhases();
  bool hasBlocks = llvm::any_of(threads, [](int64_t count) { return count != 0; });
  if (hasBlocks && !splits) {
    return kernel.emitOpError("has loops for blocks of threads, but cannot be cut into phases");
  }
  SmallVector<int64_t> iterations(splits ? phases.size() : 0);
  if (splits) {
    for (auto [number, phase] : llvm::enumerate(phases)) {
      wrap(phase, number, iterations[number]);
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
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function.isDeclaration() && failed(PhaseSplitter(function).run())) {
        return signalPassFailure();
      }
    }
  }
};

} // namespace

} // namespace weft
