//===- ProofParts.h - the parts of the proof ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_SCHEDULE_PROOFPARTS_H
#define WEFT_LIB_SCHEDULE_PROOFPARTS_H

#include "weft/Schedule/Proof.h"

namespace weft::schedule {

/// Keeps the first messages and counts the rest.
class Diagnostics {
public:
  void add(std::string message) {
    if (count++ < Proof::kMaxDiagnostics) {
      messages.push_back(std::move(message));
    }
  }
  size_t size() const { return count; }
  std::vector<std::string> take() {
    if (count > messages.size()) {
      messages.push_back("and " + std::to_string(count - messages.size()) + " more");
    }
    return std::move(messages);
  }

private:
  std::vector<std::string> messages;
  size_t count = 0;
};

enum class Section { Init, Step, Evaluate };
inline constexpr Section kSections[] = {Section::Init, Section::Step, Section::Evaluate};

const std::vector<rt::Instruction> &instructionsOf(const rt::Program &program, Section section);

/// "step instruction 17 'layers.3/attention.query (contract)'"
std::string describeInstruction(const rt::Program &program, Section section, size_t number);
/// "all_reduce sum f32[4x8] over tp"
std::string describeCollective(const rt::Program &program, const rt::Collective &collective);

/// The runtime's own check: every number names something, layouts divide evenly. All other parts
/// require it.
bool checkWellFormed(const rt::Program &program, Diagnostics &diagnostics);
/// Parameters, optimizer state and inputs each have a persistent buffer, and it has no other name.
void checkNames(const rt::Program &program, Diagnostics &diagnostics);
/// Matmuls, collectives, observations and named tensors fill the buffers they use, exactly.
void checkShapes(const rt::Program &program, Diagnostics &diagnostics);
/// Reads follow writes, inputs stay, operands of one instruction do not alias.
void checkDataFlow(const rt::Program &program, Diagnostics &diagnostics);
/// The independent sweep over the arena.
void checkPlaces(const rt::Program &program, Diagnostics &diagnostics);
/// What shares bytes and is written is ordered by streams and waits.
void checkStreams(const rt::Program &program, Section section, Diagnostics &diagnostics);
/// Classes cover the ranks of one mesh, each rank once.
void checkClasses(std::span<const RankClass> classes, Diagnostics &diagnostics);
/// Collectives meet, and there is a linear order.
void checkCollectives(std::span<const RankClass> classes, Section section,
                      Diagnostics &diagnostics);

} // namespace weft::schedule

#endif // WEFT_LIB_SCHEDULE_PROOFPARTS_H
