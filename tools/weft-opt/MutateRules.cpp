//===- MutateRules.cpp - plants a mistake in a factor rule ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MutateRules.h"

#include "weft/Dialect/Weft/IR/RuleHooks.h"

using namespace mlir;

namespace weft {

const char *const kRuleMutations =
    "swap: two dimensions of a tensor carry each other's factors; factor: a dimension carries the "
    "next factor; forget: it carries one of its own; free: a factor that must be replicated may be "
    "cut; join: partial results are joined by another operator; additive: the op is so in all "
    "operands";

namespace {

struct {
  std::string op, kind;
  unsigned site = 0;
} planted;

/// Makes the mistakes of a kind that can be made in a rule, which outlives them.
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

void takeNextFactor(FactorRule &rule, Sites &sites) {
  auto count = static_cast<unsigned>(rule.factors.size());
  for (SmallVector<unsigned> *dims : tensorsOf(rule)) {
    for (unsigned &factor : *dims) {
      sites.push_back([&factor, count] { factor = (factor + 1) % count; });
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

void changeRule(Operation *op, FactorRule &rule) {
  if (op->getName().getStringRef() != planted.op) {
    return;
  }
  SmallVector<std::function<void()>> sites;
  for (auto [kind, find] : kFinders) {
    if (planted.kind == kind) {
      find(rule, sites);
    }
  }
  if (planted.site < sites.size()) {
    sites[planted.site]();
  }
}

bool claimsAdditive(Operation *op) {
  return planted.kind == kAdditive && op->getName().getStringRef() == planted.op;
}

} // namespace

LogicalResult plantRuleMutation(StringRef mutation) {
  SmallVector<StringRef> parts;
  mutation.split(parts, ':');
  auto isKind = [&](const auto &finder) { return finder.first == parts[1]; };
  if (parts.size() != 3 || (llvm::none_of(kFinders, isKind) && parts[1] != kAdditive) ||
      parts[2].getAsInteger(10, planted.site)) {
    llvm::errs() << "weft-opt: --mutate-rule: expected NAME:KIND:SITE, got '" << mutation << "'\n";
    return failure();
  }
  planted.op = parts[0];
  planted.kind = parts[1];
  ruleHooks = {changeRule, claimsAdditive};
  return success();
}

} // namespace weft
