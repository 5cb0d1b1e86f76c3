//===- LoadTable.h - tables of functions in shared libraries ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All code that needs MPI or CUDA is in shared libraries, which are loaded on demand. Each exports
// one versioned table of functions.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_LOADTABLE_H
#define WEFT_RT_BACKENDS_LOADTABLE_H

#include "support/Text.h"

#include <dlfcn.h>

namespace weft::rt {

/// Returns the table that the function `name` of `library` gives; `library` was loaded from `file`.
/// Fails if the function is missing or the table has another version. The error names the table's
/// user, as in "--backend mpi needs".
template <typename Table>
Result<const Table *> findTable(void *library, const std::string &file, const char *name,
                                const char *user) {
  auto entry = reinterpret_cast<const Table *(*)(uint32_t)>(dlsym(library, name));
  if (!entry) {
    return makeError("'", file, "' is not the library that ", user, ": ", dlerror());
  }
  const Table *table = entry(Table::kVersion);
  if (!table) {
    return makeError("'", file, "' is of another version than this program, which needs ",
                     uint32_t(Table::kVersion), "; compile again");
  }
  return table;
}

} // namespace weft::rt

#endif // WEFT_RT_BACKENDS_LOADTABLE_H
