//===- Translations.h - the translations of weft-translate ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_TOOLS_WEFTTRANSLATE_TRANSLATIONS_H
#define WEFT_TOOLS_WEFTTRANSLATE_TRANSLATIONS_H

namespace weft {

/// --import-model: a description of a model, and by --recipe one of its training, to a module.
void registerImportTranslation();

/// --program-to-text: a module that Schedule has left, to the table of instructions that it
/// becomes; by --program-steps, after the steps of Schedule that it names.
void registerProgramTranslation();

void registerProblemTranslations();

/// --kernels-to-ptx and --kernels-to-resources.
void registerDeviceTranslations();

} // namespace weft

#endif // WEFT_TOOLS_WEFTTRANSLATE_TRANSLATIONS_H
