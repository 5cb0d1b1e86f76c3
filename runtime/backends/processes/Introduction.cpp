//===- Introduction.cpp - the first message between processes -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/Introduction.h"

#include "support/Text.h"

#include <algorithm>
#include <cstring>

using namespace weft::rt;
using namespace weft::rt::mpi;

static bool isPrintable(char letter) { return uint8_t(letter) >= ' ' && letter != '\x7f'; }

std::vector<char> Introduction::encode() const {
  std::vector<char> bytes;
  auto add = [&](std::span<const char> more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  };
  add(bytesOf(process));
  add(bytesOf(run));
  size_t index = 0;
  for (const std::string *text : {&host, &program, &arguments, &address, &problem}) {
    // Zeros fill the rest, at least one.
    std::string field = text->substr(0, kMostText[index] - 1);
    std::ranges::replace_if(field, [](char letter) { return !isPrintable(letter); }, '?');
    field.resize(kMostText[index++], '\0');
    add(field);
  }
  return bytes;
}

Result<Introduction> Introduction::decode(std::span<const char> bytes) {
  if (bytes.size() != kBytes) {
    return makeError("an introduction has ", bytes.size(), " bytes, expected ", size_t(kBytes));
  }
  Introduction who;
  auto take = [&](size_t count) {
    std::span<const char> taken = bytes.first(count);
    bytes = bytes.subspan(count);
    return taken;
  };
  std::memcpy(&who.process, take(sizeof who.process).data(), sizeof who.process);
  std::memcpy(&who.run, take(sizeof who.run).data(), sizeof who.run);
  size_t index = 0;
  for (std::string *text : {&who.host, &who.program, &who.arguments, &who.address, &who.problem}) {
    std::span<const char> field = take(kMostText[index++]);
    auto end = std::ranges::find(field, '\0');
    bool isText = end != field.end() && std::all_of(field.begin(), end, isPrintable) &&
                  std::all_of(end, field.end(), [](char letter) { return letter == '\0'; });
    if (!isText) {
      return makeError("an introduction has a text that is not one");
    }
    text->assign(field.begin(), end);
  }
  return who;
}

std::string Introduction::placeText() const {
  return concat("process ", process, " on '", host, "'");
}

Result<std::vector<Introduction>> weft::rt::mpi::readIntroductions(std::span<const char> bytes) {
  std::vector<Introduction> all;
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), Introduction::kBytes))) {
    Result<Introduction> one =
        Introduction::decode(bytes.first(std::min(bytes.size(), Introduction::kBytes)));
    if (!one) {
      return makeError("rank ", all.size(), " has sent an invalid message: ", one.error().message);
    }
    const Introduction &first = all.empty() ? *one : all.front();
    if (one->program != first.program) {
      return makeError("rank ", all.size(), " runs another program than rank 0: on '", one->host,
                       "' ", one->program, "; rank 0 on '", first.host, "' ", first.program);
    }
    if (one->arguments != first.arguments) {
      return makeError("rank ", all.size(), " was given other options than rank 0");
    }
    all.push_back(std::move(*one));
  }
  if (!all.empty() && !all.front().problem.empty()) {
    return makeError(all.front().problem);
  }
  return all;
}
