//===- Secret.cpp - the secret that the processes of a run share ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/connections/Secret.h"

#include "backends/processes/connections/Address.h"
#include "support/Text.h"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace weft::rt;
using namespace weft::rt::tcp;

static std::span<const char> label(std::string_view text) { return text; }

Secret::Secret()
    : Secret("", "this process has none (neither WEFT_SECRET nor WEFT_SECRET_FILE is set)") {}

Secret::Secret(const std::string &secret, std::string described)
    : ownKey(Hmac(secret).add(label("weft rendezvous")).finish()), described(std::move(described)) {
}

Bytes32 Secret::keyOf(const Bytes32 &run) const {
  return Hmac(bytesOf(ownKey)).add(label("weft run")).add(bytesOf(run)).finish();
}

std::string weft::rt::tcp::publicNameOf(const Bytes32 &runKey) {
  return hexText(Hmac(bytesOf(runKey)).add(label("weft name")).finish()).substr(0, 16);
}

/// Reads up to `Secret::kMost` bytes and one line break of a file that only its owner can open.
static Result<std::string> readPrivateFile(const char *path) {
  // A pipe without a writer must not hold up the start.
  Descriptor file(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about = {};
  if (!file || fstat(file.get(), &about) != 0) {
    return makeError("cannot read '", path, "' of WEFT_SECRET_FILE: ", systemError(errno));
  }
  if (!S_ISREG(about.st_mode)) {
    return makeError("WEFT_SECRET_FILE is '", path, "', expected a regular file");
  }
  if (about.st_uid != geteuid() && about.st_uid != 0) {
    return makeError("'", path, "' of WEFT_SECRET_FILE belongs to user ", about.st_uid,
                     ", expected the user of this process, ", geteuid(), ", or root");
  }
  if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return makeError("other users can open '", path,
                     "' of WEFT_SECRET_FILE: expected mode 0600 or ", "0400, got 0", std::oct,
                     about.st_mode & 07777, std::dec, "; chmod go= removes their rights");
  }
  std::string text(Secret::kMost + 2, '\0');
  size_t count = 0;
  ssize_t more = 0;
  do {
    more = read(file.get(), text.data() + count, text.size() - count);
    count += more > 0 ? size_t(more) : 0;
  } while ((more > 0 && count < text.size()) || (more < 0 && errno == EINTR));
  if (more < 0) {
    return makeError("cannot read '", path, "' of WEFT_SECRET_FILE: ", systemError(errno));
  }
  text.resize(count);
  if (text.ends_with('\n')) {
    text.pop_back();
  }
  return text;
}

Result<Secret> Secret::find(const mpi::Environment &environment) {
  const char *value = environment("WEFT_SECRET"), *path = environment("WEFT_SECRET_FILE");
  if (!value && !path) {
    return Secret();
  }
  if (value && path) {
    return makeError("both WEFT_SECRET and WEFT_SECRET_FILE are set, expected one of them");
  }
  Result<std::string> text = value ? Result<std::string>(value) : readPrivateFile(path);
  if (!text) {
    return text.error();
  }
  std::string place = value ? "WEFT_SECRET" : concat("'", path, "' of WEFT_SECRET_FILE");
  if (text->size() < kFewest || text->size() > kMost) {
    return makeError("the secret in ", place, " has ",
                     text->size() > kMost ? concat("more than ", size_t(kMost))
                                          : std::to_string(text->size()),
                     " bytes, expected ", size_t(kFewest), " to ", size_t(kMost));
  }
  return Secret(*text, concat("this process has the one in ", place));
}

Result<Secret> Secret::find() {
  return find([](const char *name) { return std::getenv(name); });
}
