//===- LowerQuantize.cpp - rounding to FP8 -------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockSums.h"
#include "Models.h"
#include "SharedTiles.h"
#include "weft/Dialect/Weft/IR/Fp8Ops.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "weft-rt/DeviceImage.h"

#include <numeric>

namespace weft::lower {

using namespace mlir;

namespace {

/// Arithmetic on the bits of floats of one type, f32 or f64.
class Bits {
public:
  Bits(Code &code, Type type)
      : code(code), type(type),
        integerType(IntegerType::get(type.getContext(), type.getIntOrFloatBitWidth())),
        mantissaBits(llvm::cast<FloatType>(type).getFPMantissaWidth() - 1),
        bias((int64_t(1) << (type.getIntOrFloatBitWidth() - mantissaBits - 2)) - 1) {}

  Num integer(int64_t value) const {
    return code.constant(integerType, IntegerAttr::get(integerType, value));
  }
  Num of(Num a) const { return reinterpret(a, integerType); }
  Num toReal(Num bits) const { return reinterpret(bits, type); }
  /// Returns a number's exponent field; and the power of two with such a field.
  Num exponentOf(Num bits) const {
    return code.num(
        arith::ShRUIOp::create(builder(), code.getLoc(), magnitude(bits), integer(mantissaBits)));
  }
  Num powerOf(Num exponent) const {
    return code.num(
        arith::ShLIOp::create(builder(), code.getLoc(), exponent, integer(mantissaBits)));
  }
  /// Returns the bits of 1.75 times a power of two.
  Num largest(int64_t exponent) const {
    return integer(((exponent + bias) << mantissaBits) | (int64_t(3) << (mantissaBits - 2)));
  }
  Num infinity() const { return integer((2 * bias + 1) << mantissaBits); }
  /// Returns the bits without the sign.
  Num magnitude(Num bits) const { return bits & integer(~signBit()); }
  Num sign(Num bits) const { return bits & integer(signBit()); }
  Num max(Num a, Num b) const {
    return code.num(arith::MaxSIOp::create(builder(), code.getLoc(), a, b));
  }
  Num min(Num a, Num b) const {
    return code.num(arith::MinSIOp::create(builder(), code.getLoc(), a, b));
  }

  int64_t getMantissaBits() const { return mantissaBits; }
  int64_t getBias() const { return bias; }

private:
  OpBuilder &builder() const { return code.getBuilder(); }
  int64_t signBit() const {
    return int64_t(uint64_t(1) << 63) >> (64 - type.getIntOrFloatBitWidth());
  }
  Num reinterpret(Num a, Type to) const {
    return code.num(arith::BitcastOp::create(builder(), code.getLoc(), to, a));
  }

  Code &code;
  Type type;
  IntegerType integerType;
  int64_t mantissaBits, bias;
};

/// A format whose greatest number is 1.75 · 2^greatestExponent.
struct Format {
  int64_t mantissaBits, leastExponent, greatestExponent;
};

Format formatOf(Float8 format) {
  const llvm::fltSemantics &semantics = semanticsOf(format);
  return {llvm::APFloat::semanticsPrecision(semantics) - 1,
          llvm::APFloat::semanticsMinExponent(semantics),
          llvm::APFloat::semanticsMaxExponent(semantics)};
}

struct LowerAmax : HostModel<LowerAmax, AmaxOp> {
  static void lower(Code &code, AmaxOp, AmaxOp::Adaptor operands, ValueRange results) {
    Buffer x = code.buffer(operands.getInput()).flat(), output = code.buffer(results[0]);
    Bits bits(code, x.getElementType());
    if (code.isForDevice()) {
      lowerForDevice(code, x, output);
      return;
    }
    // Without signs, the bits of floats order them, and NaN comes last.
    Num greatest =
        code.carry(code.index(0), code.index(x.getElementCount()), 1, {bits.integer(0)},
                   [&](Num i, ArrayRef<Num> carried) {
                     return Nums{bits.max(carried.front(), bits.magnitude(bits.of(x(i))))};
                   })
            .front();
    output.store(bits.toReal(greatest));
  }

  /// Blocks take turns at parts of as many numbers as their threads load at once; one block
  /// combines their maxima with that of the remainder. Keeps NaN.
  static void lowerForDevice(Code &code, Buffer x, Buffer output) {
    Bits bits(code, x.getElementType());
    int64_t size = x.getElementCount(), part = rt::kBlockThreads * code.countLanes();
    int64_t blocks = countSharing(code, 1, size), parts = size / part;
    int64_t done = blocks > 1 ? parts * part : 0;
    Num none = code.real(x.getElementType(), 0);
    auto magnitude = [&](Num i) { return bits.toReal(bits.magnitude(bits.of(x(i)))); };
    Buffer maxima;
    if (done) {
      maxima = code.lasting(x.getElementType(), {blocks});
      code.blocks(blocks, part, [&](Num block) {
        Num greatest = code.maximumOfParts(none, block, code.index(parts), blocks, magnitude);
        code.once([&] { maxima.store(greatest, block); });
      });
    }
    code.blocks(1, std::max(size - done, blocks), [&](Num) {
      Num greatest = code.maximum(none, code.index(0), code.index(size - done),
                                  [&](Num i) { return magnitude(i + done); });
      if (done) {
        greatest = code.maximum(greatest, code.index(0), code.index(blocks),
                                [&](Num block) { return maxima(block); });
      }
      code.once([&] { output.store(greatest); });
    });
  }
};

/// Returns the exponent field of the scale: the largest with which `amax` fits the format and the
/// scale's inverse is normal.
Num scaleExponent(const Bits &bits, const Format &format, Num amax) {
  // amax = f · 2^e with f from 1 to 2: 2^(greatest - e) if f is at most 1.75, else half of that.
  int64_t quarter = int64_t(1) << (bits.getMantissaBits() - 2);
  Num roundedUp = bits.exponentOf(amax + bits.integer(quarter - 1));
  int64_t bias = bits.getBias();
  return bits.min(bits.integer(format.greatestExponent + 2 * bias) - roundedUp,
                  bits.integer(2 * bias - 1));
}

/// Rounds scaled numbers to the format, and scales them back.
class Rounding {
public:
  Rounding(Code &code, Bits bits, Float8 name, Num amax)
      : code(code), bits(bits), format(formatOf(name)),
        exponent(scaleExponent(bits, format, bits.of(amax))),
        scale(bits.toReal(bits.powerOf(exponent))),
        inverse(bits.toReal(bits.powerOf(bits.integer(2 * bits.getBias()) - exponent))),
        least(bits.integer(format.leastExponent + bits.getBias())),
        dropped(bits.integer(bits.getMantissaBits() - format.mantissaBits)),
        largest(bits.largest(format.greatestExponent)), infinity(bits.infinity()) {}

  /// 1 / scale.
  Num factor() const { return inverse; }

  Num quantized(Num x) const {
    Num given = bits.of(x);
    return bits.toReal(bits.of(rounded(x) * inverse) ^ bits.sign(given));
  }

  /// Returns the byte of an f32 number.
  Num encoded(Num x) const {
    // Below the normal numbers, the last places of a sum with this power are the format's steps.
    int64_t shift = bits.getMantissaBits() - format.mantissaBits;
    int64_t ofFormat = (int64_t(1) << (7 - format.mantissaBits - 1)) - 1;
    Num power = bits.powerOf(least + dropped), given = bits.of(x), number = rounded(x);
    Num small = bits.of(number + bits.toReal(power)) - power;
    Num normal = (bits.of(number) >> shift) -
                 bits.integer((bits.getBias() - ofFormat) << format.mantissaBits);
    Num isSmall = bits.of(number) < bits.powerOf(least);
    Num magnitude = code.select(isSmall, small, normal);
    constexpr int64_t kNoNumber = 0x7F;
    Num isFinite = bits.magnitude(given) < infinity;
    magnitude = code.select(isFinite, magnitude, bits.integer(kNoNumber));
    Num byte = magnitude ^ (bits.sign(given) >> (kWord - kByte));
    OpBuilder &builder = code.getBuilder();
    return code.num(arith::TruncIOp::create(builder, code.getLoc(), builder.getI8Type(), byte));
  }

private:
  static constexpr int64_t kByte = 8, kWord = 32;

  /// Returns the rounded magnitude, scaled.
  Num rounded(Num x) const {
    Num given = bits.of(x), magnitude = bits.magnitude(bits.of(x * scale));
    Num isFinite = bits.magnitude(given) < infinity;
    Num scaled = code.select(isFinite, bits.min(magnitude, largest), magnitude);
    // This power of two is so large that a sum with it has the format's bits only: adding it
    // rounds.
    Num power = bits.powerOf(bits.max(bits.exponentOf(scaled), least) + dropped);
    Num rounding = bits.toReal(power);
    return (bits.toReal(scaled) + rounding) - rounding;
  }

  Code &code;
  Bits bits;
  Format format;
  Num exponent, scale, inverse, least, dropped, largest, infinity;
};

struct LowerQuantize : HostModel<LowerQuantize, QuantizeOp> {
  static void lower(Code &code, QuantizeOp op, QuantizeOp::Adaptor operands, ValueRange results) {
    Buffer x = code.buffer(operands.getInput()).flat(), y = code.buffer(results[0]).flat();
    Rounding rounding(code, Bits(code, x.getElementType()), op.getFormat(),
                      code.buffer(operands.getAmax())());
    code.elements({x.getElementCount()}, [&](ArrayRef<Num> at) {
      y.store(rounding.quantized(x(at.front())), at.front());
    });
  }

  /// The code writes an element after it has read it.
  bool mayReuse(Operation *op, unsigned operand, unsigned) const {
    return operand == 0 && op->getOperand(0).getType() == op->getResult(0).getType();
  }
};

struct LowerEncode : HostModel<LowerEncode, EncodeOp> {
  static void lower(Code &code, EncodeOp op, EncodeOp::Adaptor operands, ValueRange results) {
    Buffer x = code.buffer(operands.getInput());
    Rounding rounding(code, Bits(code, x.getElementType()), op.getFormat(),
                      code.buffer(operands.getAmax())());
    int64_t count = x.getElementCount(), first = 1;
    for (int64_t size : x.getShape().take_front(op.getLead())) {
      first *= size;
    }
    auto next = results.begin();
    Buffer rows = op.getRows() ? code.buffer(*next++) : Buffer();
    Buffer turned = op.getTurned() ? code.buffer(*next++) : Buffer();
    Type type = op.getRows() ? rows.getStoredType() : turned.getStoredType();
    auto store = [&](Buffer to, Num byte, ArrayRef<Num> at) {
      Value bits = arith::BitcastOp::create(code.getBuilder(), code.getLoc(), type, byte);
      to.storeStored(code.num(bits), at);
    };
    Buffer factor = code.buffer(*next);
    auto storeFactor = [&](Num round) {
      Num isFirst = round == int64_t(0);
      auto write = [&] { factor.store(rounding.factor()); };
      code.when(isFirst, [&] {
        code.isForDevice() ? code.when(code.thread() == int64_t(0), write) : write();
      });
    };
    if (!turned) {
      // As long rows as fit, since a block takes one.
      constexpr int64_t kRow = 4096;
      int64_t row = std::gcd(count, kRow);
      bool isLong = row >= x.rows().getSize(1);
      Buffer from = isLong ? x.view({count / row, row}) : x.rows();
      Buffer to = rows.view(from.getShape());
      code.blocks(from.getSize(0), from.getSize(1), [&](Num i) {
        code.across(from.getSize(1),
                    [&](Num j) { store(to, rounding.encoded(from(i, j)), {i, j}); });
        storeFactor(i);
      });
      return;
    }
    Buffer from = x.view({first, count / first}), to = turned.view({count / first, first});
    rows = rows ? rows.view({first, count / first}) : rows;
    auto encode = [&](Num i, Num j) {
      Num byte = rounding.encoded(from(i, j));
      if (rows) {
        store(rows, byte, {i, j});
      }
      return byte;
    };
    auto put = [&](Num byte, Num i, Num j) { store(to, byte, {j, i}); };
    turn(code, from, encode, put, storeFactor);
  }

private:
  /// Encodes numbers in order, and writes them where neighbors are those of a column.
  static void turn(Code &code, Buffer from, function_ref<Num(Num, Num)> encode,
                   function_ref<void(Num, Num, Num)> put, function_ref<void(Num)> storeFactor) {
    int64_t rows = from.getSize(0), columns = from.getSize(1);
    if (!code.isForDevice()) {
      code.blocks(rows, columns, [&](Num i) {
        code.across(columns, [&](Num j) { put(encode(i, j), i, j); });
        storeFactor(i);
      });
      return;
    }
    constexpr int64_t kSide = kTileSide;
    int64_t tiles[] = {int64_t(llvm::divideCeil(rows, kSide)),
                       int64_t(llvm::divideCeil(columns, kSide))};
    code.blocks(Code::countOf(tiles), kSide * kSide, [&](Num block) {
      Nums place = code.placeOf(block, tiles);
      Num firstRow = place[0] * kSide, firstColumn = place[1] * kSide;
      Buffer tile = sharedTile(code, code.getBuilder().getI8Type());
      overTile(code, {firstRow, rows}, {firstColumn, columns}, [&](Num row, Num column) {
        tile.storeStored(encode(firstRow + row, firstColumn + column), {row, column});
      });
      code.barrier();
      overTile(code, {firstColumn, columns}, {firstRow, rows}, [&](Num column, Num row) {
        put(tile.loadStored({row, column}), firstRow + row, firstColumn + column);
      });
      storeFactor(block);
      // The next tile may reuse the memory.
      code.barrier();
    });
  }
};

} // namespace

void attachQuantizeModels(MLIRContext &context) {
  AmaxOp::attachInterface<LowerAmax>(context);
  QuantizeOp::attachInterface<LowerQuantize>(context);
  EncodeOp::attachInterface<LowerEncode>(context);
}

} // namespace weft::lower
