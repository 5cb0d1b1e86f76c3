//===- Compilation.h - from descriptions to a program ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_COMPILATION_H
#define WEFT_DRIVER_COMPILATION_H

#include "weft/Driver/CompileOptions.h"
#include "weft/Driver/Descriptions.h"

#include "weft-rt/Program.h"
#include "weft/Description/Strategies.h"
#include "weft/Pipeline/Plan/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>
#include <optional>
#include <vector>

namespace weft {

/// The plan of a compilation, with its price and the search's report.
struct PlanFacts {
  desc::PlanSpec plan;
  SearchReport search;
  /// The plan's time and memory by parts.
  PlanPrice price;
  /// The answer to the question given to `ask`, if there was one.
  ValueAnswer answer;
  /// Empty unless the options set `isPlanning`.
  std::vector<desc::VariableShape> variables;
};

/// The conditions under which the search of Plan finds the plan with which `weft compile` and `weft
/// plan` end.
struct PlanConditions {
  /// Bytes of a device's memory that the search leaves unused so that the program fits.
  int64_t reserve = 0;
  /// Micro-batches of a step.
  int64_t accumulation = 1;
  /// Homes to pin: those of the plan asked for, or all of a plan that pads variables.
  std::vector<desc::ShardingSpec> homes;
  /// If set, the search found this plan, which asks for other padding than that with which it was
  /// found; with it, the plan is found again with its own padding.
  std::optional<desc::PlanSpec> plan;

  /// Compares what a first search needs, which is all but `plan`.
  bool operator==(const PlanConditions &other) const;
};

/// One run through the phases. It owns the module, its context and the programs; the options and
/// descriptions must outlive it. Call `begin`, then `runPhases`, and for an executable `emit`; the
/// getters return the results. Each step prints its errors to standard error; after a failure only
/// `getPlanFacts().answer` may be read.
///
/// For one thread. Several compilations may run at once, except with mistakes planted in the rules
/// of ops (`openDescriptions`), which apply to the whole process.
class Compilation {
public:
  Compilation(const CompileOptions &options, const Descriptions &descriptions);

  /// Makes the search of Plan answer `asked`, which must outlive this object.
  void ask(const ValueQuestion &asked) { question = &asked; }

  /// Makes the search of Plan leave `bytes` of each device's memory unused, for buffers that it
  /// does not count.
  void leave(int64_t bytes) { reserve = bytes; }
  PlanConditions getConditions() const {
    return {reserve, request.accumulation, request.homes, settled};
  }

  /// Gets the module: imports the model, or reads the module that an earlier run wrote.
  llvm::LogicalResult begin();
  /// Runs the phases that the options ask for, up to Lower, and builds the programs after Schedule.
  /// If a program needs more memory than a device has, plans again: with a larger reserve
  /// (`leave`), as long as the search finds a plan, and then, if nothing gives the plan's
  /// `accumulation`, with 2, 4, 8, ... micro-batches until a program fits, which it prints, or
  /// what does not depend on their number is too much. If the mesh does not divide variables whose
  /// sharding is open, plans once more with padded ones, keeps the better plan, and prints if that
  /// is padded. If the plan's entries ask for other padding than the module has, plans again by
  /// these entries, so that reading the plan gives the same program.
  llvm::LogicalResult runPhases();
  /// Runs one phase up to Lower, as above. REQUIRES: the module is as the phases before it leave
  /// it.
  llvm::LogicalResult runPhase(Phase phase);
  /// Writes the archive of the kernels' object files and links the program; if the options set
  /// `keepObject`, merges the object files into `objectPath`. REQUIRES: all phases have run.
  llvm::LogicalResult emit(const std::string &archivePath, const std::string &programPath,
                           const std::string &objectPath = "");

  mlir::ModuleOp getModule() { return *module; }
  /// REQUIRES: Plan has run. If it failed, only the answer is valid.
  const PlanFacts &getPlanFacts() const { return facts; }
  /// REQUIRES: Schedule has run.
  const rt::Programs &getPrograms() const { return programs; }
  /// Returns the bytes that a device needs of the rank class that needs most. REQUIRES: as above.
  uint64_t deviceBytes() const;
  /// REQUIRES: emit has run.
  const EmitReport &getEmitReport() const { return emitReport; }
  /// Returns true if a device's memory suffices for each program. REQUIRES: Schedule has run.
  bool fits() const;

private:
  void print(const llvm::Twine &message) const;
  llvm::LogicalResult fail(const llvm::Twine &message) const;
  llvm::LogicalResult import();
  llvm::LogicalResult parseModule();
  llvm::LogicalResult runPasses(Phase phase);
  /// Proves, unless a mistake was planted, after Partition that the module computes what it
  /// computed before Plan, and before Lower that the programs compute what the module after
  /// Partition did.
  llvm::LogicalResult prove(Phase phase);
  void follow(const desc::PlanSpec &plan);
  /// Reads the facts from the module after Plan.
  void readFacts();
  llvm::LogicalResult makePrograms();
  /// Plans the same module again, with the reserve and micro-batches that are set now.
  llvm::LogicalResult planAgain();
  /// Returns true if planning again with a larger reserve may find a plan that fits.
  bool mayPlanSmaller() const;
  llvm::LogicalResult planSmaller();
  /// Returns true if the plan says of no activation whether it is recomputed, but could.
  bool mayRecompute() const;
  /// Returns the numbers of micro-batches to try, ascending, each at least twice the one before.
  std::vector<int64_t> laterAccumulations() const;
  llvm::LogicalResult tryAccumulation(int64_t count);
  llvm::LogicalResult findAccumulation();
  /// If all ranks can cut some variables only with padding, plans with that, and keeps what is
  /// faster, or what fits.
  llvm::LogicalResult findUnevenHomes();
  llvm::LogicalResult planUnevenHomes();
  llvm::LogicalResult settlePadding();
  llvm::LogicalResult checkMemory() const;

  const CompileOptions &options;
  const Descriptions &descriptions;
  /// A plan that was found, under its conditions.
  struct PlanAttempt {
    mlir::OwningOpRef<mlir::ModuleOp> module, partitioned;
    PlanFacts facts;
    rt::Programs programs;
    desc::PlanSpec request;
    int64_t reserve;
    std::vector<std::string> remarks;
  };

  /// The plan of the descriptions, with the micro-batches and homes that are tried.
  desc::PlanSpec request;
  /// The request until Plan is done, then the plan that it found.
  std::string planText, planHash;
  PlanFacts facts;
  /// Null for none.
  const ValueQuestion *question = nullptr;
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// The module before Plan, if that phase runs; and the bytes of a device's memory that the search
  /// leaves unused.
  mlir::OwningOpRef<mlir::ModuleOp> unplanned;
  /// The module after Partition, until the program is proven by it; else null.
  mlir::OwningOpRef<mlir::ModuleOp> partitioned;
  int64_t reserve = 0;
  bool padsOpenVariables = false;
  /// The plan that settlePadding followed, if it planned again.
  std::optional<desc::PlanSpec> settled;
  /// What to tell the user of the plan that is kept.
  std::vector<std::string> remarks;
  double stepFlops = 0;
  /// Of the rank classes: one for each pipeline stage.
  rt::Programs programs;
  EmitReport emitReport;
};

/// Plans without compiling. Prints its errors; it is no error if no plan fits.
llvm::FailureOr<PlanConditions> findConditions(CompileOptions options,
                                               const Descriptions &descriptions);

} // namespace weft

#endif // WEFT_DRIVER_COMPILATION_H
