//===- HostTarget.h - the processor that kernels are for ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_EMIT_HOSTTARGET_H
#define WEFT_LIB_PIPELINE_EMIT_HOSTTARGET_H

#include "weft/Pipeline/Emit/Emit.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"

namespace weft {

/// A processor known to LLVM, with "native" resolved.
struct HostTarget {
  llvm::Triple triple;
  std::string cpu, features;
  /// 0 to 3, as in C compilers.
  unsigned optLevel = 2;
  Sanitizer sanitize = Sanitizer::None;
};

/// Fails if `options` names a processor or a feature unknown to LLVM, or a processor without 64-bit
/// code.
llvm::Expected<HostTarget> resolveTarget(const EmitOptions &options);

/// Returns a code generator for `target`, for use by one thread.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>> makeTargetMachine(const HostTarget &target);

/// Compiles `module` to machine code: optimizes it and adds the checks of the sanitizer.
llvm::Expected<std::string> compile(llvm::Module &module, const HostTarget &target);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_EMIT_HOSTTARGET_H
