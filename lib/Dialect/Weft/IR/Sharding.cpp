//===- Sharding.cpp - meshes and shardings ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/Sharding.h"

#include "weft/Dialect/Weft/IR/ElementTypes.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace weft;

#include "weft/Dialect/Weft/IR/WeftEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "weft/Dialect/Weft/IR/WeftAttributes.cpp.inc"

void WeftDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "weft/Dialect/Weft/IR/WeftAttributes.cpp.inc"
      >();
}

namespace weft {

//===----------------------------------------------------------------------===//
// MeshAttr
//===----------------------------------------------------------------------===//

int64_t MeshAttr::getRankCount() const {
  int64_t count = 1;
  for (int64_t size : getSizes()) {
    count *= size;
  }
  return count;
}

int64_t MeshAttr::getIndex(StringAttr name) const {
  auto *it = llvm::find(getNames(), name);
  return it == getNames().end() ? -1 : it - getNames().begin();
}

SmallVector<int64_t> MeshAttr::getCoordinates(int64_t rank) const {
  SmallVector<int64_t> coordinates(getSizes().size());
  for (size_t axis = coordinates.size(); axis-- > 0;) {
    coordinates[axis] = rank % getSizes()[axis];
    rank /= getSizes()[axis];
  }
  return coordinates;
}

int64_t MeshAttr::getSize(StringAttr name) const {
  int64_t index = getIndex(name);
  return index < 0 ? 0 : getSizes()[index];
}

int64_t MeshAttr::getSize(ArrayAttr axes) const {
  int64_t size = 1;
  for (StringAttr axis : axes.getAsRange<StringAttr>()) {
    size *= getSize(axis);
  }
  return size;
}

static std::vector<std::string> toStrings(ArrayRef<StringAttr> names) {
  std::vector<std::string> texts;
  for (StringAttr name : names) {
    texts.push_back(name.str());
  }
  return texts;
}

static SmallVector<StringAttr> toAttrs(MLIRContext *context,
                                       const std::vector<std::string> &texts) {
  return llvm::map_to_vector(
      texts, [&](const std::string &text) { return StringAttr::get(context, text); });
}

MeshParts MeshAttr::getParts() const {
  return {toStrings(getNames()), {getSizes().begin(), getSizes().end()}};
}

ArrayAttr MeshAttr::splitNames(ArrayAttr names) const {
  const MeshParts parts = getParts();
  SmallVector<Attribute> split;
  for (Attribute name : names) {
    auto text = dyn_cast<StringAttr>(name);
    if (auto named = text ? parts.partsOf(text.getValue()) : std::nullopt) {
      llvm::append_range(split, toAttrs(getContext(), *named));
    } else {
      split.push_back(name);
    }
  }
  return ArrayAttr::get(getContext(), split);
}

ArrayAttr MeshAttr::joinNames(ArrayAttr names) const {
  auto parts = llvm::to_vector(names.getAsRange<StringAttr>());
  SmallVector<Attribute> joined;
  llvm::append_range(joined, toAttrs(getContext(), getParts().join(toStrings(parts))));
  return ArrayAttr::get(getContext(), joined);
}

LogicalResult MeshAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<StringAttr> names, ArrayRef<int64_t> sizes) {
  for (auto [name, size] : llvm::zip_equal(names, sizes)) {
    if (size < 2) { // mesh_c2
      return emitError() << "mesh axis " << name << " must have a size of at least 2, got " << size;
    }
  }
  const MeshParts parts(toStrings(names), {sizes.begin(), sizes.end()});
  llvm::StringSet<> seen;
  for (const SplitAxis &axis : parts.axes()) {
    if (!seen.insert(axis.name).second) { // mesh_c1
      return emitError() << "mesh axis \"" << axis.name << "\" occurs twice";
    }
  }
  for (auto [name, expected] : llvm::zip_equal(names, parts.partNames())) {
    if (name.getValue() != expected) { // mesh_c3
      return emitError() << "mesh axis " << name << " has the name of a sub-axis, expected \""
                         << expected << "\"";
    }
  }
  return success();
}

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  std::vector<SplitAxis> axes;
  auto parseAxis = [&]() -> ParseResult {
    StringAttr name;
    SmallVector<int64_t> sizes;
    if (parser.parseAttribute(name) || parser.parseEqual() ||
        parser.parseDimensionList(sizes, /*allowDynamic=*/false, /*withTrailingX=*/false)) {
      return failure();
    }
    axes.push_back({name.str(), {sizes.begin(), sizes.end()}});
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseAxis)) {
    return {};
  }
  const MeshParts parts(std::move(axes));
  return parser.getChecked<MeshAttr>(
      parser.getContext(), toAttrs(parser.getContext(), parts.partNames()), parts.partSizes());
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(getParts().axes(), printer, [&](const SplitAxis &axis) {
    printer << StringAttr::get(getContext(), axis.name) << "=";
    llvm::interleave(axis.parts, printer, "x");
  });
  printer << ">";
}

//===----------------------------------------------------------------------===//
// ShardingAttr
//===----------------------------------------------------------------------===//

static ParseResult parseAxes(AsmParser &parser, MeshAttr mesh, ArrayAttr &axes) {
  SmallVector<Attribute> names;
  auto parseName = [&]() -> ParseResult {
    StringAttr name;
    if (parser.parseAttribute(name)) {
      return failure();
    }
    names.push_back(name);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, parseName)) {
    return failure();
  }
  axes = mesh.splitNames(ArrayAttr::get(parser.getContext(), names));
  return success();
}

static void printAxes(AsmPrinter &printer, MeshAttr mesh, ArrayAttr axes) {
  printer << "{";
  llvm::interleaveComma(mesh.joinNames(axes), printer, [&](Attribute axis) { printer << axis; });
  printer << "}";
}

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  MeshAttr mesh;
  SmallVector<ArrayAttr> dims;
  ArrayAttr unreduced = ArrayAttr::get(parser.getContext(), {});
  ReductionKind reduction = ReductionKind::Sum;
  auto parseDim = [&] { return parseAxes(parser, mesh, dims.emplace_back()); };
  if (parser.parseLess() || parser.parseAttribute(mesh) || parser.parseComma() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseDim)) {
    return {};
  }
  if (succeeded(parser.parseOptionalComma())) {
    FailureOr<ReductionKind> kind = failure();
    if (parser.parseKeyword("unreduced") || parser.parseEqual() ||
        failed(kind = FieldParser<ReductionKind>::parse(parser)) ||
        parseAxes(parser, mesh, unreduced)) {
      return {};
    }
    reduction = *kind;
    if (unreduced.empty()) { // sharding_c5
      parser.emitError(parser.getCurrentLocation(),
                       "expected an axis: an empty list of unreduced axes is left out");
      return {};
    }
  }
  if (parser.parseGreater()) {
    return {};
  }
  return parser.getChecked<ShardingAttr>(parser.getContext(), mesh, dims, unreduced, reduction);
}

void ShardingAttr::print(AsmPrinter &printer) const {
  printer << "<" << getMesh() << ", [";
  llvm::interleaveComma(getDims(), printer,
                        [&](ArrayAttr dim) { printAxes(printer, getMesh(), dim); });
  printer << "]";
  if (!isReduced()) {
    printer << ", unreduced = " << stringifyReductionKind(getReduction());
    printAxes(printer, getMesh(), getUnreduced());
  }
  printer << ">";
}

LogicalResult ShardingAttr::verify(function_ref<InFlightDiagnostic()> emitError, MeshAttr mesh,
                                   ArrayRef<ArrayAttr> dims, ArrayAttr unreduced,
                                   ReductionKind reduction) {
  SmallVector<Attribute> seen;
  SmallVector<ArrayAttr> lists(dims);
  lists.push_back(unreduced);
  for (ArrayAttr axes : lists) {
    for (Attribute axis : axes) {
      auto name = dyn_cast<StringAttr>(axis);
      if (!name || mesh.getIndex(name) < 0) { // sharding_c1
        return emitError() << "axis " << axis << " is not in the mesh " << mesh;
      }
      if (llvm::is_contained(seen, axis)) { // sharding_c2
        return emitError() << "axis " << axis << " occurs twice in a sharding";
      }
      seen.push_back(axis);
    }
  }
  if (unreduced.empty() && reduction != ReductionKind::Sum) { // sharding_c5
    return emitError() << "a sharding without unreduced axes has no operator, got "
                       << stringifyReductionKind(reduction);
  }
  if (sortByMesh(mesh, unreduced.getValue()) != unreduced) { // sharding_c6
    return emitError() << "unreduced axes " << unreduced << " are not in the order of the mesh";
  }
  return success();
}

LogicalResult ShardingAttr::verifyEncoding(ArrayRef<int64_t> shape, Type element,
                                           function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() != getDims().size()) { // sharding_c3
    return emitError() << "the sharding has " << getDims().size()
                       << " dimensions, expected those of the tensor: " << shape.size();
  }
  for (auto [dim, size] : llvm::enumerate(shape)) {
    if (ShapedType::isStatic(size) && size % getShards(dim) != 0) { // sharding_c4
      return emitError() << "dimension " << dim << " of size " << size << " is cut over axes "
                         << getDims()[dim] << " into " << getShards(dim)
                         << " shards, which does not divide it";
    }
  }
  if (isNarrow(element) && !isReduced()) { // sharding_c7
    return emitError() << "a tensor of " << element << " cannot be unreduced over "
                       << getUnreduced() << ": its terms are rounded before they are joined";
  }
  return success();
}

ShardingAttr ShardingAttr::getReplicated(MeshAttr mesh, int64_t rank) {
  return get(mesh, SmallVector<ArrayAttr>(rank, ArrayAttr::get(mesh.getContext(), {})));
}

ShardingAttr ShardingAttr::getReduced() const { return get(getMesh(), getDims()); }

int64_t ShardingAttr::getShards(int64_t dim) const { return getMesh().getSize(getDims()[dim]); }

int64_t ShardingAttr::getShard(int64_t dim, ArrayRef<int64_t> coordinates) const {
  int64_t shard = 0;
  for (StringAttr axis : getDims()[dim].getAsRange<StringAttr>()) {
    shard = shard * getMesh().getSize(axis) + coordinates[getMesh().getIndex(axis)];
  }
  return shard;
}

SmallVector<int64_t> ShardingAttr::getLocalShape(ArrayRef<int64_t> shape) const {
  SmallVector<int64_t> local(shape);
  for (auto [dim, size] : llvm::enumerate(local)) {
    if (ShapedType::isStatic(size)) {
      size /= getShards(dim);
    }
  }
  return local;
}

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

ShardingAttr getSharding(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<ShardingAttr>(tensor.getEncoding()) : ShardingAttr();
}

RankedTensorType withSharding(RankedTensorType type, ShardingAttr sharding) {
  return RankedTensorType::get(type.getShape(), type.getElementType(), sharding);
}

int64_t countBytes(RankedTensorType type) {
  return type.getNumElements() * int64_t(llvm::divideCeil(type.getElementTypeBitWidth(), 8));
}

RankedTensorType getLocalType(RankedTensorType type) {
  ShardingAttr sharding = getSharding(type);
  if (!sharding) {
    return type;
  }
  return RankedTensorType::get(sharding.getLocalShape(type.getShape()), type.getElementType());
}

ArrayAttr sortByMesh(MeshAttr mesh, ArrayRef<Attribute> axes) {
  SmallVector<Attribute> sorted;
  for (StringAttr name : mesh.getNames()) {
    if (llvm::is_contained(axes, name)) {
      sorted.push_back(name);
    }
  }
  return ArrayAttr::get(mesh.getContext(), sorted);
}

ArrayAttr joinAxes(ArrayAttr axes, ArrayAttr more) {
  SmallVector<Attribute> joined(axes.getValue());
  for (Attribute axis : more) {
    if (!llvm::is_contained(joined, axis)) {
      joined.push_back(axis);
    }
  }
  return ArrayAttr::get(axes.getContext(), joined);
}

ArrayAttr appendAxes(ArrayAttr axes, ArrayAttr more) {
  SmallVector<Attribute> all(axes.getValue());
  llvm::append_range(all, more);
  return ArrayAttr::get(axes.getContext(), all);
}

bool endsWith(ArrayAttr axes, ArrayAttr suffix) {
  return axes.size() >= suffix.size() &&
         axes.getValue().take_back(suffix.size()) == suffix.getValue();
}

ArrayAttr dropBack(ArrayAttr axes, size_t count) {
  return ArrayAttr::get(axes.getContext(), axes.getValue().drop_back(count));
}

ShardingAttr withDim(ShardingAttr sharding, int64_t dim, ArrayAttr axes) {
  SmallVector<ArrayAttr> dims(sharding.getDims());
  dims[dim] = axes;
  return ShardingAttr::get(sharding.getMesh(), dims, sharding.getUnreduced(),
                           sharding.getReduction());
}

ShardingAttr withUnreduced(ShardingAttr sharding, ArrayRef<Attribute> axes,
                           ReductionKind reduction) {
  return ShardingAttr::get(sharding.getMesh(), sharding.getDims(),
                           sortByMesh(sharding.getMesh(), axes), reduction);
}

ParseResult parseGroupAxes(OpAsmParser &parser, ArrayAttr &axes, MeshAttr &mesh) {
  if (parser.parseAttribute(axes) || parser.parseKeyword("of") ||
      parser.parseCustomAttributeWithFallback(mesh)) {
    return failure();
  }
  axes = mesh.splitNames(axes);
  return success();
}

void printGroupAxes(OpAsmPrinter &printer, Operation *, ArrayAttr axes, MeshAttr mesh) {
  printer << mesh.joinNames(axes) << " of ";
  printer.printStrippedAttrOrType(mesh);
}

} // namespace weft
