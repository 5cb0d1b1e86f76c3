//===- Fields.h - checks the fields of one message ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes rules read like a table: `fields.integer("layers", "model_r4", 1, 1024)`. Protobuf's
// reflection finds fields by name, so a rule states the field's name, the rule's number and the
// bounds once; path and place are added to the diagnostic automatically.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_DESCRIPTION_FIELDS_H
#define WEFT_LIB_DESCRIPTION_FIELDS_H

#include "weft/Description/Diagnostic.h"

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <initializer_list>
#include <string>
#include <string_view>

namespace weft::desc::detail {

/// The interval of reals that a field may lie in; always finite.
struct Bounds {
  double low;
  double high;
  /// True if the end itself is excluded.
  bool above = false;
  bool below = false;
};

/// One message with the places of its fields. REQUIRES: message, tree and diagnostics outlive it,
/// and the message has a field of every `name` that is passed.
class Fields {
public:
  using Message = google::protobuf::Message;
  using Tree = google::protobuf::TextFormat::ParseInfoTree;

  /// `tree` may be null: then places have only the file.
  Fields(const Message &message, const Tree *tree, const std::string &file,
         Diagnostics &diagnostics)
      : message(message), tree(tree), here{file, 0, 0}, diagnostics(diagnostics) {}

  /// Returns the fields of a message that is itself a field; with `index`, of one element of a
  /// repeated field.
  Fields nested(const std::string &name, int index = -1) const;

  bool has(const std::string &name) const;

  /// Returns the place of a field, or of the message if the field is missing.
  Location locationOf(const std::string &name, int index = -1) const;
  /// Returns the place of the message itself.
  Location location() const { return here; }

  /// Adds an error about a field.
  void error(const std::string &name, const char *rule, const std::string &text, int index = -1);

  /// Adds an error and returns false if `version` is missing or not 1.
  bool checkVersion(const char *rule);
  /// Adds an error for each of these fields that is missing.
  void required(const char *rule, std::initializer_list<const char *> names);
  /// Adds an error for each of these fields that is present, although it has no effect; `reason`
  /// ends the sentence.
  void refused(const char *rule, std::initializer_list<const char *> names,
               const std::string &reason);
  /// Checks that an integer lies from `low` to `high`. Returns true if it is present and does.
  bool integer(const std::string &name, const char *rule, int64_t low, int64_t high);
  /// Checks that a number is finite and within bounds. Returns true if it is present and is.
  bool real(const std::string &name, const char *rule, Bounds bounds);
  /// Checks that a string has 1 to `longest` characters, each a letter, a digit or one of `others`.
  bool label(const std::string &name, const char *rule, size_t longest = 64,
             std::string_view others = "._-");

private:
  const google::protobuf::FieldDescriptor *find(const std::string &name) const;

  const Message &message;
  const Tree *tree;
  Location here;
  std::string path; ///< Of this message in the outermost one, with a final dot; empty for that.
  Diagnostics &diagnostics;
};

} // namespace weft::desc::detail

#endif // WEFT_LIB_DESCRIPTION_FIELDS_H
