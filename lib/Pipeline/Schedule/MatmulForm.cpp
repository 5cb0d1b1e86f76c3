//===- MatmulForm.cpp - contractions as matmuls ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Schedule/MatmulForm.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "weft/Dialect/Weft/IR/Fp8Ops.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

using namespace weft;

namespace {

/// The dimensions of a dense tensor that are longer than one: letters, sizes and strides.
struct Term {
  Term(llvm::StringRef letters, llvm::ArrayRef<int64_t> sizeOfLetter) {
    int64_t stride = 1;
    for (char letter : llvm::reverse(letters)) {
      int64_t size = sizeOfLetter[static_cast<unsigned char>(letter)];
      if (size != 1) {
        names.insert(names.begin(), letter);
        strides.insert(strides.begin(), stride);
      }
      stride *= size;
    }
  }

  bool has(char letter) const { return names.find(letter) != std::string::npos; }

  std::string names;
  llvm::SmallVector<int64_t> strides;
};

/// Letters that form a single dimension.
struct Group {
  std::string names;
  int64_t size = 1;

  /// Returns true if they are contiguous in `term`, in order.
  bool isDenseIn(const Term &term) const { return term.names.find(names) != std::string::npos; }

  /// Returns the stride of the group's last letter; 0 if the group is empty or not in `term`.
  int64_t strideIn(const Term &term) const {
    bool isConstant = names.empty() || !term.has(names.back());
    return isConstant ? 0 : term.strides[term.names.find(names.back())];
  }
};

/// One matrix operand or result as stored: which of its two groups varies fastest, and the stride
/// of the other.
struct Matrix {
  bool isTransposed = false;
  int64_t leading = 0, batchStride = 0;
};

/// Returns `term` as a matrix with `rows` and `columns`, or nothing if the batch varies fastest.
std::optional<Matrix> asMatrix(const Term &term, const Group &rows, const Group &columns,
                               const Group &batch) {
  Matrix matrix;
  matrix.batchStride = batch.strideIn(term);
  if (matrix.batchStride == 1) {
    return std::nullopt;
  }
  // A matrix of one row or one column is stored either way; as rows of it where there is a choice.
  matrix.isTransposed = columns.strideIn(term) > 1 || (columns.size == 1 && rows.size > 1);
  const Group &major = matrix.isTransposed ? columns : rows;
  const Group &minor = matrix.isTransposed ? rows : columns;
  matrix.leading = major.size == 1 ? minor.size : major.strideIn(term);
  return matrix;
}

struct Groups {
  Group batch, m, n, k;
};

/// Sorts the letters into groups, where `outer` (or 0) counts the matmuls of a batch; nothing if a
/// letter occurs in a single operand only.
std::optional<Groups> sortLetters(const Term &lhs, const Term &rhs, const Term &result, char outer,
                                  llvm::ArrayRef<int64_t> sizeOfLetter) {
  Groups groups;
  auto add = [&](Group &group, char letter) {
    group.names.push_back(letter);
    group.size *= sizeOfLetter[static_cast<unsigned char>(letter)];
  };
  if (outer) {
    add(groups.batch, outer);
  }
  for (char letter : lhs.names) {
    if (letter == outer) {
      continue;
    }
    if (rhs.has(letter)) {
      add(result.has(letter) ? groups.batch : groups.k, letter);
    } else if (result.has(letter)) {
      add(groups.m, letter);
    } else {
      return std::nullopt;
    }
  }
  for (char letter : rhs.names) {
    if (letter == outer) {
      continue;
    }
    if (!lhs.has(letter) && !result.has(letter)) {
      return std::nullopt;
    }
    if (!lhs.has(letter)) {
      add(groups.n, letter);
    }
  }
  return groups;
}

bool fitsLibrary(const rt::Matmul &matmul) {
  for (int64_t size :
       {matmul.m, matmul.n, matmul.k, matmul.lda, matmul.ldb, matmul.ldc, matmul.batch}) {
    if (size > std::numeric_limits<int32_t>::max()) {
      return false; // The library counts in 32 bits.
    }
  }
  return true;
}

using Sizes = std::array<int64_t, 256>;

/// Returns true if each group is contiguous in each term that has it.
bool areDense(const Term &lhs, const Term &rhs, const Term &result, const Groups &groups) {
  const auto &[batch, m, n, k] = groups;
  for (const Term *term : {&lhs, &rhs, &result}) {
    bool hasBatch = !batch.names.empty() && term->has(batch.names.front());
    bool isDense = (!hasBatch || batch.isDenseIn(*term)) && (term == &rhs || m.isDenseIn(*term)) &&
                   (term == &lhs || n.isDenseIn(*term)) && (term == &result || k.isDenseIn(*term));
    if (!isDense) {
      return false;
    }
  }
  return true;
}

/// Returns the matmul, or one for each index of `outer` if that is a letter.
std::optional<MatmulForm> makeForm(Term lhs, Term rhs, Term result, char outer,
                                   const Sizes &sizeOfLetter, rt::ElementType type) {
  std::optional<Groups> groups = sortLetters(lhs, rhs, result, outer, sizeOfLetter);
  if (!groups || (outer && groups->batch.names.size() != 1)) {
    return std::nullopt;
  }
  auto [batch, m, n, k] = *groups;
  bool isSmall =
      batch.names.empty() ? m.names.empty() && n.names.empty() : m.names.empty() || n.names.empty();
  if (k.names.empty() || isSmall || !areDense(lhs, rhs, result, *groups)) {
    return std::nullopt;
  }

  MatmulForm form;
  std::optional<Matrix> c = asMatrix(result, m, n, batch);
  if (c && c->isTransposed) {
    // The library writes rows: compute the transpose, with the operands swapped.
    form.isSwapped = true;
    std::swap(lhs, rhs);
    std::swap(m, n);
    c = asMatrix(result, m, n, batch);
  }
  std::optional<Matrix> a = asMatrix(lhs, m, k, batch), b = asMatrix(rhs, k, n, batch);
  if (!a || !b || !c) {
    return std::nullopt;
  }
  form.matmul = {type,           a->isTransposed, b->isTransposed, m.size,     n.size,
                 k.size,         a->leading,      b->leading,      c->leading, batch.size,
                 a->batchStride, b->batchStride,  c->batchStride};
  if (!fitsLibrary(form.matmul)) {
    return std::nullopt;
  }
  return form;
}

/// Returns the letter that is outermost in two of the terms and absent from the third, or 0.
char findOuter(const Term &first, const Term &second, const Term &third) {
  bool isOuter = !first.names.empty() && !second.names.empty() &&
                 first.names.front() == second.names.front() && !third.has(first.names.front());
  return isOuter ? first.names.front() : 0;
}

} // namespace

std::optional<MatmulForm> weft::classifyMatmul(llvm::ArrayRef<llvm::StringRef> terms,
                                               llvm::ArrayRef<int64_t> lhsShape,
                                               llvm::ArrayRef<int64_t> rhsShape,
                                               rt::ElementType type) {
  Sizes sizeOfLetter;
  sizeOfLetter.fill(1);
  for (auto [letter, size] : llvm::zip_equal(terms[0], lhsShape)) {
    sizeOfLetter[static_cast<unsigned char>(letter)] = size;
  }
  for (auto [letter, size] : llvm::zip_equal(terms[1], rhsShape)) {
    sizeOfLetter[static_cast<unsigned char>(letter)] = size;
  }
  Term lhs(terms[0], sizeOfLetter), rhs(terms[1], sizeOfLetter), result(terms[2], sizeOfLetter);
  std::optional<MatmulForm> form = makeForm(lhs, rhs, result, 0, sizeOfLetter, type);
  if (form) {
    return form;
  }
  for (char outer :
       {findOuter(rhs, result, lhs), findOuter(lhs, result, rhs), findOuter(lhs, rhs, result)}) {
    if (outer && (form = makeForm(lhs, rhs, result, outer, sizeOfLetter, type))) {
      return form;
    }
  }
  return std::nullopt;
}

rt::ElementType weft::toElementType(mlir::Type type) {
  if (type.isF64()) {
    return rt::ElementType::F64;
  }
  if (type.isF32()) {
    return rt::ElementType::F32;
  }
  if (type.isBF16()) {
    return rt::ElementType::BF16;
  }
  if (type.isF16()) {
    return rt::ElementType::F16;
  }
  if (llvm::isa<mlir::Float8E4M3FNType>(type)) {
    return rt::ElementType::F8E4M3;
  }
  if (llvm::isa<mlir::Float8E5M2Type>(type)) {
    return rt::ElementType::F8E5M2;
  }
  return type.isInteger(64) ? rt::ElementType::I64 : rt::ElementType::I32;
}

/// Returns the matmul of `lhs` and `rhs`; `hasF64` also allows float64, for devices.
static std::optional<MatmulForm> classify(llvm::ArrayRef<llvm::StringRef> terms, mlir::Value lhs,
                                          mlir::Value rhs, mlir::Value output, bool hasF64) {
  mlir::Type element = mlir::getElementTypeOrSelf(lhs);
  bool isFp8 = element.getIntOrFloatBitWidth() == 8;
  if (!element.isF32() && !isNarrow(element) && !isFp8 && !(element.isF64() && hasF64)) {
    return std::nullopt;
  }
  auto shapeOf = [](mlir::Value value) {
    return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
  };
  rt::ElementType type = toElementType(element);
  std::optional<MatmulForm> form = classifyMatmul(terms, shapeOf(lhs), shapeOf(rhs), type);
  if (form) {
    rt::Matmul &matmul = form->matmul;
    mlir::Type result = mlir::getElementTypeOrSelf(output);
    matmul.isResultF32 = isFp8 ? result.isF32() : result != element;
    if (isFp8) {
      mlir::Value a = form->isSwapped ? rhs : lhs, b = form->isSwapped ? lhs : rhs;
      matmul.type = toElementType(mlir::getElementTypeOrSelf(a));
      matmul.fp8B = toElementType(mlir::getElementTypeOrSelf(b));
    }
    if (matmul.isSum() && rt::isNarrow(matmul.resultType())) {
      return std::nullopt; // It would be rounded after each term.
    }
  }
  return form;
}

bool weft::isForDevices(mlir::Operation *op) {
  auto module = op->getParentOfType<mlir::ModuleOp>();
  auto target = module ? module->getAttrOfType<mlir::StringAttr>(kTargetAttrName) : nullptr;
  return target && target.getValue() == "cuda";
}

std::optional<MatmulForm> weft::classifyMatmul(ContractOp op) {
  if (op.getInputs().size() != 2) {
    return std::nullopt;
  }
  std::optional<MatmulForm> form = classify(op.getTerms(), op.getInputs()[0], op.getInputs()[1],
                                            op.getOutput(), isForDevices(op));
  if (form) {
    form->matmul.isTF32 = op.getTf32();
  }
  return form;
}

std::optional<MatmulForm> weft::classifyMatmul(MatmulOp op) {
  auto [operands, result] = op.getEquation().split("->");
  auto [lhs, rhs] = operands.split(',');
  std::optional<MatmulForm> form =
      classify({lhs, rhs, result}, op.getLhs(), op.getRhs(), op.getOutput(), /*hasF64=*/true);
  // For a batch the library supports additions only, for a single matmul all epilogues.
  bool isMore = op.getBias() || op.getPreactivation() || op.getGelu() || op.getSums();
  bool isOpen = form && !form->matmul.isSum() && (form->matmul.batch == 1 || !isMore);
  if (!isOpen || (op.getBias() &&
                  llvm::cast<mlir::RankedTensorType>(op.getBias().getType()).getNumElements() !=
                      form->matmul.n)) {
    return std::nullopt;
  }
  form->matmul.isTF32 = op.getTf32();
  rt::Epilogue &epilogue = form->matmul.epilogue;
  epilogue.hasAddend = bool(op.getAddend());
  epilogue.hasBias = bool(op.getBias());
  epilogue.hasAux = op.getPreactivation() || op.getKept();
  epilogue.activation = op.getGelu()            ? rt::Epilogue::Activation::Gelu
                        : op.getPreactivation() ? rt::Epilogue::Activation::GeluGradient
                                                : rt::Epilogue::Activation::None;
  if (op.getSums()) {
    epilogue.sums = form->isSwapped ? rt::Epilogue::Sums::OfB : rt::Epilogue::Sums::OfA;
  }
  return form;
}

std::optional<MatmulForm> weft::classifyMatmul(Fp8MatmulOp op) {
  auto [operands, result] = op.getEquation().split("->");
  auto [lhs, rhs] = operands.split(',');
  std::optional<MatmulForm> form =
      classify({lhs, rhs, result}, op.getLhs(), op.getRhs(), op.getOutput(), /*hasF64=*/false);
  if (!form || !rt::fitsFp8(form->matmul)) {
    return std::nullopt;
  }
  form->matmul.epilogue.hasAddend = bool(op.getAddend());
  form->matmul.epilogue.hasBias = bool(op.getBias());
  return form;
}

uint64_t weft::workspaceBytes(const rt::Matmul &matmul) {
  constexpr double kMost = double(32 << 20), kTile = 64;
  double parts = std::ceil(double(matmul.k) / kTile);
  double bytes = parts * double(matmul.m) * double(matmul.n) *
                 double(matmul.isSum() ? 1 : matmul.batch) *
                 double(std::max(rt::sizeOf(matmul.type), sizeof(float)));
  // The library's makers recommend at least this; sums of an operand do not depend on C's size.
  double least = matmul.epilogue.isMore() ? double(4 << 20) : 0;
  return uint64_t(std::min(kMost, std::max(least, bytes)));
}
