//===- SimulatorCommunication.cpp - communicators of a simulated device ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "testing/SimulatorDevice.h"

#include <algorithm>
#include <cstring>
#include <utility>

using namespace weft::rt;
using namespace weft::rt::cuda;

/// Finds a communicator; fails unless it is known to be ready.
Device::Link &Device::readyLink(Handle communicator) {
  Link &link = links.find(communicator);
  if (!link.isReady) {
    misuse("communicator ", HandleParts::of(communicator).serial, " is not known to be ready");
  }
  if (link.isEnded) {
    misuse("communicator ", HandleParts::of(communicator).serial, " has ended");
  }
  return link;
}

void Device::begin(Link &link, std::shared_ptr<Round> round) {
  link.round = std::move(round);
  link.isReady = false;
  link.denials = 0;
}

void Device::join(const WorldId *id, int64_t ranks, int64_t rank, Handle *communicator) {
  checkOpen("joined");
  if (ranks < 1 || rank < 0 || rank >= ranks) {
    misuse("expected a rank from 0 to before ", ranks, ", got ", rank);
  }
  Link made;
  made.call = call;
  made.clique = world.join(*id, size_t(ranks), size_t(rank), *this);
  made.rank = size_t(rank);
  made.round = world.come(*made.clique, made.rank, "a world");
  *communicator = links.add(std::move(made));
}

void Device::split(Handle communicator, int64_t color, int64_t key, Handle *made) {
  checkOpen("split");
  Link &link = readyLink(communicator);
  if (color < 0) {
    misuse("expected a color of 0 or more, got ", color);
  }
  begin(link, world.split(*link.clique, link.rank, color, key));
  Link child;
  child.call = call;
  child.round = link.round;
  child.parent = communicator;
  child.color = color;
  *made = links.add(std::move(child));
}

/// Returns true if the communicator exists: one that was split off does once its parent is ready.
bool Device::isBorn(Link &link) {
  if (link.clique) {
    return true;
  }
  auto parent = links.items.find(HandleParts::of(link.parent).serial);
  if (link.round->missing > 0 || (parent != links.items.end() && !parent->second.isReady)) {
    return false;
  }
  link.clique = link.round->made.at(link.color);
  const auto &members = link.clique->members;
  link.rank = size_t(std::find(members.begin(), members.end(), this) - members.begin());
  return true;
}

void Device::ready(Handle communicator, bool *isReady) {
  *isReady = false;
  Link &link = links.find(communicator);
  if (group) {
    misuse("a group is not ended");
  }
  if (!isBorn(link) || (link.round && link.round->missing > 0)) {
    return;
  }
  if (!link.isReady && link.denials++ < dice.roll(3)) {
    return;
  }
  link.isReady = *isReady = true;
  for (auto &[serial, stream] : streams.items) {
    stream.unsettled = stream.unsettled == communicator ? 0 : stream.unsettled;
  }
}

void Device::end(Handle communicator) {
  checkOpen("ended");
  Link &link = readyLink(communicator);
  checkIdle("the communicator", link.uses);
  if (link.registrations > 0) {
    misuse("communicator ", HandleParts::of(communicator).serial, " still has ", link.registrations,
           " registrations");
  }
  if (link.graphs > 0) {
    misuse("communicator ", HandleParts::of(communicator).serial, " is still part of ", link.graphs,
           " graphs");
  }
  begin(link, world.come(*link.clique, link.rank, "an end"));
  link.isEnded = true;
}

void Device::freeCommunicator(Handle communicator) {
  checkOpen("freed");
  const Link &link = links.find(communicator);
  if (!link.isEnded || !link.isReady) {
    misuse("expected a communicator that has ended and is known to be ready, got communicator ",
           HandleParts::of(communicator).serial);
  }
  links.remove(communicator);
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

void Device::beginGroup() {
  if (group) {
    misuse("a group is not ended");
  }
  group.emplace();
}

void Device::endGroup() {
  if (!group) {
    misuse("no group was begun");
  }
  Group ended = *std::exchange(group, std::nullopt);
  if (!ended.exchanges.empty()) {
    issue(ended);
  }
}

void Device::add(Handle stream, Handle communicator, const Exchange &exchange) {
  const Link &link = readyLink(communicator);
  if (exchange.count == 0) {
    misuse("expected at least 1 element, got 0");
  }
  if (exchange.isPair() &&
      (exchange.peer < 0 || size_t(exchange.peer) >= link.clique->members.size())) {
    misuse("expected a rank from 0 to before ", link.clique->members.size(), ", got ",
           exchange.peer);
  }
  if (!group) {
    issue({stream, communicator, {exchange}});
    return;
  }
  if (!group->exchanges.empty() &&
      (group->stream != stream || group->communicator != communicator)) {
    misuse("expected all of a group on one communicator and one stream");
  }
  group->stream = stream;
  group->communicator = communicator;
  group->exchanges.push_back(exchange);
}

std::vector<Touch> Device::touchesOf(const Exchange &exchange, size_t ranks) {
  uint64_t read = exchange.readBytes(ranks), written = exchange.writtenBytes(ranks);
  std::vector<Touch> touches;
  if (read > 0) {
    Touch operand = touchDevice(exchange.from, read, Access::Read, "the operand");
    checkAlignment(operand, sizeOf(exchange.type));
    checkWritten(operand);
    touches.push_back(operand);
  }
  if (exchange.kind == Exchange::Kind::AllReduce && exchange.from == exchange.to) {
    touches.back().access = Access::ReadWrite;
  } else if (written > 0) {
    touches.push_back(touchDevice(exchange.to, written, Access::Write, "the result"));
    checkAlignment(touches.back(), sizeOf(exchange.type));
  }
  return touches;
}

/// Merges adjacent ranges, since a group may have very many parts.
static std::vector<Touch> merge(std::vector<Touch> touches) {
  std::sort(touches.begin(), touches.end(), [](const Touch &a, const Touch &b) {
    return std::pair(a.access, a.begin) < std::pair(b.access, b.begin);
  });
  std::vector<Touch> merged;
  for (const Touch &touch : touches) {
    Touch *last = merged.empty() ? nullptr : &merged.back();
    if (!last || last->access != touch.access || touch.begin > last->end) {
      merged.push_back(touch);
      continue;
    }
    if (touch.writes() && touch.begin < last->end) {
      misuse("two results of a group share bytes");
    }
    last->end = std::max(last->end, touch.end);
  }
  return merged;
}

/// Bundles exchanges by rendezvous: all sends of a group to one peer are one rendezvous, all
/// receives from it another.
static std::vector<std::vector<Exchange>> bundle(const std::vector<Exchange> &exchanges) {
  std::vector<std::vector<Exchange>> bundles;
  std::map<std::pair<Exchange::Kind, int64_t>, size_t> places;
  for (const Exchange &exchange : exchanges) {
    auto [place, isNew] = places.try_emplace({exchange.kind, exchange.peer}, bundles.size());
    if (isNew || !exchange.isPair()) {
      bundles.push_back({exchange});
    } else {
      bundles[place->second].push_back(exchange);
    }
  }
  return bundles;
}

void Device::checkFirst(const Link &link, uint64_t serial, const std::string &what) const {
  if (isSealed && !link.issued.contains(what)) {
    misuse("communicator ", serial, " has done no ", what, " before device ", number,
           " was sealed, and would connect and allocate");
  }
}

std::string Device::unmet() const {
  std::string text;
  auto add = [&](const DeviceRendezvous &rendezvous) {
    for (const DeviceRendezvous::Part &part : rendezvous.parts) {
      if (part.device == this) {
        text += (text.empty() ? ": " : ", ") + textOf(part.exchanges[0]);
      }
    }
  };
  for (const auto &[serial, link] : links.items) {
    if (!link.clique) {
      continue;
    }
    for (const auto &[number, rendezvous] : link.clique->allRendezvous) {
      add(*rendezvous);
    }
    for (const auto &[ends, waiting] : link.clique->pairs) {
      std::ranges::for_each(waiting, [&](const auto &rendezvous) { add(*rendezvous); });
    }
  }
  return text;
}

void Device::checkOrderOfFirsts() const {
  for (const auto &[serial, child] : links.items) {
    auto parent = links.items.find(HandleParts::of(child.parent).serial);
    if (child.parent && parent != links.items.end() && child.firstCall > 0 &&
        child.firstCall < parent->second.firstCall) {
      misuse("communicator ", parent->first, " came after ", serial,
             ", which was split off it and shares its buffers");
    }
  }
}

void Device::issue(const Group &issued) {
  Link &link = readyLink(issued.communicator);
  checkFirst(link, HandleParts::of(issued.communicator).serial, textOf(issued.exchanges[0]));
  bool isCaptured = captures(issued.stream, [this, issued](Handle on) {
    Group own = issued;
    own.stream = on;
    for (Exchange &exchange : own.exchanges) {
      exchange.isOfGraph = true;
    }
    enqueueGroup(own);
  });
  if (isCaptured && capture->graph.communicators.insert(issued.communicator).second) {
    ++link.graphs;
  }
  if (!isCaptured) {
    enqueueGroup(issued);
  }
  link.isReady = false;
  link.denials = 0;
  streams.find(issued.stream).unsettled = issued.communicator;
}

void Device::enqueueGroup(const Group &issued) {
  Link &link = links.find(issued.communicator);
  std::string what = textOf(issued.exchanges[0]);
  std::vector<Touch> touches;
  for (const Exchange &exchange : issued.exchanges) {
    auto added = touchesOf(exchange, link.clique->members.size());
    touches.insert(touches.end(), added.begin(), added.end());
  }
  touches = merge(std::move(touches));
  checkTouches(touches);
  world.checkOrder(*link.clique, link.rank, issued.exchanges);
  std::vector<std::shared_ptr<DeviceRendezvous>> allRendezvous;
  for (const std::vector<Exchange> &exchanges : bundle(issued.exchanges)) {
    allRendezvous.push_back(world.meet(*link.clique, link.rank, exchanges));
  }
  auto run = [this, allRendezvous] {
    for (const auto &rendezvous : allRendezvous) {
      if (settings.isIdle) {
        rendezvous->isHeld = true;
      } else if (!isGivenUp) {
        rendezvous->hold();
      }
    }
  };
  auto isMet = [this, allRendezvous] {
    return isGivenUp ||
           std::all_of(allRendezvous.begin(), allRendezvous.end(), [](const auto &rendezvous) {
             return rendezvous->isHeld || rendezvous->isComplete();
           });
  };
  Place place = enqueue(issued.stream, what, touches, run, isMet);
  link.issued.insert(what);
  link.firstCall = link.firstCall > 0 ? link.firstCall : call;
  for (const auto &rendezvous : allRendezvous) {
    for (DeviceRendezvous::Part &part : rendezvous->parts) {
      if (part.device == this && part.place.index == 0) {
        part.place = place;
      }
    }
  }
  link.uses.join(place);
}

void Device::allReduce(Handle stream, Handle communicator, ReductionKind reduction,
                       ElementType type, Address from, Address to, uint64_t count) {
  add(stream, communicator, {Exchange::Kind::AllReduce, reduction, type, count, from, to});
}

void Device::allGather(Handle stream, Handle communicator, ElementType type, Address from,
                       Address to, uint64_t count) {
  add(stream, communicator, {Exchange::Kind::AllGather, ReductionKind::Sum, type, count, from, to});
}

void Device::reduceScatter(Handle stream, Handle communicator, ReductionKind reduction,
                           ElementType type, Address from, Address to, uint64_t count) {
  add(stream, communicator, {Exchange::Kind::ReduceScatter, reduction, type, count, from, to});
}

void Device::send(Handle stream, Handle communicator, ElementType type, Address from,
                  uint64_t count, int64_t peer) {
  add(stream, communicator, {Exchange::Kind::Send, ReductionKind::Sum, type, count, from, 0, peer});
}

void Device::receive(Handle stream, Handle communicator, ElementType type, Address to,
                     uint64_t count, int64_t peer) {
  add(stream, communicator,
      {Exchange::Kind::Receive, ReductionKind::Sum, type, count, 0, to, peer});
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void Device::allocateShared(uint64_t bytes, Address *address) {
  allocate(bytes, address);
  if (*address) {
    memory.at(*address).isShared = true;
  }
}

void Device::freeShared(Address address) {
  checkOpen("freed");
  Memory::Block &block = memory.at(address);
  if (!block.isShared) {
    misuse("expected memory of allocateShared, got other");
  }
  if (block.registrations > 0) {
    misuse("the allocation of ", block.bytes, " bytes is still registered");
  }
  checkIdle(concat("the allocation of ", block.bytes, " bytes"), block.uses);
  memory.free(address);
}

void Device::registerMemory(Handle communicator, Address at, uint64_t bytes, bool asWindow,
                            Handle *registered) {
  checkOpen("registered");
  Link &link = readyLink(communicator);
  Memory::Block &block = memory.holding(at, bytes);
  if (!block.isShared) {
    misuse("expected memory of allocateShared, got other");
  }
  if (asWindow) {
    begin(link, world.come(*link.clique, link.rank, concat("a window of ", bytes, " bytes")));
  }
  ++block.registrations;
  ++link.registrations;
  *registered = registrations.add({call, communicator, at, bytes, asWindow});
}

void Device::isRegistered(Handle registered, bool *is) {
  const Registration &asked = registrations.find(registered);
  readyLink(asked.communicator);
  *is = !asked.isWindow || settings.hasWindows;
}

void Device::unregister(Handle registered) {
  checkOpen("unregistered");
  const Registration &ended = registrations.find(registered);
  Link &link = readyLink(ended.communicator);
  checkIdle("the communicator", link.uses);
  --link.registrations;
  --memory.holding(ended.at, ended.bytes).registrations;
  registrations.remove(registered);
}
