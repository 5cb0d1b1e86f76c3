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

/// Returns the mean of `count` numbers with the sum `sum`. A device's division takes much longer
/// than its multiplication, and all threads wait for it.
Num meanOf(Code &code, Num sum, int64_t count) {
  return code.isForDevice() ? sum * (1.0 / double(count)) : sum / count;
}

RowStatistics computeStatistics(Code &code, NormKind kind, Buffer x, Num row, double epsilon) {
  Type type = x.getElementType();
  int64_t columns = x.getSize(1);
  RowStatistics statistics;
  if (kind == NormKind::Layer) {
    Num sum = code.sum(type, 0, columns, [&](Num j) { return x(row, j); });
    statistics.mean = meanOf(code, sum, columns);
  }
  Num squares = code.sum(type, 0, columns, [&](Num j) {
    Num value = x(row, j);
    Num distance = statistics.mean ? value - statistics.mean : value;
    return distance * distance;
  });
  statistics.factor = code.real(type, 1) / code.sqrt(meanOf(code, squares, columns) + epsilon);
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
      row.statistics.mean = meanOf(code, means[0], columns);
      row.mean = meanOf(code, means[1], columns);
    }
    Nums totals = sumBoth([&](Num value, Num scaled) {
      Num distance = row.statistics.mean ? value - row.statistics.mean : value;
      return Nums{distance * distance, scaled * distance};
    });
    Num variance = meanOf(code, totals[0], columns) + op.getEpsilon().convertToDouble();
    row.statistics.factor = code.real(type, 1) / code.sqrt(variance);
    row.along = meanOf(code, totals[1], columns) * row.statistics.factor;
    return row;
  }

  /// Returns how many rounds share the rows: those of as many blocks as a device of 132
  /// multiprocessors runs at once, by the registers of a thread that keeps `extra` values for each
  /// column: sums, and operands of maps of what it loads and stores.
  static int64_t countShares(Code &code, int64_t rows, int64_t columns, int64_t extra) {
    constexpr int64_t kThreads = rt::kBlockThreads, kWarp = 32;
    // A multiprocessor has four schedulers, each with registers of its own for whole warps.
    constexpr int64_t kSchedulers = 4, kRegisters = 16384;
    int64_t chunks = llvm::divideCeil(columns, code.countLanes());
    int64_t rounds = code.countRounds(columns);
    int64_t threads = rounds > 1 || chunks > kThreads ? kThreads : llvm::alignTo(chunks, kWarp);
    int64_t warps = kSchedulers * (kRegisters / (kWarp * (72 + 8 * extra)));
    int64_t each = chunks > 2 * kThreads ? 1 : chunks > kThreads ? 2 : warps * kWarp / threads;
    return rounds * std::min<int64_t>(llvm::divideCeil(rows, rounds), 132 * each);
  }

  /// The sums of a round's rows for the gradients of scale and bias, in registers.
  struct Sums {
    Sums(Code &code, Type type, int64_t columns, int64_t count)
        : code(code), type(type), columns(columns) {
      for (int64_t i = 0; i < count; ++i) {
        kept.push_back(code.keep(type, columns));
      }
      code.across(columns, [&](Num) {
        for (const Kept &sum : kept) {
          code.setKept(sum, code.real(type, 0));
        }
      });
    }

    void add(Num gradient, Num normalized) {
      code.setKept(kept[0], code.kept(kept[0]) + gradient * normalized);
      if (kept.size() > 1) {
        code.setKept(kept[1], code.kept(kept[1]) + gradient);
      }
    }

    /// Adds up the sums of a block's `rounds`, in a fixed order; the first round has the result.
    void combine(Num round, int64_t rounds) {
      if (rounds == 1) {
        return;
      }
      int64_t half = rounds / 2;
      Buffer slots = code.shared(type, {half, int64_t(kept.size()), columns});
      for (; half >= 1; half /= 2) {
        code.when(code.lessUnsigned(round - half, code.index(half)), [&] {
          forAll([&](const Kept &sum, Num i, Num j) {
            slots.store(code.kept(sum), round - half, i, j);
          });
        });
        code.barrier();
        code.when(round < half, [&] {
          forAll([&](const Kept &sum, Num i, Num j) {
            code.setKept(sum, code.kept(sum) + slots(round, i, j));
          });
        });
        code.barrier();
      }
    }

    void forAll(function_ref<void(const Kept &, Num, Num)> body) {
      code.across(columns, [&](Num j) {
        for (auto [number, sum] : llvm::enumerate(kept)) {
          body(sum, code.index(static_cast<int64_t>(number)), j);
        }
      });
    }

    Code &code;
    Type type;
    int64_t columns;
    llvm::SmallVector<Kept> kept;
  };

  /// Rounds share the rows. Each keeps its sums for the gradients of scale and bias in registers; a
  /// later phase adds up the blocks' sums.
  static void lowerForDevice(Code &code, NormGradOp op, NormGradOp::Adaptor operands,
                             ValueRange results) {
    Buffer x = code.buffer(operands.getInput()).rows();
    Buffer gradient = code.buffer(operands.getGradient()).rows();
    Buffer scale = code.buffer(operands.getScale());
    Buffer inputGradient = code.buffer(results[0]).rows();
    Type type = x.getElementType();
    int64_t rows = x.getSize(0), columns = x.getSize(1);
    int64_t count = static_cast<int64_t>(results.size()) - 1;
    int64_t mapped = llvm::count_if(std::array{gradient, inputGradient}, Code::isInlined);
    int64_t all = countShares(code, rows, columns, count + mapped);
    int64_t rounds = code.countRounds(columns);
    bool isLayer = op.getKind() == NormKind::Layer;
    Buffer parts = code.lasting(type, {count, all / rounds, columns});

    code.blocks(all, columns, [&](Num first) {
      Sums sums(code, type, columns, count);
      code.loop(first, code.index(rows), all, [&](Num i) {
        Row row = computeRowAtOnce(code, op, x, gradient, scale, i);
        code.across(columns, [&](Num j) {
          Num g = gradient(i, j), normalized = row.statistics.normalize(x(i, j));
          sums.add(g, normalized);
          Num rest = g * scale(j) - normalized * row.along;
          inputGradient.store((isLayer ? rest - row.mean : rest) * row.statistics.factor, i, j);
        });
      });
      Num round = code.remainder(first, rounds), block = first / rounds;
      sums.combine(round, rounds);
      code.when(round == int64_t(0), [&] {
        sums.forAll(
            [&](const Kept &sum, Num i, Num j) { parts.store(code.kept(sum), i, block, j); });
      });
    });
    auto partsOf = [&](Num block, Num column) {
      Nums values;
      for (int64_t i = 0; i < count; ++i) {
        values.push_back(parts(code.index(i), block, column));
      }
      return values;
    };
    sumColumns(code, {type, count}, all / rounds, columns, partsOf,
               [&](Num column, ArrayRef<Num> totals) {
                 for (auto [total, result] : llvm::zip_equal(totals, results.drop_front())) {
                   code.buffer(result).store(total, column);
                 }
               });
  }

  /// The input's gradient may take over the input or the gradient; see LowerNorm.
  bool mayReuse(Operation *, unsigned operand, unsigned result) const {
    return result == 0 && operand != 1;
  }

  /// The input's gradient.
  bool storesOnce(Operation *, unsigned result) const { return result == 0; }

  /// The gradient of the result.
  bool loadsSingly(Operation *, unsigned operand) const { return operand == 2; }
};

} // namespace

void attachNormModels(MLIRContext &context) {
  NormOp::attachInterface<LowerNorm>(context);
  NormGradOp::attachInterface<LowerNormGrad>(context);
}

} // namespace weft::lower
