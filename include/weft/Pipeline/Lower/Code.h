//===- Code.h - building loops and arithmetic ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thin layer over the builders of `arith`, `math`, `memref`, `scf` and `vector`, so that the
// code that makes a kernel reads like the kernel:
//
//   code.loop(0, rows, [&](Num i) {
//     Num mean = code.sum(0, columns, [&](Num j) { return x(i, j); }) / columns;
//     code.loop(0, columns, [&](Num j) { y.store(x(i, j) - mean, i, j); });
//   });
//
// Floating-point operations may be contracted (a product and a sum into one fused operation);
// only the additions of `sum` may also be reordered, so that they vectorize.
//
// The same text becomes code for a host and for devices. What the two make of loops differs:
//
//   code.blocks(rows, columns, [&](Num i) {                  host: threads share the rows
//     Num sum = code.sum(type, 0, columns, term);            device: a block of threads takes each
//     code.across(columns, [&](Num j) { … });                row and shares its columns
//   });
//
// A Num and a Buffer hold a value of the IR and the Code that made it, and are valid as long
// as that Code. Nothing here may be shared between threads.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_LOWER_CODE_H
#define WEFT_PIPELINE_LOWER_CODE_H

#include <concepts>
#include <initializer_list>

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace weft::lower {

class Code;

/// The address space of the memory that a block of threads shares.
inline constexpr int64_t kSharedMemory = 3;

/// A number under construction: an index, an integer, a float, or a vector of floats.
class Num {
public:
  Num() = default;
  Num(Code &code, mlir::Value value) : code(&code), value(value) {}

  operator mlir::Value() const { return value; }
  /// Returns true unless this is empty.
  explicit operator bool() const { return value != nullptr; }
  mlir::Type getType() const { return value.getType(); }
  Code &getCode() const { return *code; }

private:
  Code *code = nullptr;
  mlir::Value value;
};

using Nums = llvm::SmallVector<Num, 4>;

/// Arithmetic on two numbers of the same type; division and remainder of integers are signed
/// and round toward zero.
Num operator+(Num a, Num b);
Num operator-(Num a, Num b);
Num operator*(Num a, Num b);
Num operator/(Num a, Num b);
Num operator^(Num a, Num b);
Num operator&(Num a, Num b);
Num operator>>(Num a, int64_t bits); // shifts in zeros
Num operator-(Num a);

/// Comparisons: signed for integers, false for a float that is not a number.
Num operator<(Num a, Num b);
Num operator<=(Num a, Num b);
Num operator==(Num a, Num b);

/// Returns the constant `value` of the type of `like`.
Num constantLike(Num like, int64_t value);
Num constantLike(Num like, double value);

template <typename T>
concept Literal = std::integral<T> || std::floating_point<T>;

/// Converts a C++ number to an operand: an integer to int64_t, a float to double.
template <Literal T> Num literal(Num like, T value) {
  if constexpr (std::integral<T>) {
    return constantLike(like, static_cast<int64_t>(value));
  } else {
    return constantLike(like, static_cast<double>(value));
  }
}
Num operator+(Num a, Literal auto b) { return a + literal(a, b); }
Num operator-(Num a, Literal auto b) { return a - literal(a, b); }
Num operator*(Num a, Literal auto b) { return a * literal(a, b); }
Num operator/(Num a, Literal auto b) { return a / literal(a, b); }
Num operator<(Num a, Literal auto b) { return a < literal(a, b); }
Num operator<=(Num a, Literal auto b) { return a <= literal(a, b); }
Num operator==(Num a, Literal auto b) { return a == literal(a, b); }

/// A memref of static shape and identity layout. Loads from a narrow type are widened to float32,
/// and stores are rounded.
class Buffer {
public:
  Buffer() = default;
  Buffer(Code &code, mlir::Value memref);

  operator mlir::Value() const { return memref; }
  explicit operator bool() const { return memref != nullptr; }
  mlir::MemRefType getType() const { return llvm::cast<mlir::MemRefType>(memref.getType()); }
  /// The type that `load` returns and `store` takes.
  mlir::Type getElementType() const { return wideTypeOf(getStoredType()); }
  /// The type in memory.
  mlir::Type getStoredType() const { return getType().getElementType(); }
  bool rounds() const { return getElementType() != getStoredType(); }
  llvm::ArrayRef<int64_t> getShape() const { return getType().getShape(); }
  int64_t getRank() const { return getType().getRank(); }
  /// Size of dimension `dim`; a negative number counts from the end.
  int64_t getSize(int64_t dim) const;
  int64_t getElementCount() const { return getType().getNumElements(); }

  Num load(llvm::ArrayRef<Num> indices) const;
  Num operator()(std::same_as<Num> auto... indices) const { return load({indices...}); }
  Num operator()() const { return load({}); }
  void store(Num value, llvm::ArrayRef<Num> indices) const;
  void store(Num value, std::same_as<Num> auto... indices) const {
    store(value, llvm::ArrayRef<Num>({indices...}));
  }
  void store(Num value) const { store(value, llvm::ArrayRef<Num>()); }

  /// One element in its type in memory.
  Num loadStored(llvm::ArrayRef<Num> indices) const;
  void storeStored(Num value, llvm::ArrayRef<Num> indices) const;

  /// `lanes` elements, consecutive in the last dimension, as a vector.
  Num loadVector(int64_t lanes, llvm::ArrayRef<Num> indices) const;
  void storeVector(Num value, llvm::ArrayRef<Num> indices) const;

  /// The same memory under another shape of as many elements.
  Buffer view(llvm::ArrayRef<int64_t> shape) const;
  /// As a matrix: all dimensions but the last are merged.
  Buffer rows() const { return view({getElementCount() / getSize(-1), getSize(-1)}); }
  /// As a vector: all dimensions are merged.
  Buffer flat() const { return view({getElementCount()}); }

private:
  Code *code = nullptr;
  mlir::Value memref;
};

/// The processor that code is built for.
enum class Processor { Host, Device };

/// Memory for each round of an `across` of a given count: registers of the thread that runs the
/// round.
struct Kept {
  Buffer memory;
};

/// Properties of the rounds of `Code::blocks`, which allow faster code.
struct Rounds {
  /// Round i works on row i of matrices with `width` columns. `width` need not be a multiple of the
  /// elements that are loaded at once: chunks may begin at aligned addresses. `keep` is not
  /// allowed.
  bool areRows = false;
  /// All rounds have loops of the same lengths, so that one warp may run several rounds.
  bool areAlike = false;
  /// If rounds are many, a warp may take one whose columns are a few chunks for each of its
  /// threads: rounds do not use `barrier` and `shared`.
  bool fitWarps = false;
};

/// Builds IR at an insertion point inside of a function.
class Code {
public:
  /// Builds at the end of the entry block of `function`, which must be its only block.
  Code(mlir::FunctionOpInterface function, mlir::OpBuilder &builder, mlir::Location loc,
       Processor processor = Processor::Host);

  bool isForDevice() const { return processor == Processor::Device; }

  mlir::OpBuilder &getBuilder() { return builder; }
  mlir::Location getLoc() const { return loc; }
  void setLoc(mlir::Location newLoc) { loc = newLoc; }

  Num num(mlir::Value value) { return Num(*this, value); }
  /// Returns a null buffer for a null value.
  Buffer buffer(mlir::Value value) { return value ? Buffer(*this, value) : Buffer(); }

  /// Returns true if a map computes the elements of `buffer` where they are loaded, or takes them
  /// where they are stored: a value inside of a kernel, which gets no memory.
  static bool isInlined(const Buffer &buffer);

  /// Constants, which are created once each, in the entry block of the function.
  Num constant(mlir::Type type, mlir::Attribute value);
  Num index(int64_t value);
  Num integer(int64_t value); // i64
  Num real(mlir::Type type, double value);

  /// Runs `body` for each i in [from, to), `step` apart.
  void loop(Num from, Num to, int64_t step, llvm::function_ref<void(Num)> body);
  void loop(Num from, Num to, llvm::function_ref<void(Num)> body) { loop(from, to, 1, body); }
  void loop(int64_t from, int64_t to, llvm::function_ref<void(Num)> body) {
    loop(index(from), index(to), 1, body);
  }
  /// Runs `body` in one loop for each size, the last innermost.
  void nest(llvm::ArrayRef<int64_t> sizes, llvm::function_ref<void(llvm::ArrayRef<Num>)> body);
  /// Runs `count` rounds in any order, perhaps concurrently: no round may read memory that another
  /// writes, scratch memory included. At the top of a kernel threads share the rounds.
  void parallel(int64_t count, llvm::function_ref<void(Num)> body);
  /// The same for a nest: its outer loops become one parallel loop, and the last one stays a loop,
  /// so that it vectorizes; the loop of a nest of one is parallel itself.
  void parallelNest(llvm::ArrayRef<int64_t> sizes,
                    llvm::function_ref<void(llvm::ArrayRef<Num>)> body);
  /// The same for short rounds: each thread of a device takes as many neighbors of the last
  /// dimension as one load covers.
  void elements(llvm::ArrayRef<int64_t> sizes, llvm::function_ref<void(llvm::ArrayRef<Num>)> body);
  /// Says that the loop just made, at the top of a kernel, writes no element that another such loop
  /// writes: a part of what they fill together.
  void writesApart();
  /// Runs one parallel loop over all rounds of a nest.
  void parallelAll(llvm::ArrayRef<int64_t> sizes,
                   llvm::function_ref<void(llvm::ArrayRef<Num>)> body);
  /// Runs a parallel loop at the top of a kernel whose rounds are work for many threads each:
  /// `width` rounds of `across` or of a sum. On a device a block takes a round, or a warp or part
  /// of one if that suffices for `width`. All its threads run `body`, where only `across` and
  /// `once` may write to memory; the threads share the work of `sum`, `sums` and `maximum`, and all
  /// get the results. On a host this is `parallel`.
  void blocks(int64_t count, int64_t width, llvm::function_ref<void(Num)> body, Rounds rounds = {});
  /// Returns how many rounds of such a loop a device's block of threads runs at once, if rounds are
  /// not alike and do not fit warps. If the number of rounds is a multiple, all warps of a block
  /// run a round, and may exchange values by shared memory.
  int64_t countRounds(int64_t width) const;
  /// Returns true if the memory of `keep` for `across(count)` in such a loop fits a few registers.
  bool keepsLittle(int64_t count) const;
  /// Runs `count` independent rounds, which the threads of a block share. A given round runs on the
  /// same thread in every such loop with the same count. On a host this is a loop.
  void across(Num from, Num to, llvm::function_ref<void(Num)> body);
  void across(int64_t count, llvm::function_ref<void(Num)> body) {
    across(index(0), index(count), body);
  }
  /// Runs `body` in one thread of a block, after all threads have come here and before any goes on.
  void once(llvm::function_ref<void()> body);
  /// Memory for each round of `across(count)`; `kept` and `setKept` access that of the current
  /// round. For devices.
  Kept keep(mlir::Type type, int64_t count);
  Num kept(const Kept &memory);
  void setKept(const Kept &memory, Num value);
  /// The number of this thread in its block, and the number of threads in a block. For devices.
  Num thread();
  int64_t countThreads() const { return threads; }
  /// Returns shared memory of a block, uninitialized. For devices.
  Buffer shared(mlir::Type type, llvm::ArrayRef<int64_t> shape);
  /// Returns memory of all blocks that lasts from one phase of a kernel to the next. For devices.
  Buffer lasting(mlir::Type type, llvm::ArrayRef<int64_t> shape);
  /// Makes each thread of a block wait until all are here. For devices.
  void barrier();
  /// Returns the value of the thread of the same warp whose number differs in the bits of `mask`.
  /// All threads of the warp must call it. For devices.
  Num shuffle(Num value, int64_t mask);
  /// Returns 2 to the power of a float32; 0 if that is below the least normal number. For devices.
  Num exp2OrZero(Num a);
  /// Returns a + b, never fused with a product, so that threads that exchange values get equal
  /// bits.
  Num addUnfused(Num a, Num b);
  /// The number of elements of the kernel's operands that a device loads at once.
  int64_t countLanes() const { return lanes; }
  /// Returns true outside of all loops.
  bool isAtTop() const { return builder.getInsertionBlock() == entry; }
  /// A loop that carries values from one round to the next, as many as `start` has.
  Nums carry(Num from, Num to, int64_t step, llvm::ArrayRef<Num> start,
             llvm::function_ref<Nums(Num, llvm::ArrayRef<Num>)> body);
  /// The same over a nest of loops from zero to each size.
  Nums carryNest(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<Num> start,
                 llvm::function_ref<Nums(llvm::ArrayRef<Num>, llvm::ArrayRef<Num>)> body);
  /// Returns a sum over a loop; the additions may be reordered.
  Num sum(mlir::Type type, Num from, Num to, llvm::function_ref<Num(Num)> term);
  Num sum(mlir::Type type, int64_t from, int64_t to, llvm::function_ref<Num(Num)> term) {
    return sum(type, index(from), index(to), term);
  }
  /// Like `carry`, but unrolled by four, or another number, so that four rounds' loads are issued
  /// before the first wait.
  Nums carryByFours(Num from, Num to, int64_t step, llvm::ArrayRef<Num> start,
                    llvm::function_ref<Nums(Num, llvm::ArrayRef<Num>)> body, int64_t together = 4);
  /// Returns a block's sums over the parts `first`, `first + step`… before `end`, of countThreads()
  /// * countLanes() numbers each. For devices.
  Nums sumsOfParts(mlir::Type type, Num first, Num end, int64_t step, int64_t count,
                   llvm::function_ref<Nums(Num)> terms);
  /// The same for the greatest term, see `maximum`.
  Num maximumOfParts(Num least, Num first, Num end, int64_t step,
                     llvm::function_ref<Num(Num)> term);
  /// Returns `count` sums of one loop.
  Nums sums(mlir::Type type, Num from, Num to, int64_t count, llvm::function_ref<Nums(Num)> terms);
  /// Returns the greatest term, or `least` if that is greater; NaN if any term is NaN.
  Num maximum(Num least, Num from, Num to, llvm::function_ref<Num(Num)> term);
  /// Returns the maximum m, and the sum of exp(term - m).
  std::pair<Num, Num> exponentials(Num least, Num from, Num to, llvm::function_ref<Num(Num)> term);
  void when(Num condition, llvm::function_ref<void()> then,
            llvm::function_ref<void()> otherwise = {});
  Num select(Num condition, Num then, Num otherwise);
  /// Returns the number of elements of a nest.
  static int64_t countOf(llvm::ArrayRef<int64_t> sizes);
  /// Returns the indices of element `i` of a nest.
  Nums placeOf(Num i, llvm::ArrayRef<int64_t> sizes);
  /// Returns first + lane. REQUIRES: `first` is a multiple of countLanes(), and `lane` is less than
  /// that. If rows consist of whole chunks, placeOf divides only once for all neighbors of a chunk.
  Num neighbor(Num first, int64_t lane);
  /// Returns the remainder of a non-negative index.
  Num remainder(Num a, int64_t b);
  /// Compares unsigned integers.
  Num lessUnsigned(Num a, Num b);

  Num exp(Num a);
  Num log(Num a);
  Num sqrt(Num a);
  Num cos(Num a);
  Num sin(Num a);
  Num max(Num a, Num b);
  /// Returns a * b + c, fused where the machine can.
  Num multiplyAdd(Num a, Num b, Num c);

  /// Conversions: index to and from integers (sign-extended), integers (unsigned) to floats,
  /// and between floats, or vectors of them (rounded to nearest).
  Num toInteger(Num a); // i64
  Num toInt32(Num a);
  Num toIndex(Num a);
  Num unsignedToReal(Num a, mlir::Type type);
  Num toReal(Num a, mlir::Type type);

  /// Returns a vector of `lanes` copies of a number.
  Num spread(Num a, int64_t lanes);
  /// Returns the sum of a vector's lanes.
  Num sumLanes(Num vector);

  /// Returns memory on the stack, aligned to 64 bytes, uninitialized.
  Buffer scratch(mlir::Type elementType, llvm::ArrayRef<int64_t> shape);
  void fill(Buffer buffer, double value);
  void copy(Buffer from, Buffer to);
  /// Like `copy`, at the top of a kernel; threads of a device share the work.
  void copyWhole(Buffer from, Buffer to);
  /// Like `fill`, in a parallel loop.
  void fillParallel(Buffer buffer, double value);

private:
  friend class Buffer;
  /// The threads that run the current code: one thread on its own, all threads of a block, or the
  /// thread of a round of `across`.
  enum class Runner { Thread, Block, Round };
  using Combine = llvm::function_ref<Num(Num, Num)>;
  /// Takes the numbers of several rounds, and the carried values.
  using Together = llvm::function_ref<Nums(llvm::ArrayRef<Num>, llvm::ArrayRef<Num>)>;

  /// A loop that the threads of a block share; each thread carries values of its own.
  Nums carryAcross(Num from, Num to, llvm::ArrayRef<Num> start,
                   llvm::function_ref<Nums(Num, llvm::ArrayRef<Num>)> body);
  /// The same with a `body` for all rounds that a thread runs at once.
  Nums carryTogether(Num from, Num to, llvm::ArrayRef<Num> start, Together body);
  Nums carryChunks(int64_t count, llvm::ArrayRef<Num> start, Together body);
  /// The same for a row that may begin and end at unaligned addresses.
  Nums carryRow(llvm::ArrayRef<Num> start, Together body);
  /// Returns true if a warp loads rounds of `width` columns at once, and rounds are many.
  bool fitsWarp(int64_t count, int64_t width) const;
  void warps(int64_t count, int64_t chunks, llvm::function_ref<void(Num)> body, Rounds rounds);
  /// Returns what one thread carries over its numbers of the parts of `sumsOfParts`.
  Nums carryParts(Num first, Num end, int64_t step, llvm::ArrayRef<Num> start,
                  llvm::function_ref<Nums(Num, llvm::ArrayRef<Num>)> body);
  /// Combines the values of all threads of a block by `combine`, in a fixed order.
  Nums combineAcross(Nums values, Combine combine);
  Nums sumAcross(Nums values);
  Nums carryIf(Num condition, llvm::ArrayRef<Num> carried, llvm::function_ref<Nums()> body);
  /// An addition that may be reordered with others.
  Num addInAnyOrder(Num a, Num b);
  /// Returns memory and indices of the same element, with one dimension if elements are visited in
  /// order, so that later passes recognize neighbors.
  std::pair<mlir::Value, llvm::SmallVector<mlir::Value>> shortest(mlir::Value memref,
                                                                  llvm::ArrayRef<Num> indices);
  mlir::ValueRange callDevice(llvm::StringRef name, mlir::TypeRange results,
                              mlir::ValueRange operands);
  Buffer global(llvm::StringRef name, int64_t space, mlir::Type type,
                llvm::ArrayRef<int64_t> shape);
  template <typename Body> auto asRound(Body body);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::Block *entry;
  Processor processor;
  Runner runner = Runner::Thread;
  /// The number of threads of the current block, and the number of the current thread in it.
  int64_t threads = 0;
  Num threadNumber;
  /// The matrix whose row the current round works on, if known, and the number of the row.
  struct Row {
    int64_t rows = 0, columns = 0;
    Num number;
  };
  Row row;
  /// The current element of a device's thread: its indices, and its number among all.
  struct Element {
    llvm::SmallVector<mlir::Value> at;
    llvm::SmallVector<int64_t> sizes;
    Num number;
  };
  llvm::SmallVector<Element> places;
  /// The results of `neighbor`, with their arguments.
  llvm::DenseMap<mlir::Value, std::pair<mlir::Value, int64_t>> neighbors;
  /// Which of a thread's rounds the current code is for.
  Num slot, firstSlot;
  int64_t lanes = 1;
  llvm::DenseMap<std::pair<mlir::Type, mlir::Attribute>, mlir::Value> constants;
};

/// Returns the size in bytes of an element of `type`.
int64_t sizeOf(mlir::Type type);

} // namespace weft::lower

#endif // WEFT_PIPELINE_LOWER_CODE_H
