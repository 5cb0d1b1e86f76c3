//===- Reader.h - reads text files of protobuf messages -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stands between protobuf's parser and our diagnostics: what protobuf says in
// terms of its own is said here in terms of the file.
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

/// A description is a page or two of text; what is larger than this is some other file.
inline constexpr size_t maximumTextBytes = size_t(16) << 20;

/// The bytes of a regular file of at most maximumTextBytes. Never waits on a pipe or device.
Result<std::string> readTextFile(const std::string &path);

/// Parses `text` into `message` and says in `tree` where each field stood. On failure adds to
/// `diagnostics` and returns false. Unknown fields are all listed; another syntax error ends the
/// parse.
bool parseText(std::string_view text, const std::string &file, google::protobuf::Message &message,
               google::protobuf::TextFormat::ParseInfoTree &tree, Diagnostics &diagnostics);

/// In the order of the file, those without a place first; equal lines stay in the order they have.
void sortByLine(Diagnostics &diagnostics);

/// Parses `text` as a Message, lets `check` add to the diagnostics, and gives what `resolve` makes
/// of a message without any. Where the version is wrong the rules of this version do not apply, so
/// only that is said.
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

/// Reads the file at `path` and gives its text to `parse`.
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
