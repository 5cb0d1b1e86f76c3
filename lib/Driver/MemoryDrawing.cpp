//===- MemoryDrawing.cpp - a picture of memory over a step ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/MemoryReport.h"

#include "report/MemoryReport.h"
#include "support/Text.h"
#include "weft-rt/Expansion.h"
#include "weft/Cost/PredictProgram.h"
#include "weft/Driver/Report.h"
#include "weft/Schedule/Timeline.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace weft;

namespace {

/// A layer of the picture: buffers of a class outside frames, or all that lies in frames.
struct Band {
  std::optional<rt::BufferClass> kind;
  const char *color;

  std::string name() const { return kind ? nameOf(*kind) : "in frames"; }
  uint64_t bytesOf(const rt::MemoryUse &use) const {
    return kind ? use.bytes[size_t(*kind)] - use.framed[size_t(*kind)] : use.totalFramed();
  }
};

/// From the bottom up: first what stays, with colors that most people can tell apart (Okabe and
/// Ito, 2008).
constexpr Band kBands[] = {
    {rt::BufferClass::Parameter, "#0072b2"},  {rt::BufferClass::Optimizer, "#56b4e9"},
    {rt::BufferClass::Input, "#000000"},      {rt::BufferClass::ParameterCopy, "#cc79a7"},
    {rt::BufferClass::Gradient, "#e69f00"},   {std::nullopt, "#009e73"},
    {rt::BufferClass::Activation, "#f0e442"}, {rt::BufferClass::Workspace, "#999999"}};

/// Sizes in the units of an SVG file. A column is the part of the width for which the picture shows
/// the instant with most bytes.
constexpr double kWidth = 1600, kColumn = 2, kLabels = 160, kTop = 76, kPanel = 200, kActions = 14,
                 kGap = 36;
constexpr size_t kColumns = size_t(kWidth / kColumn);

/// Returns when each instruction of a body begins, as a share of the body's time. Instructions are
/// issued in order, so none begins before an earlier one.
std::vector<double> sharesOf(const rt::Body &body) {
  const auto size = double(body.instructions.size());
  double all = schedule::predictSeconds(body.instructions), latest = 0;
  std::vector<double> shares;
  for (const schedule::TimeSpan &time : schedule::predictTimes(body.instructions)) {
    latest = std::max(latest, all > 0 ? time.begin / all : double(shares.size()) / size);
    shares.push_back(latest);
  }
  return shares;
}

/// The course of a class's step, by columns.
class Columns {
public:
  Columns(const rt::Program &program, const schedule::ClassCourse &times, double seconds)
      : program(program), times(times), seconds(seconds),
        course(rt::findMemoryCourse(program, program.step)),
        uses(kColumns, rt::persistentUse(program)) {
    for (const rt::Body &body : program.bodies) {
      shares.push_back(sharesOf(body));
    }
    for (size_t action = 0; action < program.step.size(); ++action) {
      addAction(action);
    }
  }

  const rt::MemoryUse &operator[](size_t column) const { return uses[column]; }

  /// Returns the time of an instant, in seconds.
  double timeOf(const rt::Instant &instant) const {
    const schedule::TimeSpan &time = times.actions[instant.action];
    const std::vector<double> &own = shares[program.step[instant.action].body];
    double share = instant.instruction < own.size() ? own[instant.instruction] : 1;
    return time.begin + share * (time.end - time.begin);
  }

private:
  size_t columnOf(double time) const {
    double share = seconds > 0 ? time / seconds : 0;
    return std::min(kColumns - 1, size_t(share * double(kColumns)));
  }

  void addAction(size_t action) {
    const rt::MemoryCourse::ActionUse &own = course.actions[action];
    const std::vector<rt::MemoryUse> &instants = course.profiles[own.profile].instants;
    for (size_t i = 0; i < instants.size(); ++i) {
      const uint64_t aligned = own.kept.aligned + instants[i].aligned;
      size_t last = columnOf(timeOf({action, i + 1}));
      for (size_t column = columnOf(timeOf({action, i})); column <= last; ++column) {
        if (aligned > uses[column].aligned) {
          uses[column] = course.at({action, i});
        }
      }
    }
  }

  const rt::Program &program;
  const schedule::ClassCourse &times;
  const double seconds;
  const rt::MemoryCourse course;
  std::vector<rt::MemoryUse> uses;
  /// Of each body.
  std::vector<std::vector<double>> shares;
};

/// Draws the panel of a class.
class Panel {
public:
  Panel(llvm::raw_ostream &os, const rt::Program &program, const schedule::ClassCourse &times,
        double seconds, uint64_t most)
      : os(os), program(program), times(times), seconds(seconds), columns(program, times, seconds),
        peak(rt::memoryPeak(program)),
        top(kTop + double(program.rankClass) * (kPanel + kActions + kGap)),
        scale(most > 0 ? kPanel / double(most) : 0) {}

  void draw() const {
    std::vector<uint64_t> below(kColumns, 0);
    for (const Band &band : kBands) {
      drawBand(band, below);
    }
    drawActions();
    drawArena();
    drawPeak();
    drawText(kLabels - 10, top + kPanel, "end", ranksText(program));
  }

private:
  double x(double time) const { return kLabels + (seconds > 0 ? time / seconds * kWidth : 0); }
  double y(uint64_t bytes) const { return top + kPanel - double(bytes) * scale; }

  void drawText(double x, double y, const char *anchor, const std::string &text) const {
    os << llvm::format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    llvm::printHTMLEscaped(text, os);
    os << "</text>\n";
  }
  void drawTitle(const std::string &title) const {
    os << "<title>";
    llvm::printHTMLEscaped(title, os);
    os << "</title>";
  }

  /// Writes the steps of a line along the columns, from left to right or back.
  void drawEdge(const std::vector<uint64_t> &heights, bool isBack) const {
    for (size_t i = 0; i < kColumns; ++i) {
      size_t column = isBack ? kColumns - 1 - i : i;
      bool isFirst = i == 0, isLast = i + 1 == kColumns;
      size_t before = isBack ? column + 1 : column - 1, after = isBack ? column - 1 : column + 1;
      double left = kLabels + double(column) * kColumn, right = left + kColumn;
      if (isFirst || heights[before] != heights[column]) {
        os << llvm::format(" %.0f,%.1f", isBack ? right : left, y(heights[column]));
      }
      if (isLast || heights[after] != heights[column]) {
        os << llvm::format(" %.0f,%.1f", isBack ? left : right, y(heights[column]));
      }
    }
  }

  /// Adds the band's bytes to `below`.
  void drawBand(const Band &band, std::vector<uint64_t> &below) const {
    std::vector<uint64_t> above = below;
    for (size_t column = 0; column < kColumns; ++column) {
      above[column] += band.bytesOf(columns[column]);
    }
    if (above != below) {
      os << "<g><polygon fill=\"" << band.color << "\" points=\"";
      drawEdge(above, /*isBack=*/false);
      drawEdge(below, /*isBack=*/true);
      os << "\"/>";
      drawTitle(band.name() + ", at the peak " + rt::bytesText(band.bytesOf(peak.use)));
      os << "</g>\n";
    }
    below = std::move(above);
  }

  void drawActions() const {
    for (size_t number = 0; number < program.step.size(); ++number) {
      const rt::Action &action = program.step[number];
      const schedule::TimeSpan &time = times.actions[number];
      os << llvm::format("<g><rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.0f\" ",
                         x(time.begin), top + kPanel + 2, x(time.end) - x(time.begin), kActions - 2)
         << "fill=\"#d0d0d0\" stroke=\"white\" stroke-width=\"0.5\"/>";
      drawTitle(rt::actionText(program, action));
      os << "</g>\n";
    }
  }

  void drawArena() const {
    double height = y(program.arenaBytes);
    os << llvm::format("<line x1=\"%.0f\" y1=\"%.1f\" x2=\"%.0f\" y2=\"%.1f\" ", kLabels, height,
                       kLabels + kWidth, height)
       << "stroke=\"black\" stroke-dasharray=\"6 4\"/>\n";
    drawText(kLabels - 10, height + 5, "end", "arena " + rt::bytesText(program.arenaBytes));
  }

  /// The mark has a place in the picture only if the peak is in the step.
  void drawPeak() const {
    std::string text = rt::bytesText(peak.use.total());
    if (peak.actions != &rt::Program::step || peak.section.empty()) {
      drawText(kLabels + kWidth, y(program.arenaBytes) - 6, "end",
               "peak " + text + " not in the step");
      return;
    }
    double at = x(columns.timeOf(peak.instant)), height = y(peak.use.total());
    os << llvm::format("<g><circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"#d55e00\"/>", at, height);
    drawTitle("peak: " + rt::actionText(program, program.step[peak.instant.action]) +
              ", instruction " + std::to_string(peak.instant.instruction));
    os << "</g>\n";
    bool isRight = at > kLabels + kWidth / 2;
    drawText(isRight ? at - 8 : at + 8, y(program.arenaBytes) - 6, isRight ? "end" : "start",
             "peak " + text);
  }

  llvm::raw_ostream &os;
  const rt::Program &program;
  const schedule::ClassCourse &times;
  const double seconds;
  const Columns columns;
  const rt::MemoryPeak peak;
  const double top, scale;
};

/// Draws the header, and a box and a name for each band in use.
void drawHeader(llvm::raw_ostream &os, std::span<const rt::Program> programs) {
  const rt::Program &first = programs.front();
  os << "<text x=\"10\" y=\"24\">";
  llvm::printHTMLEscaped(first.modelName, os);
  os << ", memory of each rank over a step of " << secondsText(cost::stepSeconds(programs))
     << " as predicted</text>\n";
  double x = kLabels;
  for (const Band &band : kBands) {
    os << llvm::format("<rect x=\"%.0f\" y=\"36\" width=\"12\" height=\"12\" fill=\"%s\"/>", x,
                       band.color)
       << llvm::format("<text x=\"%.0f\" y=\"47\">", x + 18) << band.name() << "</text>\n";
    x += 150;
  }
}

} // namespace

void weft::drawMemory(llvm::raw_ostream &os, std::span<const rt::Program> programs) {
  double height = kTop + double(programs.size()) * (kPanel + kActions + kGap);
  os << llvm::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" ",
                     kLabels + kWidth + 10, height)
     << "font-family=\"sans-serif\" font-size=\"14\">\n";
  drawHeader(os, programs);
  uint64_t most = 0;
  for (const rt::Program &program : programs) {
    most = std::max(most, program.arenaBytes);
  }
  const double seconds = cost::stepSeconds(programs);
  for (auto [program, times] :
       llvm::zip_equal(programs, schedule::predictCourse(programs, &rt::Program::step))) {
    Panel(os, program, times, seconds, most).draw();
  }
  os << "</svg>\n";
}
