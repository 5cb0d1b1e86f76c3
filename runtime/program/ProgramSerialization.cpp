//===- ProgramSerialization.cpp - programs as bytes -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bytes: "WEFTPROG", version (u32), length of the payload (u64), FNV-1a-64 of the
// payload (u64), payload. All numbers are little-endian; lists and strings start
// with their length (u64). The fields of each structure are listed once, in
// `fields`, for both directions.
//
//===----------------------------------------------------------------------===//

#include "support/Sha256.h"
#include "support/Text.h"
#include "weft-rt/Program.h"

#include <bit>
#include <concepts>
#include <cstring>
#include <iterator>
#include <type_traits>

using namespace weft::rt;

namespace {

template <typename T, typename Of>
concept Is = std::same_as<std::remove_const_t<T>, Of>;

template <typename T> struct IsVector : std::false_type {};
template <typename T> struct IsVector<std::vector<T>> : std::true_type {};
template <typename T> struct IsOptional : std::false_type {};
template <typename T> struct IsOptional<std::optional<T>> : std::true_type {};

// The order in which they are written.
void fields(auto &visit, Is<Axis> auto &x) { visit(x.name, x.size); }
void fields(auto &visit, Is<Buffer> auto &x) {
  visit(x.bytes, x.offset, x.kind, x.persistent, x.type, x.frameSet);
}
void fields(auto &visit, Is<FrameSet> auto &x) { visit(x.bytes, x.offsets); }
void fields(auto &visit, Is<FrameUse> auto &x) { visit(x.set, x.frame); }
void fields(auto &visit, Is<TensorLayout> auto &x) {
  visit(x.type, x.globalShape, x.dimAxes, x.paddedShape);
}
void fields(auto &visit, Is<NamedTensor> auto &x) { visit(x.name, x.layout, x.buffer); }
void fields(auto &visit, Is<AttentionOffset> auto &x) { visit(x.strides, x.immediates); }
void fields(auto &visit, Is<Attention> auto &x) {
  visit(x.isBackward, x.areResultsWide, x.batch, x.queries, x.keys, x.keyHeads, x.group);
  visit(x.features, x.valueFeatures, x.scale, x.isCausal, x.window, x.chunks, x.chunkLength);
  visit(x.firstQuery, x.firstKey, x.turn, x.turns, x.operands, x.starts, x.workspaceBytes);
}
void fields(auto &visit, Is<Kernel> auto &x) { visit(x.name, x.kind, x.detail, x.attention); }
void fields(auto &visit, Is<Epilogue> auto &x) {
  visit(x.hasAddend, x.hasBias, x.activation, x.hasAux, x.sums);
}
void fields(auto &visit, Is<Matmul> auto &x) {
  visit(x.type, x.transposeA, x.transposeB, x.m, x.n, x.k, x.lda, x.ldb, x.ldc);
  visit(x.batch, x.strideA, x.strideB, x.strideC, x.isResultF32, x.isTF32, x.fp8B);
  visit(x.epilogue, x.workspaceBytes);
}
void fields(auto &visit, Is<Collective> auto &x) {
  visit(x.kind, x.reduction, x.type, x.axes, x.shape, x.dim, x.dim2, x.sources);
  visit(x.classes, x.number);
}
void fields(auto &visit, Is<Observation> auto &x) { visit(x.name, x.layout, x.limit, x.mean); }
void fields(auto &visit, Is<Operand> auto &x) { visit(x.buffer, x.access); }
void fields(auto &visit, Is<Cost> auto &x) { visit(x.flops, x.bytes, x.seconds, x.share); }
void fields(auto &visit, Is<Instruction> auto &x) {
  visit(x.opcode, x.target, x.label, x.operands, x.immediates, x.cost, x.stream, x.waits);
}
void fields(auto &visit, Is<Immediate> auto &x) { visit(x.value, x.addsMicroBatch); }
void fields(auto &visit, Is<Body> auto &x) { visit(x.name, x.instructions); }
void fields(auto &visit, Is<Action> auto &x) { visit(x.body, x.microBatch, x.frames); }
void fields(auto &visit, Is<DeviceUse> auto &x) { visit(x.part, x.bytes); }
/// What the certificate is of.
void provenFields(auto &visit, Is<Program> auto &x) {
  visit(x.modelName, x.planText, x.planHash, x.rankClass, x.rankClasses, x.mesh);
  visit(x.buffers, x.frameSets, x.arenaBytes);
  visit(x.parameters, x.optimizerState, x.inputs);
  visit(x.kernels, x.matmuls, x.collectives, x.observations, x.labels);
  visit(x.bodies, x.init, x.step, x.evaluate);
  visit(x.globalBatch, x.microBatches, x.sequenceLength, x.vocabulary, x.defaultSteps,
        x.defaultSeed, x.documentEnd);
  visit(x.stepFlops, x.peakFlopsPerRank, x.peakByteFlopsPerRank, x.memoryBandwidthPerRank,
        x.threadsPerRank);
}
void fields(auto &visit, Is<Program> auto &x) {
  provenFields(visit, x);
  visit(x.deviceUses, x.certificate);
}

// The largest legal value of each enumeration.
constexpr ElementType last(ElementType) { return std::rbegin(kElementTypes)->type; }
constexpr BufferClass last(BufferClass) { return BufferClass::Workspace; }
constexpr Epilogue::Activation last(Epilogue::Activation) {
  return Epilogue::Activation::GeluGradient;
}
constexpr Epilogue::Sums last(Epilogue::Sums) { return Epilogue::Sums::OfB; }
constexpr CollectiveKind last(CollectiveKind) { return std::rbegin(kCollectiveKinds)->kind; }
constexpr ReductionKind last(ReductionKind) { return ReductionKind::Max; }
constexpr Opcode last(Opcode) { return Opcode::Agree; }
constexpr Access last(Access) { return Access::ReadWrite; }
constexpr DevicePart last(DevicePart) { return DevicePart::Stacks; }
constexpr Stream last(Stream) { return Stream::Communication; }

class Writer {
public:
  explicit Writer(std::vector<char> &bytes) : bytes(bytes) {}

  void operator()(const auto &...values) { (put(values), ...); }

private:
  template <typename T> void put(const T &value) {
    if constexpr (std::is_enum_v<T>) {
      putNumber(uint8_t(value));
    } else if constexpr (std::same_as<T, double>) {
      putNumber(std::bit_cast<uint64_t>(value));
    } else if constexpr (std::same_as<T, bool>) {
      putNumber(uint8_t(value));
    } else if constexpr (std::integral<T>) {
      putNumber(std::make_unsigned_t<T>(value));
    } else if constexpr (std::same_as<T, std::string>) {
      putNumber(uint64_t(value.size()));
      bytes.insert(bytes.end(), value.begin(), value.end());
    } else if constexpr (IsVector<T>::value) {
      putNumber(uint64_t(value.size()));
      for (const auto &element : value) {
        put(element);
      }
    } else if constexpr (IsOptional<T>::value) {
      put(value.has_value());
      if (value) {
        put(*value);
      }
    } else {
      fields(*this, value);
    }
  }

  void putNumber(std::unsigned_integral auto value) {
    for (size_t i = 0; i < sizeof value; ++i) {
      bytes.push_back(char(uint8_t(uint64_t(value) >> (8 * i))));
    }
  }

  std::vector<char> &bytes;
};

/// After the first field that does not fit, `ok` stays false and values stay unchanged.
class Reader {
public:
  explicit Reader(std::span<const char> bytes) : bytes(bytes) {}

  void operator()(auto &...values) { (get(values), ...); }

  bool ok = true;
  std::span<const char> bytes;

private:
  template <typename T> void get(T &value) {
    if constexpr (std::is_enum_v<T>) {
      uint8_t number = getNumber<uint8_t>();
      ok &= number <= uint8_t(last(T()));
      value = ok ? T(number) : T();
    } else if constexpr (std::same_as<T, double>) {
      value = std::bit_cast<double>(getNumber<uint64_t>());
    } else if constexpr (std::same_as<T, bool>) {
      uint8_t number = getNumber<uint8_t>();
      ok &= number <= 1;
      value = number == 1;
    } else if constexpr (std::integral<T>) {
      value = T(getNumber<std::make_unsigned_t<T>>());
    } else if constexpr (std::same_as<T, std::string>) {
      uint64_t size = getCount();
      value.assign(bytes.data(), size);
      bytes = bytes.subspan(size);
    } else if constexpr (IsVector<T>::value) {
      uint64_t size = getCount();
      value.clear();
      // Grows as elements arrive: a damaged count must not allocate more memory than the remaining
      // bytes can fill.
      for (uint64_t i = 0; i < size && ok; ++i) {
        get(value.emplace_back());
      }
    } else if constexpr (IsOptional<T>::value) {
      bool isThere = false;
      get(isThere);
      value.reset();
      if (ok && isThere) {
        get(value.emplace());
      }
    } else {
      fields(*this, value);
    }
  }

  /// Reads the length of a list or string. Each element takes at least one byte.
  uint64_t getCount() {
    uint64_t count = getNumber<uint64_t>();
    ok &= count <= bytes.size();
    return ok ? count : 0;
  }

  template <std::unsigned_integral T> T getNumber() {
    ok &= bytes.size() >= sizeof(T);
    if (!ok) {
      return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) {
      value |= uint64_t(uint8_t(bytes[i])) << (8 * i);
    }
    bytes = bytes.subspan(sizeof(T));
    return T(value);
  }
};

constexpr char kMagic[8] = {'W', 'E', 'F', 'T', 'P', 'R', 'O', 'G'};
constexpr size_t kHeaderBytes = sizeof kMagic + 4 + 8 + 8;

uint64_t checksumOf(std::span<const char> bytes) {
  uint64_t hash = 0xCBF29CE484222325;
  for (char byte : bytes) {
    hash = (hash ^ uint8_t(byte)) * 0x100000001B3;
  }
  return hash;
}

} // namespace

std::string weft::rt::certificateOf(std::span<const Program> programs) {
  std::vector<char> bytes;
  Writer write(bytes);
  for (const Program &program : programs) {
    provenFields(write, program);
  }
  return hexText(Sha256().add(bytes).finish());
}

Status weft::rt::checkCertificate(std::span<const Program> programs) {
  const std::string &expected = programs.front().certificate;
  if (expected.empty()) {
    return makeError("its tables have no certificate: they were not proven");
  }
  std::string found = certificateOf(programs);
  if (found != expected) {
    return makeError("its tables are not those that were proven: expected the certificate ",
                     expected, ", got ", found);
  }
  return {};
}

std::vector<char> weft::rt::serialize(std::span<const Program> programs) {
  std::vector<char> payload;
  Writer write(payload);
  write(uint64_t(programs.size()));
  for (const Program &program : programs) {
    write(program);
  }

  std::vector<char> bytes(kMagic, kMagic + sizeof kMagic);
  Writer header(bytes);
  header(uint32_t(Program::kVersion), uint64_t(payload.size()), checksumOf(payload));
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

Result<Programs> weft::rt::deserialize(std::span<const char> bytes) {
  if (bytes.size() < kHeaderBytes || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) {
    return makeError("not a weft program: it does not begin with WEFTPROG and a header");
  }
  uint32_t version = 0;
  uint64_t length = 0, checksum = 0;
  Reader header(bytes.subspan(sizeof kMagic));
  header(version, length, checksum);
  if (version != Program::kVersion) {
    return makeError("the program has version ", version, ", this runtime reads version ",
                     uint32_t(Program::kVersion));
  }
  std::span<const char> payload = bytes.subspan(kHeaderBytes);
  if (payload.size() != length) {
    return makeError("the program is damaged: expected ", length, " bytes after the header, got ",
                     payload.size());
  }
  if (checksumOf(payload) != checksum) {
    return makeError("the program is damaged: its checksum does not match its content");
  }
  Programs programs;
  Reader read(payload);
  read(programs);
  if (!read.ok || !read.bytes.empty()) {
    return makeError("the program is damaged: a field does not fit at byte ",
                     bytes.size() - read.bytes.size());
  }
  if (Status status = checkWellFormed(programs); !status) {
    return status.error();
  }
  return programs;
}
