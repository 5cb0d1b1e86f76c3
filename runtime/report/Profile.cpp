//===- Profile.cpp - the profile of a run ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "report/Profile.h"

#include "support/Json.h"
#include "support/Text.h"
#include "weft-rt/Expansion.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <sys/resource.h>
#include <tuple>

using namespace weft::rt;

void ProfileTimes::add(const ProfileTimes &other) {
  calls += other.calls;
  flops += other.flops;
  bytes += other.bytes;
  predicted += other.predicted;
  busy += other.busy;
  waited += other.waited;
}

uint64_t weft::rt::peakProcessBytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return uint64_t(usage.ru_maxrss) * 1024;
}

/// Returns the label without layer numbers: "layers.*/attention.query (contract)".
static std::string placeOf(const std::string &label) {
  std::string place;
  for (char letter : label) {
    bool isDigit = letter >= '0' && letter <= '9';
    if (isDigit && place.ends_with('.')) {
      place += '*';
    } else if (!isDigit || !place.ends_with('*')) {
      place += letter;
    }
  }
  return place;
}

static ProfileEntry makeEntry(const Program &program, const Instruction &instruction) {
  ProfileEntry entry;
  entry.kind = classOf(program, instruction);
  entry.peakFlops = program.peakFlopsOf(instruction);
  entry.name = targetText(program, instruction);
  if (instruction.opcode == Opcode::Kernel) {
    entry.name = program.kernels[instruction.target].name;
    entry.detail = program.kernels[instruction.target].detail;
  }
  return entry;
}

static float medianOf(std::vector<float> &times) {
  if (times.empty()) {
    return 0;
  }
  auto middle = times.begin() + std::ptrdiff_t(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

Profile::Profile(const Program &program, std::span<const StepTimes> ranks, int64_t threads,
                 uint64_t peakBytes)
    : program(program), ranks(int64_t(ranks.size())), threads(threads), peakBytes(peakBytes),
      steps(ranks[0].steps()) {
  std::map<std::pair<std::string, std::string>, std::vector<size_t>> groups;
  Expansion step(program, program.step);
  size_t number = 0;
  for (const Instruction &instruction : step) {
    groups[{classOf(program, instruction), targetText(program, instruction)}].push_back(number++);
  }
  for (const auto &[key, indices] : groups) {
    ProfileEntry &entry = sorted.emplace_back(makeEntry(program, step[indices.front()]));
    std::vector<float> samples;
    entry.least = ranks[0].least(indices.front());
    for (size_t index : indices) {
      const Instruction &instruction = step[index];
      std::string place = placeOf(step.label(index));
      if (std::find(entry.places.begin(), entry.places.end(), place) == entry.places.end()) {
        entry.places.push_back(place);
      }
      const Cost &cost = instruction.cost;
      entry.times.add({1, cost.flops, cost.bytes, cost.seconds, 0, 0});
      for (const StepTimes &times : ranks) {
        double share = 1.0 / (double(steps) * double(ranks.size()));
        entry.times.busy += (times.seconds(index) - times.waited(index)) * share;
        entry.times.waited += times.waited(index) * share;
        entry.least = std::min(entry.least, times.least(index));
        times.appendSamples(index, samples);
      }
    }
    entry.median = double(medianOf(samples));
  }
  std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
    return std::tie(b.times.busy, a.name) < std::tie(a.times.busy, b.name);
  });
}

std::vector<Profile::Class> Profile::classes() const {
  std::map<std::string, ProfileTimes> byKind;
  for (const ProfileEntry &entry : sorted) {
    byKind[entry.kind].add(entry.times);
  }
  std::vector<Class> list;
  for (const auto &[kind, times] : byKind) {
    list.push_back({kind, times});
  }
  std::sort(list.begin(), list.end(), [](const Class &a, const Class &b) {
    return std::tie(b.times.busy, a.kind) < std::tie(a.times.busy, b.kind);
  });
  return list;
}

ProfileTimes Profile::whole() const {
  ProfileTimes sum;
  for (const ProfileEntry &entry : sorted) {
    sum.add(entry.times);
  }
  return sum;
}

/// Returns "1.234 ms", or "-" for an unknown time.
static std::string millisecondsText(double seconds) {
  char text[32] = "-";
  if (seconds > 0) {
    std::snprintf(text, sizeof text, "%.3f ms", seconds * 1e3);
  }
  return text;
}

static std::string lineOf(const std::string &name, const std::string &calls, double predicted,
                          double measured, double step) {
  char text[160];
  std::snprintf(text, sizeof text, "  %-20s %6s %14s %14s %5.1f %%\n", name.c_str(), calls.c_str(),
                millisecondsText(predicted).c_str(), millisecondsText(measured).c_str(),
                step > 0 ? 100 * measured / step : 0);
  return text;
}

std::string Profile::table(const std::string &note) const {
  ProfileTimes all = whole();
  double step = all.busy + all.waited;
  std::string text =
      concat("where a step's time went, mean of ", steps, steps == 1 ? " step" : " steps", " on ",
             ranks, ranks == 1 ? " rank" : " ranks", note, ":\n");
  char head[160];
  std::snprintf(head, sizeof head, "  %-20s %6s %14s %14s\n", "", "calls", "predicted", "measured");
  text += head;
  for (const Class &line : classes()) {
    text += lineOf(line.kind, std::to_string(line.times.calls), line.times.predicted,
                   line.times.busy, step);
  }
  if (ranks > 1) {
    text += lineOf("waiting for ranks", "", 0, all.waited, step);
  }
  text += lineOf("all", std::to_string(all.calls), all.predicted, step, step);
  return text + concat("memory: ", bytesText(program.arenaBytes * uint64_t(ranks)),
                       " of arenas, as predicted; the process had at most ", bytesText(peakBytes),
                       "\n");
}

static nlohmann::json toJson(const ProfileTimes &times) {
  return {{"calls", times.calls},  {"flops", times.flops},
          {"bytes", times.bytes},  {"predicted_seconds", times.predicted},
          {"seconds", times.busy}, {"waiting_seconds", times.waited}};
}

std::string Profile::json() const {
  nlohmann::json object = {{"version", kVersion},
                           {"model", program.modelName},
                           {"plan", program.planHash},
                           {"ranks", ranks},
                           {"threads_per_rank", threads},
                           {"steps", steps},
                           {"memory_bandwidth_per_rank", program.memoryBandwidthPerRank},
                           {"arena_bytes", program.arenaBytes},
                           {"peak_process_bytes", peakBytes},
                           {"step", toJson(whole())},
                           {"classes", nlohmann::json::array()},
                           {"entries", nlohmann::json::array()}};
  for (const Class &line : classes()) {
    nlohmann::json fields = toJson(line.times);
    fields["class"] = line.kind;
    object["classes"].push_back(std::move(fields));
  }
  for (const ProfileEntry &entry : sorted) {
    nlohmann::json fields = toJson(entry.times);
    fields["class"] = entry.kind;
    fields["name"] = entry.name;
    fields["detail"] = entry.detail;
    fields["places"] = entry.places;
    fields["peak_flops_per_rank"] = entry.peakFlops;
    fields["least_seconds_of_call"] = entry.least;
    fields["median_seconds_of_call"] = entry.median;
    object["entries"].push_back(std::move(fields));
  }
  return toJsonText(object) + "\n";
}
