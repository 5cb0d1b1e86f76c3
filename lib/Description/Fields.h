//===- Fields.h - checks the fields of one message ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rules read as a table: `fields.integer("layers", "model_r4", 1, 1024)`. Fields
// are found by name through protobuf's reflection, so that a rule states name,
// number and bounds once, and the diagnostic gets path and place by itself.
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
  /// The end itself is excluded.
  bool above = false;
  bool below = false;
};

/// One message with the places of its fields. Refers to the message, tree and list that it was made
/// from: REQUIRES that they live as long. REQUIRES of every `name` that the message has that field.
class Fields {
public:
  using Message = google::protobuf::Message;
  using Tree = google::protobuf::TextFormat::ParseInfoTree;

  /// `tree` may be null: then only the file is known of every place.
  Fields(const Message &message, const Tree *tree, const std::string &file,
         Diagnostics &diagnostics)
      : message(message), tree(tree), here{file, 0, 0}, diagnostics(diagnostics) {}

  /// The fields of a message that is itself a field; with `index` one of a repeated field.
  Fields nested(const std::string &name, int index = -1) const;

  bool has(const std::string &name) const;

  /// Where a field stood; the message's own place where it is missing.
  Location locationOf(const std::string &name, int index = -1) const;
  /// Where the message itself stood.
  Location location() const { return here; }

  /// Says what is wrong with a field.
  void error(const std::string &name, const char *rule, const std::string &text, int index = -1);

  /// Says so and returns false where `version` is missing or not 1.
  bool checkVersion(const char *rule);
  /// Says which of the fields are missing.
  void required(const char *rule, std::initializer_list<const char *> names);
  /// Says so where a field that is present has no effect; `reason` ends the sentence.
  void refused(const char *rule, std::initializer_list<const char *> names,
               const std::string &reason);
  /// Checks that an integer lies from `low` to `high`. True where it is present and does.
  bool integer(const std::string &name, const char *rule, int64_t low, int64_t high);
  /// Checks that a number is finite and within bounds. True where it is present and is.
  bool real(const std::string &name, const char *rule, Bounds bounds);
  /// Checks that a string has 1 to `longest` characters, all letters, digits or of `others`.
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
