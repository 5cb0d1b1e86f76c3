//===- ProgramTables.h - the tables that instructions point into ----------===//
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

/// How a whole value, of the shape `unpadded` where `type` is padded, lies on `mesh`. Fails with an
/// error at `op` if `type` has no sharding on it, or is pending.
mlir::FailureOr<rt::TensorLayout> toLayout(mlir::Operation *op, mlir::Type type,
                                           std::optional<llvm::ArrayRef<int64_t>> unpadded,
                                           MeshAttr mesh);

/// Fills the tables of a program with distinct entries, in the order of their first use. What
/// an op needs is made once for each op, not for each use of it.
class ProgramTables {
public:
  ProgramTables(rt::Program &program, MeshAttr mesh, const ModuleSymbols &symbols)
      : program(program), mesh(mesh), symbols(symbols) {}

  /// The opcode and target of `op`, whether a matmul takes its operands the other way round, and
  /// what `op` costs one rank, without a time.
  struct Target {
    rt::Opcode opcode = rt::Opcode::Kernel;
    uint32_t number = 0;
    bool isSwapped = false;
    rt::Cost cost = {};
  };
  mlir::FailureOr<Target> findTarget(mlir::Operation *op);

  /// Whether what `op` gives is what it takes, elsewhere: a collective, or a kernel that copies.
  bool moves(mlir::Operation *op) const;

  /// The label of a use of `op` on a path of calls (path 0 is the section called `section`).
  uint32_t findLabel(mlir::Operation *op, llvm::StringRef section, llvm::StringRef path);

private:
  mlir::FailureOr<Target> makeTarget(mlir::Operation *op);
  mlir::FailureOr<Target> makeObservation(ObserveOp op);
  mlir::FailureOr<Target> makeCollective(mlir::Operation *op);
  mlir::FailureOr<Target> makeMatmul(mlir::Operation *op);
  Target makeKernel(LaunchOp op);
  rt::Cost costOf(mlir::Operation *op) const;
  /// The op that the kernel does, which is its last, since before it stands only arithmetic on
  /// numbers; the launch itself if there is none.
  mlir::Operation *findWork(LaunchOp op) const;
  /// "attention.query (contract)" or "(contract)", of a bucket all its members, if they are few.
  std::string describe(mlir::Operation *op);

  rt::Program &program;
  MeshAttr mesh;
  const ModuleSymbols &symbols;
  llvm::DenseMap<mlir::Operation *, Target> targets;
  llvm::DenseMap<mlir::Operation *, std::string> descriptions;
  /// Entries by what they consist of, as text; the text begins with the kind of entry.
  llvm::StringMap<uint32_t> numbers;
  llvm::StringMap<uint32_t> labels;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_SCHEDULE_PROGRAMTABLES_H
