//===- Sha256Test.cpp - keyed hashes against published values -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/Sha256.h"

#include <gtest/gtest.h>

#include <set>

using namespace weft::rt;

namespace {

std::string hashText(const std::string &text) { return hexText(Sha256().add(text).finish()); }

std::string codeText(const std::string &key, const std::string &text) {
  return hexText(Hmac(key).add(text).finish());
}

// FIPS 180-4: the examples of NIST's "Cryptographic Standards and Guidelines".
TEST(Sha256Test, ExamplesOfTheStandard) {
  EXPECT_EQ(hashText(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hashText("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hashText("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hashText("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                     "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(hashText(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// The hash of the hashes of 0 to 299 bytes, so that each way of padding occurs. The expected value
// is from Python: sha256(b"".join(sha256(bytes(n)).digest() for n in range(300))).hexdigest().
TEST(Sha256Test, AllLengthsAroundABlock) {
  Sha256 all;
  for (size_t bytes = 0; bytes < 300; ++bytes) {
    Sha256 whole, byParts;
    std::string zeros(bytes, '\0');
    for (size_t at = 0; at < bytes; at += 7) {
      byParts.add(std::span(zeros).subspan(at, std::min<size_t>(7, bytes - at)));
    }
    Bytes32 hash = whole.add(zeros).finish();
    EXPECT_EQ(byParts.finish(), hash);
    all.add(bytesOf(hash));
  }
  EXPECT_EQ(hexText(all.finish()),
            "a623c720bdf879ab1ab1d3f3b1af698237802d9f4af8be0b0b8cd87f36e9fca4");
}

// RFC 4231, test cases 1 to 4, 6 and 7; case 5 is of a shortened code.
TEST(HmacTest, TestVectorsOfTheRfc) {
  EXPECT_EQ(codeText(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(codeText("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(codeText(std::string(20, '\xaa'), std::string(50, '\xdd')),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  std::string counted;
  for (char byte = 1; byte <= 25; ++byte) {
    counted += byte;
  }
  EXPECT_EQ(codeText(counted, std::string(50, '\xcd')),
            "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
  std::string large(131, '\xaa');
  EXPECT_EQ(codeText(large, "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(codeText(large,
                     "This is a test using a larger than block-size key and a larger than "
                     "block-size data. The key needs to be hashed before being used by the HMAC "
                     "algorithm."),
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST(HmacTest, OneBitMakesADifference) {
  Bytes32 code = Hmac(std::string("key")).add(std::string("text")).finish();
  EXPECT_TRUE(isEqualInConstantTime(code, code));
  for (size_t bit = 0; bit < 256; ++bit) {
    Bytes32 other = code;
    other[bit / 8] ^= uint8_t(1 << bit % 8);
    EXPECT_FALSE(isEqualInConstantTime(code, other)) << bit;
  }
}

TEST(RandomTest, NumbersDoNotComeAgain) {
  std::set<Bytes32> seen;
  for (int i = 0; i < 1000; ++i) {
    Result<Bytes32> bytes = randomBytes();
    ASSERT_TRUE(bytes) << bytes.error().message;
    EXPECT_TRUE(seen.insert(*bytes).second);
  }
}

} // namespace
