//===- Evaluation.h - a program's values, as terms of the whole ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_MEANING_EVALUATION_H
#define WEFT_LIB_MEANING_EVALUATION_H

#include "OpMeaning.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

namespace weft::meaning {

/// Why a value has no meaning.
struct Fault {
  mlir::Location location;
  /// "all_gather of layers.3": the op, and the use of the layer that it is in.
  std::string op;
  std::string reason;
};

/// The sizes of inputs, whose first dimension is the batch: the module before Plan does not know
/// them.
using InputSizes = llvm::StringMap<llvm::SmallVector<int64_t>>;

/// Evaluates the ops of one program for all its ranks at once. A fault does not end the evaluation:
/// it becomes the value, so that what nobody uses does no harm. For one thread.
class Evaluation {
public:
  /// `mesh` is null for the program before Plan, a program of one rank. All must outlive this
  /// object; evaluations of one thread may share them.
  Evaluation(MeshAttr mesh, Terms &terms, Regions &regions, const InputSizes &inputs,
             int64_t microBatches = 1)
      : terms(terms), regions(regions), ranks(mesh, microBatches), inputs(inputs) {}

  using Ids = llvm::SmallVector<uint32_t, 4>;

  /// The values of the op's results. `label` is the use of the layer.
  Ids evaluate(mlir::Operation *op, llvm::ArrayRef<uint32_t> operands, llvm::StringRef label);

  const Value &operator[](uint32_t number) const { return values[number]; }
  /// The number of a value that was not computed by an op.
  uint32_t keep(Value value);
  uint32_t keepNumber(uint32_t number);
  /// An evaluation of `count` micro-batches at once, for functions that this evaluation calls.
  std::unique_ptr<Evaluation> ofMicroBatches(int64_t count) const {
    return std::make_unique<Evaluation>(ranks.getMesh(), terms, regions, inputs, count);
  }
  /// A value that is `value` in all micro-batches; `other` evaluates one at a time.
  uint32_t repeat(const Evaluation &other, const Value &value);
  /// True if each rank has as much of a total as it had before.
  bool isWholeTotal(const Value &value);
  /// A running total of type `type` before each micro-batch.
  uint32_t startTotal(unsigned number, mlir::RankedTensorType type);
  /// `start` with what all micro-batches of `other` add to it, which is `added`. None if they are
  /// not parts of one reduction.
  std::optional<uint32_t> total(Evaluation &other, uint32_t start, const Value &added);
  const Fault &faultOf(const Value &value) const { return faults[value.fault - 1]; }
  RankNumbers &getRanks() { return ranks; }
  /// True if some rank has padding along `dim`.
  bool isPadded(const Dim &dim);
  /// True if all padding along `dim` is zero, or there is none.
  bool isZeroBeyond(const Dim &dim);
  /// What a rank has of a variable or an observed value of type `type`.
  std::optional<uint32_t> startOf(mlir::RankedTensorType type, int64_t dim);

private:
  friend class Application;
  friend class Reshaping;

  uint32_t fail(mlir::Operation *op, llvm::StringRef label, const llvm::Twine &reason);
  Ids failAll(mlir::Operation *op, llvm::StringRef label, const llvm::Twine &reason);
  TermId termOf(mlir::Operation *op, llvm::StringRef label, Term term);

  // Evaluation.cpp
  Ids evaluateIndex(mlir::Operation *op, llvm::ArrayRef<uint32_t> operands, llvm::StringRef label);
  uint32_t read(ReadOp op, llvm::StringRef label);
  uint32_t select(SelectOp op, llvm::ArrayRef<uint32_t> operands, llvm::StringRef label);
  uint32_t reorder(ReorderOp op, llvm::ArrayRef<uint32_t> operands, llvm::StringRef label);
  std::optional<uint32_t> addPadding(PadOp op, const Value &input);
  std::optional<uint32_t> removePadding(ExtractOp op, const Value &input);
  uint32_t transpose(ContractOp op, const Value &input);
  uint32_t constantFill(FillOp op);

  // Reshape.cpp
  uint32_t reshape(ReshapeOp op, llvm::ArrayRef<uint32_t> operands, llvm::StringRef label);

  // Application.cpp
  Ids apply(mlir::Operation *op, const OpMeaning &meaning, llvm::ArrayRef<uint32_t> operands,
            llvm::StringRef label);

  // Scalars.cpp
  Ids map(MapOp op, llvm::ArrayRef<uint32_t> operands, llvm::StringRef label);
  uint32_t scalar(mlir::Operation *op, llvm::ArrayRef<uint32_t> operands, unsigned dims,
                  llvm::StringRef label);
  std::optional<uint32_t> simplify(mlir::Operation *op, llvm::ArrayRef<uint32_t> operands,
                                   llvm::StringRef label);
  std::optional<uint32_t> addParts(mlir::Operation *op, const Value &left, const Value &right,
                                   llvm::StringRef label);
  std::optional<uint32_t> maskPadding(const Value &condition, const Value &value,
                                      const Value &otherwise);
  std::optional<uint32_t> round(mlir::Operation *op, const Value &value);
  std::optional<uint32_t> widen(mlir::Operation *op, const Value &value);

  // MicroBatches.cpp
  std::optional<uint32_t> addToTotal(mlir::Operation *op, llvm::ArrayRef<uint32_t> operands);
  bool isNeutral(const Value &value, double neutral) const;
  static bool takesTotal(mlir::Operation *op, const Value &total);
  bool gatherTotal(Value &value, const Groups &groups, int64_t dim);

  // Normalized.cpp: sums of exponentials that are shifted by their greatest.
  std::optional<uint32_t> simplifyShifted(mlir::Operation *op, llvm::ArrayRef<uint32_t> operands,
                                          llvm::StringRef label);
  Value withFunction(const Value &value, llvm::StringRef function);
  uint32_t stabilizer(mlir::Operation *op, const Value &value, int64_t group);
  std::optional<uint32_t> shareOf(const Value &part, const Value &all);
  std::optional<uint32_t> weigh(const Value &mean, const Value &share);
  std::optional<uint32_t> joinMeans(mlir::Operation *op, const Value &left, const Value &right,
                                    llvm::StringRef label);
  Value like(mlir::Operation *op, const Value &value, llvm::StringRef function,
             llvm::ArrayRef<int64_t> numbers);

  // Collectives.cpp
  uint32_t collective(mlir::Operation *op, llvm::ArrayRef<uint32_t> operands,
                      llvm::StringRef label);
  uint32_t reduced(mlir::Operation *op, const Groups &groups, ReductionKind kind, Value value,
                   llvm::StringRef label);
  uint32_t allGather(AllGatherOp op, const Groups &groups, Value value, llvm::StringRef label);
  uint32_t reduceScatter(ReduceScatterOp op, const Groups &groups, Value value,
                         llvm::StringRef label);
  uint32_t allToAll(AllToAllOp op, const Groups &groups, Value value, llvm::StringRef label);
  uint32_t permute(PermuteOp op, const Groups &groups, Value value);
  uint32_t slice(SliceOp op, const Groups &groups, Value value, uint32_t index,
                 llvm::StringRef label);
  uint32_t partial(Value value, uint32_t index);
  std::optional<std::string> notAlike(const Groups &groups, const Value &value, int64_t except);

  // Views.cpp
  std::optional<uint32_t> joinRegions(llvm::ArrayRef<uint32_t> parts, bool mustBeDisjoint);
  std::optional<llvm::SmallVector<View, 1>> reduceViews(llvm::ArrayRef<View> views,
                                                        const Groups &groups, bool isSum);
  std::optional<llvm::SmallVector<View, 1>> uniteViews(llvm::ArrayRef<View> left,
                                                       llvm::ArrayRef<View> right, bool isSum);
  bool isComplete(const View &view);
  llvm::SmallVector<View, 1> withoutComplete(llvm::ArrayRef<View> views);
  uint32_t regionsOf(llvm::ArrayRef<Dim> dims);
  uint32_t makeRegions(llvm::ArrayRef<Dim> dims);
  std::optional<uint32_t> makeJoined(llvm::ArrayRef<uint32_t> parts, bool mustBeDisjoint);
  std::optional<uint32_t> makeReduced(uint32_t number, const Groups &groups, bool isSum);
  uint32_t multiplyRegions(uint32_t left, uint32_t right);

  /// A function of numbers of RankNumbers, computed once.
  using RegionKey = std::vector<int64_t>;
  template <typename Function> auto once(RegionKey key, Function make) {
    auto found = knownRegions.find(key);
    return found != knownRegions.end() ? found->second
                                       : knownRegions.emplace(std::move(key), make()).first->second;
  }

  Terms &terms;
  Regions &regions;
  RankNumbers ranks;
  std::map<RegionKey, std::optional<uint32_t>> knownRegions;
  Values values;
  const InputSizes &inputs;
  std::vector<Fault> faults;
  mlir::SymbolTableCollection symbols;
  int64_t stabilizers = 0;
  llvm::DenseMap<mlir::Operation *, mlir::DictionaryAttr> attributes;
};

/// True if a term depends on a number that only the ranks of one group agree on.
bool isOfGroup(const Term &term);

/// "all_gather of layers.3 (contract)".
std::string describe(mlir::Operation *op, llvm::StringRef label);

} // namespace weft::meaning

#endif // WEFT_LIB_MEANING_EVALUATION_H
