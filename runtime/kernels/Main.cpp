//===- Main.cpp - tries kernels on a device, for utils/gpu/check -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/Devices.h"
#include "kernels/Ceilings.h"
#include "kernels/CheckCases.h"
#include "kernels/Libraries.h"
#include "support/Json.h"
#include "support/OutputFile.h"
#include "support/ParseNumber.h"
#include "support/Text.h"

#include <algorithm>
#include <cstdio>
#include <thread>

using namespace weft::rt;
using namespace weft::rt::kernels;

static const char *const kUsage =
    "usage: weft-rt-kernels FOLDER [--only TEXT[,TEXT]...] [--size small|large] [--repeats N]\n"
    "                       [--skip N] [--json FILE]\n"
    "       weft-rt-kernels --ceilings copies|matmuls [--json FILE]\n"
    "       weft-rt-kernels --libraries [--json FILE]\n"
    "Runs kernels on device 0 and compares the results with float64 on the host. FOLDER has the\n"
    "kernels; LowerTests writes it if the environment variable WEFT_KERNEL_CASES names it.\n"
    "  --only      only kernels with a TEXT in their name\n"
    "  --size      only small or only large kernels\n"
    "  --repeats   time each large kernel over N runs\n"
    "  --skip      skip the first N kernels\n"
    "  --ceilings  run no kernels; measure the device's peak rates of copies or matmuls\n"
    "  --libraries run no kernels; report why CUDA's libraries cannot be called, for each\n"
    "  --json      before each kernel, write its name and all figures so far to FILE\n"
    "Exit status: 1 if a kernel or the device fails.\n";

namespace {

struct Settings {
  std::string folder, only, size, json, ceilings;
  int64_t repeats = 20, skipped = 0;
  bool libraries = false;

  bool runsKernels() const { return ceilings.empty() && !libraries; }
};

/// Reads a number without a sign.
bool readNumber(std::string_view text, int64_t &number) {
  return parseNumber(text, number) && number >= 0;
}

bool readSettings(std::span<char *const> words, Settings &settings) {
  for (size_t i = 1; i < words.size(); ++i) {
    std::string_view word = words[i];
    std::string *text = word == "--only"       ? &settings.only
                        : word == "--size"     ? &settings.size
                        : word == "--json"     ? &settings.json
                        : word == "--ceilings" ? &settings.ceilings
                                               : nullptr;
    if (word == "--libraries") {
      settings.libraries = true;
    } else if (!word.starts_with("--") && settings.folder.empty()) {
      settings.folder = word;
    } else if (++i == words.size()) {
      return false;
    } else if (text) {
      *text = words[i];
    } else {
      int64_t *number = word == "--repeats" ? &settings.repeats
                        : word == "--skip"  ? &settings.skipped
                                            : nullptr;
      if (!number || !readNumber(words[i], *number)) {
        return false;
      }
    }
  }
  bool isSize = settings.size.empty() || settings.size == "small" || settings.size == "large";
  const std::string &peak = settings.ceilings;
  bool isPeak = peak.empty() || peak == "copies" || peak == "matmuls";
  return (!settings.folder.empty() || !settings.runsKernels()) && isSize && isPeak;
}

/// Returns true if `name` contains one of the comma-separated `texts`; an empty text matches.
bool hasOneOf(std::string_view texts, std::string_view name) {
  for (;;) {
    size_t end = std::min(texts.find(','), texts.size());
    if (name.find(texts.substr(0, end)) != std::string_view::npos) {
      return true;
    }
    if (end == texts.size()) {
      return false;
    }
    texts.remove_prefix(end + 1);
  }
}

nlohmann::json toJson(const Verdict &verdict) {
  return {{"name", verdict.name},       {"fault", verdict.fault},
          {"error", verdict.error},     {"bytes", verdict.bytes},
          {"seconds", verdict.seconds}, {"host_error", verdict.hostError},
          {"large", verdict.isLarge}};
}

void print(const Verdict &verdict) {
  std::string speed = verdict.seconds > 0 ? concat(", ", verdict.seconds * 1e6, " us, ",
                                                   verdict.bytes / verdict.seconds * 1e-9, " GB/s")
                                          : "";
  std::printf("%s %s: %s%s\n", verdict.fault.empty() ? "pass" : "FAIL", verdict.name.c_str(),
              verdict.fault.empty() ? concat("off by ", verdict.error).c_str()
                                    : verdict.fault.c_str(),
              speed.c_str());
}

/// Makes a simulator, if the library is one, that runs no kernels.
void standForNothing(const cuda::DriverTable &library) {
  static const Program none;
  if (library.standFor) {
    library.standFor(&none, 1, nullptr);
  }
}

/// Measures ceilings. On a simulator this only tests the code: sizes are small and rates
/// meaningless.
Status runCeilings(const cuda::DriverTable &library, CeilingKind kind, nlohmann::json &report) {
  bool isReal = !library.standFor;
  Result<Ceilings> measured = measureCeilings(library, kind, isReal ? uint64_t(1) << 30 : 1 << 16,
                                              isReal ? 8192 : 64, isReal ? 2 : 0.01);
  if (!measured) {
    return measured.error();
  }
  const Ceilings &found = *measured;
  nlohmann::json told = {{"device", found.device}, {"libraries", found.libraries}};
  if (kind == CeilingKind::Copies) {
    std::printf("%s, %s: copies %.0f GB/s\n", found.device.c_str(), found.libraries.c_str(),
                found.copiedBytesPerSecond * 1e-9);
    told["copied_bytes"] = found.copiedBytes;
    told["copied_bytes_per_second"] = found.copiedBytesPerSecond;
  } else {
    std::printf("%s, %s: matmuls of bf16 %.1f TFLOP/s, in FP8 %.1f\n", found.device.c_str(),
                found.libraries.c_str(), found.matmulFlopsPerSecond * 1e-12,
                found.fp8MatmulFlopsPerSecond * 1e-12);
    told["product_size"] = found.matmulSize;
    told["product_flops_per_second"] = found.matmulFlopsPerSecond;
    told["byte_product_flops_per_second"] = found.fp8MatmulFlopsPerSecond;
  }
  report["ceilings"] = told;
  return {};
}

/// Prints and reports a line for each library; a missing one is no failure.
Status runLibraries(const cuda::DriverTable &library, nlohmann::json &report) {
  MissingLibraries missing = findMissingLibraries(library);
  for (auto [name, reason] : {std::pair("driver", &missing.driver),
                              {"matmuls", &missing.matmuls},
                              {"attention", &missing.attention},
                              {"collectives", &missing.collectives}}) {
    std::printf("%s: %s\n", name, reason->empty() ? "found" : reason->c_str());
    report["missing"][name] = *reason;
  }
  return {};
}

/// Writes the report, if it is wanted; a reader always finds a complete one.
Status writeReport(const Settings &settings, const nlohmann::json &report) {
  return settings.json.empty() ? Status() : writeFile(settings.json, toJsonText(report) + "\n");
}

/// Does all work on the device.
Status runAll(const Settings &settings, const CheckListener &listener, nlohmann::json &report) {
  Result<const cuda::DriverTable *> library = cuda::loadLibrary();
  if (!library) {
    return library.error();
  }
  if (!settings.runsKernels()) {
    standForNothing(**library);
    CeilingKind kind = settings.ceilings == "copies" ? CeilingKind::Copies : CeilingKind::Matmuls;
    return settings.libraries ? runLibraries(**library, report)
                              : runCeilings(**library, kind, report);
  }
  Result<Cases> cases = readCases(settings.folder);
  if (!cases) {
    return cases.error();
  }
  auto wanted = [&](const Case &one) {
    return hasOneOf(settings.only, one.name) &&
           (settings.size.empty() || one.isLarge == (settings.size == "large"));
  };
  CheckSettings check = {*library, std::max<int64_t>(1, std::thread::hardware_concurrency()),
                         settings.repeats, uint64_t(settings.skipped)};
  return checkCases(*cases, check, wanted, listener);
}

} // namespace

int main(int argc, char **argv) {
  Settings settings;
  if (!readSettings({argv, size_t(argc)}, settings)) {
    std::fputs(kUsage, stderr);
    return 1;
  }
  nlohmann::json report = {{"cases", nlohmann::json::array()}, {"trying", ""}, {"fault", ""}};
  size_t passed = 0, failed = 0;
  CheckListener listener;
  listener.begin = [&](const Case &one) {
    report["trying"] = one.name;
    (void)writeReport(settings, report); // The last one must succeed.
  };
  listener.end = [&](const Verdict &verdict) {
    print(verdict);
    std::fflush(stdout);
    ++(verdict.fault.empty() ? passed : failed);
    report["cases"].push_back(toJson(verdict));
    report["trying"] = "";
  };
  Status status = runAll(settings, listener, report);
  report["fault"] = status ? "" : status.error().message;
  if (Status written = writeReport(settings, report); !written) {
    status = written;
  }
  if (!status) {
    std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
  }
  std::printf("%zu passed, %zu failed\n", passed, failed);
  return status && failed == 0 && (passed > 0 || !settings.runsKernels()) ? 0 : 1;
}
