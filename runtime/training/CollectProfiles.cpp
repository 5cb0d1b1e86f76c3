//===- CollectProfiles.cpp - the measurements of all ranks --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "training/CollectProfiles.h"

#include "execution/CollectedBytes.h"

#include <cstring>

using namespace weft::rt;

StepTimes weft::rt::makeStepTimes(const Program &program, bool keepsCalls) {
  // Reads the clock once for each instruction: even small steps take a thousand times as long.
  return {Expansion(program, program.step).size(), keepsCalls};
}

std::optional<std::vector<Profile>> weft::rt::collectProfiles(std::span<const Program> programs,
                                                              const Executor &executor,
                                                              const StepTimes &own, bool leads,
                                                              const ProfileSettings &settings) {
  Communicator &link = executor.communicator();
  std::vector<std::vector<StepTimes>> times(programs.size());
  uint64_t peak = leads ? peakProcessBytes() : 0, peaks = 0;
  std::vector<char> bytes = own.bytes();
  bytes.insert(bytes.begin(), reinterpret_cast<const char *>(&peak),
               reinterpret_cast<const char *>(&peak) + sizeof peak);
  bool isGood = link.collect(bytes, [&](int64_t rank, std::span<const char> other) {
    const Program &program = programOf(programs, rank);
    StepTimes read = makeStepTimes(program, settings.keepsCalls);
    if (hasSize(link, rank, other, sizeof peak + read.bytes().size())) {
      std::memcpy(&peak, other.data(), sizeof peak);
      peaks += peak;
      read.assign(other.subspan(sizeof peak));
      times[program.rankClass].push_back(std::move(read));
    }
  });
  if (!isGood) {
    return std::nullopt;
  }
  std::vector<Profile> profiles;
  for (const Program &program : programs) {
    if (executor.rank() == 0) {
      profiles.emplace_back(program, times[program.rankClass], settings.threads, peaks);
    }
  }
  return profiles;
}
