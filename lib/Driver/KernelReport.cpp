//===- KernelReport.cpp - table of kernels and their times ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/KernelReport.h"

#include "weft/Driver/CommandLine.h"

#include "report/Profile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <cmath>
#include <tuple>

using namespace weft;

namespace {

/// Numbers of a profile are finite and not negative; reports divide by some of them.
bool readAmount(const llvm::json::Object &object, llvm::StringRef name, double &number) {
  std::optional<double> value = object.getNumber(name);
  number = value.value_or(0);
  return value && std::isfinite(number) && number >= 0;
}

bool readCount(const llvm::json::Object &object, llvm::StringRef name, int64_t &number) {
  std::optional<int64_t> value = object.getInteger(name);
  number = value.value_or(0);
  return value && number >= 0;
}

bool readText(const llvm::json::Object &object, llvm::StringRef name, std::string &text) {
  std::optional<llvm::StringRef> value = object.getString(name);
  text = value.value_or("").str();
  return value.has_value();
}

bool readRow(const llvm::json::Value &value, KernelRow &row) {
  const llvm::json::Object *object = value.getAsObject();
  const llvm::json::Array *places = object ? object->getArray("places") : nullptr;
  if (!places || !readText(*object, "class", row.kind) || !readText(*object, "name", row.name) ||
      !readText(*object, "detail", row.detail) || !readCount(*object, "calls", row.calls) ||
      !readAmount(*object, "flops", row.flops) || !readAmount(*object, "bytes", row.bytes) ||
      !readAmount(*object, "peak_flops_per_rank", row.peakFlops) ||
      !readAmount(*object, "predicted_seconds", row.predicted) ||
      !readAmount(*object, "seconds", row.measured) ||
      !readAmount(*object, "waiting_seconds", row.waited) ||
      !readAmount(*object, "least_seconds_of_call", row.least) ||
      !readAmount(*object, "median_seconds_of_call", row.median)) {
    return false;
  }
  for (const llvm::json::Value &place : *places) {
    std::optional<llvm::StringRef> text = place.getAsString();
    if (!text) {
      return false;
    }
    row.places.push_back(text->str());
  }
  return true;
}

bool readReport(const llvm::json::Object &object, KernelReport &report) {
  double bandwidth = 0;
  const llvm::json::Object *step = object.getObject("step");
  const llvm::json::Array *entries = object.getArray("entries");
  if (!step || !entries || !readText(object, "plan", report.planHash) ||
      !readCount(object, "ranks", report.ranks) ||
      !readCount(object, "threads_per_rank", report.threads) ||
      !readCount(object, "steps", report.steps) ||
      !readAmount(object, "memory_bandwidth_per_rank", bandwidth) ||
      !readAmount(*step, "seconds", report.stepSeconds) ||
      !readAmount(*step, "waiting_seconds", report.waitingSeconds) ||
      !readAmount(*step, "predicted_seconds", report.predictedSeconds)) {
    return false;
  }
  report.stepSeconds += report.waitingSeconds;
  for (const llvm::json::Value &entry : *entries) {
    KernelRow &row = report.rows.emplace_back();
    if (!readRow(entry, row)) {
      return false;
    }
    if (row.measured > 0) {
      row.shareOfFlops = row.peakFlops > 0 ? row.flops / (row.measured * row.peakFlops) : 0;
      row.shareOfBandwidth = bandwidth > 0 ? row.bytes / (row.measured * bandwidth) : 0;
    }
  }
  return true;
}

/// "1.234", or "-" for an unknown time.
std::string milliseconds(double seconds) {
  return seconds > 0 ? llvm::formatv("{0:f3}", seconds * 1e3).str() : "-";
}

} // namespace

llvm::Expected<KernelReports> weft::readProfile(llvm::StringRef text, llvm::StringRef path) {
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value) {
    return makeError("'" + path + "' is no profile: " + llvm::toString(value.takeError()));
  }
  // A list if there are several classes.
  const llvm::json::Array *list = value->getAsArray();
  KernelReports reports;
  for (const llvm::json::Value &each :
       list ? llvm::ArrayRef(list->data(), list->size()) : llvm::ArrayRef(*value)) {
    const llvm::json::Object *object = each.getAsObject();
    std::optional<int64_t> version = object ? object->getInteger("version") : std::nullopt;
    if (version && *version != rt::Profile::kVersion) {
      return makeError("'" + path + "' is a profile of version " + llvm::Twine(*version) +
                       ", expected version " + llvm::Twine(rt::Profile::kVersion) +
                       ", as a program of this compiler writes by --profile");
    }
    if (!version || !readReport(*object, reports.emplace_back())) {
      reports.clear();
      break;
    }
    llvm::sort(reports.back().rows, [](const KernelRow &a, const KernelRow &b) {
      return std::tie(b.measured, a.name) < std::tie(a.measured, b.name);
    });
  }
  if (reports.empty()) {
    return makeError("'" + path +
                     "' is no profile, expected a file that a program wrote by --profile");
  }
  return reports;
}

static void printTable(llvm::raw_ostream &os, const KernelReport &report) {
  os << "times of a step of one rank, mean of " << report.steps << " steps on " << report.ranks
     << " ranks of " << report.threads << " threads\n"
     << "      ms  % step  calls    GFLOP       MB  % peak of   predicted ms  kernel\n";
  for (const KernelRow &row : report.rows) {
    double share = report.stepSeconds > 0 ? 100 * row.measured / report.stepSeconds : 0;
    os << llvm::format("%8s  %6.1f %6lld %8.3f %8.2f  %6.1f %-5s %11s  ",
                       milliseconds(row.measured).c_str(), share, static_cast<long long>(row.calls),
                       row.flops / 1e9, row.bytes / 1e6, 100 * row.shareOfPeak(),
                       row.shareOfPeak() > 0 ? row.nearerPeak() : "-",
                       milliseconds(row.predicted).c_str())
       << row.name << '\n';
    constexpr size_t kPlaces = 4;
    llvm::ArrayRef<std::string> places(row.places);
    os << "            " << llvm::join(places.take_front(kPlaces), ", ");
    if (places.size() > kPlaces) {
      os << ", and " << places.size() - kPlaces << " more";
    }
    os << (row.detail.empty() ? "" : ": ") << row.detail << '\n';
  }
  os << llvm::format("%8s  waiting for other ranks\n", milliseconds(report.waitingSeconds).c_str())
     << llvm::format("%8s  all, predicted %s\n", milliseconds(report.stepSeconds).c_str(),
                     milliseconds(report.predictedSeconds).c_str());
}

void weft::printTable(llvm::raw_ostream &os, const KernelReports &reports) {
  for (size_t number = 0; number < reports.size(); ++number) {
    if (reports.size() > 1) {
      os << "rank class " << number << ": ";
    }
    ::printTable(os, reports[number]);
  }
}

static void printObject(llvm::json::OStream &json, const KernelReport &report) {
  json.object([&] {
    json.attribute("plan", report.planHash);
    json.attribute("ranks", report.ranks);
    json.attribute("threads_per_rank", report.threads);
    json.attribute("steps", report.steps);
    json.attribute("step_seconds", report.stepSeconds);
    json.attribute("waiting_seconds", report.waitingSeconds);
    json.attribute("predicted_seconds", report.predictedSeconds);
    json.attributeArray("kernels", [&] {
      for (const KernelRow &row : report.rows) {
        json.object([&] {
          json.attribute("class", row.kind);
          json.attribute("name", row.name);
          json.attribute("detail", row.detail);
          json.attributeArray("places", [&] {
            for (const std::string &place : row.places) {
              json.value(place);
            }
          });
          json.attribute("calls", row.calls);
          json.attribute("flops", row.flops);
          json.attribute("bytes", row.bytes);
          json.attribute("seconds", row.measured);
          json.attribute("waiting_seconds", row.waited);
          json.attribute("least_seconds_of_call", row.least);
          json.attribute("median_seconds_of_call", row.median);
          json.attribute("predicted_seconds", row.predicted);
          json.attribute("share_of_peak_flops", row.shareOfFlops);
          json.attribute("share_of_bandwidth", row.shareOfBandwidth);
        });
      }
    });
  });
}

void weft::printJson(llvm::raw_ostream &os, const KernelReports &reports) {
  llvm::json::OStream json(os, /*IndentSize=*/2);
  if (reports.size() == 1) {
    printObject(json, reports.front());
  } else {
    json.array([&] {
      for (const KernelReport &report : reports) {
        printObject(json, report);
      }
    });
  }
  os << '\n';
}
