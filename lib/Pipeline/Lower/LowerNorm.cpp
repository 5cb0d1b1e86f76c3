//===- LowerNorm.cpp - layer norm and RMS norm ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockSums.h"
#include "Models.h"

#include "weft-rt/DeviceImage.h"

namespace weft::lower {

using namespace mlir;

namespace {

/// The mean, which a norm subtracts from a row, and the factor for the difference.
struct RowStatistics {
  Num mean; // null for RMS norm
  Num factor;

  Num normalize(Num x) const { return mean ? (x - mean) * factor : x * factor; }
};

RowStatistics computeStatistics(Code &code, NormKind kind, Buffer x, Num row, double epsilon) {
  Type type = x.getElementType();
  int64_t columns = x.getSize(1);
  RowStatistics statistics;
  if (kind == NormKind::Layer) {
    statistics.mean = code.sum(type, 0, columns, [&](Num j) { return x(row, j); }) / columns;
  }
  Num tiles = code.sum(type, 0, columns, [&](Num j) {
    Num value = x(row, j);
    Num distance = statistics.mean ? value - statistics.mean : value;
    return distance * distance;
  });
  statistics.factor = code.real(type, 1) / code.sqrt(tiles / columns + epsilon);
  return statistics;
}

/// A vector that all rows use. Threads of a device load their elements before they synchronize.
class EarlyVector {
public:
  EarlyVector(Code &code, Buffer vector) : code(code), vector(vector) {
    if (vector && code.isForDevice() && code.keepsLittle(vector.getSize(0))) {
      kept = code.keep(vector.getElementType(), vector.getSize(0));
      code.across(vector.getSize(0), [&](Num j) { code.setKept(kept, vector(j)); });
    }
  }

  explicit operator bool() const { return static_cast<bool>(vector); }
  Num operator()(Num j) const { return kept.memory ? code.kept(kept) : vector(j); }

private:
  Code &code;
  Buffer vector;
  Kept kept;
};

struct LowerNorm : HostModel<LowerNorm, NormOp> {
  static void lower(Code &code, NormOp op, NormOp::Adaptor operands, ValueRange results) {
    Buffer x = code.buffer(operands.getInput()).rows(), y = code.buffer(results[0]).rows();
    Buffer scales = code.buffer(operands.getScale()), biases = code.buffer(operands.getBias());
    double epsilon = op.getEpsilon().convertToDouble();
    code.blocks(x.getSize(0), x.getSize(1),
                [&](Num i) {
                  EarlyVector scale(code, scales), bias(code, biases);
                  RowStatistics statistics = computeStatistics(code, op.getKind(), x, i, epsilon);
                  code.across(x.getSize(1), [&](Num j) {
                    Num scaled = statistics.normalize(x(i, j)) * scale(j);
                    y.store(bias ? scaled + bias(j) : scaled, i, j);
                  });
                },
                {.areRows = true, .areAlike = true});
  }

  /// The code writes a row after its statistics are known, elementwise.
  bool mayReuse(Operation *, unsigned operand, unsigned) const { return operand == 0; }
};

/// With n the normalized row, s the scale, g the gradient of the result, and means over the row:
/// the gradient of the input is factor * (g s - mean(g s) - n mean(g s n)), where an RMS norm lacks
/// the first mean; the gradient of the scale is the sum of g n over rows, and that of the bias the
/// sum of g.
struct LowerNormGrad : HostModel<LowerNormGrad, NormGradOp> {
  /// For one row: its statistics, mean(g s n) and mean(g s).
  struct Row {
    RowStatistics statistics;
    Num along, mean;
  };

  static Row computeRow(Code &code, NormGradOp op, Buffer x, Buffer gradient, Buffer scale, Num i) {
    int64_t columns = x.getSize(1);
    RowStatistics statistics =
        computeStatistics(code, op.getKind(), x, i, op.getEpsilon().convertToDouble());
    Nums totals = code.sums(x.getElementType(), code.index(0), code.index(columns), 2, [&](Num j) {
      Num scaled = gradient(i, j) * scale(j);
      return Nums{scaled * statistics.normalize(x(i, j)), scaled};
    });
    Num along = totals[0] / columns, mean = totals[1] / columns;
    return {statistics, along, mean};
  }

  static void lower(Code &code, NormGradOp op, NormGradOp::Adaptor operands, ValueRange results) {
    Buffer x = code.buffer(operands.getInput()).rows();
    Buffer gradient = code.buffer(operands.getGradient()).rows();
    Buffer scale = code.buffer(operands.getScale());
    Buffer inputGradient = code.buffer(results[0]).rows();
    Buffer scaleGradient = code.buffer(results[1]);
    Buffer biasGradient = code.buffer(results.size() > 2 ? results[2] : Value());
    int64_t columns = x.getSize(1);
    bool isLayer = op.getKind() == NormKind::Layer;
    if (code.isForDevice()) {
      lowerForDevice(code, op, operands, results);
      return;
    }

    code.fill(scaleGradient, 0);
    if (biasGradient) {
      code.fill(biasGradient, 0);
    }
    code.loop(0, x.getSize(0), [&](Num i) {
      Row row = computeRow(code, op, x, gradient, scale, i);
      code.loop(0, columns, [&](Num j) {
        Num g = gradient(i, j), normalized = row.statistics.normalize(x(i, j));
        scaleGradient.store(scaleGradient(j) + g * normalized, j);
        if (biasGradient) {
          biasGradient.store(biasGradient(j) + g, j);
        }
        Num rest = g * scale(j) - normalized * row.along;
        inputGradient.store((isLayer ? rest - row.mean : rest) * row.statistics.factor, i, j);
      });
    });
  }

  /// The same with one exchange between threads for each set of independent sums: over x and the
  /// gradient, which are loaded together, and for a layer norm over differences.
  static Row computeRowAtOnce(Code &code, NormGradOp op, Buffer x, Buffer gradient, Buffer scale,
                              Num i) {
    Type type = x.getElementType();
    int64_t columns = x.getSize(1);
    Row row;
    auto sumBoth = [&](function_ref<Nums(Num, Num)> terms) {
      return code.sums(type, code.index(0), code.index(columns), 2,
                       [&](Num j) { return terms(x(i, j), gradient(i, j) * scale(j)); });
    };
    if (op.getKind() == NormKind::Layer) {
      Nums means = sumBoth([](Num value, Num scaled) { return Nums{value, scaled}; });
      row.statistics.mean = means[0] / columns;
      row.mean = means[1] / columns;
    }
    Nums totals = sumBoth([&](Num value, Num scaled) {
      Num distance = row.statistics.mean ? value - row.statistics.mean : value;
      return Nums{distance * distance, scaled * distance};
    });
    Num variance = totals[0] / columns + op.getEpsilon().convertToDouble();
    row.statistics.factor = code.real(type, 1) / code.sqrt(variance);
    row.along = totals[1] / columns * row.statistics.factor;
    return row;
  }

  /// Returns as many as a device of 132 multiprocessors runs at once, by the registers for the sums
  /// of a thread's columns; blocks run several if rows are short.
  static int64_t countBlocks(Code &code, int64_t columns) {
    constexpr int64_t kThreads = rt::kBlockThreads;
    int64_t chunks = columns / code.countLanes();
    int64_t each = chunks <= kThreads ? 3 : chunks <= 2 * kThreads ? 2 : 1;
    return 132 * each * code.countRounds(columns);
  }

  /// Blocks share the rows. Each keeps its sums for the gradients of scale and bias in registers; a
  /// later phase adds up the blocks' sums.
  static void lowerForDevice(Code &code, NormGradOp op, NormGradOp::Adaptor operands,
                             ValueRange results) {
    Buffer x = code.buffer(operands.getInput()).rows();
    Buffer gradient = code.buffer(operands.getGradient()).rows();
    Buffer scale = code.buffer(operands.getScale());
    Buffer inputGradient = code.buffer(results[0]).rows();
    Type type = x.getElementType();
    int64_t rows = x.getSize(0), columns = x.getSize(1);
    int64_t blocks = std::min(rows, countBlocks(code, columns)),
            sums = static_cast<int64_t>(results.size()) - 1;
    bool isLayer = op.getKind() == NormKind::Layer;
    Buffer parts = code.lasting(type, {sums, blocks, columns});

    code.blocks(blocks, columns, [&](Num block) {
      llvm::SmallVector<Kept> kept;
      for (int64_t i = 0; i < sums; ++i) {
        kept.push_back(code.keep(type, columns));
      }
      code.across(columns, [&](Num) {
        for (const Kept &sum : kept) {
          code.setKept(sum, code.real(type, 0));
        }
      });
      code.loop(block, code.index(rows), blocks, [&](Num i) {
        Row row = computeRowAtOnce(code, op, x, gradient, scale, i);
        code.across(columns, [&](Num j) {
          Num g = gradient(i, j), normalized = row.statistics.normalize(x(i, j));
          code.setKept(kept[0], code.kept(kept[0]) + g * normalized);
          if (sums > 1) {
            code.setKept(kept[1], code.kept(kept[1]) + g);
          }
          Num rest = g * scale(j) - normalized * row.along;
          inputGradient.store((isLayer ? rest - row.mean : rest) * row.statistics.factor, i, j);
        });
      });
      code.across(columns, [&](Num j) {
        for (auto [number, sum] : llvm::enumerate(kept)) {
          parts.store(code.kept(sum), code.index(static_cast<int64_t>(number)), block, j);
        }
      });
    });
    auto partsOf = [&](Num block, Num column) {
      Nums values;
      for (int64_t i = 0; i < sums; ++i) {
        values.push_back(parts(code.index(i), block, column));
      }
      return values;
    };
    sumColumns(code, {type, sums}, blocks, columns, partsOf, [&](Num column, ArrayRef<Num> totals) {
      for (auto [total, result] : llvm::zip_equal(totals, results.drop_front())) {
        code.buffer(result).store(total, column);
      }
    });
  }

  /// The input's gradient may take over the input or the gradient; see LowerNorm.
  bool mayReuse(Operation *, unsigned operand, unsigned result) const {
    return result == 0 && operand != 1;
  }
};

} // namespace

void attachNormModels(MLIRContext &context) {
  NormOp::attachInterface<LowerNorm>(context);
  NormGradOp::attachInterface<LowerNormGrad>(context);
}

} // namespace weft::lower
