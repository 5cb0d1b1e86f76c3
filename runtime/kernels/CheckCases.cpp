//===- CheckCases.cpp - runs kernels on a device and checks the results -----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/CheckCases.h"

#include "backends/cuda/CudaExecutor.h"
#include "kernels/LoneRank.h"
#include "kernels/Parts.h"
#include "support/Elements.h"
#include "support/Text.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>

using namespace weft::rt;
using namespace weft::rt::cuda;
using namespace weft::rt::kernels;

namespace {

/// The bytes of the guard behind each operand, a buffer of its own that no kernel may write.
constexpr uint64_t kGuardBytes = 256;
constexpr char kGuard = '\xFF';
/// The number of copies of a large case that is timed, each with operands of its own: together they
/// exceed a device's caches.
constexpr size_t kPlaces = 4;

/// The operands of one case, on the host.
using Operands = std::vector<Elements>;

/// Runs all of a kernel on the host.
void runOnHost(const KernelCode &code, const Case &one, Operands &operands, int64_t threads) {
  std::vector<void *> addresses;
  for (Elements &operand : operands) {
    addresses.push_back(operand.data());
  }
  for (int64_t phase = 0; phase < code.phaseCount; ++phase) {
    inParts(uint64_t(code.iterations[phase]), threads, [&](size_t, uint64_t begin, uint64_t end) {
      code.function(addresses.data(), one.immediates.data(), one.coordinates.data(), phase,
                    int64_t(begin), int64_t(end));
    });
  }
}

/// Makes a program whose step has an instruction for each case, in order. Buffer 2 i is an operand,
/// and buffer 2 i + 1 its guard. Sets `code` to the code of its kernels.
Program makeProgram(const Cases &all, std::span<const Case *const> cases,
                    std::vector<KernelCode> &code) {
  Program program;
  std::map<uint32_t, uint32_t> numbers;
  for (size_t axis = 0; axis < cases[0]->coordinates.size(); ++axis) {
    program.mesh.push_back({"axis", cases[0]->coordinates[axis] + 1});
  }
  auto add = [&](uint64_t bytes, ElementType type) {
    program.buffers.push_back({bytes, program.arenaBytes, BufferClass::Activation, true, type});
    program.arenaBytes += (bytes + kGuardBytes - 1) / kGuardBytes * kGuardBytes;
  };
  for (const Case *one : cases) {
    Instruction instruction;
    auto [number, isNew] = numbers.emplace(one->kernel, uint32_t(code.size()));
    if (isNew) {
      program.kernels.push_back({all.kernels[one->kernel]});
      code.push_back(all.code[one->kernel]);
    }
    instruction.target = number->second;
    instruction.immediates.assign(one->immediates.begin(), one->immediates.end());
    for (const CaseBuffer &buffer : one->buffers) {
      instruction.operands.push_back({uint32_t(program.buffers.size()), buffer.access});
      add(buffer.bytes(), buffer.type);
      add(kGuardBytes, ElementType::F32);
    }
    program.stepBody().push_back(std::move(instruction));
  }
  program.labels = {""};
  return program;
}

bool isSame(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// Elements of an operand, from three computations.
struct Compared {
  const CaseBuffer &buffer;
  const char *device, *host, *reference;

  double got(uint64_t i) const { return elementAt(buffer.type, device, i); }
  double hosts(uint64_t i) const { return elementAt(buffer.type, host, i); }
  double expected(uint64_t i) const { return elementAt(buffer.referenceType, reference, i); }
};

/// The largest allowed deviation, divided by the largest element, however large the host's is.
constexpr double kMost = 1e-2;

/// Returns the relative distance between adjacent numbers of `type`: a sum that differs in its last
/// bit may be rounded to the next one.
double spacing(ElementType type) {
  switch (type) {
  case ElementType::BF16:
    return 0x1p-7;
  case ElementType::F16:
    return 0x1p-10;
  case ElementType::F8E4M3:
    return 0x1p-3;
  case ElementType::F8E5M2:
    return 0x1p-2;
  default:
    return 0;
  }
}

/// The greatest finite numbers of some elements: what is expected, and the host's deviation.
struct Extent {
  double greatest = 1e-30, hostsFurthest = 0;
};

Extent extentOf(const Compared &sides, int64_t threads) {
  uint64_t count = sides.buffer.count;
  std::vector<Extent> extents(static_cast<size_t>(threads));
  inParts(count, threads, [&](size_t part, uint64_t begin, uint64_t end) {
    Extent own;
    for (uint64_t i = begin; i < end; ++i) {
      double expected = sides.expected(i), away = std::abs(sides.hosts(i) - expected);
      own.greatest =
          std::isfinite(expected) ? std::max(own.greatest, std::abs(expected)) : own.greatest;
      own.hostsFurthest =
          std::isfinite(away) ? std::max(own.hostsFurthest, away) : own.hostsFurthest;
    }
    extents[part] = own;
  });
  Extent whole;
  for (const Extent &own : extents) {
    whole.greatest = std::max(whole.greatest, own.greatest);
    whole.hostsFurthest = std::max(whole.hostsFurthest, own.hostsFurthest);
  }
  return whole;
}

/// Some elements' largest deviation up to the first that deviates too much, if one does.
struct Deviation {
  double furthest = 0;
  std::optional<uint64_t> fault;
};

/// A device may deviate from float64 four times as much as the host, plus a few roundings of the
/// type.
double allowedAt(const Compared &sides, const Extent &extent, uint64_t i) {
  ElementType type = sides.buffer.type;
  double expected = sides.expected(i), rounding = type == ElementType::F64 ? 1e-12 : 4e-6;
  double allowed = !isFloat(type) ? 0
                                  : std::min(4 * extent.hostsFurthest, kMost * extent.greatest) +
                                        rounding * extent.greatest;
  return allowed + (std::isfinite(expected) ? spacing(type) * std::abs(expected) : 0);
}

Deviation deviationOf(const Compared &sides, const Extent &extent, uint64_t begin, uint64_t end) {
  Deviation own;
  for (uint64_t i = begin; i < end && !own.fault; ++i) {
    double got = sides.got(i), expected = sides.expected(i);
    // Numbers that are not finite, perhaps only in this type, must be as on the host.
    bool isFinite = std::isfinite(got) && std::isfinite(expected);
    bool isRight = isSame(got, expected) || (!isFinite && isSame(got, sides.hosts(i)));
    double away = isRight ? 0 : std::abs(got - expected);
    if (!(away <= allowedAt(sides, extent, i))) {
      own.fault = i;
    }
    own.furthest = std::max(own.furthest, away);
  }
  return own;
}

/// Sets the fault to the first element that deviates too much.
void compare(size_t operand, const Compared &sides, int64_t threads, Verdict &verdict) {
  threads = threadsFor(sides.buffer.count, threads);
  Extent extent = extentOf(sides, threads);
  std::vector<Deviation> deviations(static_cast<size_t>(threads));
  inParts(sides.buffer.count, threads, [&](size_t part, uint64_t begin, uint64_t end) {
    deviations[part] = deviationOf(sides, extent, begin, end);
  });
  for (const Deviation &own : deviations) {
    verdict.error = std::max(verdict.error, own.furthest / extent.greatest);
    if (own.fault) {
      verdict.fault = concat("operand ", operand, " element ", *own.fault, " is ",
                             sides.got(*own.fault), ", expected ", sides.expected(*own.fault),
                             " to within ", allowedAt(sides, extent, *own.fault));
      break;
    }
  }
  verdict.hostError = std::max(verdict.hostError, extent.hostsFurthest / extent.greatest);
}

/// The cases that run in one program.
class Round {
public:
  Round(const Cases &all, std::span<const Case *const> cases, const CheckSettings &settings)
      : all(all), cases(cases), settings(settings), program(makeProgram(all, cases, code)) {}

  Status run(const CheckListener &listener) {
    if (settings.library->standFor) {
      settings.library->standFor(&program, 1, code.data());
    }
    LoneRank rank(program.rankCount() - 1);
    CudaExecutor executor(program, code.data(), rank.rank(), *settings.library, 0, all.images);
    const char *failing = "";
    if (executor.prepare(rank, rank)) {
      for (size_t i = 0, buffer = 0; i < judged() && !rank.stopped(); ++i) {
        listener.begin(*cases[i]);
        Verdict verdict = check(executor, i, uint32_t(buffer));
        if (rank.stopped()) {
          failing = cases[i]->name.c_str();
        } else {
          listener.end(verdict);
        }
        buffer += 2 * cases[i]->buffers.size();
      }
      executor.end();
    }
    return rank.failure().empty() ? Status()
                                  : makeError(failing, *failing ? ": " : "", rank.failure());
  }

private:
  /// Returns the number of cases to check: a large case has several copies, one of which is
  /// checked.
  size_t judged() const { return cases[0]->isLarge ? 1 : cases.size(); }

  Verdict check(CudaExecutor &executor, size_t number, uint32_t first) {
    const Case &one = *cases[number];
    Operands before, after;
    for (size_t i = 0; i < one.buffers.size(); ++i) {
      before.push_back(makeOperand(one.buffers[i], all.data->bytes(), settings.threads));
      auto at = uint32_t(first + 2 * i);
      executor.write(at, 0, before[i]);
      executor.write(at + 1, 0, std::vector<char>(kGuardBytes, kGuard));
    }
    executor.runStepInstruction(number);
    Verdict verdict;
    verdict.name = one.name;
    verdict.isLarge = one.isLarge;
    for (size_t i = 0; i < one.buffers.size(); ++i) {
      auto at = uint32_t(first + 2 * i);
      {
        BufferView view = executor.view(at);
        after.emplace_back(view.bytes().begin(), view.bytes().end());
      }
      BufferView guard = executor.view(at + 1);
      if (std::any_of(guard.bytes().begin(), guard.bytes().end(),
                      [](char byte) { return byte != kGuard; })) {
        verdict.fault = concat("wrote past the end of operand ", i);
      }
    }
    judge(one, before, after, verdict);
    if (one.isLarge && settings.repeats > 0 && verdict.fault.empty()) {
      measure(executor, before, verdict);
    }
    return verdict;
  }

  void judge(const Case &one, const Operands &before, const Operands &after,
             Verdict &verdict) const {
    Operands host = before, reference;
    for (size_t i = 0; i < before.size(); ++i) {
      const CaseBuffer &buffer = one.buffers[i];
      reference.push_back(
          buffer.access == Access::Write
              ? Elements(buffer.count * sizeOf(buffer.referenceType))
              : converted(buffer.type, before[i], buffer.referenceType, settings.threads));
    }
    runOnHost(all.code[one.kernel], one, host, settings.threads);
    runOnHost(all.code[one.reference], one, reference, settings.threads);
    for (size_t i = 0; i < before.size() && verdict.fault.empty(); ++i) {
      if (one.buffers[i].access == Access::Read) {
        verdict.fault = after[i] == before[i] ? "" : concat("wrote to operand ", i);
      } else {
        compare(i, {one.buffers[i], after[i].data(), host[i].data(), reference[i].data()},
                settings.threads, verdict);
      }
    }
  }

  /// Measures by the host's clock, between two points at which the device is idle.
  void measure(CudaExecutor &executor, const Operands &operands, Verdict &verdict) const {
    for (size_t i = operands.size(); i < cases.size() * operands.size(); ++i) {
      executor.write(uint32_t(2 * i), 0, operands[i % operands.size()]);
    }
    auto timed = [&](int64_t runs) {
      auto start = std::chrono::steady_clock::now();
      for (int64_t i = 0; i < runs; ++i) {
        executor.runStepInstruction(size_t(i) % cases.size());
      }
      executor.view(0, 0, 1);
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    timed(int64_t(cases.size()));
    std::array<double, 3> seconds;
    for (double &one : seconds) {
      // Both include the time of waiting, so that the difference does not.
      double few = timed(settings.repeats), many = timed(3 * settings.repeats);
      one = std::max(many - few, 0.0) / double(2 * settings.repeats);
    }
    std::sort(seconds.begin(), seconds.end());
    verdict.seconds = seconds[1];
    for (const CaseBuffer &buffer : cases[0]->buffers) {
      verdict.bytes += double(buffer.bytes()) * (buffer.access == Access::ReadWrite ? 2 : 1);
    }
  }

  const Cases &all;
  const std::span<const Case *const> cases;
  const CheckSettings &settings;
  std::vector<KernelCode> code;
  const Program program;
};

} // namespace

Status weft::rt::kernels::checkCases(const Cases &cases, const CheckSettings &settings,
                                     const std::function<bool(const Case &)> &wanted,
                                     const CheckListener &listener) {
  // Small cases with the same coordinates run together, each large one alone.
  std::map<std::vector<int64_t>, std::vector<const Case *>> small;
  std::vector<std::vector<const Case *>> rounds, large;
  for (const Case &one : cases.cases) {
    if (wanted(one) && one.isLarge) {
      large.emplace_back(settings.repeats > 0 ? kPlaces : 1, &one);
    } else if (wanted(one)) {
      small[one.coordinates].push_back(&one);
    }
  }
  uint64_t left = settings.skipped;
  for (auto &[place, round] : small) {
    uint64_t skipped = std::min<uint64_t>(left, round.size());
    left -= skipped;
    round.erase(round.begin(), round.begin() + int64_t(skipped));
    if (!round.empty()) {
      rounds.push_back(std::move(round));
    }
  }
  large.erase(large.begin(), large.begin() + int64_t(std::min<uint64_t>(left, large.size())));
  rounds.insert(rounds.end(), large.begin(), large.end());
  for (const std::vector<const Case *> &round : rounds) {
    if (Status status = Round(cases, round, settings).run(listener); !status) {
      return status;
    }
  }
  return {};
}
