//===- Reader.h - reads text files of protobuf messages -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns the messages of protobuf's parser into diagnostics in the terms of the file.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_DESCRIPTION_READER_H
#define WEFT_LIB_DESCRIPTION_READER_H

#include "Fields.h"
#include "weft/Description/Diagnostic.h"

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <string>
#include <string_view>

namespace weft::desc::detail {

/// The size of the largest file to read. Descriptions have a page or two; a larger file is not a
/// description.
inline constexpr size_t maximumTextBytes = size_t(16) << 20;

/// Reads a regular file of at most maximumTextBytes. Never waits on a pipe or device.
Result<std::string> readTextFile(const std::string &path);

/// Parses `text` into `message` and records the place of each field in `tree`. On failure adds to
/// `diagnostics` and returns false. Lists all unknown fields; any other syntax error ends the
/// parse.
bool parseText(std::string_view text, const std::string &file, google::protobuf::Message &message,
               google::protobuf::TextFormat::ParseInfoTree &tree, Diagnostics &diagnostics);

/// Sorts in the order of the file, diagnostics without a place first. The sort is stable.
void sortByLine(Diagnostics &diagnostics);

/// Parses `text` as a Message, calls `check`, which adds to the diagnostics, and, if there are
/// none, returns the result of `resolve`. If the version is wrong, reports only that, because the
/// rules of this version do not apply.
template <typename Message, typename Check, typename Resolve>
auto readDescription(std::string_view text, const std::string &file, const char *versionRule,
                     Check check, Resolve resolve)
    -> Result<decltype(resolve(std::declval<Message &>(), std::declval<Fields &>()))> {
  Message message;
  google::protobuf::TextFormat::ParseInfoTree tree;
  Diagnostics diagnostics;
  if (!parseText(text, file, message, tree, diagnostics)) {
    return diagnostics;
  }
  Fields fields(message, &tree, file, diagnostics);
  if (fields.checkVersion(versionRule)) {
    check(message, fields);
  }
  if (!diagnostics.empty()) {
    sortByLine(diagnostics);
    return diagnostics;
  }
  return resolve(message, fields);
}

/// Reads the file at `path` and parses its text with `parse`.
template <typename Spec>
Result<Spec> loadDescription(const std::string &path,
                             Result<Spec> (*parse)(std::string_view, const std::string &)) {
  Result<std::string> text = readTextFile(path);
  if (!text) {
    return text.diagnostics();
  }
  return parse(*text, path);
}

} // namespace weft::desc::detail

#endif // WEFT_LIB_DESCRIPTION_READER_H
