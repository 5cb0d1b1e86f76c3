//===- Main.cpp - tries kernels on a device, for utils/gpu/check -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/Devices.h"
#include "kernels/Ceilings.h"
#include "kernels/CheckCases.h"
#include "support/Json.h"
#include "support/Text.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <thread>

using namespace weft::rt;
using namespace weft::rt::kernels;

static const char *const kUsage =
    "usage: weft-rt-kernels FOLDER [--only TEXT[,TEXT]...] [--size small|large] [--repeats N]\n"
    "                       [--skip N] [--ceilings] [--json FILE]\n"
    "Runs kernels on device 0 and compares the results with float64 on the host. FOLDER has the\n"
    "kernels; LowerTests writes it if the environment variable WEFT_KERNEL_CASES names it.\n"
    "  --only      only kernels with a TEXT in their name\n"
    "  --size      only small or only large kernels\n"
    "  --repeats   time each large kernel over N runs\n"
    "  --skip      skip the first N kernels\n"
    "  --ceilings  first measure the device's peak rates of copies and matmuls\n"
    "  --json      before each kernel, write its name and all figures so far to FILE\n"
    "Exit status: 1 if a kernel or the device fails.\n";

namespace {

struct Settings {
  std::string folder, only, size, json;
  int64_t repeats = 20, skipped = 0;
  bool ceilings = false;
};

/// Reads a number without a sign.
bool readNumber(std::string_view text, int64_t &number) {
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && end == text.data() + text.size() && number >= 0;
}

bool readSettings(std::span<char *const> words, Settings &settings) {
  for (size_t i = 1; i < words.size(); ++i) {
    std::string_view word = words[i];
    std::string *text = word == "--only"   ? &settings.only
                        : word == "--size" ? &settings.size
                        : word == "--json" ? &settings.json
                                           : nullptr;
    if (word == "--ceilings") {
      settings.ceilings = true;
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
  return !settings.folder.empty() && isSize;
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

/// Measures the ceilings. On a simulator this only tests the code: sizes are small and rates
/// meaningless.
bool runCeilings(const cuda::DriverTable &library, const Cases &cases, nlohmann::json &report,
                 std::string &error) {
  static const Program none;
  bool isReal = !library.standFor;
  if (!isReal) {
    library.standFor(&none, cases.code);
  }
  Ceilings found;
  if (!measureCeilings(library, isReal ? uint64_t(1) << 30 : 1 << 16, isReal ? 8192 : 64,
                       isReal ? 2 : 0.01, found, error)) {
    return false;
  }
  std::printf("%s, %s: copies %.0f GB/s, matmuls of bf16 %.1f TFLOP/s, in FP8 %.1f\n",
              found.device.c_str(), found.libraries.c_str(), found.copiedBytesPerSecond * 1e-9,
              found.matmulFlopsPerSecond * 1e-12, found.fp8MatmulFlopsPerSecond * 1e-12);
  report["ceilings"] = {{"device", found.device},
                        {"libraries", found.libraries},
                        {"copied_bytes", found.copiedBytes},
                        {"copied_bytes_per_second", found.copiedBytesPerSecond},
                        {"product_size", found.matmulSize},
                        {"product_flops_per_second", found.matmulFlopsPerSecond},
                        {"byte_product_flops_per_second", found.fp8MatmulFlopsPerSecond}};
  return true;
}

/// Replaces the file atomically, so that a reader always finds a complete report.
bool writeReport(const std::string &path, const nlohmann::json &report, std::string &error) {
  std::string unfinished = path + ".new";
  std::FILE *file = std::fopen(unfinished.c_str(), "w");
  std::string text = toJsonText(report) + "\n";
  bool isGood = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  isGood = (!file || std::fclose(file) == 0) && isGood;
  isGood = isGood && std::rename(unfinished.c_str(), path.c_str()) == 0;
  return isGood || fail(error, "cannot write '", path, "'");
}

} // namespace

int main(int argc, char **argv) {
  Settings settings;
  if (!readSettings({argv, size_t(argc)}, settings)) {
    std::fputs(kUsage, stderr);
    return 1;
  }
  Cases cases;
  std::string error;
  const cuda::DriverTable *library = nullptr;
  nlohmann::json report = {{"cases", nlohmann::json::array()}, {"trying", ""}, {"fault", ""}};
  size_t passed = 0, failed = 0;
  auto wanted = [&](const Case &one) {
    return hasOneOf(settings.only, one.name) &&
           (settings.size.empty() || one.isLarge == (settings.size == "large"));
  };
  CheckListener listener;
  listener.begin = [&](const Case &one) {
    report["trying"] = one.name;
    std::string ignored;
    (void)(settings.json.empty() || writeReport(settings.json, report, ignored));
  };
  listener.end = [&](const Verdict &verdict) {
    print(verdict);
    std::fflush(stdout);
    ++(verdict.fault.empty() ? passed : failed);
    report["cases"].push_back(toJson(verdict));
    report["trying"] = "";
  };
  bool isGood = readCases(settings.folder, cases, error) && (library = cuda::loadLibrary(error)) &&
                (!settings.ceilings || runCeilings(*library, cases, report, error));
  if (isGood) {
    CheckSettings check = {library, std::max<int64_t>(1, std::thread::hardware_concurrency()),
                           settings.repeats, uint64_t(settings.skipped)};
    isGood = checkCases(cases, check, wanted, listener, error);
  }
  report["fault"] = error;
  isGood = (settings.json.empty() || writeReport(settings.json, report, error)) && isGood;
  if (!error.empty()) {
    std::fprintf(stderr, "error: %s\n", error.c_str());
  }
  std::printf("%zu passed, %zu failed\n", passed, failed);
  return isGood && failed == 0 && (passed > 0 || settings.ceilings) ? 0 : 1;
}
