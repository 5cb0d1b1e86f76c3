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

/// A number under construction: an index, an integer, a float, or a vector of floats.
class Num {
public:
  Num() = default;
  Num(Code &code, mlir::Value value) : code(&code), value(value) {}

  operator mlir::Value() const { return value; }
  /// Whether there is a number at all.
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

/// The number `value`, of the type of `like`.
Num constantLike(Num like, int64_t value);
Num constantLike(Num like, double value);

template <typename T>
concept Literal = std::integral<T> || std::floating_point<T>;

/// A C++ number as an operand: its type is int64_t or double, by its own.
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

/// A memref of static shape and identity layout. One of a narrow type gives and takes float32: what
/// is loaded is widened, what is stored is rounded.
class Buffer {
public:
  Buffer() = default;
  Buffer(Code &code, mlir::Value memref);

  operator mlir::Value() const { return memref; }
  explicit operator bool() const { return memref != nullptr; }
  mlir::MemRefType getType() const { return llvm::cast<mlir::MemRefType>(memref.getType()); }
  /// Type of what is loaded and stored.
  mlir::Type getElementType() const { return wideTypeOf(getStoredType()); }
  /// Type of what lies in memory.
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

  /// One element as it lies in memory.
  Num loadStored(llvm::ArrayRef<Num> indices) const;
  void storeStored(Num value, llvm::ArrayRef<Num> indices) const;

  /// `lanes` elements, consecutive in the last dimension, as a vector.
  Num loadVector(int64_t lanes, llvm::ArrayRef<Num> indices) const;
  void storeVector(Num value, llvm::ArrayRef<Num> indices) const;

  /// The same memory under another shape of as many elements.
  Buffer view(llvm::ArrayRef<int64_t> shape) const;
  /// As a matrix: all dimensions but the last become one.
  Buffer rows() const { return view({getElementCount() / getSize(-1), getSize(-1)}); }
  /// As one dimension.
  Buffer flat() const { return view({getElementCount()}); }

private:
  Code *code = nullptr;
  mlir::Value memref;
};

/// What code is made for.
enum class Processor { Host, Device };

/// Memory of each round of an `across` over as many rounds as it was made for: registers of the
/// thread that takes the round.
struct Kept {
  Buffer memory;
};

/// What is known of the rounds of `Code::blocks`.
struct Rounds {
  /// Round i is for row i of matrices of as many columns as it is wide, which may be no multiple of
  /// what is loaded at once: chunks may begin where memory is aligned. Nothing may be kept then.
  bool areRows = false;
  /// No loop of a round ends earlier or later than that of another round, so that several rounds
  /// may be one warp's.
  bool areAlike = false;
};

/// Where code is being built: an insertion point inside of a function.
class Code {
public:
  /// Builds at the end of the entry block of `function`, which must be all the function has.
  Code(mlir::FunctionOpInterface function, mlir::OpBuilder &builder, mlir::Location loc,
       Processor processor = Processor::Host);

  bool isForDevice() const { return processor == Processor::Device; }

  mlir::OpBuilder &getBuilder() { return builder; }
  mlir::Location getLoc() const { return loc; }
  void setLoc(mlir::Location newLoc) { loc = newLoc; }

  Num num(mlir::Value value) { return Num(*this, value); }
  /// A null value gives a null buffer.
  Buffer buffer(mlir::Value value) { return value ? Buffer(*this, value) : Buffer(); }

  /// Constants stand at the entry of the function, each once.
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
  /// One loop for each size, the last innermost.
  void nest(llvm::ArrayRef<int64_t> sizes, llvm::function_ref<void(llvm::ArrayRef<Num>)> body);
  /// `count` rounds in any order, at the same time or one after another: no round may read what
  /// another writes, scratch included. Where it stands at the top of a kernel, threads share it.
  void parallel(int64_t count, llvm::function_ref<void(Num)> body);
  /// The same over a nest: its outer loops are one parallel loop, its last one stays a loop, so
  /// that it vectorizes; a nest of one loop is parallel itself.
  void parallelNest(llvm::ArrayRef<int64_t> sizes,
                    llvm::function_ref<void(llvm::ArrayRef<Num>)> body);
  /// The same where rounds are short: a device's thread takes as many neighbors of the last
  /// dimension as can be loaded at once.
  void elements(llvm::ArrayRef<int64_t> sizes, llvm::function_ref<void(llvm::ArrayRef<Num>)> body);
  /// A parallel loop over all rounds of a nest.
  void parallelAll(llvm::ArrayRef<int64_t> sizes,
                   llvm::function_ref<void(llvm::ArrayRef<Num>)> body);
  /// A parallel loop at the top of a kernel, each of whose rounds is work for many threads: `width`
  /// rounds of `across` or of a sum. On a device a block takes a round, or a warp or a part of one
  /// where that is wide enough. All its threads run `body`, which must say by `across` and `once`
  /// who writes; `sum`, `sums` and `maximum` are shared by the threads and give the same to all. On
  /// a host it is `parallel`.
  void blocks(int64_t count, int64_t width, llvm::function_ref<void(Num)> body, Rounds rounds = {});
  /// How many rounds of such a loop the threads of a device's block take at once.
  int64_t countRounds(int64_t width) const;
  /// Whether what threads keep for `across(count)` in such a loop is in registers, and little.
  bool keepsLittle(int64_t count) const;
  /// `count` independent rounds, which the threads of a block share. The same thread takes a round
  /// of the same number of each such loop over as many rounds. A loop on a host.
  void across(Num from, Num to, llvm::function_ref<void(Num)> body);
  void across(int64_t count, llvm::function_ref<void(Num)> body) {
    across(index(0), index(count), body);
  }
  /// `body` by one thread of a block, when all have come that far; none goes on before it is done.
  void once(llvm::function_ref<void()> body);
  /// Memory for each round of `across(count)`, and what is in that of the round being built. For
  /// devices.
  Kept keep(mlir::Type type, int64_t count);
  Num kept(const Kept &memory);
  void setKept(const Kept &memory, Num value);
  /// The number of this thread in its block, and how many there are. For devices.
  Num thread();
  int64_t countThreads() const { return threads; }
  /// Memory of a block, of any content at first. For devices.
  Buffer shared(mlir::Type type, llvm::ArrayRef<int64_t> shape);
  /// Memory of all blocks, which lasts from one phase of a kernel to the next. For devices.
  Buffer lasting(mlir::Type type, llvm::ArrayRef<int64_t> shape);
  /// No thread of a block goes on before all are here. For devices.
  void barrier();
  /// What the thread of the same warp has whose number differs in the bits of `mask`, which all
  /// threads have to ask for. For devices.
  Num shuffle(Num value, int64_t mask);
  /// a + b, into which no product is fused: threads that exchange values come to the same bits.
  Num addUnfused(Num a, Num b);
  /// Elements of what the kernel takes that a device loads at once.
  int64_t countLanes() const { return lanes; }
  /// Whether code is being built outside of any loop.
  bool isAtTop() const { return builder.getInsertionBlock() == entry; }
  /// A loop that carries values from one round to the next: takes and gives as many as `start`.
  Nums carry(Num from, Num to, int64_t step, llvm::ArrayRef<Num> start,
             llvm::function_ref<Nums(Num, llvm::ArrayRef<Num>)> body);
  /// The same over a nest of loops from zero to each size.
  Nums carryNest(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<Num> start,
                 llvm::function_ref<Nums(llvm::ArrayRef<Num>, llvm::ArrayRef<Num>)> body);
  /// Sums over a loop; the additions may be reordered.
  Num sum(mlir::Type type, Num from, Num to, llvm::function_ref<Num(Num)> term);
  Num sum(mlir::Type type, int64_t from, int64_t to, llvm::function_ref<Num(Num)> term) {
    return sum(type, index(from), index(to), term);
  }
  /// `carry`, in which four rounds stand together, so that they load before they wait.
  Nums carryByFours(Num from, Num to, int64_t step, llvm::ArrayRef<Num> start,
                    llvm::function_ref<Nums(Num, llvm::ArrayRef<Num>)> body);
  /// Sums in a block over the parts `first`, `first + step`… before `end`, of countThreads() *
  /// countLanes() numbers each. For devices.
  Nums sumsOfParts(mlir::Type type, Num first, Num end, int64_t step, int64_t count,
                   llvm::function_ref<Nums(Num)> terms);
  /// Several sums in one loop.
  Nums sums(mlir::Type type, Num from, Num to, int64_t count, llvm::function_ref<Nums(Num)> terms);
  /// The greatest, or `least` if that is greater; not a number if any is not a number.
  Num maximum(Num least, Num from, Num to, llvm::function_ref<Num(Num)> term);
  /// `maximum`, and the sum of the exponentials of each less that.
  std::pair<Num, Num> exponentials(Num least, Num from, Num to, llvm::function_ref<Num(Num)> term);
  void when(Num condition, llvm::function_ref<void()> then,
            llvm::function_ref<void()> otherwise = {});
  Num select(Num condition, Num then, Num otherwise);
  /// How many elements a nest has.
  static int64_t countOf(llvm::ArrayRef<int64_t> sizes);
  /// The indices of element `i` of a nest.
  Nums placeOf(Num i, llvm::ArrayRef<int64_t> sizes);
  /// first + lane, where `first` is a multiple of countLanes() and `lane` is less than that: where
  /// rows are whole chunks, placeOf divides once for all neighbors of a chunk.
  Num neighbor(Num first, int64_t lane);
  /// What is left of an index that is not negative after division.
  Num remainder(Num a, int64_t b);
  /// For unsigned integers.
  Num lessUnsigned(Num a, Num b);

  Num exp(Num a);
  Num log(Num a);
  Num sqrt(Num a);
  Num cos(Num a);
  Num sin(Num a);
  Num max(Num a, Num b);
  /// a * b + c, fused where the machine can.
  Num multiplyAdd(Num a, Num b, Num c);

  /// Conversions: index to and from integers (sign-extended), integers (unsigned) to floats,
  /// and between floats, or vectors of them (rounded to nearest).
  Num toInteger(Num a); // i64
  Num toInt32(Num a);
  Num toIndex(Num a);
  Num unsignedToReal(Num a, mlir::Type type);
  Num toReal(Num a, mlir::Type type);

  /// A vector of `lanes` times the same number.
  Num spread(Num a, int64_t lanes);
  /// Sum over a vector's lanes.
  Num sumLanes(Num vector);

  /// Memory on the stack, aligned to 64 bytes, of any content at first.
  Buffer scratch(mlir::Type elementType, llvm::ArrayRef<int64_t> shape);
  void fill(Buffer buffer, double value);
  void copy(Buffer from, Buffer to);
  /// `copy` at the top of a kernel, which threads of a device share.
  void copyWhole(Buffer from, Buffer to);
  /// `fill`, as a parallel loop.
  void fillParallel(Buffer buffer, double value);

private:
  friend class Buffer;
  /// Who runs what is being built: a thread of its own, all threads of a block, or the one that
  /// took a round of `across`.
  enum class Runner { Thread, Block, Round };
  using Combine = llvm::function_ref<Num(Num, Num)>;
  /// Gets the numbers of some rounds, and what is carried.
  using Together = llvm::function_ref<Nums(llvm::ArrayRef<Num>, llvm::ArrayRef<Num>)>;

  /// A loop that threads of a block share; each carries values of its own.
  Nums carryAcross(Num from, Num to, llvm::ArrayRef<Num> start,
                   llvm::function_ref<Nums(Num, llvm::ArrayRef<Num>)> body);
  /// The same where `body` takes as many rounds as a thread has at once.
  Nums carryTogether(Num from, Num to, llvm::ArrayRef<Num> start, Together body);
  Nums carryChunks(int64_t count, llvm::ArrayRef<Num> start, Together body);
  /// The same for a row that begins and ends anywhere.
  Nums carryRow(llvm::ArrayRef<Num> start, Together body);
  void warps(int64_t count, int64_t chunks, llvm::function_ref<void(Num)> body, Rounds rounds);
  /// What `combine` makes of the values of all threads of a block, in one order.
  Nums combineAcross(Nums values, Combine combine);
  Nums sumAcross(Nums values);
  Nums carryIf(Num condition, llvm::ArrayRef<Num> carried, llvm::function_ref<Nums()> body);
  /// An addition that may be reordered with others.
  Num addInAnyOrder(Num a, Num b);
  /// Memory and place of the same element, as one dimension where elements are taken in order: what
  /// neighbors are is plain then.
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
  /// Of the block that is being built, and the number that a thread of it has.
  int64_t threads = 0;
  Num threadNumber;
  /// The matrix whose row a round is for, where that is known, and the number of the row.
  struct Row {
    int64_t rows = 0, columns = 0;
    Num number;
  };
  Row row;
  /// The elements that a device's thread is at, and their numbers among all.
  struct Element {
    llvm::SmallVector<mlir::Value> at;
    llvm::SmallVector<int64_t> sizes;
    Num number;
  };
  llvm::SmallVector<Element> places;
  /// What `neighbor` has made, and of what.
  llvm::DenseMap<mlir::Value, std::pair<mlir::Value, int64_t>> neighbors;
  /// Which of a thread's rounds is being built.
  Num slot, firstSlot;
  int64_t lanes = 1;
  llvm::DenseMap<std::pair<mlir::Type, mlir::Attribute>, mlir::Value> constants;
};

/// Bytes of an element of `type`.
int64_t sizeOf(mlir::Type type);

} // namespace weft::lower

#endif // WEFT_PIPELINE_LOWER_CODE_H
