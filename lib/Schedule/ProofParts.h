//===- ProofParts.h - the parts of the proof ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_SCHEDULE_PROOFPARTS_H
#define WEFT_LIB_SCHEDULE_PROOFPARTS_H

#include "weft-rt/Expansion.h"
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

const std::vector<rt::Action> &actionsOf(const rt::Program &program, Section section);
/// The program must outlive the result.
rt::Expansion expansionOf(const rt::Program &program, Section section);

/// A body with frames, and the first action that runs it there: its section, and the number of its
/// first instruction.
struct BodyUse {
  Section section;
  uint32_t body = 0;
  std::span<const rt::FrameUse> frames;
  size_t begin = 0;
};
/// Returns one entry for each body and list of frames with which an action runs it, in the order of
/// the first actions.
std::vector<BodyUse> findBodyUses(const rt::Program &program);

/// Returns text such as "step instruction 17 'layers.3/attention.query (contract)'"; in a frame
/// also the body: "step instruction 17 'micro-batch 2/layers.3' of forward".
std::string describeInstruction(const rt::Program &program, Section section, size_t number);
/// Returns text such as "all_reduce sum f32[4x8] over tp".
std::string describeCollective(const rt::Program &program, const rt::Collective &collective);

/// Runs the runtime's own check: every number names an entry, and layouts divide evenly. The other
/// checks require that it holds.
bool checkWellFormed(const rt::Program &program, Diagnostics &diagnostics);
/// Checks that parameters, optimizer state and inputs each have a persistent buffer of their own.
void checkNames(const rt::Program &program, Diagnostics &diagnostics);
/// Checks that matmuls, collectives, observations and named tensors fill their buffers exactly.
void checkShapes(const rt::Program &program, Diagnostics &diagnostics);
/// Checks that reads follow writes, in frames those of the same micro-batch, that inputs are never
/// written, and that operands of one instruction do not alias.
void checkDataFlow(const rt::Program &program, Diagnostics &diagnostics);
/// Checks the places of buffers in the arena: by `checkArena`, and where lives of whole bodies
/// overlap, by those of values.
void checkPlaces(const rt::Program &program, Diagnostics &diagnostics);
/// Checks that streams and waits order all accesses of a body to shared bytes, if one of them
/// writes.
void checkStreams(const rt::Program &program, Diagnostics &diagnostics);
/// Checks that the programs of all rank classes belong together and that their collectives have a
/// linear order. REQUIRES: each is well-formed.
void checkCollectives(std::span<const rt::Program> programs, Diagnostics &diagnostics);

} // namespace weft::schedule

#endif // WEFT_LIB_SCHEDULE_PROOFPARTS_H
