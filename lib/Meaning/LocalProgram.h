//===- LocalProgram.h - what the program of one rank computes -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_MEANING_LOCALPROGRAM_H
#define WEFT_LIB_MEANING_LOCALPROGRAM_H

#include "Arrays.h"
#include "Transfers.h"

#include "weft-rt/Program.h"
#include "weft/Dialect/Weft/IR/Fp8Ops.h"
#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"

#include <map>
#include <string>

namespace weft::meaning {

/// A value of one rank: an array, or a number of type index.
struct LocalValue {
  ArrayId array = 0;
  Print number;
  /// The number, if it is known.
  std::optional<int64_t> constant;

  static LocalValue of(int64_t value) { return {0, Print::of(value), value}; }
};

using LocalValues = llvm::SmallVector<LocalValue, 4>;

/// The sum of products of a matmul or a contraction: for each operand its strides.
struct Product {
  Sizes extents;
  size_t kept = 0;
  llvm::SmallVector<Sizes, 2> strides;
};

/// What the ops of a local program compute, by an account of its own. For one thread.
class LocalOps {
public:
  LocalOps(Arrays &arrays, MeshAttr mesh);

  /// The results of an op. Ops that Schedule does not look into are functions of which only the
  /// name is known.
  LocalValues evaluate(mlir::Operation *op, llvm::ArrayRef<LocalValue> operands);
  /// A matmul of the instruction table: C, then what is kept, then sums, as far as the matmul has
  /// them. `operands` are those that it reads, in its order. None if its operands do not fit.
  std::optional<LocalValues> matmul(const rt::Matmul &matmul, llvm::ArrayRef<LocalValue> operands);
  LocalValue collective(const rt::Collective &collective, LocalValue operand);
  static bool isCollective(mlir::Operation *op) { return groupOf(op).has_value(); }
  LocalValue variable(llvm::StringRef name, int64_t count);
  /// A value of type `type` of which nothing is known but the name.
  LocalValue unknown(const Print &name, mlir::Type type);
  /// The results of a call of `function`, as a function of which only the name is known.
  LocalValues application(CallOp call, llvm::ArrayRef<LocalValue> operands);
  /// Says that all arrays of the program to compare with are here. Where an epilogue can be one of
  /// several functions, it is the one that this program has.
  void endExpected() { expected = arrays.size(); }
  bool isExpected(ArrayId array) const { return array < expected; }

private:
  using Shape = llvm::ArrayRef<int64_t>;

  // LocalOps.cpp
  Print functionOf(mlir::Operation *op);
  LocalValues unknown(mlir::Operation *op, llvm::ArrayRef<LocalValue> operands);
  LocalValues results(const Print &name, mlir::Operation *op);
  LocalValues index(mlir::Operation *op, llvm::ArrayRef<LocalValue> operands);
  LocalValue fill(FillOp op, llvm::ArrayRef<LocalValue> operands);
  LocalValues map(MapOp op, llvm::ArrayRef<LocalValue> operands);
  LocalValues mapSum(MapSumOp op, llvm::ArrayRef<LocalValue> operands);
  llvm::SmallVector<ScalarId> body(mlir::Block &block, llvm::ArrayRef<ScalarId> arguments);
  ArrayId product(const Product &product, llvm::ArrayRef<ArrayId> operands);
  LocalValue contract(ContractOp op, llvm::ArrayRef<LocalValue> operands);
  ArrayId equation(llvm::StringRef text, llvm::ArrayRef<ArrayId> operands,
                   llvm::ArrayRef<Sizes> shapes);

  // LocalConvolutions.cpp: matmuls of kernels and of the inputs of each output.
  std::optional<ArrayId> convolution(mlir::Operation *op, llvm::ArrayRef<ArrayId> operands);
  template <typename OpTy> ArrayId convolve(OpTy op, llvm::ArrayRef<ArrayId> operands);
  ArrayId columns(bool isFold, mlir::Operation *op, ArrayId array, Shape image, Shape window);

  // LocalMoves.cpp
  std::optional<ArrayId> move(mlir::Operation *op, llvm::ArrayRef<LocalValue> operands);
  LocalValues split(SplitOp op, LocalValue operand);
  /// A collective, by the names of its axes.
  struct Group {
    rt::CollectiveKind kind;
    bool isMax;
    mlir::ArrayAttr axes;
    int64_t dim = 0, dim2 = 0;
    /// Of a permute.
    llvm::SmallVector<int64_t> sources;
  };
  static std::optional<Group> groupOf(mlir::Operation *op);
  LocalValue collective(const Group &group, Shape shape, ArrayId array);
  ArrayId reduce(ArrayId array, bool isMax, mlir::ArrayAttr axes);
  ArrayId received(ArrayId array, ArrayId source);
  ArrayId permute(ArrayId array, llvm::ArrayRef<int64_t> sources, mlir::ArrayAttr axes);
  std::optional<ArrayId> gather(ArrayId array, Shape shape, int64_t dim, mlir::ArrayAttr axes);
  std::optional<ArrayId> exchange(ArrayId array, Shape shape, int64_t split, int64_t concat,
                                  mlir::ArrayAttr axes);
  Print placeIn(mlir::ArrayAttr axes) const;
  int64_t sizeOf(mlir::ArrayAttr axes) const;

  // LocalMatmuls.cpp
  LocalValues encode(EncodeOp op, llvm::ArrayRef<LocalValue> operands);
  ArrayId quantized(mlir::Attribute format, ArrayId input, ArrayId amax);
  std::optional<ArrayId> decoded(ArrayId bytes, ArrayId factor);
  bool decode(ArrayId &a, ArrayId &b, llvm::ArrayRef<LocalValue> &rest);
  std::optional<LocalValues> matmul(mlir::Operation *op, llvm::ArrayRef<LocalValue> operands);
  LocalValues epilogue(const rt::Epilogue &epilogue, int64_t columns, ArrayId product,
                       llvm::ArrayRef<LocalValue> rest);
  ScalarId tanhOfGelu(ScalarId x, double factor, double cube);
  ScalarId gelu(ScalarId x, bool isGradient, bool isSingle);

  Arrays &arrays;
  MeshAttr mesh;
  ArrayId expected = ~ArrayId(0);
  /// The scalar function tanh, as in maps.
  Print tanhFunction;
  llvm::DenseMap<mlir::Operation *, Print> functions;
  /// Of quantized arrays: their format and maximum.
  llvm::DenseMap<ArrayId, Print> quantizations;
};

/// What a section of a program gives: the arrays that variables have at its end, by name, and the
/// arrays that are observed, by name, in order.
struct SectionResult {
  std::map<std::string, ArrayId> variables;
  std::map<std::string, std::vector<ArrayId>> observed;

  bool operator==(const SectionResult &other) const = default;
};

/// Runs the functions of a module for one rank.
class LocalModule {
public:
  /// `rankClass` is that of the ranks that run the module, if it is of one class of several.
  LocalModule(mlir::ModuleOp module, LocalOps &ops, uint32_t rankClass = 0)
      : ops(ops), symbols(module), rankClass(rankClass) {}

  /// Says that calls of `function` are not looked into from now on: see LocalOps::application.
  void close(llvm::StringRef function) { closed.insert(function); }

  /// The section of a module that needs nothing of other classes.
  SectionResult run(mlir::func::FuncOp section);

  /// Run the section of a module of one class in parts: `advance` goes on to the end, or to what
  /// another class has yet to send. It returns true if it did anything.
  void begin(mlir::func::FuncOp section);
  bool advance(Transfers &transfers);
  bool isAtEnd() { return next == section.getBody().front().getTerminator()->getIterator(); }
  const SectionResult &given() const { return result; }

  /// The results of a function of ops that give nothing else, such as a kernel.
  LocalValues call(mlir::func::FuncOp function, llvm::ArrayRef<LocalValue> arguments);
  mlir::func::FuncOp lookup(llvm::StringRef name) {
    return symbols.lookup<mlir::func::FuncOp>(name);
  }
  VariableOp variable(llvm::StringRef name) { return symbols.lookup<VariableOp>(name); }

private:
  using Values = llvm::DenseMap<mlir::Value, LocalValue>;

  void evaluate(mlir::Operation &op, Values &values);
  bool transfer(mlir::Operation &op, Transfers &transfers);

  LocalOps &ops;
  mlir::SymbolTable symbols;
  uint32_t rankClass;
  llvm::StringSet<> closed;
  /// Of the section that runs: its values, and the op that comes next.
  mlir::func::FuncOp section;
  Values values;
  mlir::Block::iterator next;
  SectionResult result;
};

/// The buffers that an instruction of a matmul reads and writes, in order, without its workspace.
struct MatmulBuffers {
  MatmulBuffers(const rt::Matmul &matmul, const rt::Instruction &instruction);

  llvm::SmallVector<uint32_t> read, written;
};

/// The elements that a rank has of a value of this type.
int64_t countOf(mlir::Type type);
Sizes shapeOf(mlir::Value value);

} // namespace weft::meaning

#endif // WEFT_LIB_MEANING_LOCALPROGRAM_H
