//===- MachineText.cpp - a measured machine as text ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/MachineText.h"

#include "weft/Cost/Predictor.h"
#include "weft/Driver/CommandLine.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

#include <cmath>

using namespace weft;

namespace {

using Object = llvm::json::Object;

double amount(const Object &object, llvm::StringRef name) {
  return object.getNumber(name).value_or(0);
}

/// Returns the field `name`, an object; an empty one if there is none.
const Object &part(const Object &object, llvm::StringRef name) {
  static const Object empty;
  const Object *inner = object.getObject(name);
  return inner ? *inner : empty;
}

std::vector<const Object *> entriesOf(const Object &object, llvm::StringRef name) {
  std::vector<const Object *> entries;
  if (const llvm::json::Array *list = object.getArray(name)) {
    for (const llvm::json::Value &value : *list) {
      if (const Object *entry = value.getAsObject()) {
        entries.push_back(entry);
      }
    }
  }
  return entries;
}

double median(std::vector<double> values) {
  if (values.empty()) {
    return 0;
  }
  llvm::sort(values);
  return values[values.size() / 2];
}

/// The types of matmuls, in the order of machines' files.
struct Format {
  llvm::StringRef type;
  desc::Precision precision;
};
constexpr Format kFormats[] = {{"f32", desc::Precision::F32},   {"f64", desc::Precision::F64},
                               {"bf16", desc::Precision::BF16}, {"tf32", desc::Precision::TF32},
                               {"f16", desc::Precision::F16},   {"f8e4m3", desc::Precision::F8}};

std::string refusalOf(const Object &entry) {
  std::string line;
  llvm::raw_string_ostream(line) << entry.getString("type").value_or("") << ", "
                                 << entry.getInteger("m").value_or(0) << " x "
                                 << entry.getInteger("n").value_or(0) << " x "
                                 << entry.getInteger("k").value_or(0) << ": "
                                 << entry.getString("reason").value_or("");
  llvm::erase_if(line, [](char letter) { return !llvm::isPrint(letter); });
  return line;
}

/// Returns the rate of a matmul with unaligned rows as a share of the rate of the one that has one
/// column more.
double unalignedShareOf(const desc::MatmulRate &rate, llvm::ArrayRef<desc::MatmulRate> others) {
  auto aligned = llvm::find_if(others, [&](const desc::MatmulRate &other) {
    return other.precision == rate.precision && other.m == rate.m && other.n == rate.n + 1 &&
           other.k == rate.k;
  });
  return aligned == others.end() ? 1 : std::min(1.0, rate.flops / aligned->flops);
}

void readMatmuls(const Object &object, HostMeasurements &host) {
  desc::DeviceSpec &device = host.machine.device;
  std::vector<double> spreads;
  std::vector<desc::MatmulRate> unaligned;
  for (const Object *entry : entriesOf(object, "products")) {
    auto side = [&](llvm::StringRef name) { return entry->getInteger(name).value_or(0); };
    desc::MatmulRate rate{desc::Precision::F32, side("m"), side("n"), side("k")};
    rate.flops = 2.0 * rate.m * rate.n * rate.k / amount(*entry, "seconds");
    const Format *format = llvm::find_if(kFormats, [&](const Format &one) {
      return one.type == entry->getString("type").value_or("");
    });
    if (format == std::end(kFormats)) {
      continue; // Of a newer tool.
    }
    rate.precision = format->precision;
    if (rate.n * desc::bytesOf(rate.precision) % cost::kRowBytes != 0) {
      unaligned.push_back(rate);
      continue;
    }
    std::optional<double> &peak = device.*desc::DeviceSpec::peakOf(format->precision);
    peak = std::max(peak.value_or(0), rate.flops);
    spreads.push_back(amount(*entry, "spread"));
    device.measured.matmuls.push_back(rate);
  }
  for (const desc::MatmulRate &rate : unaligned) {
    device.measured.unalignedShare = unalignedShareOf(rate, device.measured.matmuls);
  }
  for (const Object *entry : entriesOf(object, "refused")) {
    host.refused.push_back(refusalOf(*entry));
  }
  if (!device.peakFlopsF64) {
    device.peakFlopsF64 = device.peakFlopsF32.value_or(0) / 2; // A vector has half as many.
  }
  host.spreadOfMatmuls = median(std::move(spreads));
}

void readMemory(const Object &object, HostMeasurements &host) {
  desc::DeviceSpec &device = host.machine.device;
  std::vector<double> spreads;
  for (const Object *entry : entriesOf(object, "memory")) {
    double bytes = amount(*entry, "bytes"), logarithms = 0, count = 0;
    for (llvm::StringRef kernel : {"copy", "add", "sum"}) {
      if (const Object *timing = entry->getObject(kernel)) { // Devices only copy.
        logarithms += std::log(bytes / amount(*timing, "seconds"));
        spreads.push_back(amount(*timing, "spread"));
        ++count;
      }
    }
    device.memoryBandwidth = std::exp(logarithms / count); // The last is the largest.
    device.measured.memory.push_back({static_cast<int64_t>(bytes), device.memoryBandwidth});
  }
  host.spreadOfMemory = median(std::move(spreads));
}

void readCollectives(const Object &object, HostMeasurements &host) {
  desc::MeasuredSpec &measured = host.machine.device.measured;
  std::vector<double> spreads;
  for (const Object *entry : entriesOf(object, "collectives")) {
    auto kind = rt::collectiveKindOf(entry->getString("kind").value_or(""));
    desc::CollectiveTime time{kind.value_or(rt::CollectiveKind::Permute),
                              entry->getInteger("ranks").value_or(0),
                              entry->getInteger("bytes").value_or(0), amount(*entry, "seconds")};
    measured.collectives.push_back(time);
    spreads.push_back(amount(*entry, "spread"));
    // The largest operand of the smallest group, for which latency plays no role.
    const desc::CollectiveTime &first = measured.collectives.front();
    if (time.kind == rt::CollectiveKind::AllGather && time.ranks == first.ranks) {
      host.machine.nodeLink->bandwidth = double(time.bytes) * double(time.ranks - 1) / time.seconds;
    }
  }
  host.spreadOfCollectives = median(std::move(spreads));
}

/// Four digits, more than any of this repeats.
llvm::format_object<double> number(double value) { return llvm::format("%.4g", value); }

llvm::format_object<double> percent(double share) { return llvm::format("%.0f %%", 100 * share); }

void writeCuda(llvm::raw_ostream &os, const desc::CudaSpec &cuda) {
  os << "  # What was gone of the least used device's memory before anything was allocated, what\n"
     << "  # preparing the matmuls took besides, and what a communicator of all devices did: at\n"
     << "  # most, if others used the devices.\n"
     << "  cuda { multiprocessors: " << cuda.multiprocessors.value_or(1)
     << " context_bytes: " << cuda.contextBytes.value_or(0)
     << " library_bytes: " << cuda.libraryBytes.value_or(0);
  if (cuda.communicatorBytes) {
    os << " communicator_bytes: " << *cuda.communicatorBytes;
  }
  os << " }\n";
}

void writeDevice(llvm::raw_ostream &os, const HostMeasurements &host) {
  const desc::DeviceSpec &device = host.machine.device;
  bool isOfHost = host.deviceName.empty();
  os << "device {\n  name: \"" << device.name << "\"\n  # The best of the matmuls below"
     << (isOfHost ? "; F64 is half of F32, as a vector holds half as many" : "") << ".\n";
  for (const Format &format : kFormats) {
    if (std::optional<double> peak = device.*desc::DeviceSpec::peakOf(format.precision)) {
      os << "  peak_flops { precision: " << desc::nameOf(format.precision)
         << " flops: " << number(*peak) << " }\n";
    }
  }
  os << (isOfHost ? "  # All of this machine's memory, over its devices.\n"
                  : "  # All that a device has.\n")
     << "  memory_bytes: " << device.memoryBytes << "\n"
     << "  # The rate of the largest kernels below.\n"
     << "  memory_bandwidth_bytes_per_second: " << number(device.memoryBandwidth) << "\n";
  if (isOfHost) {
    os << "  cores: " << device.cores << "\n";
  } else {
    writeCuda(os, device.cuda);
  }
}

void writeMeasured(llvm::raw_ostream &os, const HostMeasurements &host) {
  const desc::DeviceSpec &device = host.machine.device;
  const desc::MeasuredSpec &measured = device.measured;
  os << "  measured {\n"
     << "    # Row-major C = A B by " << host.library << "; samples spread by "
     << percent(host.spreadOfMatmuls)
     << (device.peakFlopsF8
             ? ".\n    # Of F8 both are of E4M3, C is of bf16, and B lies transposed.\n"
             : ".\n");
  for (const desc::MatmulRate &rate : measured.matmuls) {
    os << "    products { precision: " << desc::nameOf(rate.precision) << " m: " << rate.m
       << " n: " << rate.n << " k: " << rate.k << " flops: " << number(rate.flops) << " }\n";
  }
  if (measured.unalignedShare < 1) {
    os << "    # The rate of the largest matmul of BF16 with one column less, so that rows of B\n"
       << "    # and C do not begin at multiples of 16 bytes, as a share of its own.\n"
       << "    unaligned_share: " << number(measured.unalignedShare) << "\n";
  }
  for (const std::string &line : host.refused) {
    os << "    # Refused: " << line << "\n";
  }
  bool isOfHost = host.deviceName.empty();
  os << (isOfHost ? "    # The geometric mean of the rates of a copy, an addition and a sum"
                  : "    # A copy by the driver")
     << "; samples spread by " << percent(host.spreadOfMemory) << ".\n";
  for (const desc::MemoryRate &rate : measured.memory) {
    os << "    memory { bytes: " << rate.bytes
       << " bytes_per_second: " << number(rate.bytesPerSecond) << " }\n";
  }
  os << "    # Kernels of two small models that this compiler made, as their own profiles tell.\n";
  for (const desc::KernelRate &rate : measured.kernels) {
    os << "    kernels { kind: \"" << rate.kind << "\" precision: " << desc::nameOf(rate.precision)
       << " flops: " << number(rate.flops) << " }\n";
  }
  if (host.machine.nodeLink) {
    os << "    # One after another between " << (isOfHost ? "threads" : "devices")
       << ", without other work; samples spread by " << percent(host.spreadOfCollectives) << ".\n";
  }
  for (const desc::CollectiveTime &time : measured.collectives) {
    os << "    collectives { kind: " << desc::wordOf(time.kind) << " ranks: " << time.ranks
       << " bytes: " << time.bytes << " seconds: " << number(time.seconds) << " }\n";
  }
  os << (isOfHost ? "    # A job of a rank's team that does nothing.\n"
                  : "    # Writing four bytes, again and again.\n")
     << "    launch_seconds: " << number(measured.launchSeconds) << "\n";
  if (measured.rendezvousSeconds) {
    os << "    # All ranks" << (isOfHost ? "" : ", an all-reduce of four bytes each")
       << ", again and again; samples spread by " << percent(host.spreadOfRendezvous) << ".\n"
       << "    rendezvous_seconds: " << number(*measured.rendezvousSeconds) << "\n";
  }
  os << "  }\n}\n";
}

/// Returns the letters of `text` that a name may have; other characters become '-'.
std::string labelOf(llvm::StringRef text) {
  std::string label;
  for (char letter : text.take_front(64)) {
    bool isGood = llvm::isAlnum(letter) || llvm::StringRef("._-").contains(letter);
    label += isGood ? letter : '-';
  }
  return label;
}

void readDevice(const Object &object, HostMeasurements &host) {
  desc::DeviceSpec &device = host.machine.device;
  host.deviceName = object.getString("name").value_or("").str();
  device.name = labelOf(host.deviceName);
  device.cuda.multiprocessors = object.getInteger("multiprocessors");
  device.cuda.contextBytes = object.getInteger("context_bytes");
  device.cuda.libraryBytes = object.getInteger("library_bytes");
  if (host.machine.devicesPerNode > 1) {
    device.cuda.communicatorBytes = object.getInteger("communicator_bytes");
    host.machine.nodeLink->name = "between-devices";
  }
}

} // namespace

llvm::Expected<HostMeasurements> weft::readMeasurements(llvm::StringRef text, llvm::StringRef name,
                                                        llvm::StringRef processor) {
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value) {
    return makeError("the measurements cannot be read: " + llvm::toString(value.takeError()));
  }
  if (!value->getAsObject()) {
    return makeError("the measurements are no object");
  }
  const Object &object = *value->getAsObject();
  HostMeasurements host;
  desc::MachineSpec &machine = host.machine;
  machine.name = name;
  machine.devicesPerNode = object.getInteger("ranks").value_or(1);
  machine.device.cores = object.getInteger("threads").value_or(1);
  machine.device.name = (processor + "-" + llvm::Twine(machine.device.cores) + "-core").str();
  machine.device.memoryBytes = object.getInteger("memory_bytes").value_or(0);
  machine.device.measured.launchSeconds = amount(part(object, "launch"), "seconds");
  if (machine.devicesPerNode > 1) {
    double rendezvous = amount(part(object, "rendezvous"), "seconds");
    machine.device.measured.rendezvousSeconds = rendezvous;
    machine.nodeLink = {"shared-memory", rendezvous, 0};
    host.spreadOfRendezvous = amount(part(object, "rendezvous"), "spread");
  }
  host.library = object.getString("library").value_or("").str();
  if (const Object *device = object.getObject("device")) {
    readDevice(*device, host);
  }
  readMatmuls(object, host);
  readMemory(object, host);
  readCollectives(object, host);
  return host;
}

std::string weft::machineText(const HostMeasurements &host, const Occasion &occasion) {
  std::string text;
  llvm::raw_string_ostream os(text);
  const desc::MachineSpec &machine = host.machine;
  os << "# proto-file: weft/machine.proto\n# proto-message: Machine\n"
     << "# Measured on " << occasion.date << " by '" << occasion.command << "' on\n# "
     << (host.deviceName.empty() ? occasion.processor : host.deviceName) << ", "
     << machine.devicesPerNode << " devices"
     << (host.deviceName.empty() ? " of " + std::to_string(machine.device.cores) + " cores" : "")
     << " that worked all at the same time.\n"
     << "# Every number is the median of its samples. A spread is the distance of the 10th and the "
        "90th\n# of 100 samples over their median, the median of all cases.\n"
     << "version: 1\nname: \"" << machine.name << "\"\n"
     << "devices_per_node: " << machine.devicesPerNode << "\n";
  writeDevice(os, host);
  writeMeasured(os, host);
  if (machine.nodeLink) {
    os << "links {\n  name: \"" << machine.nodeLink->name << "\"\n  scope: NODE\n"
       << "  # The rendezvous above.\n"
       << "  latency_seconds: " << number(machine.nodeLink->latency) << "\n"
       << "  # What one of the smallest group receives in the largest all-gather above, in its "
          "time.\n"
       << "  bandwidth_bytes_per_second: " << number(machine.nodeLink->bandwidth) << "\n}\n";
  }
  return text;
}
