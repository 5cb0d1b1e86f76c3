//===- CudaMisusedWorkTest.cpp - wrong work for the simulator for CUDA ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/Toy.h"
#include "tests/testing/CudaBench.h"

using namespace weft::rt;
using namespace weft::rt::cuda;

namespace {

class CudaMisusedWorkTest : public testing::TestWithParam<Misused> {};

TEST_P(CudaMisusedWorkTest, IsRefusedWhateverTheSeed) { expectRefused(GetParam()); }

CallResult launchOn(Bench &bench, uint32_t blocks, uint32_t threads, size_t count = 4) {
  const uint64_t arguments[] = {bench.c, bench.a, bench.b, 1, 0};
  return bench.cuda.launch(bench.device, bench.stream, bench.scale, blocks, threads, arguments,
                           count);
}

const Misused kLaunches[] = {
    {"NoBlocks", "launch: expected 1 to 2147483647 blocks, got 0",
     [](Bench &bench) { return launchOn(bench, 0, 64); }},
    {"TooManyBlocks", "launch: expected 1 to 2147483647 blocks, got 2147483648",
     [](Bench &bench) { return launchOn(bench, uint32_t(1) << 31, 64); }},
    {"NoThreads", "launch: expected 1 to 512 threads, got 0",
     [](Bench &bench) { return launchOn(bench, 1, 0); }},
    {"TooManyThreads", "launch: expected 1 to 512 threads, got 513",
     [](Bench &bench) { return launchOn(bench, 1, 513); }},
    {"OtherThreadsThanABlockHas", "launch: expected 64 threads for 'block_phase_0', got 32",
     [](Bench &bench) {
       const uint64_t arguments[] = {bench.c};
       return bench.cuda.launch(bench.device, bench.stream, bench.entry("block_phase_0"), 1, 32,
                                arguments, 1);
     }},
    {"TooFewArguments", "launch: expected 4 arguments of 'scale_phase_0', got 3",
     [](Bench &bench) { return launchOn(bench, 1, 64, 3); }},
    {"TooManyArguments", "launch: expected 4 arguments of 'scale_phase_0', got 5",
     [](Bench &bench) { return launchOn(bench, 1, 64, 5); }},
    {"OperandsThatShareBytes", "launch: operand 0 and operand 1 share bytes, and one is written",
     [](Bench &bench) { return bench.launch(bench.stream, bench.a, bench.a); }},
    {"OperandNotAligned",
     "launch: expected operand 0 at a multiple of 64 bytes, got it 16 beyond one",
     [](Bench &bench) {
       Address large = bench.allocate(2 * kBenchBytes);
       Bench::ok(bench.cuda.zero(bench.device, bench.stream, large, 2 * kBenchBytes));
       return bench.launch(bench.stream, large + 16, bench.b);
     }},
    {"OperandBeyondTheEnd",
     "launch: operand 1: 512 bytes from byte 64 on end beyond an allocation of 512 bytes",
     [](Bench &bench) { return bench.launch(bench.stream, bench.a, bench.b + 64); }},
    {"ArgumentsInAnotherOrder", "launch: operand 1: address 1 is in no allocation",
     [](Bench &bench) { return bench.launch(bench.stream, bench.a, 1, bench.b); }},
    {"EntryThatIsNotThere", "entry: the module has no entry 'scale_phase_1'",
     [](Bench &bench) {
       Handle found;
       return bench.cuda.entry(bench.device, bench.module, "scale_phase_1", &found);
     }},
    {"ModuleOfNothing", "load: expected machine code, got none",
     [](Bench &bench) {
       Handle made;
       return bench.cuda.load(bench.device, nullptr, &made);
     }},
};

CallResult prepare(Bench &bench, const Matmul &matmul) {
  Handle made;
  return bench.prepare(matmul, 0, &made);
}

/// Prepares a matmul with a change, which alone is refused.
template <const Matmul &matmul, typename Change> CallResult changed(Bench &bench, Change change) {
  Handle made;
  Bench::ok(bench.prepare(matmul, 0, &made));
  Matmul other = matmul;
  change(other);
  return prepare(bench, other);
}

const Misused kMatmuls[] = {
    {"Fp8WithATransposed", "prepareMatmul: expected one FP8 matmul with B alone transposed",
     [](Bench &bench) {
       return changed<kToyBytes>(bench, [](Matmul &p) { p.transposeA = true; });
     }},
    {"Fp8WithoutBTransposed", "prepareMatmul: expected one FP8 matmul with B alone transposed",
     [](Bench &bench) {
       return changed<kToyBytes>(bench, [](Matmul &p) { p.transposeB = false; });
     }},
    {"Fp8InABatch", "prepareMatmul: expected one FP8 matmul with B alone transposed",
     [](Bench &bench) {
       return changed<kToyBytes>(bench, [](Matmul &p) {
         p.batch = 2;
         p.strideC = 256;
       });
     }},
    {"Fp8OfTwoGradients",
     "prepareMatmul: expected an FP8 matmul with an operand of f8e4m3, got two of f8e5m2",
     [](Bench &bench) {
       return changed<kToyBytes>(bench, [](Matmul &p) {
         p.type = ElementType::F8E5M2;
         p.fp8B = ElementType::F8E5M2;
       });
     }},
    {"Fp8OfOtherSizes",
     "prepareMatmul: expected sizes of an FP8 matmul to be multiples of 16, got 8",
     [](Bench &bench) { return changed<kToyBytes>(bench, [](Matmul &p) { p.k = 8; }); }},
    {"Fp8RowsNotAligned",
     "prepareMatmul: expected rows of an FP8 matmul a multiple of 16 bytes apart, got 24",
     [](Bench &bench) { return changed<kToyBytes>(bench, [](Matmul &p) { p.lda = 24; }); }},
    {"Fp8ResultsNotAligned",
     "prepareMatmul: expected rows of an FP8 matmul a multiple of 16 bytes apart, got 40",
     [](Bench &bench) { return changed<kToyBytes>(bench, [](Matmul &p) { p.ldc = 20; }); }},
    {"Fp8BiasOfAWideResult",
     "prepareMatmul: expected a bf16 result of an FP8 matmul with a bias, got f32",
     [](Bench &bench) {
       return changed<kToyBytes>(bench, [](Matmul &p) {
         p.epilogue.hasBias = true;
         p.isResultF32 = true;
       });
     }},
    {"EpilogueOfF64", "prepareMatmul: expected a matmul of f64 without an epilogue",
     [](Bench &bench) {
       return changed<kBenchMatmul>(bench, [](Matmul &p) {
         p.type = ElementType::F64;
         p.epilogue.hasBias = true;
       });
     }},
    {"EpilogueOfABatch", "prepareMatmul: expected one matmul with an epilogue, got 2",
     [](Bench &bench) {
       return changed<kBenchMatmul>(bench, [](Matmul &p) {
         p.batch = 2;
         p.strideC = 16;
         p.epilogue.hasBias = true;
       });
     }},
    {"ResultsOfABatchThatShareBytes",
     "prepareMatmul: expected results at least 64 bytes apart, got 60",
     [](Bench &bench) {
       return changed<kBenchMatmul>(bench, [](Matmul &p) {
         p.batch = 2;
         p.strideC = 15;
       });
     }},
    {"TypeThatHasNone",
     "prepareMatmul: expected a matmul of f64, f32, bf16, f16 or FP8, got one of i32",
     [](Bench &bench) {
       Matmul matmul = kBenchMatmul;
       matmul.type = ElementType::I32;
       return prepare(bench, matmul);
     }},
    {"RowsThatNoActivationHas",
     "prepareMatmul: expected one matmul with rows a multiple of 8 elements apart for an "
     "activation, got 1 with 4",
     [](Bench &bench) {
       Matmul matmul = kBenchMatmul;
       matmul.epilogue = {.activation = Epilogue::Activation::Gelu, .hasAux = true};
       return prepare(bench, matmul);
     }},
    {"AlgorithmOfAnotherMatmul",
     "prepareMatmul: expected a way to compute this matmul, got one of another",
     [](Bench &bench) {
       MatmulAlgorithm way = {{7}};
       Handle made = 0;
       return bench.cuda.prepareMatmul(bench.device, &kBenchMatmul, &way, &made);
     }},
    {"AddendThatIsBlank", "runMatmul: the addend is read, but not all of it was ever written",
     [](Bench &bench) {
       Matmul matmul = kBenchMatmul;
       matmul.epilogue.hasAddend = true;
       Handle made = 0;
       Bench::ok(bench.prepare(matmul, 0, &made));
       MatmulPlaces places = {bench.a, bench.b, bench.c, bench.blank, 0, 0, 0, 0};
       return bench.cuda.runMatmul(bench.device, bench.stream, made, &places);
     }},
    {"NoRows", "prepareMatmul: expected sizes of at least 1, got 0",
     [](Bench &bench) {
       Matmul matmul = kBenchMatmul;
       matmul.m = 0;
       return prepare(bench, matmul);
     }},
    {"RowsThatShareBytes", "prepareMatmul: expected rows at least 16 bytes apart, got 12",
     [](Bench &bench) {
       Matmul matmul = kBenchMatmul;
       matmul.ldb = 3;
       return prepare(bench, matmul);
     }},
    {"OperandNotAligned",
     "runMatmul: expected operand C at a multiple of 16 bytes, got it 4 beyond one",
     [](Bench &bench) {
       return bench.runMatmul(bench.stream, bench.prepareMatmul(), bench.a, bench.b, bench.c + 4,
                              0);
     }},
    {"OperandBeyondTheEnd",
     "runMatmul: operand A: 64 bytes from byte 480 on end beyond an allocation of 512 bytes",
     [](Bench &bench) {
       return bench.runMatmul(bench.stream, bench.prepareMatmul(), bench.a + 480, bench.b, bench.c,
                              0);
     }},
    {"ResultInAnOperand", "runMatmul: operand A and operand C share bytes, and one is written",
     [](Bench &bench) {
       return bench.runMatmul(bench.stream, bench.prepareMatmul(), bench.a, bench.b, bench.a + 32,
                              0);
     }},
    {"NoWorkspace", "runMatmul: the workspace: address 0 is in no allocation",
     [](Bench &bench) {
       return bench.runMatmul(bench.stream, bench.prepareMatmul(64), bench.a, bench.b, bench.c, 0);
     }},
    {"WorkspaceNotAligned",
     "runMatmul: expected the workspace at a multiple of 256 bytes, got it 64 beyond one",
     [](Bench &bench) {
       return bench.runMatmul(bench.stream, bench.prepareMatmul(64), bench.a, bench.b, bench.c,
                              bench.blank + 64);
     }},
    {"WorkspaceTooSmall",
     "runMatmul: the workspace: 1024 bytes from byte 0 on end beyond an allocation of 512 bytes",
     [](Bench &bench) {
       return bench.runMatmul(bench.stream, bench.prepareMatmul(1024), bench.a, bench.b, bench.c,
                              bench.blank);
     }},
    {"WorkspaceInAnOperand",
     "runMatmul: operand A and the workspace share bytes, and one is written",
     [](Bench &bench) {
       return bench.runMatmul(bench.stream, bench.prepareMatmul(64), bench.a, bench.b, bench.c,
                              bench.a);
     }},
};

/// Uses of a sealed device.
const Misused kSealed[] = {
    {"Allocate", "allocate: nothing may be allocated on a sealed device",
     [](Bench &bench) {
       Bench::ok(bench.cuda.seal(bench.device));
       Address made;
       return bench.cuda.allocate(bench.device, 64, &made);
     }},
    {"Free", "free: nothing may be freed on a sealed device",
     [](Bench &bench) {
       Bench::ok(bench.cuda.seal(bench.device));
       return bench.cuda.free(bench.device, bench.a);
     }},
    {"AllocatePinned", "allocatePinned: nothing may be allocated on a sealed device",
     [](Bench &bench) {
       Bench::ok(bench.cuda.seal(bench.device));
       void *made;
       return bench.cuda.allocatePinned(bench.device, 64, &made);
     }},
    {"FreePinned", "freePinned: nothing may be freed on a sealed device",
     [](Bench &bench) {
       Bench::ok(bench.cuda.seal(bench.device));
       return bench.cuda.freePinned(bench.device, bench.pinned);
     }},
    {"MakeStream", "makeStream: nothing may be made on a sealed device",
     [](Bench &bench) {
       Bench::ok(bench.cuda.seal(bench.device));
       Handle made;
       return bench.cuda.makeStream(bench.device, &made);
     }},
    {"FreeStream", "freeStream: nothing may be freed on a sealed device",
     [](Bench &bench) {
       Bench::ok(bench.cuda.seal(bench.device));
       return bench.cuda.freeStream(bench.device, bench.other);
     }},
    {"MakeEvent", "makeEvent: nothing may be made on a sealed device",
     [](Bench &bench) {
       Bench::ok(bench.cuda.seal(bench.device));
       Handle made;
       return bench.cuda.makeEvent(bench.device, &made);
     }},
    {"FreeEvent", "freeEvent: nothing may be freed on a sealed device",
     [](Bench &bench) {
       Bench::ok(bench.cuda.seal(bench.device));
       return bench.cuda.freeEvent(bench.device, bench.event);
     }},
    {"Load", "load: nothing may be loaded on a sealed device",
     [](Bench &bench) {
       Bench::ok(bench.cuda.seal(bench.device));
       Handle made;
       return bench.cuda.load(bench.device, "an image", &made);
     }},
    {"Unload", "unload: nothing may be unloaded on a sealed device",
     [](Bench &bench) {
       Bench::ok(bench.cuda.seal(bench.device));
       return bench.cuda.unload(bench.device, bench.module);
     }},
    {"Entry", "entry: nothing may be looked up on a sealed device",
     [](Bench &bench) {
       Bench::ok(bench.cuda.seal(bench.device));
       Handle found;
       return bench.cuda.entry(bench.device, bench.module, "scale_phase_0", &found);
     }},
    {"PrepareMatmul", "prepareMatmul: nothing may be prepared on a sealed device",
     [](Bench &bench) {
       Bench::ok(bench.cuda.seal(bench.device));
       return prepare(bench, kBenchMatmul);
     }},
    {"FreeMatmul", "freeMatmul: nothing may be freed on a sealed device",
     [](Bench &bench) {
       Handle matmul = bench.prepareMatmul();
       Bench::ok(bench.cuda.seal(bench.device));
       return bench.cuda.freeMatmul(bench.device, matmul);
     }},
    {"Seal", "seal: nothing may be sealed on a sealed device",
     [](Bench &bench) {
       Bench::ok(bench.cuda.seal(bench.device));
       return bench.cuda.seal(bench.device);
     }},
    {"Close", "close: device 0 is sealed",
     [](Bench &bench) {
       Bench::ok(bench.cuda.seal(bench.device));
       return bench.cuda.close(bench.device);
     }},
    {"UnsealWhatIsNot", "unseal: device 0 is not sealed",
     [](Bench &bench) { return bench.cuda.unseal(bench.device); }},
};

INSTANTIATE_TEST_SUITE_P(Launches, CudaMisusedWorkTest, testing::ValuesIn(kLaunches),
                         nameOfMisused);
INSTANTIATE_TEST_SUITE_P(Matmuls, CudaMisusedWorkTest, testing::ValuesIn(kMatmuls), nameOfMisused);
INSTANTIATE_TEST_SUITE_P(Sealed, CudaMisusedWorkTest, testing::ValuesIn(kSealed), nameOfMisused);

} // namespace
