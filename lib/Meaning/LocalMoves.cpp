//===- LocalMoves.cpp - ops that only move elements, and collectives ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A collective moves or reduces elements one by one. So it does not matter whether it gets a
// tensor, or one that holds the tensor among others: the reduction of moved elements is the moved
// reduction; a rank's shard of a reduction is the elements at its place; and the gathered shards
// are those of all ranks, one after the other, in another order.
//
//===----------------------------------------------------------------------===//

#include "LocalProgram.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace weft::meaning {

int64_t LocalOps::sizeOf(ArrayAttr axes) const {
  int64_t size = 1;
  for (auto axis : axes.getAsRange<StringAttr>()) {
    size *= mesh.getSizes()[mesh.getIndex(axis)];
  }
  return size;
}

/// The number of a rank in its group, as the ops that compute it would.
Print LocalOps::placeIn(ArrayAttr axes) const {
  Print place;
  for (auto axis : axes.getAsRange<StringAttr>()) {
    Print coordinate = (Words() << uint64_t('X') << axis.getValue()).print();
    place = place * Print::of(mesh.getSizes()[mesh.getIndex(axis)]) + coordinate;
  }
  return place;
}

ArrayId LocalOps::reduce(ArrayId array, bool isMax, ArrayAttr axes) {
  auto one = [&](ArrayId source) {
    Print print = (Words() << uint64_t(isMax ? 'H' : 'A') << axes.getAsOpaquePointer()
                           << arrays[source].print)
                      .print();
    return arrays.other(print, arrays[source].count);
  };
  // Where elements come from must not depend on the rank: others would be added.
  return arrays.mapSources(array, one, /*mayShift=*/false);
}

/// Other ranks' quantized numbers are quantized alike: Partition's proof shows that all ranks have
/// one maximum, that of the whole tensor.
ArrayId LocalOps::received(ArrayId array, ArrayId source) {
  auto found = quantizations.find(source);
  if (found != quantizations.end()) {
    quantizations[array] = Print(found->second);
  }
  return array;
}

ArrayId LocalOps::permute(ArrayId array, ArrayRef<int64_t> sources, ArrayAttr axes) {
  auto one = [&](ArrayId source) {
    Print print =
        (Words() << uint64_t('P') << axes.getAsOpaquePointer() << sources << arrays[source].print)
            .print();
    return received(arrays.other(print, arrays[source].count), source);
  };
  return arrays.mapSources(array, one, /*mayShift=*/false);
}

/// All shards, one after the other, then in the order of the result.
std::optional<ArrayId> LocalOps::gather(ArrayId array, Shape shape, int64_t dim, ArrayAttr axes) {
  int64_t count = sizeOf(axes);
  ArrayId all = arrays.stack(array, count, [&](ArrayId source) {
    Print print =
        (Words() << uint64_t('G') << axes.getAsOpaquePointer() << arrays[source].print).print();
    return received(arrays.other(print, arrays[source].count * count), source);
  });
  Sizes stacked = {count};
  stacked.append(shape.begin(), shape.end());
  SmallVector<int64_t> order;
  for (int64_t own = 0; own < int64_t(shape.size()); ++own) {
    if (own == dim) {
      order.push_back(0);
    }
    order.push_back(own + 1);
  }
  return arrays.transpose(all, stacked, order);
}

/// A rank's own part of what all ranks have.
std::optional<ArrayId> LocalOps::exchange(ArrayId array, Shape shape, int64_t split, int64_t concat,
                                          ArrayAttr axes) {
  std::optional<ArrayId> all = gather(array, shape, concat, axes);
  Sizes whole(shape.begin(), shape.end());
  whole[concat] *= sizeOf(axes);
  return all ? arrays.shard(*all, whole, split, sizeOf(axes), placeIn(axes)) : std::nullopt;
}

LocalValue LocalOps::collective(const Group &group, Shape shape, ArrayId array) {
  std::optional<ArrayId> result;
  int64_t count = sizeOf(group.axes), elements = arrays[array].count;
  switch (group.kind) {
  case rt::CollectiveKind::AllReduce:
    result = reduce(array, group.isMax, group.axes);
    break;
  case rt::CollectiveKind::ReduceScatter:
    result = arrays.shard(reduce(array, group.isMax, group.axes), shape, group.dim, count,
                          placeIn(group.axes));
    elements /= count;
    break;
  case rt::CollectiveKind::AllGather:
    result = gather(array, shape, group.dim, group.axes);
    elements *= count;
    break;
  case rt::CollectiveKind::AllToAll:
    result = exchange(array, shape, group.dim, group.dim2, group.axes);
    break;
  case rt::CollectiveKind::Permute:
    result = permute(array, group.sources, group.axes);
    break;
  case rt::CollectiveKind::Transfer: // Between rank classes: see Transfers.h.
    break;
  }
  if (!result) {
    Print print = (Words() << uint64_t('K') << uint64_t(group.kind) << uint64_t(group.isMax)
                           << group.axes.getAsOpaquePointer() << uint64_t(group.dim)
                           << uint64_t(group.dim2) << shape << arrays[array].print)
                      .print();
    result = arrays.other(print, elements);
  }
  return {*result, {}, {}};
}

LocalValue LocalOps::collective(const rt::Collective &collective, LocalValue operand) {
  SmallVector<Attribute> names;
  for (uint32_t axis : collective.axes) {
    names.push_back(mesh.getNames()[axis]);
  }
  Group group{collective.kind,
              collective.reduction == rt::ReductionKind::Max,
              ArrayAttr::get(mesh.getContext(), names),
              collective.dim,
              collective.dim2,
              {collective.sources.begin(), collective.sources.end()}};
  return this->collective(group, collective.shape, operand.array);
}

std::optional<LocalOps::Group> LocalOps::groupOf(Operation *op) {
  using Kind = rt::CollectiveKind;
  return TypeSwitch<Operation *, std::optional<Group>>(op)
      .Case([&](AllReduceOp own) {
        bool isMax = own.getReduction() == ReductionKind::Max;
        return Group{Kind::AllReduce, isMax, own.getAxes(), 0, 0, {}};
      })
      .Case([&](ReduceScatterOp own) {
        bool isMax = own.getReduction() == ReductionKind::Max;
        return Group{Kind::ReduceScatter, isMax, own.getAxes(), int64_t(own.getDim()), 0, {}};
      })
      .Case([&](AllGatherOp own) {
        return Group{Kind::AllGather, false, own.getAxes(), int64_t(own.getDim()), 0, {}};
      })
      .Case([&](AllToAllOp own) {
        auto split = int64_t(own.getSplit()), concat = int64_t(own.getConcat());
        return Group{Kind::AllToAll, false, own.getAxes(), split, concat, {}};
      })
      .Case([&](PermuteOp own) {
        SmallVector<int64_t> sources(own.getSources());
        return Group{Kind::Permute, false, own.getAxes(), 0, 0, sources};
      })
      .Default([](Operation *) { return std::nullopt; });
}

std::optional<ArrayId> LocalOps::move(Operation *op, ArrayRef<LocalValue> operands) {
  return TypeSwitch<Operation *, std::optional<ArrayId>>(op)
      .Case([&](ConcatOp own) {
        SmallVector<ArrayId> ids;
        SmallVector<Sizes> shapes;
        for (auto [value, input] : llvm::zip_equal(operands, own.getInputs())) {
          ids.push_back(value.array);
          shapes.push_back(shapeOf(input));
        }
        return arrays.concat(ids, shapes, int64_t(own.getDim()));
      })
      .Case([&](SliceOp own) {
        return arrays.shard(operands[0].array, shapeOf(own.getInput()), int64_t(own.getDim()),
                            sizeOf(own.getAxes()), operands[1].number);
      })
      .Default([&](Operation *) -> std::optional<ArrayId> {
        std::optional<Group> group = groupOf(op);
        return group ? std::optional(
                           collective(*group, shapeOf(op->getOperand(0)), operands[0].array).array)
                     : std::nullopt;
      });
}

LocalValues LocalOps::split(SplitOp op, LocalValue operand) {
  LocalValues results;
  int64_t start = 0;
  Sizes shape = shapeOf(op.getInput());
  for (Value output : op.getOutputs()) {
    int64_t length = shapeOf(output)[int64_t(op.getDim())];
    std::optional<ArrayId> part =
        arrays.part(operand.array, shape, int64_t(op.getDim()), start, length);
    if (!part) {
      return unknown(op, {operand});
    }
    results.push_back({*part, {}, {}});
    start += length;
  }
  return results;
}

} // namespace weft::meaning
