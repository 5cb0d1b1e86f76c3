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

namespace weft {

/// What is known of a plan when it has been found.
struct PlanFacts {
  desc::PlanSpec plan;
  SearchReport search;
  /// What the plan's time and memory are made of.
  PlanPrice price;
  /// Of the question, where one was asked.
  ValueAnswer answer;
  /// Only where the options say `isPlanning`.
  std::vector<desc::VariableShape> variables;
};

/// One run through the phases: it owns the module, its context and the program, and holds the
/// options and descriptions by reference, which must outlive it. Call `begin`, then `runPhases`,
/// and for an executable `emit`; what each has found is there to get afterwards. What fails is
/// printed to standard error where it is found, and then the compilation is of no further use.
///
/// For one thread. Several compilations may run at once, but for mistakes that are planted in rules
/// of ops (`openDescriptions`), which are the process's.
class Compilation {
public:
  Compilation(const CompileOptions &options, const Descriptions &descriptions);

  /// Lets the search of Plan answer `question`, which must outlive this.
  void ask(const ValueQuestion &asked) { question = &asked; }

  /// Lets the search of Plan leave `bytes` of a device's memory for what it does not count.
  void leave(int64_t bytes) { reserve = bytes; }
  int64_t getReserve() const { return reserve; }

  /// Gets the module: imports the model, or reads the file that an earlier run has stopped at.
  llvm::LogicalResult begin();
  /// Runs all phases that the options ask for up to Lower; after Schedule makes the program. Where
  /// that needs more memory than there is, plans again with as much less for what the search
  /// counts, as long as it finds something.
  llvm::LogicalResult runPhases();
  /// Runs one phase up to Lower, as above. REQUIRES: the phases before it have been run, or what
  /// stands in for them.
  llvm::LogicalResult runPhase(Phase phase);
  /// Writes the archive of the kernels' object files and links the program; where the options say
  /// `keepObject`, merges the object files into `objectPath`. REQUIRES: all phases have run.
  llvm::LogicalResult emit(const std::string &archivePath, const std::string &programPath,
                           const std::string &objectPath = "");

  mlir::ModuleOp getModule() { return *module; }
  /// REQUIRES: Plan has run. Where it has failed, only the answer is there.
  const PlanFacts &getPlanFacts() const { return facts; }
  /// REQUIRES: Schedule has run.
  const rt::Program &getProgram() const { return program; }
  /// REQUIRES: emit has run.
  const EmitReport &getEmitReport() const { return emitReport; }
  /// Whether a device's memory suffices for the program. REQUIRES: Schedule has run.
  bool fits() const;

private:
  llvm::LogicalResult fail(const llvm::Twine &message) const;
  llvm::LogicalResult import();
  llvm::LogicalResult parseModule();
  /// Whether each axis that the plan splits something by finds some of it in a graph, whose
  /// dimensions are known when it has been imported.
  llvm::LogicalResult checkSplits();
  /// Whether a module that was read fits the recipe and the plan.
  llvm::LogicalResult checkModule();
  llvm::LogicalResult runPasses(Phase phase);
  void follow(const desc::PlanSpec &plan);
  /// What the module says when Plan is done.
  void readFacts();
  llvm::LogicalResult makeProgram();
  /// Whether another plan may fit where this one does not.
  bool mayPlanSmaller() const;
  llvm::LogicalResult planSmaller();
  /// Whether the recipe allows micro-batches, of which the options may ask for more than one.
  bool mayTakeParts() const;
  llvm::LogicalResult checkMemory() const;

  const CompileOptions &options;
  const Descriptions &descriptions;
  /// Until Plan is done the plan that was given, then the one that was found.
  std::string planText, planHash;
  PlanFacts facts;
  /// Null for none.
  const ValueQuestion *question = nullptr;
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// The module before Plan, where that is one of the phases to run; and what of a device's memory
  /// the search is not to use.
  mlir::OwningOpRef<mlir::ModuleOp> unplanned;
  int64_t reserve = 0;
  /// Length of the logits of a graph; 0 for other models.
  int64_t classes = 0;
  double stepFlops = 0;
  rt::Program program;
  EmitReport emitReport;
};

/// What the search of Plan has to leave of a device's memory for the program to fit, as the runs of
/// `weft compile` and `weft plan` find out: the plan that they take is the one found with that.
/// What fails is printed; that nothing fits is no failure.
llvm::FailureOr<int64_t> findReserve(CompileOptions options, const Descriptions &descriptions);

} // namespace weft

#endif // WEFT_DRIVER_COMPILATION_H
