//===- SimulatorGraphs.cpp - graphs of a simulated device -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A graph records the captured calls, and a launch repeats them on the graph's own streams. So the
// work of each launch is checked and ordered as if it had been enqueued call by call.
//
//===----------------------------------------------------------------------===//

#include "testing/SimulatorDevice.h"

#include <utility>

using namespace weft::rt;
using namespace weft::rt::cuda;

Device::Lane *Device::laneOf(Handle stream) {
  if (!capture) {
    return nullptr;
  }
  auto found = capture->lanes.find(stream);
  return found == capture->lanes.end() ? nullptr : &found->second;
}

Device::Lane &Device::addLane(Handle stream) {
  Lane added;
  added.lane = streams.add({.call = call, .last = {ordinals++, 0}, .isOfGraph = true});
  added.last.stream = capture->lanes.size();
  capture->graph.lanes.push_back(added.lane);
  return capture->lanes.emplace(stream, added).first->second;
}

bool Device::captures(Handle stream, std::function<void(Handle)> work) {
  Lane *lane = laneOf(stream);
  if (!lane) {
    return false;
  }
  settledStream(stream);
  ++lane->last.index;
  lane->clock.join(lane->last);
  capture->graph.commands.push_back([on = lane->lane, work = std::move(work)] { work(on); });
  return true;
}

void Device::recordCaptured(Event &event, Lane &lane) {
  event.capture = captureCount;
  event.captured = lane.clock;
  event.launched = std::make_shared<Clock>();
  capture->graph.commands.push_back(
      [this, on = lane.lane, launched = event.launched] { *launched = streams.find(on).clock; });
}

void Device::waitCaptured(Handle stream, const Event &event) {
  if (event.capture == 0) {
    misuse("a stream that is captured waits for an event from before");
  }
  if (!capture || event.capture != captureCount) {
    misuse("expected an event that was recorded anew, got one of a capture that has ended");
  }
  Lane *found = laneOf(stream);
  Lane &lane = found ? *found : addLane(stream);
  lane.clock.join(event.captured);
  capture->graph.commands.push_back([this, on = lane.lane, launched = event.launched] {
    streams.find(on).clock.join(*launched);
  });
}

void Device::beginCapture(Handle stream) {
  checkOpen("captured");
  settledStream(stream);
  capture.emplace();
  capture->origin = stream;
  capture->graph.call = call;
  ++captureCount;
  addLane(stream);
}

void Device::dropLanes(const Graph &graph) {
  for (Handle communicator : graph.communicators) {
    --links.find(communicator).graphs;
  }
  for (Handle lane : graph.lanes) {
    streams.remove(lane);
  }
}

void Device::dropCapture() {
  if (capture) {
    dropLanes(std::exchange(capture, std::nullopt)->graph);
  }
}

void Device::endCapture(Handle stream, Handle *graph) {
  if (!capture) {
    misuse("no capture was begun");
  }
  if (stream != capture->origin) {
    misuse("expected stream ", HandleParts::of(capture->origin).serial,
           ", on which the capture was begun, got stream ", HandleParts::of(stream).serial);
  }
  // The capture ends even if a check fails, as in CUDA.
  for (const auto &[captured, lane] : capture->lanes) {
    settledStream(captured);
  }
  Capture ended = *std::exchange(capture, std::nullopt);
  for (const auto &[captured, lane] : ended.lanes) {
    if (!ended.lanes.at(stream).clock.covers(lane.last)) {
      dropLanes(ended.graph);
      misuse("stream ", HandleParts::of(stream).serial,
             " does not wait for the last work of stream ", HandleParts::of(captured).serial,
             ", which has come into the capture");
    }
  }
  if (!graph) {
    dropLanes(ended.graph);
    return;
  }
  *graph = graphs.add(std::move(ended.graph));
}

void Device::launchGraph(Handle stream, Handle graph) {
  Graph &launched = graphs.find(graph);
  Stream &on = settledStream(stream);
  if (laneOf(stream)) {
    misuse("a graph may not be launched into another");
  }
  for (Handle communicator : launched.communicators) {
    readyLink(communicator);
  }
  for (Handle lane : launched.lanes) {
    Clock &clock = streams.find(lane).clock;
    clock.join(on.clock);
    clock.join(launched.last);
  }
  for (const auto &command : launched.commands) {
    command();
  }
  launched.last = streams.find(launched.lanes[0]).clock;
  streams.find(stream).clock.join(launched.last);
}

void Device::freeGraph(Handle graph) {
  checkOpen("freed");
  const Graph &freed = graphs.find(graph);
  checkIdle("the graph", freed.last);
  dropLanes(freed);
  graphs.remove(graph);
}
