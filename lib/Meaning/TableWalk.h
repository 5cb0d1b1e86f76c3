//===- TableWalk.h - a table, instruction by instruction ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rank of one class runs the instructions of a section one after the other, on arrays. It stops
// where it has to receive what another class has yet to send.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_MEANING_TABLEWALK_H
#define WEFT_LIB_MEANING_TABLEWALK_H

#include "LocalProgram.h"

#include "weft-rt/BufferPlaces.h"
#include "weft-rt/Expansion.h"

namespace weft::meaning {

/// What made an array, in words that name the instruction, and of what.
struct Origin {
  const rt::Program *program;
  const rt::Instruction *instruction;
  const rt::Action *action;
  llvm::SmallVector<ArrayId, 4> operands;

  /// "layers.0/mlp.up", and of which rank class, if there are several.
  std::string describe() const;
};

/// What the walks of all classes share.
struct SharedWalk {
  explicit SharedWalk(LocalOps &ops) : ops(ops) {}

  LocalOps &ops;
  Transfers transfers;
  llvm::DenseMap<ArrayId, Origin> origins;
};

class TableWalk {
public:
  /// `scheduled` has the kernels of `program`. Errors are of `location`. All must outlive the walk.
  TableWalk(mlir::ModuleOp scheduled, const rt::Program &program, SharedWalk &shared,
            mlir::Location location)
      : program(program), places(program), shared(shared), ops(shared.ops), location(location),
        kernels(scheduled, ops) {}
  TableWalk(const TableWalk &) = delete;

  /// Begins a section, with `countOf(name)` elements in each variable.
  void begin(const std::vector<rt::Action> &actions,
             llvm::function_ref<int64_t(llvm::StringRef)> countOf);
  /// Goes on; `moves` becomes true if an instruction was run.
  mlir::LogicalResult advance(bool &moves);
  bool isAtEnd() const { return next == instructions.end(); }
  /// Fails, because it waits for what no class sends.
  mlir::LogicalResult reportWaiting();

  const rt::Program &getProgram() const { return program; }
  /// What a variable holds.
  ArrayId heldBy(const rt::NamedTensor &tensor) const { return held[places.find(tensor.buffer)]; }
  const std::map<std::string, std::vector<ArrayId>> &observed() const { return own; }

private:
  /// False if the instruction has to wait.
  mlir::FailureOr<bool> execute(const rt::Instruction &instruction);
  mlir::LogicalResult executeKernel(const rt::Instruction &instruction);
  mlir::LogicalResult executeMatmul(const rt::Instruction &instruction);
  mlir::FailureOr<bool> executeCollective(const rt::Instruction &instruction);
  /// What an operand of the action holds.
  ArrayId &heldIn(uint32_t buffer) { return held[places.find(buffer, action->frames)]; }
  void write(const rt::Instruction &instruction, uint32_t buffer, ArrayId array);
  mlir::LogicalResult reportAt(const rt::Instruction &instruction, const llvm::Twine &reason);

  const rt::Program &program;
  const rt::BufferPlaces places;
  SharedWalk &shared;
  LocalOps &ops;
  mlir::Location location;
  LocalModule kernels;
  rt::Expansion instructions;
  rt::Expansion::Iterator next;
  /// What each place holds.
  std::vector<ArrayId> held;
  std::map<std::string, std::vector<ArrayId>> own;
  /// What runs the instructions.
  const rt::Action *action = nullptr;
  llvm::SmallVector<ArrayId, 4> reading;
};

} // namespace weft::meaning

#endif // WEFT_LIB_MEANING_TABLEWALK_H
