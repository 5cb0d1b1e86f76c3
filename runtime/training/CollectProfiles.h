//===- CollectProfiles.h - the measurements of all ranks ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TRAINING_COLLECTPROFILES_H
#define WEFT_RT_TRAINING_COLLECTPROFILES_H

#include "execution/Executor.h"
#include "report/Profile.h"

#include <optional>

namespace weft::rt {

/// Returns the times of a program's step. `keepsCalls`: also those of single calls.
StepTimes makeStepTimes(const Program &program, bool keepsCalls);

/// How the profiles of a run are made, the same on all ranks.
struct ProfileSettings {
  int64_t threads = 1;
  bool keepsCalls = false;
};

/// Brings the times of all ranks to rank 0, which gets a profile for each rank class; other ranks
/// get none. All ranks call it at the same point. One rank of each process `leads`: it reports the
/// peak memory of the process. Returns nothing if the run has stopped.
std::optional<std::vector<Profile>> collectProfiles(std::span<const Program> programs,
                                                    const Executor &executor, const StepTimes &own,
                                                    bool leads, const ProfileSettings &settings);

} // namespace weft::rt

#endif // WEFT_RT_TRAINING_COLLECTPROFILES_H
