//===- Translations.h - the translations of weft-translate ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_TOOLS_WEFTTRANSLATE_TRANSLATIONS_H
#define WEFT_TOOLS_WEFTTRANSLATE_TRANSLATIONS_H

namespace weft {

/// Registers --import-model: from a model's description, and a recipe in --recipe, to a module.
void registerImportTranslation();

/// Registers --program-to-text: from a module after Schedule's passes to its table of instructions,
/// after the steps of Schedule that --program-steps names.
void registerProgramTranslation();

void registerProblemTranslations();

/// Registers --kernels-to-ptx and --kernels-to-resources.
void registerDeviceTranslations();

} // namespace weft

#endif // WEFT_TOOLS_WEFTTRANSLATE_TRANSLATIONS_H
