//===- ProgramTables.h - the tables that instructions refer to ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_SCHEDULE_PROGRAMTABLES_H
#define WEFT_LIB_PIPELINE_SCHEDULE_PROGRAMTABLES_H

#include "Linearize.h"
#include "weft-rt/Program.h"
#include "weft/Pipeline/Schedule/MatmulForm.h"

#include "llvm/ADT/StringMap.h"

namespace weft {

/// Returns the layout on `mesh` of a whole value of type `type`; `unpadded` is its shape if `type`
/// is padded. Fails with an error at `op` if `type` has no sharding on `mesh`, or is pending.
mlir::FailureOr<rt::TensorLayout> toLayout(mlir::Operation *op, mlir::Type type,
                                           std::optional<llvm::ArrayRef<int64_t>> unpadded,
                                           MeshAttr mesh);

/// Fills the tables of a program with distinct entries, in the order of their first use. Makes the
/// entries of an op once, not for each use.
class ProgramTables {
public:
  ProgramTables(rt::Program &program, MeshAttr mesh, const ModuleSymbols &symbols)
      : program(program), mesh(mesh), symbols(symbols) {}

  /// The opcode and target of an op, whether a matmul swaps its operands, and the op's cost on one
  /// rank, without a time.
  struct Target {
    rt::Opcode opcode = rt::Opcode::Kernel;
    uint32_t number = 0;
    bool isSwapped = false;
    rt::Cost cost = {};
  };
  mlir::FailureOr<Target> findTarget(mlir::Operation *op);

  /// Returns true if `op` only moves its operands' elements: a collective, or a kernel that copies.
  bool moves(mlir::Operation *op) const;

  /// Returns the label of a use of `op` on a path of calls (path 0 is the section named `section`,
  /// or a repeated call if that is empty).
  uint32_t findLabel(mlir::Operation *op, llvm::StringRef section, llvm::StringRef path);

private:
  mlir::FailureOr<Target> makeTarget(mlir::Operation *op);
  mlir::FailureOr<Target> makeObservation(ObserveOp op);
  mlir::FailureOr<Target> makeCollective(mlir::Operation *op);
  Target makeTransfer(mlir::Operation *op);
  mlir::FailureOr<Target> makeMatmul(mlir::Operation *op);
  Target makeKernel(LaunchOp op);
  rt::Cost costOf(mlir::Operation *op) const;
  rt::Cost costOfWork(mlir::Operation *op) const;
  /// Returns the ops that the kernel computes; the launch itself if there are none.
  llvm::SmallVector<mlir::Operation *> workOf(LaunchOp op) const;
  /// Returns the op that stands for all of them.
  mlir::Operation *mainWorkOf(LaunchOp op) const;
  /// Returns "attention.query (contract)" or "(contract)"; for joined ops, all of them if few.
  std::string describe(mlir::Operation *op);

  rt::Program &program;
  MeshAttr mesh;
  const ModuleSymbols &symbols;
  llvm::DenseMap<mlir::Operation *, Target> targets;
  llvm::DenseMap<mlir::Operation *, std::string> descriptions;
  /// Entries by their contents as text, which begins with the kind of entry.
  llvm::StringMap<uint32_t> numbers;
  llvm::StringMap<uint32_t> labels;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_SCHEDULE_PROGRAMTABLES_H
