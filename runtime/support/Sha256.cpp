//===- Sha256.cpp - keyed hashes and random numbers -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/Sha256.h"

#include "support/Text.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <sys/random.h>

using namespace weft::rt;

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
static constexpr uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t loadBigEndian(const uint8_t *bytes) {
  return uint32_t(bytes[0]) << 24 | uint32_t(bytes[1]) << 16 | uint32_t(bytes[2]) << 8 | bytes[3];
}

static void storeBigEndian(uint32_t value, uint8_t *bytes) {
  for (int i = 0; i < 4; ++i) {
    bytes[i] = uint8_t(value >> (24 - 8 * i));
  }
}

/// Takes in one block; the names are those of FIPS 180-4, section 6.2.2.
void Sha256::mix(const uint8_t *block) {
  uint32_t w[64];
  for (size_t t = 0; t < 16; ++t) {
    w[t] = loadBigEndian(block + 4 * t);
  }
  for (size_t t = 16; t < 64; ++t) {
    uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t t = 0; t < 64; ++t) {
    uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRounds[t] + w[t];
    uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const uint32_t added[8] = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < state.size(); ++i) {
    state[i] += added[i];
  }
}

Sha256 &Sha256::add(std::span<const char> bytes) {
  while (!bytes.empty()) {
    size_t here = count % kBlockBytes, more = std::min(kBlockBytes - here, bytes.size());
    std::memcpy(rest.data() + here, bytes.data(), more);
    count += more;
    bytes = bytes.subspan(more);
    if (count % kBlockBytes == 0) {
      mix(rest.data());
    }
  }
  return *this;
}

Bytes32 Sha256::finish() {
  uint64_t bits = count * 8;
  const char padding[kBlockBytes] = {'\x80'};
  constexpr size_t kLengthAt = kBlockBytes - sizeof bits;
  size_t here = count % kBlockBytes;
  add({padding, here < kLengthAt ? kLengthAt - here : kLengthAt + kBlockBytes - here});
  uint8_t length[sizeof bits];
  storeBigEndian(uint32_t(bits >> 32), length);
  storeBigEndian(uint32_t(bits), length + 4);
  add(bytesOf(length));
  Bytes32 hash;
  for (size_t i = 0; i < state.size(); ++i) {
    storeBigEndian(state[i], hash.data() + 4 * i);
  }
  return hash;
}

Hmac::Hmac(std::span<const char> key) {
  Bytes32 hashed;
  if (key.size() > Sha256::kBlockBytes) {
    hashed = Sha256().add(key).finish();
    key = bytesOf(hashed);
  }
  char mask[Sha256::kBlockBytes] = {};
  std::ranges::copy(key, mask);
  auto masked = [&](char with) {
    std::array<char, Sha256::kBlockBytes> block;
    std::ranges::transform(mask, block.begin(), [&](char each) { return char(each ^ with); });
    return block;
  };
  inner.add(masked(0x36));
  outer.add(masked(0x5c));
}

Hmac &Hmac::add(std::span<const char> bytes) {
  inner.add(bytes);
  return *this;
}

Bytes32 Hmac::finish() { return outer.add(bytesOf(inner.finish())).finish(); }

bool weft::rt::isEqualInConstantTime(const Bytes32 &a, const Bytes32 &b) {
  // Volatile: the compiler must not end at the first difference.
  volatile uint8_t difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = difference | (a[i] ^ b[i]);
  }
  return difference == 0;
}

Result<Bytes32> weft::rt::randomBytes() {
  Bytes32 bytes;
  ssize_t count = 0;
  do {
    count = getrandom(bytes.data(), bytes.size(), 0);
  } while (count < 0 && errno == EINTR);
  if (count != ssize_t(bytes.size())) {
    return makeError("cannot get random numbers from the system: ", systemError(errno));
  }
  return bytes;
}

std::string weft::rt::hexText(std::span<const uint8_t> bytes) {
  std::string text;
  for (uint8_t byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}
