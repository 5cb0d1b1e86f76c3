//===- Code.cpp - building loops and arithmetic --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Lower/Code.h"

#include "Exponential.h"
#include "weft/Dialect/Weft/IR/AttributeNames.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace weft::lower {

using namespace mlir;

namespace {

constexpr arith::FastMathFlags kFused = arith::FastMathFlags::contract;
/// The bytes that a device's thread loads at once.
constexpr int64_t kLoadBytes = 16;

constexpr arith::FastMathFlags kReordered =
    arith::FastMathFlags::contract | arith::FastMathFlags::reassoc;

bool isFloat(Num a) { return isa<FloatType>(getElementTypeOrSelf(a.getType())); }

template <typename FloatOp, typename IntOp> Num binary(Num a, Num b) {
  Code &code = a.getCode();
  OpBuilder &builder = code.getBuilder();
  if (isFloat(a)) {
    return code.num(FloatOp::create(builder, code.getLoc(), a, b, kFused));
  }
  return code.num(IntOp::create(builder, code.getLoc(), a, b));
}

Num compare(arith::CmpFPredicate floats, arith::CmpIPredicate integers, Num a, Num b) {
  Code &code = a.getCode();
  OpBuilder &builder = code.getBuilder();
  if (isFloat(a)) {
    return code.num(arith::CmpFOp::create(builder, code.getLoc(), floats, a, b));
  }
  return code.num(arith::CmpIOp::create(builder, code.getLoc(), integers, a, b));
}

SmallVector<Value> valuesOf(ArrayRef<Num> nums) { return {nums.begin(), nums.end()}; }

Nums numsOf(Code &code, ValueRange values) {
  Nums nums;
  for (Value value : values) {
    nums.push_back(code.num(value));
  }
  return nums;
}

} // namespace

//===----------------------------------------------------------------------===//
// Num
//===----------------------------------------------------------------------===//

Num operator+(Num a, Num b) { return binary<arith::AddFOp, arith::AddIOp>(a, b); }
Num operator-(Num a, Num b) { return binary<arith::SubFOp, arith::SubIOp>(a, b); }
Num operator*(Num a, Num b) { return binary<arith::MulFOp, arith::MulIOp>(a, b); }
Num operator/(Num a, Num b) { return binary<arith::DivFOp, arith::DivSIOp>(a, b); }

Num operator^(Num a, Num b) {
  Code &code = a.getCode();
  return code.num(arith::XOrIOp::create(code.getBuilder(), code.getLoc(), a, b));
}

Num operator&(Num a, Num b) {
  Code &code = a.getCode();
  return code.num(arith::AndIOp::create(code.getBuilder(), code.getLoc(), a, b));
}

Num operator>>(Num a, int64_t bits) {
  Code &code = a.getCode();
  return code.num(
      arith::ShRUIOp::create(code.getBuilder(), code.getLoc(), a, constantLike(a, bits)));
}

Num operator-(Num a) {
  if (!isFloat(a)) {
    return constantLike(a, int64_t(0)) - a;
  }
  Code &code = a.getCode();
  return code.num(arith::NegFOp::create(code.getBuilder(), code.getLoc(), a));
}

Num operator<(Num a, Num b) {
  return compare(arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt, a, b);
}
Num operator<=(Num a, Num b) {
  return compare(arith::CmpFPredicate::OLE, arith::CmpIPredicate::sle, a, b);
}
Num operator==(Num a, Num b) {
  return compare(arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq, a, b);
}

Num constantLike(Num like, int64_t value) {
  if (isFloat(like)) {
    return constantLike(like, static_cast<double>(value));
  }
  return like.getCode().constant(like.getType(),
                                 IntegerAttr::get(like.getType(), APInt(64, value, true)));
}

Num constantLike(Num like, double value) { return like.getCode().real(like.getType(), value); }

//===----------------------------------------------------------------------===//
// Buffer
//===----------------------------------------------------------------------===//

Buffer::Buffer(Code &code, Value memref) : code(&code), memref(memref) {}

int64_t Buffer::getSize(int64_t dim) const { return getShape()[dim < 0 ? dim + getRank() : dim]; }

Num Buffer::load(ArrayRef<Num> indices) const {
  return code->toReal(loadStored(indices), getElementType());
}

void Buffer::store(Num value, ArrayRef<Num> indices) const {
  storeStored(code->toReal(value, getStoredType()), indices);
}

Num Buffer::loadStored(ArrayRef<Num> indices) const {
  auto [from, place] = code->shortest(memref, indices);
  return code->num(memref::LoadOp::create(code->getBuilder(), code->getLoc(), from, place));
}

void Buffer::storeStored(Num value, ArrayRef<Num> indices) const {
  auto [to, place] = code->shortest(memref, indices);
  memref::StoreOp::create(code->getBuilder(), code->getLoc(), value, to, place);
}

Num Buffer::loadVector(int64_t lanes, ArrayRef<Num> indices) const {
  auto type = VectorType::get({lanes}, getStoredType());
  Num stored = code->num(
      vector::LoadOp::create(code->getBuilder(), code->getLoc(), type, memref, valuesOf(indices)));
  return code->toReal(stored, type.clone(getElementType()));
}

void Buffer::storeVector(Num value, ArrayRef<Num> indices) const {
  Type type = cast<VectorType>(value.getType()).clone(getStoredType());
  vector::StoreOp::create(code->getBuilder(), code->getLoc(), code->toReal(value, type), memref,
                          valuesOf(indices));
}

Buffer Buffer::view(ArrayRef<int64_t> shape) const {
  if (shape == getShape()) {
    return *this;
  }
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t i = static_cast<int64_t>(shape.size()) - 2; i >= 0; --i) {
    strides[i] = strides[i + 1] * shape[i + 1];
  }
  auto type = MemRefType::get(shape, getStoredType(), MemRefLayoutAttrInterface(),
                              getType().getMemorySpace());
  return Buffer(*code, memref::ReinterpretCastOp::create(code->getBuilder(), code->getLoc(), type,
                                                         memref, /*offset=*/0, shape, strides));
}

//===----------------------------------------------------------------------===//
// Code: constants and loops
//===----------------------------------------------------------------------===//

Code::Code(FunctionOpInterface function, OpBuilder &builder, Location loc, Processor processor)
    : builder(builder), loc(loc), entry(&function.getFunctionBody().front()), processor(processor) {
  builder.setInsertionPointToEnd(entry);
  for (Type type : function.getArgumentTypes()) {
    auto memref = dyn_cast<MemRefType>(type);
    if (memref && memref.getRank() > 0 && memref.getElementType().getIntOrFloatBitWidth() >= 8) {
      lanes = std::max(lanes, kLoadBytes / sizeOf(memref.getElementType()));
    }
  }
}

bool Code::isInlined(const Buffer &buffer) {
  Value memref = buffer;
  while (auto view = memref.getDefiningOp<memref::ReinterpretCastOp>()) {
    memref = view.getSource();
  }
  return memref.getDefiningOp<memref::AllocaOp>() != nullptr;
}

Num Code::constant(Type type, Attribute value) {
  Value &known = constants[{type, value}];
  if (!known) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(entry);
    known = arith::ConstantOp::create(builder, loc, type, cast<TypedAttr>(value));
  }
  return num(known);
}

Num Code::index(int64_t value) {
  return constant(builder.getIndexType(), builder.getIndexAttr(value));
}

Num Code::integer(int64_t value) {
  return constant(builder.getI64Type(), builder.getI64IntegerAttr(value));
}

Num Code::real(Type type, double value) {
  Attribute element = builder.getFloatAttr(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type)) {
    element = DenseElementsAttr::get(vector, element);
  }
  return constant(type, element);
}

void Code::loop(Num from, Num to, int64_t step, function_ref<void(Num)> body) {
  carry(from, to, step, {}, [&](Num i, ArrayRef<Num>) {
    body(i);
    return Nums();
  });
}

void Code::nest(ArrayRef<int64_t> sizes, function_ref<void(ArrayRef<Num>)> body) {
  carryNest(sizes, {}, [&](ArrayRef<Num> indices, ArrayRef<Num>) {
    body(indices);
    return Nums();
  });
}

void Code::parallel(int64_t count, function_ref<void(Num)> body) {
  scf::ParallelOp::create(builder, loc, ValueRange(index(0)), ValueRange(index(count)),
                          ValueRange(index(1)),
                          [&](OpBuilder &, Location, ValueRange i) { body(num(i.front())); });
}

void Code::writesApart() { entry->back().setAttr(kApartAttrName, builder.getUnitAttr()); }

int64_t Code::countOf(ArrayRef<int64_t> sizes) {
  int64_t count = 1;
  for (int64_t size : sizes) {
    count *= size;
  }
  return count;
}

Num Code::neighbor(Num first, int64_t lane) {
  Num number = lane == 0 ? first : first + lane;
  neighbors[Value(number)] = {Value(first), lane};
  return number;
}

Nums Code::placeOf(Num i, ArrayRef<int64_t> sizes) {
  auto known = neighbors.find(Value(i));
  if (known != neighbors.end() && known->second.second != 0 && sizes.size() > 1 &&
      sizes.back() % lanes == 0) {
    auto [first, lane] = known->second;
    Nums place = placeOf(num(first), sizes);
    place.back() = place.back() + lane;
    return place;
  }
  Nums indices(sizes.size());
  for (size_t dim = sizes.size(); dim-- > 1; i = i / sizes[dim]) {
    indices[dim] = remainder(i, sizes[dim]);
  }
  if (!sizes.empty()) {
    indices[0] = i;
  }
  return indices;
}

void Code::parallelAll(ArrayRef<int64_t> sizes, function_ref<void(ArrayRef<Num>)> body) {
  parallel(countOf(sizes), [&](Num i) { body(placeOf(i, sizes)); });
}

void Code::parallelNest(ArrayRef<int64_t> sizes, function_ref<void(ArrayRef<Num>)> body) {
  if (sizes.size() <= 1) {
    parallelAll(sizes, body);
    return;
  }
  if (isForDevice()) {
    parallelAll(sizes, body);
    return;
  }
  parallelAll(sizes.drop_back(), [&](ArrayRef<Num> outer) {
    loop(0, sizes.back(), [&](Num i) {
      Nums indices(outer);
      indices.push_back(i);
      body(indices);
    });
  });
}

void Code::elements(ArrayRef<int64_t> sizes, function_ref<void(ArrayRef<Num>)> body) {
  if (!isForDevice() || sizes.empty()) {
    parallelNest(sizes, body);
    return;
  }
  // Chunks of rows if rows are whole chunks, else of all elements in order.
  bool isFlat = sizes.size() > 1 && sizes.back() % lanes != 0;
  SmallVector<int64_t> chunks(sizes);
  if (isFlat) {
    chunks = {countOf(sizes)};
  }
  int64_t whole = chunks.back() / lanes, rest = chunks.back() % lanes;
  chunks.back() = whole + rest;
  parallel(countOf(chunks), [&](Num number) {
    Nums first = placeOf(number, chunks);
    auto run = [&](Num last, Num place) {
      Nums at = isFlat ? placeOf(last, sizes) : first;
      if (!isFlat) {
        at.back() = last;
      }
      places = {
          Element{SmallVector<Value>(at.begin(), at.end()), SmallVector<int64_t>(sizes), place}};
      body(at);
      places.clear();
    };
    auto chunk = [&] {
      Num last = first.back() * lanes, place = number * lanes;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        run(lane == 0 ? last : last + lane, lane == 0 ? place : place + lane);
      }
    };
    auto single = [&] {
      Num last = first.back() + whole * (lanes - 1);
      run(last, last);
    };
    if (rest == 0) {
      chunk();
    } else {
      when(number < whole, chunk, single);
    }
  });
}

std::pair<Value, SmallVector<Value>> Code::shortest(Value memref, ArrayRef<Num> indices) {
  SmallVector<Value> at(indices.begin(), indices.end());
  ArrayRef<int64_t> shape = cast<MemRefType>(memref.getType()).getShape();
  for (const Element &place : places) {
    if (place.at == at && shape == ArrayRef<int64_t>(place.sizes)) {
      return {Buffer(*this, memref).flat(), {Value(place.number)}};
    }
  }
  return {memref, at};
}

Num Code::remainder(Num a, int64_t b) {
  return num(arith::RemUIOp::create(builder, loc, a, index(b)));
}

Nums Code::carry(Num from, Num to, int64_t step, ArrayRef<Num> start,
                 function_ref<Nums(Num, ArrayRef<Num>)> body) {
  auto op = scf::ForOp::create(builder, loc, from, to, index(step), valuesOf(start),
                               [&](OpBuilder &, Location, Value i, ValueRange carried) {
                                 Nums next = body(num(i), numsOf(*this, carried));
                                 scf::YieldOp::create(builder, loc, valuesOf(next));
                               });
  return numsOf(*this, op.getResults());
}

Nums Code::carryNest(ArrayRef<int64_t> sizes, ArrayRef<Num> start,
                     function_ref<Nums(ArrayRef<Num>, ArrayRef<Num>)> body) {
  Nums indices;
  auto build = [&](auto &self, ArrayRef<Num> carried) -> Nums {
    size_t depth = indices.size();
    if (depth == sizes.size()) {
      return body(indices, carried);
    }
    return carry(index(0), index(sizes[depth]), 1, carried, [&](Num i, ArrayRef<Num> inner) {
      indices.push_back(i);
      Nums next = self(self, inner);
      indices.pop_back();
      return next;
    });
  };
  return build(build, start);
}

Num Code::sum(Type type, Num from, Num to, function_ref<Num(Num)> term) {
  return sums(type, from, to, 1, [&](Num i) { return Nums{term(i)}; }).front();
}

Num Code::addInAnyOrder(Num a, Num b) {
  return num(arith::AddFOp::create(builder, loc, a, b, kReordered));
}

Nums Code::sums(Type type, Num from, Num to, int64_t count, function_ref<Nums(Num)> terms) {
  Nums zeros(count, real(type, 0));
  auto add = [&](Num i, ArrayRef<Num> carried) {
    Nums next = terms(i);
    for (auto [total, term] : llvm::zip_equal(carried, next)) {
      term = addInAnyOrder(total, term);
    }
    return next;
  };
  if (runner == Runner::Block) {
    return sumAcross(carryAcross(from, to, zeros, add));
  }
  return carry(from, to, 1, zeros, add);
}

Num Code::maximum(Num least, Num from, Num to, function_ref<Num(Num)> term) {
  auto next = [&](Num i, ArrayRef<Num> carried) { return Nums{max(carried.front(), term(i))}; };
  if (runner == Runner::Block) {
    return combineAcross(carryAcross(from, to, {least}, next),
                         [&](Num a, Num b) { return max(a, b); })
        .front();
  }
  return carry(from, to, 1, {least}, next).front();
}

std::pair<Num, Num> Code::exponentials(Num least, Num from, Num to, function_ref<Num(Num)> term) {
  Type type = least.getType();
  if (runner != Runner::Block) {
    Num greatest = maximum(least, from, to, term);
    return {greatest, sum(type, from, to, [&](Num i) { return exp(term(i) - greatest); })};
  }
  // Finite, so that even the least number minus it is a number.
  Num start = max(least, real(type, type.isF32() ? -3e38 : -1e308));
  // One maximum for several elements, so that no exponential waits for another.
  auto next = [&](ArrayRef<Num> rounds, ArrayRef<Num> carried) {
    Nums values = llvm::map_to_vector<4>(rounds, term);
    Num greatest = values.front();
    for (Num value : llvm::drop_begin(values)) {
      greatest = max(greatest, value);
    }
    greatest = max(carried[0], greatest);
    Num total = carried[1] * expOfNegative(carried[0] - greatest);
    for (Num value : values) {
      total = total + expOfNegative(value - greatest);
    }
    return Nums{greatest, total};
  };
  Nums own = carryTogether(from, to, {start, real(type, 0)}, next);
  Num greatest = combineAcross({own[0]}, [&](Num a, Num b) { return max(a, b); }).front();
  return {greatest, sumAcross({own[1] * expOfNegative(own[0] - greatest)}).front()};
}

void Code::when(Num condition, function_ref<void()> then, function_ref<void()> otherwise) {
  auto branch = [&](function_ref<void()> body) {
    return [this, body](OpBuilder &, Location) {
      if (body) {
        body();
      }
      scf::YieldOp::create(builder, loc);
    };
  };
  if (otherwise) {
    scf::IfOp::create(builder, loc, condition, branch(then), branch(otherwise));
  } else {
    scf::IfOp::create(builder, loc, condition, branch(then));
  }
}

Num Code::select(Num condition, Num then, Num otherwise) {
  return num(arith::SelectOp::create(builder, loc, condition, then, otherwise));
}

Num Code::lessUnsigned(Num a, Num b) {
  return num(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, a, b));
}

//===----------------------------------------------------------------------===//
// Code: functions and conversions
//===----------------------------------------------------------------------===//

Num Code::exp(Num a) { return num(math::ExpOp::create(builder, loc, a)); }
Num Code::log(Num a) { return num(math::LogOp::create(builder, loc, a)); }
Num Code::sqrt(Num a) { return num(math::SqrtOp::create(builder, loc, a)); }
Num Code::cos(Num a) { return num(math::CosOp::create(builder, loc, a)); }
Num Code::sin(Num a) { return num(math::SinOp::create(builder, loc, a)); }

Num Code::max(Num a, Num b) {
  return num(arith::MaximumFOp::create(builder, loc, a, b, arith::FastMathFlags::nsz));
}

Num Code::multiplyAdd(Num a, Num b, Num c) {
  if (isa<VectorType>(a.getType())) {
    return num(vector::FMAOp::create(builder, loc, a, b, c));
  }
  return a * b + c;
}

Num Code::toInteger(Num a) {
  Type type = builder.getI64Type();
  if (a.getType().isIndex()) {
    return num(arith::IndexCastOp::create(builder, loc, type, a));
  }
  return a.getType() == type ? a : num(arith::ExtSIOp::create(builder, loc, type, a));
}

Num Code::toInt32(Num a) {
  return num(arith::IndexCastOp::create(builder, loc, builder.getI32Type(), a));
}

Num Code::toIndex(Num a) {
  return num(arith::IndexCastOp::create(builder, loc, builder.getIndexType(), a));
}

Num Code::unsignedToReal(Num a, Type type) {
  return num(arith::UIToFPOp::create(builder, loc, type, a));
}

Num Code::toReal(Num a, Type type) {
  if (a.getType() == type) {
    return a;
  }
  if (sizeOf(getElementTypeOrSelf(a.getType())) < sizeOf(getElementTypeOrSelf(type))) {
    return num(arith::ExtFOp::create(builder, loc, TypeRange(type), ValueRange(Value(a))));
  }
  return num(arith::TruncFOp::create(builder, loc, type, a));
}

Num Code::spread(Num a, int64_t lanes) {
  auto type = VectorType::get({lanes}, a.getType());
  return num(vector::BroadcastOp::create(builder, loc, type, a));
}

Num Code::sumLanes(Num vector) {
  return num(
      vector::ReductionOp::create(builder, loc, vector::CombiningKind::ADD, vector, kReordered));
}

//===----------------------------------------------------------------------===//
// Code: memory
//===----------------------------------------------------------------------===//

Buffer Code::scratch(Type elementType, ArrayRef<int64_t> shape) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(entry);
  auto type = MemRefType::get(shape, elementType);
  return Buffer(*this, memref::AllocaOp::create(builder, loc, type, ValueRange(),
                                                builder.getI64IntegerAttr(64)));
}

void Code::fill(Buffer buffer, double value) {
  Buffer flat = buffer.flat();
  Num element = real(buffer.getElementType(), value);
  loop(0, flat.getElementCount(), [&](Num i) { flat.store(element, i); });
}

void Code::fillParallel(Buffer buffer, double value) {
  Buffer flat = buffer.flat();
  Num element = real(buffer.getElementType(), value);
  elements(flat.getShape(), [&](ArrayRef<Num> at) { flat.store(element, at); });
}

void Code::copy(Buffer from, Buffer to) {
  Buffer source = from.flat(), target = to.flat();
  loop(0, source.getElementCount(), [&](Num i) { target.store(source(i), i); });
}

void Code::copyWhole(Buffer from, Buffer to) {
  // A single element may be in a thread's own memory, since each of its phases has a copy.
  if (!isForDevice() || from.getElementCount() == 1) {
    copy(from, to);
    return;
  }
  Buffer source = from.flat(), target = to.flat();
  elements(source.getShape(),
           [&](ArrayRef<Num> at) { target.storeStored(source.loadStored(at), at); });
}

int64_t sizeOf(Type type) { return type.getIntOrFloatBitWidth() / 8; }

} // namespace weft::lower
