//===- Handshake.cpp - two processes recognize each other -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/connections/Handshake.h"

#include "support/Text.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

using namespace weft::rt;
using namespace weft::rt::tcp;

static constexpr std::string_view kConnects = "weft connects", kListens = "weft listens";

template <typename Message> static Message read(std::span<const char> bytes) {
  Message message;
  std::memcpy(&message, bytes.data(), sizeof message);
  return message;
}

static std::string versionText(const Hello &hello) {
  return concat("is of version ", hello.version, " of the handshake, expected ",
                uint32_t(Hello::kVersion));
}

void Handshake::take(size_t more) {
  count += more;
  // Only a Hello is of this size. Strangers often say less than that, and then wait.
  static_assert(sizeof(Hello) != sizeof(Proof) && sizeof(Hello) != sizeof(Welcome));
  uint64_t magic = Hello::kMagic;
  if (wanted == sizeof(Hello) && std::memcmp(bytes, &magic, std::min(count, sizeof magic)) != 0) {
    return end("is no program made by weft");
  }
  // The rest of another version's Hello may have another size.
  bool isOther = wanted == sizeof(Hello) && count >= offsetof(Hello, unused) &&
                 read<Hello>(bytes).version != Hello::kVersion;
  if (count == wanted || isOther) {
    handle(std::span(bytes).first(wanted));
  }
}

void Handshake::expect(size_t size) {
  count = 0;
  wanted = size;
}

void Handshake::end(std::string reason) {
  expect(0);
  now = State::Ended;
  why = std::move(reason);
}

void Handshake::succeed() {
  expect(0);
  now = State::Done;
}

void Handshake::fill(Hello &hello) {
  Result<Bytes32> random = randomBytes();
  if (!random) {
    return end(concat("cannot be greeted: ", random.error().message));
  }
  hello.random = *random;
}

Bytes32 Handshake::codeOf(std::string_view label, const Claim &claim) const {
  return Hmac(bytesOf(key))
      .add(label)
      .add(bytesOf(hellos[0]))
      .add(bytesOf(hellos[1]))
      .add(bytesOf(claim))
      .finish();
}

ListenerHandshake::ListenerHandshake(const Bytes32 &key, Claim::Purpose purpose)
    : Handshake(key), purpose(purpose) {
  expect(sizeof(Hello));
}

void ListenerHandshake::handle(std::span<const char> message) {
  if (!isGreeted) {
    isGreeted = true;
    hellos[0] = read<Hello>(message);
    fill(hellos[1]);
    if (state() == State::Ended) {
      return;
    }
    // One of another version gets it too, to learn this one's version.
    send(hellos[1]);
    if (hellos[0].version != Hello::kVersion) {
      return end(versionText(hellos[0]));
    }
    return expect(sizeof(Proof));
  }
  auto proof = read<Proof>(message);
  if (!isEqualInConstantTime(proof.code, codeOf(kConnects, proof.claim))) {
    return end("has another secret, or none");
  }
  if (proof.claim.purpose != purpose) {
    return end("has come to the wrong port");
  }
  proven = proof.claim;
  send(Welcome{codeOf(kListens, proven)});
  succeed();
}

ConnectorHandshake::ConnectorHandshake(const Bytes32 &key, const Claim &claim)
    : Handshake(key), claim(claim) {
  expect(sizeof(Hello));
  fill(hellos[0]);
  if (state() != State::Ended) {
    send(hellos[0]);
  }
}

void ConnectorHandshake::handle(std::span<const char> message) {
  if (!isProven) {
    hellos[1] = read<Hello>(message);
    if (hellos[1].version != Hello::kVersion) {
      return end(versionText(hellos[1]));
    }
    isProven = true;
    send(Proof{claim, codeOf(kConnects, claim)});
    return expect(sizeof(Welcome));
  }
  if (!isEqualInConstantTime(read<Welcome>(message).code, codeOf(kListens, claim))) {
    return end("has another secret, or none");
  }
  succeed();
}
