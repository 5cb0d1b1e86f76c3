//===- ModuleMemory.h - what kernels for devices keep in their module -----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Memory that the threads of a block share, and that which lasts from phase to phase: before it is
// compiled a module gets guards around it, and calls in front of what touches shared memory.
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

/// Changes `devices`, a module after the Lower phase, such that a GuardedModule can be made of it.
/// What its kernels are given may begin anywhere then, as far as the host's processor cares.
std::vector<ModuleMemory> guardMemory(mlir::ModuleOp devices);

/// Memory of a module that was compiled and loaded.
class GuardedModule {
public:
  /// `library` is what dlopen has given.
  GuardedModule(void *library, std::vector<ModuleMemory> parts);
  ~GuardedModule();
  GuardedModule(const GuardedModule &) = delete;

  /// All between the guards, as if nobody had written it.
  void fill(const Fill &with);
  /// What is shared, as the next block finds it.
  void fillShared() const;
  /// Fails the test if what lies beside a part was written since all was filled.
  void expectWithin() const;
  /// Fails the test if there is shared memory, and no block that watches has touched any.
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
