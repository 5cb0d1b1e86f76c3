//===- MatmulFormTest.cpp - contractions as matmuls -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Schedule/MatmulForm.h"

#include "llvm/ADT/SmallVector.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

using namespace weft;

namespace {

using Sizes = std::map<char, int64_t>;

/// An einsum of two tensors, taken apart.
struct Einsum {
  Einsum(llvm::StringRef equation, const Sizes &sizes) : sizes(sizes) {
    auto [operands, result] = equation.split("->");
    operands.split(terms, ',');
    terms.push_back(result);
  }

  llvm::SmallVector<int64_t> shapeOf(unsigned term) const {
    llvm::SmallVector<int64_t> shape;
    for (char letter : terms[term]) {
      shape.push_back(sizes.at(letter));
    }
    return shape;
  }

  int64_t countOf(unsigned term) const {
    int64_t count = 1;
    for (int64_t size : shapeOf(term)) {
      count *= size;
    }
    return count;
  }

  std::optional<MatmulForm> classify() const {
    return classifyMatmul(terms, shapeOf(0), shapeOf(1), rt::ElementType::F32);
  }

  /// Row-major position of an element, from the value of each letter.
  int64_t positionIn(unsigned term, const Sizes &index) const {
    int64_t position = 0;
    for (char letter : terms[term]) {
      position = position * sizes.at(letter) + index.at(letter);
    }
    return position;
  }

  /// By its definition: a loop over all letters.
  std::vector<int64_t> compute(const std::vector<int64_t> &a, const std::vector<int64_t> &b) const {
    std::vector<int64_t> result(countOf(2), 0);
    Sizes index;
    for (auto [letter, size] : sizes) {
      index[letter] = 0;
    }
    while (true) {
      result[positionIn(2, index)] += a[positionIn(0, index)] * b[positionIn(1, index)];
      auto it = index.begin();
      for (; it != index.end() && ++it->second == sizes.at(it->first); ++it) {
        it->second = 0;
      }
      if (it == index.end()) {
        return result;
      }
    }
  }

  Sizes sizes;
  llvm::SmallVector<llvm::StringRef> terms;
};

std::vector<int64_t> multiply(const rt::Matmul &p, const std::vector<int64_t> &a,
                              const std::vector<int64_t> &b, size_t count) {
  std::vector<int64_t> c(count, -1);
  for (int64_t z = 0; z < p.batch; ++z) {
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        int64_t sum = 0;
        for (int64_t l = 0; l < p.k; ++l) {
          sum += a.at(z * p.strideA + (p.transposeA ? l * p.lda + i : i * p.lda + l)) *
                 b.at(z * p.strideB + (p.transposeB ? j * p.ldb + l : l * p.ldb + j));
        }
        int64_t &element = c.at(z * p.strideC + i * p.ldc + j);
        element = z > 0 && p.strideC == 0 ? element + sum : sum;
      }
    }
  }
  return c;
}

/// Checks that the matmul computes the einsum, and returns it.
MatmulForm expectMatmul(llvm::StringRef equation, const Sizes &sizes) {
  Einsum einsum(equation, sizes);
  std::optional<MatmulForm> form = einsum.classify();
  if (!form) {
    ADD_FAILURE() << equation.str() << " is no matmul";
    return {};
  }
  std::mt19937 random(1);
  std::vector<int64_t> a(einsum.countOf(0)), b(einsum.countOf(1));
  for (int64_t &value : a) {
    value = random() % 10;
  }
  for (int64_t &value : b) {
    value = random() % 10;
  }
  EXPECT_EQ(form->isSwapped ? multiply(form->matmul, b, a, einsum.countOf(2))
                            : multiply(form->matmul, a, b, einsum.countOf(2)),
            einsum.compute(a, b))
      << equation.str();
  return *form;
}

bool isMatmul(llvm::StringRef equation, const Sizes &sizes) {
  return Einsum(equation, sizes).classify().has_value();
}

const Sizes kSizes = {{'b', 2}, {'s', 3}, {'k', 5}, {'n', 4}, {'g', 2}, {'r', 3}, {'d', 2}};

Sizes restrict(llvm::StringRef letters) {
  Sizes sizes;
  for (char letter : letters) {
    sizes[letter] = kSizes.at(letter);
  }
  return sizes;
}

TEST(MatmulForm, Projection) {
  MatmulForm form = expectMatmul("bsk,grdk->bsgrd", restrict("bskgrd"));
  EXPECT_FALSE(form.isSwapped);
  EXPECT_FALSE(form.matmul.transposeA);
  EXPECT_TRUE(form.matmul.transposeB);
  EXPECT_EQ(form.matmul.m, 6);
  EXPECT_EQ(form.matmul.n, 12);
  EXPECT_EQ(form.matmul.k, 5);
}

TEST(MatmulForm, GradientOfAWeight) {
  MatmulForm form = expectMatmul("bsk,bsgrd->grdk", restrict("bskgrd"));
  EXPECT_TRUE(form.isSwapped);
  EXPECT_TRUE(form.matmul.transposeA);
  EXPECT_FALSE(form.matmul.transposeB);
  EXPECT_EQ(form.matmul.m, 12);
  EXPECT_EQ(form.matmul.n, 5);
}

TEST(MatmulForm, AllThatATransformerHas) {
  for (const char *equation :
       {"bsk,nk->bsn", "bsn,nk->bsk", "bsn,bsk->nk", "bsk,gdk->bsgd", "bsgrd,ngrd->bsn",
        "bsn,ngrd->bsgrd", "bsn,bsgrd->ngrd", "bsgrd,grdk->bsk", "bsgd,gdk->bsk", "bsgrd,bsk->grdk",
        "bsk,bsgd->gdk", "nk,bsk->bsn"}) {
    std::string letters;
    for (char letter : llvm::StringRef(equation)) {
      if (kSizes.count(letter)) {
        letters += letter;
      }
    }
    expectMatmul(equation, restrict(letters));
  }
}

TEST(MatmulForm, Batches) {
  MatmulForm form = expectMatmul("bgsd,bgnd->bgsn", restrict("bgsdn"));
  EXPECT_EQ(form.matmul.batch, 4);
  // Rows of a head lie apart.
  form = expectMatmul("bsgd,bngd->bgsn", {{'b', 1}, {'s', 3}, {'g', 2}, {'d', 5}, {'n', 4}});
  EXPECT_EQ(form.matmul.batch, 2);
  EXPECT_EQ(form.matmul.lda, 10);
  EXPECT_EQ(form.matmul.strideA, 5);
  expectMatmul("gsd,gnd->sgn", restrict("gsdn"));
  expectMatmul("gsn,gnd->gsd", restrict("gsnd"));
  expectMatmul("gns,gnd->gds", restrict("gsnd"));
}

TEST(MatmulForm, LettersOfSizeOneDoNotCount) {
  // The batch of "bgsd,..." would lie in two places if b counted.
  expectMatmul("sbd,bnd->bsn", {{'s', 3}, {'b', 1}, {'d', 2}, {'n', 4}});
  // And a letter of one operand only.
  expectMatmul("bsk,nk->sn", {{'b', 1}, {'s', 3}, {'k', 5}, {'n', 4}});
}

TEST(MatmulForm, RowsAndColumnsOfOne) {
  expectMatmul("bsk,k->bs", restrict("bsk"));
  expectMatmul("k,nk->n", restrict("kn"));
  expectMatmul("bs,bsk->k", restrict("bsk"));
  expectMatmul("ks,k->s", restrict("ks"));
}

TEST(MatmulForm, NoMatmuls) {
  EXPECT_FALSE(isMatmul("bs,n->bsn", restrict("bsn")));     // Nothing is summed.
  EXPECT_FALSE(isMatmul("bsk,bsk->bs", restrict("bsk")));   // Matmuls of one number.
  EXPECT_FALSE(isMatmul("bsk,bsk->", restrict("bsk")));     // A single number.
  EXPECT_FALSE(isMatmul("bsk,nk->sn", restrict("bskn")));   // b is in one operand only.
  EXPECT_FALSE(isMatmul("sk,nk->ksn", restrict("skn")));    // The only inner letter is the batch.
  EXPECT_FALSE(isMatmul("sdk,ndk->snk", restrict("sdkn"))); // The batch is innermost.
  EXPECT_FALSE(isMatmul("bks,kbn->sn", restrict("bksn")));  // K in another order.
  EXPECT_FALSE(isMatmul("kbs,kn->sbn", restrict("bksn")));  // M in another order.
  EXPECT_FALSE(isMatmul("sgbd,gbnd->bgsn", restrict("sgbdn"))); // Batch in another order.
}

TEST(MatmulForm, SharedOperands) {
  // A convolution, where s stands for its places: each sample's columns with the same kernel.
  MatmulForm form = expectMatmul("nk,bks->bns", restrict("bksn"));
  EXPECT_EQ(form.matmul.batch, 2);
  EXPECT_EQ(form.matmul.strideA, 0);
  EXPECT_EQ(form.matmul.strideB, 15);
  EXPECT_EQ(form.matmul.strideC, 12);
  expectMatmul("nk,bns->bks", restrict("bksn"));
  form = expectMatmul("bks,kn->bsn", restrict("bksn"));
  EXPECT_EQ(form.matmul.strideB, 0);
}

TEST(MatmulForm, SumsOfMatmuls) {
  MatmulForm form = expectMatmul("bns,bks->nk", restrict("bksn"));
  EXPECT_EQ(form.matmul.batch, 2);
  EXPECT_EQ(form.matmul.strideC, 0);
  // Not where the sum is one matmul.
  EXPECT_EQ(expectMatmul("bsn,bsk->nk", restrict("bksn")).matmul.batch, 1);
}

TEST(MatmulForm, BF16SharesOperandsToo) {
  Einsum einsum("nk,bks->bns", restrict("bksn"));
  std::optional<MatmulForm> form =
      classifyMatmul(einsum.terms, einsum.shapeOf(0), einsum.shapeOf(1), rt::ElementType::BF16);
  ASSERT_TRUE(form);
  EXPECT_EQ(form->matmul.strideA, 0);
  EXPECT_EQ(form->matmul.type, rt::ElementType::BF16);
}

TEST(MatmulForm, WorkspacesAreOfUse) {
  rt::Matmul matmul;
  matmul.m = matmul.n = 128;
  matmul.k = 65; // Two parts.
  EXPECT_EQ(workspaceBytes(matmul), 2u * 128 * 128 * 4);
  matmul.batch = 3;
  matmul.strideC = 128 * 128;
  EXPECT_EQ(workspaceBytes(matmul), 3u * 2 * 128 * 128 * 4);
  matmul.strideC = 0; // A sum has one result.
  EXPECT_EQ(workspaceBytes(matmul), 2u * 128 * 128 * 4);
  matmul.type = rt::ElementType::F64;
  EXPECT_EQ(workspaceBytes(matmul), 2u * 128 * 128 * 8);
  matmul.epilogue.hasAddend = true;
  EXPECT_EQ(workspaceBytes(matmul), 2u * 128 * 128 * 8);
  matmul.epilogue.hasBias = true; // More than to add.
  EXPECT_EQ(workspaceBytes(matmul), 4u << 20);
  matmul.m = matmul.n = 1 << 20;
  EXPECT_EQ(workspaceBytes(matmul), 32u << 20);
}

TEST(MatmulForm, SizesBeyondTheLibrary) {
  Sizes sizes = {{'b', int64_t(1) << 32}, {'s', 2}, {'k', 2}, {'n', 2}};
  EXPECT_FALSE(isMatmul("bsk,nk->bsn", sizes));
  // Rows beyond it are several matmuls.
  sizes = {{'b', int64_t(1) << 20}, {'s', 4096}, {'k', 2}, {'n', 2}};
  EXPECT_EQ(Einsum("bsk,nk->bsn", sizes).classify()->matmul.batch, int64_t(1) << 20);
}

TEST(MatmulForm, RandomEinsums) {
  std::mt19937 random(7);
  int matmuls = 0;
  for (int round = 0; round < 20000; ++round) {
    Sizes sizes;
    std::string terms[3];
    for (char letter : {'a', 'b', 'c', 'd', 'e'}) {
      unsigned in = 1 + random() % 7; // Bit t: occurs in term t.
      in = in == 4 ? 7 : in;          // A letter of the result alone is none.
      sizes[letter] = 1 + random() % 3;
      for (unsigned term = 0; term < 3; ++term) {
        if (in >> term & 1) {
          terms[term].insert(terms[term].begin() + random() % (terms[term].size() + 1), letter);
        }
      }
    }
    std::string equation = terms[0] + "," + terms[1] + "->" + terms[2];
    if (isMatmul(equation, sizes)) {
      expectMatmul(equation, sizes);
      ++matmuls;
    }
  }
  EXPECT_GT(matmuls, 300);
}

} // namespace
