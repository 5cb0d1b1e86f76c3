//===- CheckpointWriter.cpp - writes one rank's part of checkpoints -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/CheckpointWriter.h"

#include "checkpoint/FiniteTensors.h"
#include "support/CheckedMath.h"
#include "support/Safetensors.h"

#include <algorithm>

using namespace weft::rt;

CheckpointWriter::CheckpointWriter(std::span<const Program> programs, const RunIdentity &run,
                                   CheckpointFolder &folder, Executor &executor, uint64_t portion)
    : programs(programs), program(programOf(programs, executor.rank())),
      tensors(savedTensorsOf(programs)), run(run), folder(folder), executor(executor),
      link(executor.communicator()), portion(portion), receipts(size_t(program.rankCount())) {
  for (int64_t rank = 0; rank < program.rankCount(); ++rank) {
    uint64_t bytes = 0;
    for (const OwnedTensor &saved : tensors) {
      std::optional<Region> part = partOf(saved, rank);
      if (!part) {
        continue;
      }
      const TensorLayout &layout = saved.tensor->layout;
      uint64_t size = elementCount(part->shape) * sizeOf(layout.type);
      bytes += size;
      if (rank == executor.rank()) {
        contents.push_back({saved.tensor, size});
      }
    }
    longest = std::max(longest, bytes);
  }
  RankGroup all = allRanks(program.rankCount());
  Collective maximum = {.reduction = ReductionKind::Max, .type = ElementType::I32, .shape = {1}};
  barrier = link.prepare(maximum, all, {"checkpoint", 0, "ranks write their shards"});
  Collective gather = {.kind = CollectiveKind::AllGather,
                       .type = ElementType::I64,
                       .shape = {int64_t(std::tuple_size_v<Receipt>)}};
  gathering = link.prepare(gather, all, {"checkpoint", 1, "checksums of all shards"});
}

bool CheckpointWriter::write(int64_t step) {
  bool leads = executor.rank() == 0;
  if (leads && !link.check(folder.begin(step))) {
    return false;
  }
  return meet() && link.check(writeShard(step)) &&
         link.run(gathering, receipt.data(), receipts.data()) && areAllFinite() &&
         (!leads || link.check(seal(step))) && meet();
}

std::optional<Region> CheckpointWriter::partOf(const OwnedTensor &saved, int64_t rank) {
  const auto &[tensor, owner] = saved;
  if (!owner->ranks().has(rank)) {
    return std::nullopt;
  }
  const TensorLayout &layout = tensor->layout;
  std::vector<int64_t> coordinates = owner->coordinatesOf(rank);
  Region part = dataRegion(layout, owner->mesh, coordinates);
  bool isPadding = !layout.paddedShape.empty() && elementCount(part.shape) == 0;
  return holdsFirstCopy(layout, coordinates) && !isPadding ? std::optional(part) : std::nullopt;
}

bool CheckpointWriter::meet() { return link.run(barrier, &nothing, &nothing); }

Status CheckpointWriter::writeShard(int64_t step) {
  receipt = {};
  notFinite.reset();
  checksum = Checksum();
  if (!contents.empty()) {
    std::string path = folder.writingPath(step) + "/" + shardFile(executor.rank());
    if (Status status = file.open(path, 0); !status) {
      return status;
    }
    if (Status status = put(header(step)); !status) {
      return status;
    }
  }
  for (uint64_t begin = 0; begin < longest; begin += portion) {
    if (!contents.empty()) {
      if (Status status = writePortion(step, begin, begin + portion); !status) {
        return status;
      }
      if (Status status = file.sync(); !status) {
        return status;
      }
    }
    if (!meet()) {
      return {}; // Some other rank has failed, and has said why.
    }
  }
  Digest digest = checksum.digest();
  receipt[1] = int64_t(digest.high);
  receipt[2] = int64_t(digest.low);
  receipt[3] = int64_t(notFinite.has_value());
  return file.close();
}

/// Returns false if a value of any rank is not finite: the first such rank says which.
bool CheckpointWriter::areAllFinite() {
  auto first = std::ranges::find_if(receipts, [](const Receipt &each) { return each[3] != 0; });
  if (first == receipts.end()) {
    return true;
  }
  return first - receipts.begin() == executor.rank()
             ? link.fail(*notFinite + ": nothing of it is saved", ExitCode::NotFinite)
             : meet();
}

/// Writes bytes `begin` to `end - 1` of the concatenation of this rank's tensors; elements that
/// `begin` or `end` would cut belong to the later portion.
Status CheckpointWriter::writePortion(int64_t step, uint64_t begin, uint64_t end) {
  uint64_t position = 0;
  for (const Content &content : contents) {
    uint64_t size = sizeOf(content.tensor->layout.type);
    auto within = [&](uint64_t place) {
      uint64_t bytes = std::clamp(place, position, position + content.bytes) - position;
      return bytes - bytes % size;
    };
    if (uint64_t from = within(begin), to = within(end); from < to) {
      if (Status status = putPart(step, content, from, to); !status) {
        return status;
      }
    }
    position += content.bytes;
  }
  return {};
}

Status CheckpointWriter::putPart(int64_t step, const Content &content, uint64_t begin,
                                 uint64_t end) {
  const auto &[name, layout, buffer] = *content.tensor;
  if (layout.paddedShape.empty()) {
    BufferView view = executor.view(buffer, begin, end - begin);
    return putElements(step, content, view.bytes(), begin);
  }
  Status status;
  Region data = dataRegion(layout, program.mesh, executor.coordinates());
  forEachSlab(data, sizeOf(layout.type), [&](const Region &slab, uint64_t first) {
    uint64_t last = first + elementCount(slab.shape) * sizeOf(layout.type);
    uint64_t from = std::max(begin, first), to = std::min(end, last);
    if (status && from < to) {
      pack(content, slab);
      auto bytes = std::span(packed).subspan(from - first, to - from);
      status = putElements(step, content, bytes, from);
    }
  });
  return status;
}

void CheckpointWriter::pack(const Content &content, const Region &slab) {
  const auto &[name, layout, buffer] = *content.tensor;
  size_t elementBytes = sizeOf(layout.type);
  RowsInSlab rows =
      rowsInSlab(localRegion(layout, program.mesh, executor.coordinates()), slab, elementBytes);
  BufferView view = executor.view(buffer, rows.begin, rows.count);
  packed.resize(elementCount(slab.shape) * elementBytes);
  copyOverlap(rows.region, view.data(), slab, packed.data(), elementBytes);
}

/// Writes elements of a tensor, from byte `begin` of its part on.
Status CheckpointWriter::putElements(int64_t step, const Content &content,
                                     std::span<const char> bytes, uint64_t begin) {
  const auto &[name, layout, buffer] = *content.tensor;
  if (!notFinite) {
    notFinite =
        notFiniteText(name, layout.type, dataRegion(layout, program.mesh, executor.coordinates()),
                      bytes, begin / sizeOf(layout.type), step);
  }
  return put(bytes);
}

Status CheckpointWriter::put(std::span<const char> bytes) {
  receipt[0] += int64_t(bytes.size());
  checksum.add(bytes);
  return file.write(bytes);
}

std::string CheckpointWriter::header(int64_t step) const {
  std::vector<TensorHeader> headers;
  std::map<std::string, std::string> metadata = {{"format", "weft"},
                                                 {"step", std::to_string(step)},
                                                 {"plan", program.planHash},
                                                 {"rank", std::to_string(executor.rank())}};
  for (const Content &content : contents) {
    const auto &[name, layout, buffer] = *content.tensor;
    Region region = dataRegion(layout, program.mesh, executor.coordinates());
    headers.push_back({name, layout.type, region.shape});
    metadata["place/" + name] = placeText(region, layout.globalShape);
  }
  return safetensorsHeader(headers, metadata);
}

Manifest CheckpointWriter::makeManifest(int64_t step) const {
  Manifest manifest = {step, run, program.planHash, program.planText, program.mesh, {}, {}};
  // By rank.
  std::vector<uint32_t> shards(receipts.size());
  for (size_t rank = 0; rank < receipts.size(); ++rank) {
    const auto &[bytes, high, low, isNotFinite] = receipts[rank];
    shards[rank] = uint32_t(manifest.shards.size());
    if (bytes > 0) {
      manifest.shards.push_back(
          {shardFile(int64_t(rank)), uint64_t(bytes), {uint64_t(high), uint64_t(low)}});
    }
  }
  for (const OwnedTensor &each : tensors) {
    const auto &[name, layout, buffer] = *each.tensor;
    SavedTensor saved = {name, safetensorsName(layout.type), layout.globalShape, {}};
    RankRange owners = each.owner->ranks();
    for (int64_t rank = owners.first; owners.has(rank); ++rank) {
      if (std::optional<Region> part = partOf(each, rank)) {
        saved.parts.push_back({*part, shards[size_t(rank)]});
      }
    }
    manifest.tensors.push_back(std::move(saved));
  }
  return manifest;
}

/// Writes the manifest, after all other files, and gives the checkpoint its name.
Status CheckpointWriter::seal(int64_t step) {
  StreamFile manifest;
  if (Status status = manifest.open(folder.writingPath(step) + "/manifest.json", 0); !status) {
    return status;
  }
  if (Status status = manifest.write(toText(makeManifest(step))); !status) {
    return status;
  }
  if (Status status = manifest.sync(); !status) {
    return status;
  }
  if (Status status = manifest.close(); !status) {
    return status;
  }
  return folder.commit(step);
}
