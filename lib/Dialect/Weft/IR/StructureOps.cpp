//===- StructureOps.cpp - variables, calls, launches --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "weft/Dialect/Weft/IR/Sharding.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace weft;

/// Checks variable_c5 or observe_c2: `whole` is the shape `unpadded` with padding.
static LogicalResult verifyUnpadded(Operation *op, std::optional<ArrayRef<int64_t>> unpadded,
                                    RankedTensorType whole) {
  if (!unpadded) {
    return success();
  }
  bool fits = static_cast<int64_t>(unpadded->size()) == whole.getRank() &&
              *unpadded != whole.getShape() &&
              llvm::all_of(llvm::zip(*unpadded, whole.getShape()), [](auto sizes) {
                auto [inner, outer] = sizes;
                return inner >= 1 && inner <= outer;
              });
  if (!fits) {
    InFlightDiagnostic diagnostic = op->emitOpError("has the unpadded shape [");
    llvm::interleaveComma(*unpadded, diagnostic);
    return diagnostic << "], expected one that is smaller than that of " << whole;
  }
  return success();
}

LogicalResult VariableOp::verify() {
  RankedTensorType type = getTensorType();
  if (static_cast<int64_t>(getDimensions().size()) != type.getRank()) { // variable_c1
    return emitOpError() << "names " << getDimensions().size()
                         << " dimensions, expected one for each of the tensor's " << type.getRank();
  }
  llvm::StringSet<> seen;
  for (StringAttr name : getDimensions().getAsRange<StringAttr>()) {
    if (!seen.insert(name.getValue()).second) {
      return emitOpError() << "dimension " << name << " occurs twice";
    }
  }
  if (getDecay() && getRole() != VariableRole::Parameter) { // variable_c2
    return emitOpError() << "only a parameter may decay, this is "
                         << stringifyVariableRole(getRole());
  }
  if (Type element = getTensorType().getElementType(); isNarrow(element)) { // variable_c3
    return emitOpError() << "cannot be of " << element << ", expected f32 or f64";
  }
  if (auto matrix = getMatrix()) { // variable_c4
    bool isSound = matrix->size() == 2 && (*matrix)[0] >= 0 && (*matrix)[1] >= 1 &&
                   (*matrix)[0] < type.getRank() && (*matrix)[1] < type.getRank() - (*matrix)[0];
    if (getRole() != VariableRole::Parameter || !isSound) {
      return emitOpError() << "expected a matrix of a parameter, with rows and columns among its "
                           << type.getRank() << " dimensions, got [" << *matrix << "] of "
                           << stringifyVariableRole(getRole());
    }
  }
  return verifyUnpadded(*this, getUnpadded(), getTensorType()); // variable_c5
}

/// Returns true if a value of `variable` may have `type`: the type of the whole, which Plan shards
/// only after the variable, or of one rank's shard once tensors are local.
static bool matches(VariableOp variable, Type type) {
  RankedTensorType whole = variable.getTensorType();
  return type == whole || type == withSharding(whole, {}) || type == getLocalType(whole);
}

static LogicalResult verifyVariable(Operation *op, FlatSymbolRefAttr symbol, Type type,
                                    SymbolTableCollection &symbols) {
  auto variable = symbols.lookupNearestSymbolFrom<VariableOp>(op, symbol);
  if (!variable) {
    return op->emitOpError() << symbol << " is no weft.variable";
  }
  if (!matches(variable, type)) {
    return op->emitOpError() << "has type " << type << ", expected that of " << symbol << ": "
                             << variable.getTensorType();
  }
  if (isa<AssignOp>(op) && variable.getRole() == VariableRole::Input) { // assign_c1
    return op->emitOpError() << "cannot assign " << symbol << ", an input";
  }
  return success();
}

LogicalResult ReadOp::verifySymbolUses(SymbolTableCollection &symbols) { // read_c1
  return verifyVariable(*this, getVariableAttr(), getOutput().getType(), symbols);
}

LogicalResult AssignOp::verifySymbolUses(SymbolTableCollection &symbols) { // assign_c1
  return verifyVariable(*this, getVariableAttr(), getValue().getType(), symbols);
}

static bool isPositive(std::optional<APFloat> number) {
  return number && number->isFinite() && !number->isNegative() && !number->isZero();
}

LogicalResult ObserveOp::verify() {
  bool hasLimit = getLimit() || getMean();
  auto value = cast<RankedTensorType>(getValue().getType());
  if (hasLimit && (!isPositive(getLimit()) || !isPositive(getMean()) || value.getRank() == 0)) {
    return emitOpError(
        "expected a limit and a mean above 0, of a value with a dimension"); // observe_c3
  }
  if (!getLayout()) { // observe_c2
    return verifyUnpadded(*this, getUnpadded(), cast<RankedTensorType>(getValue().getType()));
  }
  auto whole = dyn_cast<RankedTensorType>(*getLayout()); // observe_c1
  if (!whole || (getSharding(whole) && getLocalType(whole) != getValue().getType())) {
    return emitOpError() << "has a value of " << getValue().getType()
                         << ", expected a rank's shard of its layout " << *getLayout();
  }
  return verifyUnpadded(*this, getUnpadded(), whole);
}

static LogicalResult verifyCallee(Operation *op, FlatSymbolRefAttr symbol,
                                  SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(op, symbol);
  if (!callee) {
    return op->emitOpError() << symbol << " is no function";
  }
  if (!llvm::equal(callee.getArgumentTypes(), op->getOperandTypes())) {
    return op->emitOpError() << "has operands of types (" << op->getOperandTypes()
                             << "), expected (" << callee.getArgumentTypes() << ")";
  }
  if (!llvm::equal(callee.getResultTypes(), op->getResultTypes())) {
    return op->emitOpError() << "has results of types (" << op->getResultTypes() << "), expected ("
                             << callee.getResultTypes() << ")";
  }
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) { // call_c1
  return verifyCallee(*this, getCalleeAttr(), symbols);
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(verifyCallee(*this, getKernelAttr(), symbols))) { // launch_c1
    return failure();
  }
  if (getTied().size() != getNumResults()) { // launch_c2
    return emitOpError() << "ties " << getTied().size() << " results, expected " << getNumResults();
  }
  for (auto [result, operand] : llvm::enumerate(getTied())) {
    if (operand < -1 || operand >= static_cast<int64_t>(getNumOperands())) {
      return emitOpError() << "result #" << result << " is tied to operand #" << operand
                           << ", which does not exist";
    }
    if (operand >= 0 && getOperand(operand).getType() != getResult(result).getType()) {
      return emitOpError() << "result #" << result << " is tied to operand #" << operand
                           << " of another type";
    }
    if (operand >= 0 && llvm::is_contained(getTied().take_front(result), operand)) {
      return emitOpError() << "two results are tied to operand #" << operand;
    }
  }
  return success();
}
