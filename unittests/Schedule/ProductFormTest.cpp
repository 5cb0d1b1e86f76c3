//===- ProductFormTest.cpp - contractions as matrix products --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Schedule/ProductForm.h"

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

  std::optional<ProductForm> classify() const {
    return classifyProduct(terms, shapeOf(0), shapeOf(1), rt::ElementType::F32);
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

std::vector<int64_t> multiply(const rt::Product &p, const std::vector<int64_t> &a,
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

/// Checks that the product computes the einsum, and returns it.
ProductForm expectProduct(llvm::StringRef equation, const Sizes &sizes) {
  Einsum einsum(equation, sizes);
  std::optional<ProductForm> form = einsum.classify();
  if (!form) {
    ADD_FAILURE() << equation.str() << " is no product";
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
  EXPECT_EQ(form->isSwapped ? multiply(form->product, b, a, einsum.countOf(2))
                            : multiply(form->product, a, b, einsum.countOf(2)),
            einsum.compute(a, b))
      << equation.str();
  return *form;
}

bool isProduct(llvm::StringRef equation, const Sizes &sizes) {
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

TEST(ProductForm, Projection) {
  ProductForm form = expectProduct("bsk,grdk->bsgrd", restrict("bskgrd"));
  EXPECT_FALSE(form.isSwapped);
  EXPECT_FALSE(form.product.transposeA);
  EXPECT_TRUE(form.product.transposeB);
  EXPECT_EQ(form.product.m, 6);
  EXPECT_EQ(form.product.n, 12);
  EXPECT_EQ(form.product.k, 5);
}

TEST(ProductForm, GradientOfAWeight) {
  ProductForm form = expectProduct("bsk,bsgrd->grdk", restrict("bskgrd"));
  EXPECT_TRUE(form.isSwapped);
  EXPECT_TRUE(form.product.transposeA);
  EXPECT_FALSE(form.product.transposeB);
  EXPECT_EQ(form.product.m, 12);
  EXPECT_EQ(form.product.n, 5);
}

TEST(ProductForm, AllThatATransformerHas) {
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
    expectProduct(equation, restrict(letters));
  }
}

TEST(ProductForm, Batches) {
  ProductForm form = expectProduct("bgsd,bgnd->bgsn", restrict("bgsdn"));
  EXPECT_EQ(form.product.batch, 4);
  // Rows of a head lie apart.
  form = expectProduct("bsgd,bngd->bgsn", {{'b', 1}, {'s', 3}, {'g', 2}, {'d', 5}, {'n', 4}});
  EXPECT_EQ(form.product.batch, 2);
  EXPECT_EQ(form.product.lda, 10);
  EXPECT_EQ(form.product.strideA, 5);
  expectProduct("gsd,gnd->sgn", restrict("gsdn"));
  expectProduct("gsn,gnd->gsd", restrict("gsnd"));
  expectProduct("gns,gnd->gds", restrict("gsnd"));
}

TEST(ProductForm, LettersOfSizeOneDoNotCount) {
  // The batch of "bgsd,..." would lie in two places if b counted.
  expectProduct("sbd,bnd->bsn", {{'s', 3}, {'b', 1}, {'d', 2}, {'n', 4}});
  // And a letter of one operand only.
  expectProduct("bsk,nk->sn", {{'b', 1}, {'s', 3}, {'k', 5}, {'n', 4}});
}

TEST(ProductForm, RowsAndColumnsOfOne) {
  expectProduct("bsk,k->bs", restrict("bsk"));
  expectProduct("k,nk->n", restrict("kn"));
  expectProduct("bs,bsk->k", restrict("bsk"));
  expectProduct("ks,k->s", restrict("ks"));
}

TEST(ProductForm, NoProducts) {
  EXPECT_FALSE(isProduct("bs,n->bsn", restrict("bsn")));     // Nothing is summed.
  EXPECT_FALSE(isProduct("bsk,bsk->bs", restrict("bsk")));   // Products of one number.
  EXPECT_FALSE(isProduct("bsk,bsk->", restrict("bsk")));     // A single number.
  EXPECT_FALSE(isProduct("bsk,nk->sn", restrict("bskn")));   // b is in one operand only.
  EXPECT_FALSE(isProduct("sk,nk->ksn", restrict("skn")));    // The only inner letter is the batch.
  EXPECT_FALSE(isProduct("sdk,ndk->snk", restrict("sdkn"))); // The batch is innermost.
  EXPECT_FALSE(isProduct("bks,kbn->sn", restrict("bksn")));  // K in another order.
  EXPECT_FALSE(isProduct("kbs,kn->sbn", restrict("bksn")));  // M in another order.
  EXPECT_FALSE(isProduct("sgbd,gbnd->bgsn", restrict("sgbdn"))); // Batch in another order.
}

TEST(ProductForm, SharedOperands) {
  // A convolution, where s stands for its places: each sample's columns with the same kernel.
  ProductForm form = expectProduct("nk,bks->bns", restrict("bksn"));
  EXPECT_EQ(form.product.batch, 2);
  EXPECT_EQ(form.product.strideA, 0);
  EXPECT_EQ(form.product.strideB, 15);
  EXPECT_EQ(form.product.strideC, 12);
  expectProduct("nk,bns->bks", restrict("bksn"));
  form = expectProduct("bks,kn->bsn", restrict("bksn"));
  EXPECT_EQ(form.product.strideB, 0);
}

TEST(ProductForm, SumsOfProducts) {
  ProductForm form = expectProduct("bns,bks->nk", restrict("bksn"));
  EXPECT_EQ(form.product.batch, 2);
  EXPECT_EQ(form.product.strideC, 0);
  // Not where the sum is one product.
  EXPECT_EQ(expectProduct("bsn,bsk->nk", restrict("bksn")).product.batch, 1);
}

TEST(ProductForm, BF16SharesOperandsToo) {
  Einsum einsum("nk,bks->bns", restrict("bksn"));
  std::optional<ProductForm> form =
      classifyProduct(einsum.terms, einsum.shapeOf(0), einsum.shapeOf(1), rt::ElementType::BF16);
  ASSERT_TRUE(form);
  EXPECT_EQ(form->product.strideA, 0);
  EXPECT_EQ(form->product.type, rt::ElementType::BF16);
}

TEST(ProductForm, WorkspacesAreOfUse) {
  rt::Product product;
  product.m = product.n = 128;
  product.k = 65; // Two parts.
  EXPECT_EQ(workspaceBytes(product), 2u * 128 * 128 * 4);
  product.batch = 3;
  product.strideC = 128 * 128;
  EXPECT_EQ(workspaceBytes(product), 3u * 2 * 128 * 128 * 4);
  product.strideC = 0; // A sum has one result.
  EXPECT_EQ(workspaceBytes(product), 2u * 128 * 128 * 4);
  product.type = rt::ElementType::F64;
  EXPECT_EQ(workspaceBytes(product), 2u * 128 * 128 * 8);
  product.epilogue.hasAddend = true;
  EXPECT_EQ(workspaceBytes(product), 2u * 128 * 128 * 8);
  product.epilogue.hasBias = true; // More than to add.
  EXPECT_EQ(workspaceBytes(product), 4u << 20);
  product.m = product.n = 1 << 20;
  EXPECT_EQ(workspaceBytes(product), 32u << 20);
}

TEST(ProductForm, SizesBeyondTheLibrary) {
  Sizes sizes = {{'b', int64_t(1) << 32}, {'s', 2}, {'k', 2}, {'n', 2}};
  EXPECT_FALSE(isProduct("bsk,nk->bsn", sizes));
  // Rows beyond it are several products.
  sizes = {{'b', int64_t(1) << 20}, {'s', 4096}, {'k', 2}, {'n', 2}};
  EXPECT_EQ(Einsum("bsk,nk->bsn", sizes).classify()->product.batch, int64_t(1) << 20);
}

TEST(ProductForm, RandomEinsums) {
  std::mt19937 random(7);
  int products = 0;
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
    if (isProduct(equation, sizes)) {
      expectProduct(equation, sizes);
      ++products;
    }
  }
  EXPECT_GT(products, 300);
}

} // namespace
