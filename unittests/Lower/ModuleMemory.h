//===- ModuleMemory.h - memory in modules of kernels for devices ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared memory of a block, and memory that lasts from phase to phase: before compilation, guards
// are put around both in the module, and calls in front of each access of shared memory.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_LOWER_MODULEMEMORY_H
#define WEFT_UNITTESTS_LOWER_MODULEMEMORY_H

#include "GuardedMemory.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace weft::test {

struct ModuleMemory {
  std::string name;
  size_t bytes, elementBytes;
  bool isShared, isInteger;
};

/// Changes `devices`, a module after the Lower phase, so that a GuardedModule can be made of it.
/// Its kernels' operands then need no alignment on the host's processor.
std::vector<ModuleMemory> guardMemory(mlir::ModuleOp devices);

/// Memory of a module that was compiled and loaded.
class GuardedModule {
public:
  /// `library` is a handle of dlopen.
  GuardedModule(void *library, std::vector<ModuleMemory> parts);
  ~GuardedModule();
  GuardedModule(const GuardedModule &) = delete;

  /// Fills all memory between the guards, as if uninitialized.
  void fill(const Fill &with);
  /// Fills the shared memory, as if uninitialized, for the next block.
  void fillShared() const;
  /// Fails the test if bytes beside a part were written since `fill`.
  void expectWithin() const;
  /// Fails the test if there is shared memory, but no block that watches has accessed it.
  void expectWatched() const;

private:
  char fillOf(const ModuleMemory &part) const {
    return part.isInteger ? filled.integers : filled.floats;
  }

  Fill filled = {0, 0};
  std::vector<ModuleMemory> parts;
  std::vector<char *> starts;
};

} // namespace weft::test

#endif // WEFT_UNITTESTS_LOWER_MODULEMEMORY_H
