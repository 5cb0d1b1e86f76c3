//===- ProofTest.cpp - correct programs pass, broken ones do not ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Schedule/Proof.h"
#include "SyntheticProgram.h"
#include "weft/Schedule/Lifetimes.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace weft;
using namespace weft::schedule;
using weft::test::makeClasses;
using weft::test::makeProgram;

namespace {

/// Its diagnostics, one a line; "" if the proof holds.
std::string refusal(const Proof &proof) {
  std::string text;
  for (const std::string &message : proof.diagnostics) {
    text += message + "\n";
  }
  return text;
}

void expectRefused(const rt::Program &program, const std::string &part) {
  Proof proof = prove(program);
  EXPECT_NE(refusal(proof).find(part), std::string::npos) << "expected '" << part << "', got:\n"
                                                          << refusal(proof);
  EXPECT_EQ(proof.certificate, "");
}

/// Number of the `count`-th collective across classes.
size_t findAcross(const rt::Program &program, int count = 0) {
  for (size_t i = 0; i < program.stepBody().size(); ++i) {
    const rt::Instruction &instruction = program.stepBody()[i];
    if (instruction.opcode == rt::Opcode::Collective &&
        program.collectives[instruction.target].isAcrossClasses() && count-- == 0) {
      return i;
    }
  }
  ADD_FAILURE() << "no such collective";
  return 0;
}

/// Number of the `count`-th collective of the step over axis `axis` first.
size_t findCollective(const rt::Program &program, rt::CollectiveKind kind, uint32_t axis,
                      int count = 0) {
  for (size_t i = 0; i < program.stepBody().size(); ++i) {
    const rt::Instruction &instruction = program.stepBody()[i];
    if (instruction.opcode == rt::Opcode::Collective &&
        program.collectives[instruction.target].kind == kind &&
        program.collectives[instruction.target].axes[0] == axis && count-- == 0) {
      return i;
    }
  }
  ADD_FAILURE() << "no such collective";
  return 0;
}

size_t findOpcode(const rt::Program &program, rt::Opcode opcode) {
  for (size_t i = 0; i < program.stepBody().size(); ++i) {
    if (program.stepBody()[i].opcode == opcode) {
      return i;
    }
  }
  ADD_FAILURE() << "no such instruction";
  return 0;
}

TEST(Proof, HoldsForCorrectPrograms) {
  for (int64_t layers : {1, 2, 7}) {
    rt::Program program = makeProgram({layers, 2, 2});
    Proof proof = prove(program);
    EXPECT_EQ(refusal(proof), "");
    EXPECT_EQ(proof.certificate, rt::certificateOf({&program, 1}));
    EXPECT_EQ(refusal(prove(makeClasses({layers, 4, 2}))), "");
  }
}

TEST(Proof, CertificateNamesTheProgram) {
  rt::Program program = makeProgram({});
  std::string certificate = prove(program).certificate;
  program.initBody()[0].immediates[0] = 5;
  EXPECT_NE(prove(program).certificate, certificate);
}

TEST(Proof, NamesBothClassesOfAMismatch) {
  rt::Programs programs = makeClasses({});
  rt::Program &second = programs[1];
  second.collectives[second.stepBody()[findAcross(second, 1)].target].reduction =
      rt::ReductionKind::Sum;
  EXPECT_EQ(refusal(prove(programs)), "rank classes 0 and 1 have different collectives of number "
                                      "2\n");
}

TEST(Proof, NamesARankWithoutPartner) {
  rt::Programs programs = makeClasses({});
  rt::Program &second = programs[1];
  size_t at = findAcross(second, 3); // The last.
  second.stepBody().erase(second.stepBody().begin() + at);
  packArena(second);
  EXPECT_EQ(refusal(prove(programs)),
            "rank 0 at step instruction " + std::to_string(at) +
                " 'backward' issues all-reduce sum f32[8x8] across classes 0 1 and waits for rank "
                "2, which issues no collective that matches it\n");
}

TEST(Proof, FindsDeadlocksAcrossClasses) {
  // The classes issue the sums of the loss and of the first gradient in other orders.
  rt::Programs programs = makeClasses({});
  rt::Program &second = programs[1];
  size_t loss = findAcross(second, 1), gradient = findAcross(second, 2);
  auto begin = second.stepBody().begin();
  // Reduction, observation, agreement.
  std::rotate(begin + loss, begin + loss + 3, begin + gradient + 1);
  packArena(second);
  std::string text = refusal(prove(programs));
  EXPECT_NE(text.find("deadlock: rank 0 at step instruction " + std::to_string(loss)),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("and waits for rank 2; rank 2 at step instruction"), std::string::npos)
      << text;
  EXPECT_NE(text.find("and waits for rank 0"), std::string::npos) << text;
}

TEST(Proof, FindsAgreementsInAnotherOrder) {
  rt::Programs programs = makeClasses({});
  rt::Program &second = programs[1];
  size_t agreement = findOpcode(second, rt::Opcode::Agree), gradient = findAcross(second, 2);
  auto begin = second.stepBody().begin();
  std::rotate(begin + agreement, begin + agreement + 1, begin + gradient + 1);
  packArena(second);
  std::string text = refusal(prove(programs)), here = std::to_string(agreement);
  EXPECT_NE(text.find("deadlock: rank 0 at step instruction " + here +
                      " 'forward' agrees to go on and waits for rank 2; rank 2 at step "
                      "instruction"),
            std::string::npos)
      << text;
}

TEST(Proof, ClassesMayDifferWhereTheyDoNotMeet) {
  rt::Programs programs = makeClasses({});
  rt::Program &second = programs[1];
  size_t at = findCollective(second, rt::CollectiveKind::AllReduce, 1);
  second.stepBody().erase(second.stepBody().begin() + at);
  packArena(second);
  EXPECT_EQ(refusal(prove(programs)), "");
}

/// The program of one of three classes: transfers between two classes at a time, in
/// the order given. The number of each is the sum of its classes.
rt::Program makeChain(uint32_t rankClass, const std::vector<std::vector<uint32_t>> &pairs) {
  rt::Program program;
  program.rankClass = rankClass;
  program.rankClasses = 3;
  program.labels = {"chain"};
  program.kernels = {{"fill"}};
  program.buffers = {{4, 0}, {4, 0}};
  program.stepBody().push_back({rt::Opcode::Kernel, 0, 0, {{0, rt::Access::Write}}, {}});
  for (const std::vector<uint32_t> &pair : pairs) {
    rt::Collective transfer = {.kind = rt::CollectiveKind::Transfer};
    transfer.classes = pair;
    transfer.number = pair[0] + pair[1];
    program.collectives.push_back(transfer);
    rt::Operand operand =
        pair[0] == rankClass ? rt::Operand{0, rt::Access::Read} : rt::Operand{1, rt::Access::Write};
    program.stepBody().push_back(
        {rt::Opcode::Collective, uint32_t(program.collectives.size() - 1), 0, {operand}, {}});
  }
  packArena(program);
  return program;
}

TEST(Proof, PrintsTheCircleOfADeadlock) {
  using Pairs = std::vector<std::vector<uint32_t>>;
  rt::Programs good = {makeChain(0, Pairs{{0, 1}, {0, 2}}), makeChain(1, Pairs{{0, 1}, {1, 2}}),
                       makeChain(2, Pairs{{1, 2}, {0, 2}})};
  EXPECT_EQ(refusal(prove(good)), "");
  rt::Programs bad = {makeChain(0, Pairs{{0, 1}, {0, 2}}), makeChain(1, Pairs{{1, 2}, {0, 1}}),
                      makeChain(2, Pairs{{0, 2}, {1, 2}})};
  EXPECT_EQ(refusal(prove(bad)),
            "deadlock: rank 0 at step instruction 1 'chain' issues transfer f32[] across classes 0 "
            "1 and waits for rank 1; rank 1 at step instruction 1 'chain' issues transfer "
            "f32[] across classes 1 2 and waits for rank 2; rank 2 at step instruction 1 "
            "'chain' issues transfer f32[] across classes 0 2 and waits for rank 0\n");
}

TEST(Proof, ClassesMustBelongTogether) {
  rt::Programs programs = makeClasses({});
  programs[1].planHash = "1";
  EXPECT_EQ(refusal(prove(programs)), "rank classes 0 and 1 have different plans\n");
}

TEST(Proof, PermutesTakeEachShardOnce) {
  rt::Program program = makeProgram({});
  size_t at = findCollective(program, rt::CollectiveKind::AllToAll, 0);
  rt::Collective &permute = program.collectives[program.stepBody()[at].target];
  permute.kind = rt::CollectiveKind::Permute;
  permute.dim2 = 0;
  permute.sources = {1, 0};
  EXPECT_EQ(refusal(prove(program)), "");
  permute.sources.back() = 1;
  expectRefused(program, "takes the shard of rank 1 of its 2 twice");
}

TEST(Proof, ReadsFollowWrites) {
  rt::Program program = makeProgram({});
  program.stepBody().erase(program.stepBody().begin());
  expectRefused(program,
                "step instruction 0 'forward' reads buffer 2, which no instruction has written");
}

TEST(Proof, InitWritesWhatOutlivesAStep) {
  rt::Program program = makeProgram({});
  program.initBody().pop_back();
  expectRefused(program, "init does not write 'w1'");
}

TEST(Proof, InputsStay) {
  rt::Program program = makeProgram({});
  program.inputs.push_back({"step_number", {rt::ElementType::I64, {}, {}}, 0});
  program.inputs[0].buffer = program.buffers.size();
  program.buffers.push_back({8, 0, rt::BufferClass::Input, true, rt::ElementType::I64});
  program.stepBody().back().operands.push_back({program.inputs[0].buffer, rt::Access::Read});
  packArena(program);
  EXPECT_EQ(refusal(prove(program)), "");
  program.stepBody().back().operands.back().access = rt::Access::Write;
  expectRefused(program, ", an input");
}

TEST(Proof, OperandsOfOneInstructionDoNotAlias) {
  rt::Program program = makeProgram({});
  size_t at = findOpcode(program, rt::Opcode::Matmul);
  program.stepBody()[at].operands[2].buffer = program.stepBody()[at].operands[0].buffer;
  expectRefused(program, "share bytes, and writes one of them");
  program = makeProgram({});
  at = findCollective(program, rt::CollectiveKind::AllToAll, 0);
  program.stepBody()[at].operands[1].buffer = program.stepBody()[at].operands[0].buffer;
  expectRefused(program, "only all-reduce may");
}

TEST(Proof, BuffersThatAreNeededAtOnceDoNotOverlap) {
  rt::Program program = makeProgram({});
  program.buffers[3].offset = program.buffers[0].offset;
  expectRefused(program, "overlap in space and time");
}

/// Micro-batches 1 and 2 add to a sum, buffer 1, in actions of one body. Buffer 2 is a
/// micro-batch's alone; 3 is what the last of them computed.
rt::Program makeAccumulating() {
  using enum rt::Access;
  rt::Program program;
  program.microBatches = 4;
  program.kernels = {{"kernel"}};
  program.labels = {"part"};
  program.buffers.assign(4, {64, 0, rt::BufferClass::Activation, false, rt::ElementType::F32});
  program.buffers[0] = {64, 0, rt::BufferClass::Parameter, true, rt::ElementType::F32};
  program.parameters = {{"w", {rt::ElementType::F32, {16}, {{}}}, 0}};
  auto kernel = [](std::vector<rt::Operand> operands) {
    return rt::Instruction{rt::Opcode::Kernel, 0, 0, std::move(operands), {}};
  };
  program.bodies = {
      {"init", {kernel({{0, Write}})}},
      {"step_begin", {kernel({{1, Write}})}},
      {"part", {kernel({{0, Read}, {2, Write}}), kernel({{2, Read}, {1, ReadWrite}, {3, Write}})}},
      {"step_end", {kernel({{1, Read}, {3, Read}, {0, ReadWrite}})}}};
  program.init = {{0}};
  program.step = {{1}, {2, 1}, {2, 2}, {3}};
  packArena(program);
  return program;
}

TEST(Proof, ActionsKeepWhatLaterOnesRead) {
  EXPECT_EQ(refusal(prove(makeAccumulating())), "");
  // The first micro-batch overwrites the sum that the second reads, or its own result.
  rt::Program program = makeAccumulating();
  program.buffers[2].offset = program.buffers[1].offset;
  expectRefused(program, "step instruction 2 'micro-batch 1/part' has operands 0 and 1 that share");
  expectRefused(program, "overlap in space and time");
  program = makeAccumulating();
  program.bodies[2].instructions[1].operands[1] = {3, rt::Access::Write};
  program.bodies[2].instructions[1].operands.pop_back();
  packArena(program);
  program.buffers[2].offset = program.buffers[1].offset;
  expectRefused(program,
                "step instruction 5 'part' reads buffer 1, some of whose bytes buffer 2 has "
                "overwritten");
  // The second reads what only its end writes.
  program = makeAccumulating();
  program.bodies[2].instructions[0].operands.push_back({3, rt::Access::Read});
  packArena(program);
  expectRefused(program, "step instruction 1 'micro-batch 1/part' reads buffer 3, which no");
}

TEST(Proof, MatmulsAddInPlace) {
  rt::Program program = makeProgram({});
  size_t at = findOpcode(program, rt::Opcode::Matmul);
  rt::Instruction &matmul = program.stepBody()[at];
  program.matmuls[matmul.target].epilogue.hasAddend = true;
  uint32_t result = matmul.operands[2].buffer;
  matmul.operands.insert(matmul.operands.begin() + 3, {result, rt::Access::Read});
  // Nothing has written what it adds to.
  expectRefused(program, "reads buffer " + std::to_string(result) + ", which no instruction");
  EXPECT_EQ(refusal(prove(program)).find("share bytes"), std::string::npos);
}

TEST(Proof, SectionsShareNothingButWhatPersists) {
  rt::Program program = makeProgram({});
  uint32_t buffer = program.stepBody()[0].operands[0].buffer;
  program.initBody()[0].operands.push_back({buffer, rt::Access::Write});
  packArena(program);
  expectRefused(program, " of init, which is not persistent");
}

/// A program whose evaluation is the beginning of its step, up to the loss, on buffers of its own.
rt::Program makeEvaluating(rt::Program program = makeProgram({})) {
  std::vector<uint32_t> copies(program.buffers.size(), 0);
  const std::vector<rt::Instruction> step = program.stepBody();
  for (const rt::Instruction &instruction : step) {
    rt::Instruction copy = instruction;
    for (rt::Operand &operand : copy.operands) {
      if (!program.buffers[operand.buffer].persistent) {
        if (copies[operand.buffer] == 0) {
          copies[operand.buffer] = program.buffers.size();
          program.buffers.push_back(rt::Buffer(program.buffers[operand.buffer]));
        }
        operand.buffer = copies[operand.buffer];
      }
    }
    if (instruction.opcode == rt::Opcode::Observe) {
      program.observations.push_back(program.observations[instruction.target]);
      program.observations.back().name = "validation_loss";
      copy.target = program.observations.size() - 1;
    }
    program.evaluateBody().push_back(copy);
    if (instruction.opcode == rt::Opcode::Agree) {
      break;
    }
  }
  packArena(program);
  return program;
}

TEST(Proof, EvaluationsChangeNothing) {
  rt::Program right = makeEvaluating();
  EXPECT_EQ(refusal(prove(right)), "");
  rt::Program program = right;
  program.evaluateBody()[0].operands.push_back({0, rt::Access::Write});
  expectRefused(program, "evaluate instruction 0 writes buffer 0, which is persistent");
  // A buffer of the step has no value when an evaluation begins.
  program = right;
  rt::Operand &observed = (program.evaluateBody().end() - 2)->operands[0];
  observed = {program.stepBody().back().operands[0].buffer, rt::Access::Read};
  EXPECT_FALSE(prove(program).holds());
  program = right;
  program.evaluateBody().erase(program.evaluateBody().begin());
  expectRefused(program, "evaluate instruction 0");
  expectRefused(program, "which no instruction has written");
}

TEST(Proof, CollectivesOfEvaluationsMeetToo) {
  rt::Programs programs = makeClasses({});
  for (rt::Program &program : programs) {
    program = makeEvaluating(std::move(program));
  }
  EXPECT_EQ(refusal(prove(programs)), "");
  std::vector<rt::Instruction> &evaluate = programs[1].evaluateBody();
  evaluate.erase(evaluate.begin() + findAcross(programs[1], 1));
  packArena(programs[1]);
  EXPECT_NE(refusal(prove(programs)).find("rank 0 at evaluate instruction"), std::string::npos);
}

TEST(Proof, PersistentBuffersHaveOneName) {
  rt::Program program = makeProgram({});
  program.parameters[1].buffer = program.parameters[0].buffer;
  expectRefused(program, "which already holds another tensor");
  expectRefused(program, "buffer 1 is persistent and has no name");
  program = makeProgram({});
  program.buffers[0].kind = rt::BufferClass::Optimizer;
  expectRefused(program, "expected a persistent buffer of its class");
}

TEST(Proof, MatmulsFillTheirBuffers) {
  rt::Program program = makeProgram({});
  uint32_t at = program.stepBody()[findOpcode(program, rt::Opcode::Matmul)].target;
  rt::Matmul right = program.matmuls[at];
  program.matmuls[at].m -= 1;
  expectRefused(program, "needs 480 bytes in operand 0, got 512 bytes");
  program.matmuls[at] = right;
  program.matmuls[at].ldc = right.ldc + 1;
  expectRefused(program, "needs");
  program.matmuls[at] = right;
  program.matmuls[at].batch = 2;
  expectRefused(program, "is a batch of 2 matmuls that are all the same");
  program.matmuls[at].batch = 0;
  expectRefused(program, "is a batch of 0 matmuls that are all the same");
  program.matmuls[at].batch = 2;
  program.matmuls[at].m -= 1; // The second matrix begins in the first.
  program.matmuls[at].strideA = right.lda;
  expectRefused(program, "needs a dense tensor in operand 0");
}

TEST(Proof, MatmulsHaveWhatTheirEpiloguesNeed) {
  rt::Program program = makeProgram({});
  uint32_t target = program.stepBody()[findOpcode(program, rt::Opcode::Matmul)].target;
  rt::Matmul &matmul = program.matmuls[target];
  matmul.epilogue.hasBias = true;
  matmul.workspaceBytes = 64;
  for (rt::Instruction &instruction : program.stepBody()) {
    if (instruction.opcode != rt::Opcode::Matmul || instruction.target != target) {
      continue;
    }
    instruction.operands.push_back({instruction.operands[1].buffer, rt::Access::Read});
    instruction.operands.push_back({uint32_t(program.buffers.size()), rt::Access::Write});
    program.buffers.push_back({128, 0, rt::BufferClass::Workspace, false, rt::ElementType::I32});
  }
  packArena(program);
  expectRefused(program, " in operand 3, got ");
  matmul.epilogue.hasBias = false;
  matmul.epilogue.hasAddend = true;
  expectRefused(program, "needs 512 bytes in buffer 0, which has 256");
  for (rt::Instruction &instruction : program.stepBody()) {
    if (instruction.operands.size() == 5 && instruction.opcode == rt::Opcode::Matmul) {
      instruction.operands.erase(instruction.operands.begin() + 3);
    }
  }
  matmul.epilogue.hasAddend = false;
  expectRefused(program, "needs a workspace of 64 bytes, the buffer has 128");
  program.stepBody()[findOpcode(program, rt::Opcode::Matmul)].operands[3].access = rt::Access::Read;
  expectRefused(program, "has operands or immediates of the wrong number or access");
}

TEST(Proof, WorkspacesLieAsLibrariesWantThem) {
  rt::Program program = makeProgram({});
  rt::Instruction &run = program.stepBody()[findOpcode(program, rt::Opcode::Matmul)];
  program.matmuls.push_back(program.matmuls[run.target]);
  program.matmuls.back().workspaceBytes = 128;
  run.target = uint32_t(program.matmuls.size() - 1);
  run.operands.push_back({uint32_t(program.buffers.size()), rt::Access::Write});
  program.buffers.push_back({128, 0, rt::BufferClass::Workspace, false, rt::ElementType::I32});
  EXPECT_EQ(makeArenaProblem(program).alignment, rt::kWorkspaceAlignment);
  packArena(program);
  EXPECT_TRUE(prove(program).holds());
  // Where nothing else is.
  program.buffers.back().offset = program.arenaBytes + rt::kAlignment;
  program.arenaBytes += 2 * rt::kWorkspaceAlignment;
  expectRefused(program, "expected a multiple of 256");
  program.buffers.back().kind = rt::BufferClass::Activation;
  expectRefused(program, "as workspace, which is of class activation");
}

TEST(Proof, CollectivesFillTheirBuffers) {
  rt::Program program = makeProgram({});
  size_t at = findCollective(program, rt::CollectiveKind::AllGather, 1);
  program.collectives[program.stepBody()[at].target].shape[0] *= 2;
  expectRefused(program, "needs 512 bytes");
  program = makeProgram({});
  at = findCollective(program, rt::CollectiveKind::AllReduce, 1);
  program.collectives[program.stepBody()[at].target].axes.clear();
  expectRefused(program, "has no mesh axis");
}

TEST(Proof, CountsWhatItDoesNotList) {
  rt::Program program = makeProgram({40, 2, 2});
  program.initBody().clear();
  Proof proof = prove(program);
  EXPECT_EQ(proof.diagnostics.size(), Proof::kMaxDiagnostics + 1);
  EXPECT_EQ(proof.diagnostics.back(), "and 20 more");
}

TEST(Proof, DamagedTablesAreRefused) {
  rt::Program program = makeProgram({});
  program.mesh[0].size = int64_t(1) << 40;
  EXPECT_FALSE(prove(program).holds());
  program = makeProgram({});
  program.stepBody()[0].operands[0].buffer = 1000;
  EXPECT_FALSE(prove(program).holds());
  program = makeProgram({});
  program.stepBody()[0].target = 99;
  EXPECT_FALSE(prove(program).holds());
}

} // namespace
