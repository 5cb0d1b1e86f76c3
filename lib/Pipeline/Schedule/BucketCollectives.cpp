//===- BucketCollectives.cpp - small collectives joined -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bucket.h"
#include "LiveBytes.h"
#include "OpKinds.h"
#include "weft/Pipeline/ReshardProblem.h"
#include "weft/Pipeline/Schedule/Passes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_BUCKETCOLLECTIVESPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

/// Values that depend on no tensors but the results of some collectives.
class TransitiveUsers {
public:
  void add(Operation *op) { values.insert(op->result_begin(), op->result_end()); }

  bool isReadBy(Operation *op) const {
    return llvm::any_of(op->getOperands(), [&](Value value) { return values.contains(value); });
  }

  /// Returns true if `op`, which reads some of the values, reads no other tensor and may move
  /// behind the last collective.
  bool mayFollow(Operation *op) const {
    auto observe = dyn_cast<ObserveOp>(op);
    bool hasPlace =
        observe ? mayEndRun(observe) : !isPure(op) || op->hasTrait<OpTrait::IsTerminator>();
    return !hasPlace && llvm::all_of(op->getOperands(), [&](Value value) {
      return values.contains(value) || !isa<RankedTensorType>(value.getType());
    });
  }

private:
  /// Those stand before ranks agree to go on.
  static bool mayEndRun(ObserveOp op) {
    return op.getLimit() || cast<RankedTensorType>(op.getValue().getType()).getRank() == 0;
  }

  DenseSet<Value> values;
};

/// A run takes no more members once its operands and results take this part of the machine's
/// memory: computation that reads the results of one bucket can then run beside the next, and fewer
/// bytes exist twice at a time, in a bucket and taken apart.
constexpr double kEnoughOfMemory = 0.1;

/// Collectives of one kind, none of which needs another's result. Between the first and the last,
/// all users of their results can move behind the last.
struct Run {
  SmallVector<BucketMember> members;
  TransitiveUsers users;
  /// Of all operands and results.
  double bytes = 0;

  void add(const BucketMember &member) {
    members.push_back(member);
    users.add(member.getOp());
    bytes += member.operandBytes() + member.resultBytes();
  }
};

class Bucketing {
public:
  Bucketing(Block &block, MeshAttr mesh, planner::Prices &prices, const cost::Predictor &machine,
            const LiveBytes &live)
      : block(block), mesh(mesh), prices(prices), machine(machine), live(live) {}

  /// Returns the number of members of each bucket.
  SmallVector<size_t> run() {
    SmallVector<size_t> buckets;
    while (joinSome(buckets)) {
    }
    return buckets;
  }

private:
  /// Joins the runs for which that pays, except those that overlap with a joined one: the ops that
  /// waited for that one may allow another run then.
  bool joinSome(SmallVector<size_t> &buckets) {
    size_t joinedUntil = 0;
    for (Run &run : findRuns()) { // In the order of their first members.
      if (places.lookup(run.members.front().getOp()) < joinedUntil) {
        continue;
      }
      SmallVector<BucketMember> members = choose(run.members);
      if (!members.empty()) {
        joinedUntil = places.lookup(members.back().getOp());
        buckets.push_back(members.size());
        join(members);
      } else if (joinedUntil == 0) {
        for (const BucketMember &member : run.members) {
          settled.insert(member.getOp());
        }
      }
    }
    return joinedUntil > 0;
  }

  std::vector<Run> findRuns() {
    std::vector<Run> runs;
    std::map<BucketKind, size_t> open;
    places.clear();
    for (auto [place, op] : llvm::enumerate(block)) {
      bool needsOne = false;
      std::optional<BucketMember> member = BucketMember::get(&op, mesh);
      for (auto at = open.begin(); at != open.end();) {
        TransitiveUsers &users = runs[at->second].users;
        bool isRead = users.isReadBy(&op), isOver = isRead && !users.mayFollow(&op);
        if (isRead && !isOver) {
          users.add(&op);
          needsOne |= member && at->first == member->getKind();
        }
        at = isOver ? open.erase(at) : std::next(at);
      }
      if (!member || needsOne || settled.contains(&op)) {
        continue;
      }
      auto [run, isNew] = open.try_emplace(member->getKind(), runs.size());
      if (isNew) {
        runs.emplace_back();
      }
      places[&op] = place;
      runs[run->second].add(*member);
      if (runs[run->second].bytes >= kEnoughOfMemory * machine.memoryBytes()) {
        open.erase(run);
      }
    }
    llvm::erase_if(runs, [](const Run &run) { return run.members.size() < 2; });
    return runs;
  }

  /// Returns the subset of `members` that is fastest when joined, the others staying separate, and
  /// whose bucket fits in memory; empty if there is none. Tries subsets by size, as the smallest
  /// members gain most.
  SmallVector<BucketMember> choose(ArrayRef<BucketMember> members) {
    SmallVector<size_t> order = llvm::to_vector(llvm::seq<size_t>(0, members.size()));
    llvm::sort(order, [&](size_t a, size_t b) {
      return std::pair(members[a].operandBytes(), a) < std::pair(members[b].operandBytes(), b);
    });
    double alone = 0, least = 0;
    SmallVector<BucketMember> bucket;
    size_t count = 0;
    for (auto [position, number] : llvm::enumerate(order)) {
      bucket.push_back(members[number]);
      alone += priceAlone(members[number], mesh, prices);
      double gain = alone - priceBucket(bucket, mesh, prices, machine);
      if (position > 0 && gain > least && fits(bucket)) {
        least = gain;
        count = position + 1;
      }
    }
    order.truncate(count);
    llvm::sort(order); // As they stand.
    return llvm::map_to_vector(order, [&](size_t number) { return members[number]; });
  }

  /// Returns true if members and bucket fit in memory with all other live values.
  bool fits(ArrayRef<BucketMember> members) const {
    double most = 0, bytes = 0;
    for (const BucketMember &member : members) {
      most = std::max(most, live.at(member.getOp()));
      bytes += 2 * (member.operandBytes() + member.resultBytes()) + member.permutedBytes();
    }
    return most + bytes <= machine.memoryBytes();
  }

  void join(ArrayRef<BucketMember> members) {
    Operation *last = members.back().getOp();
    TransitiveUsers users;
    auto next = members.begin();
    SmallVector<Operation *> followers;
    for (Operation *op = members.front().getOp(); op != last; op = op->getNextNode()) {
      if (op == next->getOp()) {
        ++next;
      } else if (users.isReadBy(op)) {
        followers.push_back(op);
      } else {
        continue;
      }
      users.add(op);
    }
    OpBuilder builder(last);
    settled.insert(buildBucket(builder, members));
    for (Operation *follower : followers) {
      follower->moveBefore(last);
    }
    for (const BucketMember &member : members) {
      member.getOp()->erase();
    }
  }

  Block &block;
  const MeshAttr mesh;
  planner::Prices &prices;
  const cost::Predictor &machine;
  const LiveBytes &live;
  /// Buckets, and collectives that join none.
  DenseSet<Operation *> settled;
  /// The positions of members in the block, as they were when their run was found.
  DenseMap<Operation *, size_t> places;
};

struct BucketCollectivesPass : impl::BucketCollectivesPassBase<BucketCollectivesPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto predictor = makePredictor(module, getArgument(), machine);
    if (failed(predictor)) {
      return signalPassFailure();
    }
    auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttrName);
    if (!mesh || !*predictor) {
      return; // Nothing to communicate, or nothing to weigh it by.
    }
    planner::Prices prices(mesh.getSizes(), predictor->get());
    LiveBytes live(module);
    for (auto function : module.getOps<func::FuncOp>()) {
      for (Block &block : function.getBody()) {
        for (size_t members : Bucketing(block, mesh, prices, **predictor, live).run()) {
          ++buckets;
          joined += members;
        }
      }
    }
  }
};

} // namespace
} // namespace weft
