//===- ScheduleReport.cpp - pictures of what stages do when ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/ScheduleReport.h"

#include "weft-rt/Expansion.h"
#include "weft/Dialect/Weft/IR/BackwardParts.h"
#include "weft/Driver/Report.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <algorithm>
#include <map>
#include <set>

using namespace weft;

namespace {

/// What an action does.
enum class Work : uint8_t {
  /// The first half of the computations on a micro-batch, as forward of each chunk.
  First,
  /// What comes after them on the same micro-batch, as backward.
  Again,
  /// Gradients of weights, where the schedule has them by themselves.
  Weights,
  /// Computation on the whole batch.
  Whole,
  /// A gather of parameters between work on micro-batches, as the schedule says.
  Gather,
  /// A reduction of gradients, in the same way.
  Reduce,
  /// Transfers alone.
  Transfer,
};

bool computes(const rt::Body &body) {
  return llvm::any_of(body.instructions, [](const rt::Instruction &one) {
    return one.opcode == rt::Opcode::Kernel || one.opcode == rt::Opcode::Matmul;
  });
}

/// Returns true if the body is of gradients of weights alone.
bool isOfWeights(const rt::Body &body) {
  return llvm::StringRef(body.name).contains(kWeightGradientsSuffix) &&
         !llvm::StringRef(body.name).contains(kInputGradientsSuffix);
}

/// Returns the bodies of the first half of the actions that compute on a micro-batch, but for
/// gradients of weights. All micro-batches have the same ones of these bodies in the same order.
std::set<uint32_t> findFirsts(const rt::Program &program) {
  std::vector<uint32_t> bodies;
  std::optional<int64_t> microBatch;
  for (const rt::Action &action : program.step) {
    bool isOfOther =
        !action.microBatch || microBatch.value_or(*action.microBatch) != *action.microBatch;
    const rt::Body &body = program.bodies[action.body];
    if (!isOfOther && computes(body) && !isOfWeights(body)) {
      microBatch = action.microBatch;
      bodies.push_back(action.body);
    }
  }
  return {bodies.begin(), bodies.begin() + ptrdiff_t((bodies.size() + 1) / 2)};
}

/// Returns the work of each action of the step.
std::vector<Work> worksOf(const rt::Program &program) {
  std::vector<Work> works;
  const std::set<uint32_t> firsts = findFirsts(program);
  for (const rt::Action &action : program.step) {
    const bool isAtAnEnd = &action == &program.step.front() || &action == &program.step.back();
    if (!action.microBatch) {
      works.push_back(!action.frames.empty() ? Work::Gather // Only what is gathered has frames.
                      : isAtAnEnd            ? Work::Whole
                                             : Work::Reduce);
    } else if (!computes(program.bodies[action.body])) {
      works.push_back(Work::Transfer);
    } else if (isOfWeights(program.bodies[action.body])) {
      works.push_back(Work::Weights);
    } else {
      works.push_back(firsts.contains(action.body) ? Work::First : Work::Again);
    }
  }
  return works;
}

/// Returns true if some stage does one of `works`.
bool hasAny(std::span<const rt::Program> programs, std::initializer_list<Work> works) {
  return llvm::any_of(programs, [&](const rt::Program &program) {
    return llvm::any_of(worksOf(program),
                        [&](Work work) { return llvm::is_contained(works, work); });
  });
}

/// 0 to 9 for the first work on a micro-batch, a to j for more, A to J for gradients of weights.
char letterOf(Work work, const rt::Action &action) {
  switch (work) {
  case Work::First:
    return char('0' + *action.microBatch % 10);
  case Work::Again:
    return char('a' + *action.microBatch % 10);
  case Work::Weights:
    return char('A' + *action.microBatch % 10);
  case Work::Whole:
    return 'o';
  case Work::Gather:
    return 'u';
  case Work::Reduce:
    return 'r';
  case Work::Transfer:
    return '-';
  }
  llvm_unreachable("unknown work");
}

constexpr char kWaiting = '.';

/// A row of characters, each of which stands for a part of the step.
class Row {
public:
  Row(size_t width, double seconds) : part(seconds / double(width)), weights(width) {}

  /// Counts `sign` times the time towards a letter.
  void add(schedule::TimeSpan time, char letter, double sign = 1) {
    auto first = size_t(time.begin / part);
    for (size_t i = first; i < weights.size() && double(i) * part < time.end; ++i) {
      double begin = std::max(time.begin, double(i) * part),
             end = std::min(time.end, double(i + 1) * part);
      weights[i][letter] += sign * std::max(0.0, end - begin);
    }
  }

  /// A part of which nothing is known is one in which all is done.
  std::string text() const {
    std::string text;
    for (const std::map<char, double> &own : weights) {
      auto most = std::max_element(
          own.begin(), own.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
      text += most != own.end() && most->second > 0 ? most->first : ' ';
    }
    return llvm::StringRef(text).rtrim().str();
  }

private:
  const double part;
  std::vector<std::map<char, double>> weights;
};

std::string rowOf(const rt::Program &program, const schedule::ClassCourse &course, size_t width,
                  double seconds) {
  Row row(width, seconds);
  std::vector<Work> works = worksOf(program);
  size_t wait = 0;
  for (size_t i = 0; i < course.actions.size(); ++i) {
    char letter = letterOf(works[i], program.step[i]);
    row.add(course.actions[i], letter);
    for (; wait < course.waits.size() && course.waits[wait].end <= course.actions[i].end; ++wait) {
      row.add(course.waits[wait], letter, -1);
      row.add(course.waits[wait], kWaiting);
    }
  }
  return row.text();
}

/// A fill for each work, as colors that most people can tell apart (Okabe and Ito, 2008).
const char *colorOf(Work work) {
  switch (work) {
  case Work::First:
    return "#56b4e9";
  case Work::Again:
    return "#e69f00";
  case Work::Weights:
    return "#f0e442";
  case Work::Whole:
    return "#999999";
  case Work::Gather:
    return "#cc79a7";
  case Work::Reduce:
    return "#0072b2";
  case Work::Transfer:
    return "#009e73";
  }
  llvm_unreachable("unknown work");
}

/// Sizes in the units of an SVG file.
constexpr double kWidth = 1600, kRow = 40, kBox = 32, kLabels = 160, kTop = 40;

class Drawing {
public:
  Drawing(llvm::raw_ostream &os, double seconds) : os(os), scale(kWidth / seconds) {}

  void addBox(schedule::TimeSpan time, size_t row, const char *color, const std::string &label,
              const std::string &title) {
    double x = kLabels + time.begin * scale, width = (time.end - time.begin) * scale,
           y = kTop + double(row) * kRow;
    os << llvm::format("<g><rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%.0f\" ", x, y,
                       width, kBox)
       << "fill=\"" << color << "\" stroke=\"white\" stroke-width=\"0.5\"/>";
    constexpr double kLetter = 9;
    if (!label.empty() && width > kLetter * double(label.size())) {
      addText(x + width / 2, row, "middle", label);
    }
    os << "<title>";
    llvm::printHTMLEscaped(title, os);
    os << llvm::format(": %.3f ms to %.3f ms", 1e3 * time.begin, 1e3 * time.end)
       << "</title></g>\n";
  }
  void addText(double x, size_t row, const char *anchor, const std::string &text) {
    os << llvm::format("<text x=\"%.2f\" y=\"%.0f\" text-anchor=\"%s\">", x,
                       kTop + double(row) * kRow + 0.65 * kBox, anchor);
    llvm::printHTMLEscaped(text, os);
    os << "</text>";
  }

private:
  llvm::raw_ostream &os;
  const double scale;
};

void drawClass(Drawing &drawing, const rt::Program &program, const schedule::ClassCourse &course) {
  const size_t row = program.rankClass;
  std::vector<Work> works = worksOf(program);
  for (size_t i = 0; i < course.actions.size(); ++i) {
    const rt::Action &action = program.step[i];
    std::string number = action.microBatch ? std::to_string(*action.microBatch) : "";
    drawing.addBox(course.actions[i], row, colorOf(works[i]), number,
                   rt::actionText(program, action));
  }
  for (const schedule::TimeSpan &wait : course.waits) {
    drawing.addBox(wait, row, "#f0f0f0", "", "waits for another stage");
  }
  drawing.addText(kLabels - 10, row, "end", ranksText(program));
}

} // namespace

ScheduleReport::ScheduleReport(std::span<const rt::Program> programs)
    : programs(programs), courses(schedule::predictCourse(programs, &rt::Program::step)),
      seconds(std::ranges::max_element(courses, {}, &schedule::ClassCourse::end)->end()) {}

void ScheduleReport::printHeader(llvm::raw_ostream &os) const {
  const rt::Program &program = programs.front();
  os << program.modelName << ", " << program.microBatches
     << (program.microBatches == 1 ? " micro-batch" : " micro-batches") << ", a step of "
     << secondsText(seconds) << " as predicted" << waitingText(programs, seconds);
}

void ScheduleReport::print(llvm::raw_ostream &os) const {
  constexpr size_t kColumns = 96;
  printHeader(os);
  os << "\na character stands for " << secondsText(seconds / kColumns)
     << "; 0 to 9: a micro-batch, by its last digit, on its way forward,\n"
        "a to j: the same again, on its way backward; -: a transfer; o: the whole batch; .: waits "
        "for others\n";
  if (hasAny(programs, {Work::Weights})) {
    os << "A to J: gradients of its weights, where a to j are those of inputs alone\n";
  }
  if (hasAny(programs, {Work::Gather, Work::Reduce})) {
    os << "u: a gather of parameters (UNSHARD); r: a reduction of gradients (REDUCE_GRAD)\n";
  }
  for (auto [program, course] : llvm::zip_equal(programs, courses)) {
    os << ranksText(program) << ", works for " << secondsText(course.busy()) << "\n  "
       << rowOf(program, course, kColumns, seconds) << '\n';
  }
}

void ScheduleReport::draw(llvm::raw_ostream &os) const {
  double height = kTop + double(programs.size()) * kRow + 10;
  os << llvm::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" ",
                     kLabels + kWidth + 10, height)
     << "font-family=\"sans-serif\" font-size=\"14\">\n<text x=\"10\" y=\"24\">";
  std::string header;
  llvm::raw_string_ostream text(header);
  printHeader(text);
  llvm::printHTMLEscaped(header, os);
  os << "</text>\n";
  Drawing drawing(os, seconds);
  for (auto [program, course] : llvm::zip_equal(programs, courses)) {
    drawClass(drawing, program, course);
  }
  os << "\n</svg>\n";
}
