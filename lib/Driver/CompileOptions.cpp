//===- CompileOptions.cpp - the options of weft compile -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/CompileOptions.h"

#include "weft/Description/Pins.h"
#include "weft/Pipeline/Partition/CollectiveMistake.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace weft;

namespace {

/// "import, differentiate, plan".
std::string phaseNames() {
  return llvm::join(llvm::map_range(allPhases(), [](Phase phase) { return nameOf(phase).str(); }),
                    ", ");
}

Option phaseOption(llvm::StringRef name, std::string help, std::optional<Phase> &target) {
  Option option;
  option.name = name;
  option.valueName = "PHASE";
  option.help = std::move(help);
  option.set = [name, &target](llvm::StringRef value) {
    target = parsePhase(value);
    return target ? llvm::Error::success()
                  : makeError("option '" + name + "' expects one of " + phaseNames() + ", got '" +
                              value + "'");
  };
  return option;
}

std::string stopAfterHelp() {
  std::string help;
  llvm::raw_string_ostream stream(help);
  stream << "stop there and write the module, by default to standard output:";
  for (Phase phase : allPhases()) {
    stream << "\n  " << llvm::left_justify(nameOf(phase), 15) << descriptionOf(phase);
  }
  return help;
}

Option sanitizeOption(Sanitizer &target) {
  Option option;
  option.name = "--sanitize";
  option.valueName = "SANITIZER";
  option.help = "build the program with a sanitizer, address or thread; the library of --runtime\n"
                "must have been built with the same one";
  option.set = [&target](llvm::StringRef value) -> llvm::Error {
    for (Sanitizer sanitizer : {Sanitizer::Address, Sanitizer::Thread}) {
      if (value == nameOf(sanitizer)) {
        target = sanitizer;
        return llvm::Error::success();
      }
    }
    return makeError("option '--sanitize' expects address or thread, got '" + value + "'");
  };
  return option;
}

Option mutationOption(std::optional<MutateCollectivePassOptions> &target) {
  Option option;
  option.name = "--mutate-collective";
  option.valueName = "N:KIND";
  option.help =
      "plant a mistake in number N of reductions and transfers, counted from 0: drop it, do it\n"
      "twice, scale its result, take other axes or another operator, give the result to the first\n"
      "rank alone, or make it infinite (KIND is " +
      collectiveMistakeNames() + ")";
  option.forTesting = true;
  option.set = [&target](llvm::StringRef value) -> llvm::Error {
    auto [number, kind] = value.split(':');
    MutateCollectivePassOptions mutation;
    bool isKind = parseCollectiveMistake(kind).has_value();
    if (number.getAsInteger(10, mutation.index) || mutation.index < 0 || !isKind) {
      return makeError("option '--mutate-collective' expects a number and " +
                       collectiveMistakeNames() + ", as in 0:drop, got '" + value + "'");
    }
    mutation.kind = kind;
    target = mutation;
    return llvm::Error::success();
  };
  return option;
}

Option ruleMutationOption(std::optional<RuleMutation> &target) {
  Option option;
  option.name = "--mutate-rule";
  option.valueName = "NAME:KIND:SITE";
  option.help = kRuleMutationHelp;
  option.forTesting = true;
  option.set = [&target](llvm::StringRef value) -> llvm::Error {
    target = RuleMutation::parse(value);
    return target ? llvm::Error::success()
                  : makeError("option '--mutate-rule' expects an op, a kind of mistake and a "
                              "number, as in weft.map:swap:0, got '" +
                              value + "'");
  };
  return option;
}

} // namespace

Option weft::targetOption(TargetKind &target) {
  Option option;
  option.name = "--target";
  option.valueName = "TARGET";
  option.help =
      "where the program runs: host, on this machine's processor, or cuda, on CUDA devices;\n"
      "compiling for cuda needs a toolkit, but no device (default: host)";
  option.set = [&target](llvm::StringRef value) {
    target = value == "cuda" ? TargetKind::Cuda : TargetKind::Host;
    return value == "cuda" || value == "host"
               ? llvm::Error::success()
               : makeError("option '--target' expects host or cuda, got '" + value + "'");
  };
  return option;
}

void weft::declareTargetOptions(CommandLine &line, CompileOptions &options) {
  line.add(targetOption(options.target));
  line.addSwitch("--wide-matmuls",
                 "with --target cuda: widen FP8 operands of matmuls to the recipe's precision,\n"
                 "as the host does",
                 options.wideMatmuls);
}

void weft::declareDescriptionOptions(CommandLine &line, CompileOptions &options) {
  line.addPositional("MODEL", options.input);
  line.addText("--machine", "FILE", "the machine to compile for", options.machine);
  line.addNumber("--nodes", "N", "as if the machine had N nodes (default: as its file says)", 1,
                 65536, options.nodes);
  line.addText("--recipe", "FILE", "how the model is trained", options.recipe);
}

void weft::declarePlanOptions(CommandLine &line, CompileOptions &options) {
  line.addText("--mesh", "AXES",
               "the axes of the ranks, as in dp=2,tp=4, or tp=2x2 to split an axis;\n"
               "the search finds the fastest split",
               options.mesh);
  line.addList("--pin", "NAME=VALUE", desc::pinsHelp(), options.pins);
  line.addText("--plan", "FILE", "split by this plan", options.plan);
  line.addText("--schedule", "FILE",
               "order the work of pipeline stages by this table: a line for each, such as\n"
               "0F0,0F1,0B0,0B1, of chunks, forward or backward, and micro-batches, with I and W\n"
               "in place of B for gradients of inputs and of weights, and of chunks with\n"
               "UNSHARD, RESHARD or REDUCE_GRAD",
               options.schedule);
}

void weft::declarePlanningOptions(CommandLine &line, CompileOptions &options) {
  line.addText("--machine", "FILE", "the machine to plan for", options.machine);
  line.addNumber("--nodes", "N", "as if the machine had N nodes (default: as its file says)", 1,
                 65536, options.nodes);
  line.addText("--recipe", "FILE",
               "how the model is trained (default: AdamW with clipping, in bf16 where the\n"
               "machine has it, else in float32)",
               options.recipe);
  line.addNumber("--seq-len", "N", "tokens of a sequence (default: as the recipe says)", 1, 1 << 24,
                 options.sequenceLength);
  line.addNumber("--global-batch", "N",
                 "sequences or images of a step, over all ranks (default: as the recipe says)", 1,
                 1 << 28, options.globalBatch);
  declareTargetOptions(line, options);
  declarePlanOptions(line, options);
  line.addSwitch("-v", "print phases and their times, which a terminal gets anyway",
                 options.verbose);
}

void weft::declareCacheOption(CommandLine &line, CompileOptions &options) {
  Option option;
  option.name = "--cache";
  option.valueName = "DIR";
  option.help = "folder that keeps the code of kernels for later compilations, or none (default:\n"
                "WEFT_CACHE, else weft in the user's cache folder)";
  option.set = [&options](llvm::StringRef value) {
    options.cacheFolder = value == kNoCache ? "" : value.str();
    return llvm::Error::success();
  };
  line.add(std::move(option));
}

void weft::declareMutationOptions(CommandLine &line, CompileOptions &options) {
  line.add(mutationOption(options.mutation));
  line.add(ruleMutationOption(options.ruleMutation));
}

CommandLine weft::declareCompileOptions(CompileOptions &options) {
  CommandLine line("weft compile MODEL --machine FILE --recipe FILE [options] -o PROGRAM",
                   "Compiles MODEL, a description in text form, into PROGRAM, and writes its plan\n"
                   "into PROGRAM.plan.textproto.");
  declareDescriptionOptions(line, options);
  declareTargetOptions(line, options);
  line.addSwitch("--separate-epilogues",
                 "with --target cuda: compute epilogues of matmuls, as biases and GELU, in\n"
                 "kernels of their own",
                 options.separateEpilogues);
  declarePlanOptions(line, options);
  line.addText("--cpu", "NAME",
               "processor to generate code for, by LLVM's name for it\n"
               "(default: native, this one)",
               options.cpu);
  line.addText("-o", "FILE", "where to write the result", options.output);
  line.add(phaseOption("--stop-after", stopAfterHelp(), options.stopAfter));
  line.add(phaseOption("--start-after",
                       "start there: MODEL is then a module that --stop-after wrote;\n"
                       "from plan on, its meaning is not proven (docs/Meaning.md)",
                       options.startAfter));
  line.addText("--dump-passes", "DIR", "write the module after every pass that changed it into DIR",
               options.dumpFolder);
  line.add(sanitizeOption(options.sanitize));
  line.addText("--runtime", "FILE", "the runtime library to link (default: this build's own)",
               options.runtimeLibrary);
  line.addSwitch("--keep-object", "keep the object file of the kernels as PROGRAM.o",
                 options.keepObject);
  declareCacheOption(line, options);
  line.addSwitch("--observe-logits",
                 "let the program write a validation's logits with its option --save-logits",
                 options.import.observesLogits);
  line.addSwitch("-v", "print phases and their times, which a terminal gets anyway",
                 options.verbose);
  declareMutationOptions(line, options);
  return line;
}

static llvm::Error checkPlanOptions(const CompileOptions &options) {
  if (options.target != TargetKind::Cuda && options.wideMatmuls) {
    return makeError("--wide-matmuls is for --target cuda");
  }
  if (!options.plan.empty() && !(options.pins.empty() && options.mesh.empty())) {
    return makeError("expected --plan, or --mesh or --pin, got both");
  }
  return llvm::Error::success();
}

llvm::Error weft::checkDescriptionOptions(const CompileOptions &options) {
  if (options.machine.empty()) {
    return makeError("expected --machine FILE");
  }
  if (options.recipe.empty()) {
    return makeError("expected --recipe FILE");
  }
  return checkPlanOptions(options);
}

llvm::Error weft::checkPlanningOptions(const CompileOptions &options) {
  if (options.machine.empty()) {
    return makeError("expected --machine FILE");
  }
  if (options.recipe.empty() && options.globalBatch == 0) {
    return makeError("expected --recipe FILE, or --global-batch N");
  }
  return checkPlanOptions(options);
}

llvm::Error weft::checkCompileOptions(const CompileOptions &options) {
  if (llvm::Error error = checkDescriptionOptions(options)) {
    return error;
  }
  if (options.startAfter && options.import.observesLogits) {
    return makeError("--observe-logits needs phase import, but --start-after is " +
                     nameOf(*options.startAfter));
  }
  if (options.startAfter && *options.startAfter >= Phase::Lower) {
    return makeError("cannot start after phase " + nameOf(*options.startAfter) +
                     ": its result has no instruction table; expected an earlier phase");
  }
  if (options.startAfter && options.stopAfter && *options.stopAfter <= *options.startAfter) {
    return makeError("phase " + nameOf(*options.stopAfter) +
                     " of --stop-after does not come after " + nameOf(*options.startAfter) +
                     " of --start-after");
  }
  if (options.makesExecutable() && (options.output.empty() || options.output == "-")) {
    return makeError("expected -o FILE for the program");
  }
  if (options.target == TargetKind::Cuda && options.sanitize != Sanitizer::None) {
    return makeError("--sanitize watches what runs on the host, but --target is cuda");
  }
  if (options.target != TargetKind::Cuda && options.separateEpilogues) {
    return makeError("--separate-epilogues is for --target cuda");
  }
  if (!options.makesExecutable() && options.keepObject) {
    return makeError("--keep-object needs phase emit, but --stop-after is " +
                     nameOf(*options.stopAfter));
  }
  return llvm::Error::success();
}
