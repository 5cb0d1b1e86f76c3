//===- ProgramToText.cpp - from a scheduled module to its table -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Translations.h"

#include "weft/InitAll.h"
#include "weft/Pipeline/ModuleSizes.h"
#include "weft/Pipeline/Schedule/Flatten.h"

#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

void weft::registerProgramTranslation() {
  TranslateFromMLIRRegistration registration(
      "program-to-text", "module after the phase schedule to the text of its program",
      [](ModuleOp module, llvm::raw_ostream &output) -> LogicalResult {
        ModuleSizes sizes = sizesOf(module);
        ProgramInfo info;
        info.modelName = module.getSymName().value_or("").str();
        info.globalBatch = sizes.batch;
        info.microBatches = sizes.microBatches;
        info.sequenceLength = sizes.sequence;
        info.vocabulary = sizes.vocabulary;
        if (module.lookupSymbol("document_starts")) {
          info.documentEnd = 0; // Which token it is, only the recipe says.
        }
        FailureOr<rt::Program> program = flatten(module, info);
        if (failed(program)) {
          return failure();
        }
        output << rt::toText(*program);
        return success();
      },
      registerAllWeft);
}
