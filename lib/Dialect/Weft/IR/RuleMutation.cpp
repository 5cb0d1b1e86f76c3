//===- RuleMutation.cpp - plants a mistake in a factor rule ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/RuleMutation.h"

using namespace mlir;

namespace weft {

const char *const kRuleMutationHelp =
    "plant a mistake in the factor rules of all ops NAME: number SITE of the mistakes\n"
    "of KIND swap, factor, forget, free, join or additive";

namespace {

std::optional<RuleMutation> planted;

/// Makes the possible mistakes of a kind in a rule, which must outlive this object.
using Sites = SmallVectorImpl<std::function<void()>>;

/// The factor numbers of each operand, then of each result.
SmallVector<SmallVector<unsigned> *> tensorsOf(FactorRule &rule) {
  SmallVector<SmallVector<unsigned> *> tensors;
  for (auto *side : {&rule.operands, &rule.results}) {
    for (SmallVector<unsigned> &dims : *side) {
      tensors.push_back(&dims);
    }
  }
  return tensors;
}

void swapDimensions(FactorRule &rule, Sites &sites) {
  for (SmallVector<unsigned> *dims : tensorsOf(rule)) {
    for (size_t a = 0; a < dims->size(); ++a) {
      for (size_t b = a + 1; b < dims->size(); ++b) {
        sites.push_back([=] { std::swap((*dims)[a], (*dims)[b]); });
      }
    }
  }
}

/// A factor of a single dimension is only a lost opportunity to cut it, not a mistake.
void takeNextFactor(FactorRule &rule, Sites &sites) {
  auto count = static_cast<unsigned>(rule.factors.size());
  SmallVector<unsigned> carriers(count, 0);
  for (SmallVector<unsigned> *dims : tensorsOf(rule)) {
    for (unsigned factor : *dims) {
      ++carriers[factor];
    }
  }
  for (SmallVector<unsigned> *dims : tensorsOf(rule)) {
    for (unsigned &factor : *dims) {
      unsigned next = (factor + 1) % count;
      if (carriers[factor] > 1 || rule.factors[next].kind != FactorKind::MustReplicate) {
        sites.push_back([&factor, next] { factor = next; });
      }
    }
  }
}

void forgetFactor(FactorRule &rule, Sites &sites) {
  for (SmallVector<unsigned> *dims : tensorsOf(rule)) {
    for (unsigned &factor : *dims) {
      sites.push_back([&rule, &factor] {
        rule.factors.push_back(rule.factors[factor]);
        factor = static_cast<unsigned>(rule.factors.size() - 1);
      });
    }
  }
}

void freeFactor(FactorRule &rule, Sites &sites) {
  for (Factor &factor : rule.factors) {
    if (factor.kind == FactorKind::MustReplicate) {
      sites.push_back([&factor] { factor.kind = FactorKind::PassThrough; });
    }
  }
}

void joinOtherwise(FactorRule &rule, Sites &sites) {
  for (auto [dims, kind] : llvm::zip(rule.results, rule.reductions)) {
    bool isJoined = false;
    for (auto [number, factor] : llvm::enumerate(rule.factors)) {
      isJoined |= factor.kind != FactorKind::MustReplicate && !llvm::is_contained(dims, number);
    }
    if (isJoined) {
      sites.push_back([&kind = kind] {
        kind = kind == ReductionKind::Sum ? ReductionKind::Max : ReductionKind::Sum;
      });
    }
  }
}

using Finder = void (*)(FactorRule &, Sites &);
constexpr std::pair<StringLiteral, Finder> kFinders[] = {{"swap", swapDimensions},
                                                         {"factor", takeNextFactor},
                                                         {"forget", forgetFactor},
                                                         {"free", freeFactor},
                                                         {"join", joinOtherwise}};
constexpr StringLiteral kAdditive = "additive";

bool concerns(Operation *op) { return planted && op->getName().getStringRef() == planted->op; }

} // namespace

std::optional<RuleMutation> RuleMutation::parse(StringRef text) {
  SmallVector<StringRef> parts;
  text.split(parts, ':');
  RuleMutation mutation;
  if (parts.size() != 3 || parts[2].getAsInteger(10, mutation.site)) {
    return {};
  }
  auto isKind = [&](const auto &finder) { return finder.first == parts[1]; };
  if (llvm::none_of(kFinders, isKind) && parts[1] != kAdditive) {
    return {};
  }
  mutation.op = parts[0];
  mutation.kind = parts[1];
  return mutation;
}

void plant(RuleMutation mutation) { planted = std::move(mutation); }

bool isMistakePlanted() { return planted.has_value(); }

void mutateRule(Operation *op, FactorRule &rule) {
  if (!concerns(op)) {
    return;
  }
  SmallVector<std::function<void()>> sites;
  for (auto [kind, find] : kFinders) {
    if (planted->kind == kind) {
      find(rule, sites);
    }
  }
  if (planted->site < sites.size()) {
    sites[planted->site]();
  }
}

bool isAdditive(ShardableOpInterface op, ArrayRef<unsigned> operands) {
  return op.isAdditiveIn(operands) || (concerns(op) && planted->kind == kAdditive);
}

} // namespace weft
