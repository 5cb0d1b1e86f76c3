//===- JoinLaunches.cpp - one launch for several alike ones ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionForm.h"
#include "KernelWork.h"
#include "OpKinds.h"
#include "Placement.h"
#include "weft/Pipeline/Schedule/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_JOINLAUNCHESPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

/// The most operands and results of a joined kernel. A multiprocessor reads their addresses from a
/// memory of 4 KiB; the optimizer's update of a layer has some forty.
constexpr int64_t kMostOperands = 96;

using Group = SmallVector<LaunchOp>;

/// The uses of launches in the sections, with all calls inlined.
class LaunchUses {
public:
  explicit LaunchUses(ArrayRef<FlatSection> sections) {
    for (const FlatSection &section : sections) {
      llvm::DenseMap<uint32_t, int32_t> &variables = assigned[&section];
      for (const FlatAssign &assign : section.assigns) {
        variables[assign.value] = static_cast<int32_t>(assign.variable);
      }
      for (const FlatCarry &carry : section.carries) {
        carried[{&section, carry.after}] = carry.before;
      }
      for (const FlatOp &op : section.ops) {
        if (isa<LaunchOp>(op.op)) {
          uses[op.op].push_back({&section, &op});
        }
      }
    }
  }

  /// Returns true if `launch` needs none of the launches `before` it, nor they what it overwrites,
  /// and no array that begins in it may take the place of one that ends in them.
  bool isIndependent(ArrayRef<LaunchOp> before, LaunchOp launch) const {
    return llvm::all_of(before, [&](LaunchOp earlier) {
      return llvm::all_of(llvm::zip_equal(uses.lookup(earlier), uses.lookup(launch)),
                          [&](auto pair) {
                            auto [before, after] = pair;
                            return areIndependent(before, after) && !replaces(after, before) &&
                                   !(endsArray(before) && beginsArray(after));
                          });
    });
  }

private:
  struct Use {
    const FlatSection *section;
    const FlatOp *op;

    LaunchOp launch() const { return cast<LaunchOp>(op->op); }
    ArrayRef<uint32_t> operands() const { return section->operandsOf(*op); }
    ArrayRef<uint32_t> results() const { return section->resultsOf(*op); }
    bool isTied(size_t operand) const {
      return llvm::is_contained(launch().getTied(), static_cast<int64_t>(operand));
    }
  };

  /// Returns true if `other` reads a value that `writer` computes or overwrites.
  static bool needs(const Use &other, const Use &writer) {
    for (auto [number, operand] : llvm::enumerate(writer.operands())) {
      if (writer.isTied(number) && llvm::is_contained(other.operands(), operand)) {
        return true;
      }
    }
    return llvm::any_of(writer.results(), [&](uint32_t result) {
      return llvm::is_contained(other.operands(), result);
    });
  }

  static bool areIndependent(const Use &a, const Use &b) { return !needs(a, b) && !needs(b, a); }

  /// Returns true if a result of `after` lies where a variable does whose old value `before` reads,
  /// or where that lies which `before` reads and the next call of a repeat gets as the result.
  bool replaces(const Use &after, const Use &before) const {
    const llvm::DenseMap<uint32_t, int32_t> &variables = assigned.at(after.section);
    return llvm::any_of(after.results(), [&](uint32_t result) {
      auto carry = carried.find({after.section, result});
      if (carry != carried.end() && llvm::is_contained(before.operands(), carry->second)) {
        return true;
      }
      auto variable = variables.find(result);
      return variable != variables.end() && llvm::any_of(before.operands(), [&](uint32_t operand) {
               return before.section->values[operand].variable == variable->second;
             });
    });
  }

  static bool isArray(Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getNumElements() > 1;
  }

  static bool endsArray(const Use &use) {
    auto time = static_cast<int32_t>(use.op - use.section->ops.data());
    return llvm::any_of(llvm::enumerate(use.operands()), [&](auto operand) {
      const FlatValue &value = use.section->values[operand.value()];
      return isArray(value.type) && value.variable < 0 && value.endsAt(time) &&
             !use.isTied(operand.index());
    });
  }

  static bool beginsArray(const Use &use) {
    return llvm::any_of(llvm::zip_equal(use.launch().getTied(), use.launch().getResultTypes()),
                        [](auto pair) {
                          auto [tied, type] = pair;
                          return tied < 0 && isArray(type);
                        });
  }

  llvm::DenseMap<Operation *, SmallVector<Use>> uses;
  /// The variable that a value is assigned to, by the value's number.
  llvm::DenseMap<const FlatSection *, llvm::DenseMap<uint32_t, int32_t>> assigned;
  /// What a call of a repeat gets in the place of which a value belongs.
  llvm::DenseMap<std::pair<const FlatSection *, uint32_t>, uint32_t> carried;
};

/// Operands of several launches: first all numbers, then each tensor once.
struct JoinedOperands {
  explicit JoinedOperands(ArrayRef<LaunchOp> group) {
    for (LaunchOp launch : group) {
      for (Value operand : launch->getOperands()) {
        operand.getType().isIndex() ? numbers.push_back(operand)
                                    : static_cast<void>(tensors.insert(operand));
      }
    }
  }

  SmallVector<Value> all() const {
    SmallVector<Value> values(numbers);
    values.append(tensors.begin(), tensors.end());
    return values;
  }
  int64_t numberOf(Value tensor) const {
    return static_cast<int64_t>(numbers.size()) + (llvm::find(tensors, tensor) - tensors.begin());
  }

  SmallVector<Value> numbers;
  llvm::SetVector<Value> tensors;
};

struct JoinLaunchesPass : impl::JoinLaunchesPassBase<JoinLaunchesPass> {
  void runOnOperation() override {
    if (!getOperation()->hasAttr(kTargetAttrName)) {
      return;
    }
    inlineSingleLaunches();
    ModuleSymbols all(getOperation());
    symbols = &all;
    joinedKernels.clear(); // Of another stage's module.
    FailureOr<SmallVector<FlatSection, 3>> sections = linearizeSections(getOperation(), all);
    if (failed(sections)) {
      return signalPassFailure();
    }
    SmallVector<Group> groups;
    LaunchUses uses(*sections);
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!isKernel(function) && function.getSymName() != "init") {
        findGroups(function.front(), uses, groups);
      }
    }
    for (const Group &group : groups) {
      join(group);
    }
    eraseUnusedKernels(getOperation());
  }

  LaunchOp findSingleLaunch(CallOp call);
  void inlineSingleLaunches();
  void addToGroup(LaunchOp launch, SmallVector<Group> &groups);
  void findGroups(Block &block, const LaunchUses &uses, SmallVector<Group> &groups);
  bool areAlike(LaunchOp a, LaunchOp b);
  func::FuncOp findOrMakeKernel(ArrayRef<LaunchOp> group, const JoinedOperands &operands,
                                ArrayRef<int64_t> tied, TypeRange results);
  void join(ArrayRef<LaunchOp> group);

  func::FuncOp kernelOf(LaunchOp launch) const {
    return symbols->functions.lookup(launch.getKernelAttr().getAttr());
  }

  /// Of the module before launches are joined.
  const ModuleSymbols *symbols = nullptr;
  /// Joined kernels by their members and the operands of these.
  llvm::StringMap<func::FuncOp> joinedKernels;
};

/// Returns the launch that is all that the called function does, if it returns its results. Calls
/// of micro-batches stay: actions run them.
LaunchOp JoinLaunchesPass::findSingleLaunch(CallOp call) {
  auto function = getOperation().lookupSymbol<func::FuncOp>(call.getCallee());
  auto launch = dyn_cast<LaunchOp>(function.front().front());
  bool isAll = launch && !function->hasAttr(kMicroBatchAttrName) &&
               launch->getNextNode() == function.front().getTerminator() &&
               llvm::equal(launch->getResults(), launch->getNextNode()->getOperands());
  return isAll ? launch : LaunchOp();
}

/// Replaces calls of functions that only launch a kernel, as for the sums over micro-batches, by
/// that launch; the call's label stays in its name.
void JoinLaunchesPass::inlineSingleLaunches() {
  SmallVector<std::pair<CallOp, LaunchOp>> calls;
  getOperation().walk([&](CallOp call) {
    if (LaunchOp launch = findSingleLaunch(call)) {
      calls.push_back({call, launch});
    }
  });
  llvm::SetVector<Operation *> functions;
  for (auto [call, launch] : calls) {
    auto function = launch->getParentOfType<func::FuncOp>();
    functions.insert(function);
    IRMapping mapping;
    mapping.map(function.getArguments(), call->getOperands());
    OpBuilder builder(call);
    Operation *copy = builder.clone(*launch, mapping);
    StringRef name = findName(launch.getLoc());
    copy->setLoc(
        NameLoc::get(builder.getStringAttr(call.getLabel() + (name.empty() ? "" : "/") + name)));
    call->replaceAllUsesWith(copy);
    call->erase();
  }
  for (Operation *function : functions) {
    function->erase();
  }
}

/// Returns true if two kernels compute ops of one kind, and no library does.
bool JoinLaunchesPass::areAlike(LaunchOp a, LaunchOp b) {
  auto mesh = getOperation()->getAttrOfType<MeshAttr>(kMeshAttrName);
  SmallVector<Operation *> work;
  for (LaunchOp launch : {a, b}) {
    SmallVector<Operation *> own = findWork(kernelOf(launch));
    if (own.size() != 1 || classifyAttention(kernelOf(launch), own[0], mesh)) {
      return false;
    }
    work.push_back(own[0]);
  }
  return work[0]->getName() == work[1]->getName();
}

/// Returns the number of operands of the kernel that joins these launches.
int64_t countOperands(ArrayRef<LaunchOp> group) {
  auto count = static_cast<int64_t>(JoinedOperands(group).all().size());
  for (LaunchOp launch : group) {
    count += llvm::count(launch.getTied(), -1);
  }
  return count;
}

/// Adds `launch` to the first group that it fits, or to one of its own.
void JoinLaunchesPass::addToGroup(LaunchOp launch, SmallVector<Group> &groups) {
  for (Group &group : groups) {
    Group larger = group;
    larger.push_back(launch);
    if (areAlike(group.front(), launch) && countOperands(larger) <= kMostOperands) {
      group = larger;
      return;
    }
  }
  groups.push_back({launch});
}

/// Finds groups among launches that are independent of each other, with nothing in between but
/// reads of variables and reshapes of other values.
void JoinLaunchesPass::findGroups(Block &block, const LaunchUses &uses,
                                  SmallVector<Group> &groups) {
  SmallVector<LaunchOp> run;
  SmallVector<Group> open;
  auto close = [&] {
    llvm::copy_if(open, std::back_inserter(groups),
                  [](const Group &group) { return group.size() > 1; });
    open.clear();
    run.clear();
  };
  for (Operation &op : block) {
    auto launch = dyn_cast<LaunchOp>(op);
    bool readsRun = llvm::any_of(op.getOperands(), [&](Value operand) {
      return llvm::is_contained(run, operand.getDefiningOp());
    });
    if (launch ? !uses.isIndependent(run, launch)
               : readsRun || !isa<ReadOp, ReshapeOp, arith::ConstantOp>(op)) {
      close();
    }
    if (launch) {
      run.push_back(launch);
      addToGroup(launch, open);
    }
  }
  close();
}

/// Returns a kernel with the bodies of all members' kernels.
func::FuncOp JoinLaunchesPass::findOrMakeKernel(ArrayRef<LaunchOp> group,
                                                const JoinedOperands &operands,
                                                ArrayRef<int64_t> tied, TypeRange results) {
  std::string key;
  for (LaunchOp launch : group) {
    key += launch.getKernel();
    for (Value operand : launch->getOperands()) {
      key += operand.getType().isIndex() ? " n" : " " + std::to_string(operands.numberOf(operand));
    }
    key += ";";
  }
  func::FuncOp &kernel = joinedKernels[key];
  if (kernel) {
    return kernel;
  }
  OpBuilder builder = OpBuilder::atBlockEnd(getOperation().getBody());
  StringRef kind = findWork(kernelOf(group.front())).front()->getName().stripDialect();
  std::string name = ("kernel_joined_" + kind + "_" + Twine(joinedKernels.size() - 1)).str();
  SmallVector<Value> all = operands.all();
  auto type = builder.getFunctionType(TypeRange(ValueRange(all)), results);
  kernel = func::FuncOp::create(builder, group.front()->getLoc(), name, type);
  kernel.setPrivate();
  kernel->setAttr(kTiedAttrName, builder.getDenseI64ArrayAttr(tied));
  Block *body = kernel.addEntryBlock();
  builder.setInsertionPointToStart(body);
  SmallVector<Value> values;
  unsigned nextNumber = 0;
  for (LaunchOp launch : group) {
    Block &code = kernelOf(launch).front();
    IRMapping mapping;
    for (auto [argument, operand] : llvm::zip_equal(code.getArguments(), launch->getOperands())) {
      mapping.map(argument,
                  body->getArgument(operand.getType().isIndex() ? nextNumber++
                                                                : operands.numberOf(operand)));
    }
    for (Operation &op : code.without_terminator()) {
      builder.clone(op, mapping);
    }
    for (Value value : code.getTerminator()->getOperands()) {
      values.push_back(mapping.lookup(value));
    }
  }
  func::ReturnOp::create(builder, kernel.getLoc(), values);
  return kernel;
}

void JoinLaunchesPass::join(ArrayRef<LaunchOp> group) {
  JoinedOperands operands(group);
  SmallVector<int64_t> tied;
  SmallVector<Type> results;
  SmallVector<Location> locations;
  for (LaunchOp launch : group) {
    for (auto [operand, type] : llvm::zip_equal(launch.getTied(), launch.getResultTypes())) {
      tied.push_back(operand < 0 ? -1 : operands.numberOf(launch->getOperand(operand)));
      results.push_back(type);
    }
    locations.push_back(launch.getLoc());
  }
  func::FuncOp kernel = findOrMakeKernel(group, operands, tied, results);
  // At the last launch, after all operands; those of the others have no readers before it.
  LaunchOp last = group.back();
  OpBuilder builder(last);
  auto launch = LaunchOp::create(builder, builder.getFusedLoc(locations, builder.getUnitAttr()),
                                 results, kernel.getSymName(), operands.all(), tied);
  size_t next = 0;
  for (LaunchOp member : group) {
    for (Value result : member->getResults()) {
      result.replaceAllUsesWith(launch->getResult(next++));
    }
    member->erase();
  }
  ++joinedLaunches;
  members += group.size();
}

} // namespace
} // namespace weft
