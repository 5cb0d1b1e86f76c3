//===- CollectiveExchange.cpp - one collective by messages ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/CollectiveExchange.h"

#include "backends/CallText.h"
#include "backends/Reduce.h"
#include "backends/processes/CollectiveGreeting.h"
#include "support/Text.h"

#include <algorithm>
#include <cstring>

using namespace weft::rt;
using namespace weft::rt::mpi;

namespace {

/// Returns the address of a part. The buffer may be null if the part is empty.
template <typename Char> Char *placeOf(Char *buffer, const Exchange::Part &part) {
  return part.count == 0 ? buffer : buffer + part.offset;
}

int64_t clampCount(int64_t count, int64_t first, int64_t length) {
  return std::clamp<int64_t>(count - first, 0, length);
}

} // namespace

bool Post::check(TransportTable::Result result) const {
  return !result || detector.fail(concat("rank ", self, ": ", result));
}

CollectiveExchange::CollectiveExchange(const Post &post, size_t members) : post(post) {
  greetings.reset(new char[members * 2 * kGreetingBytes]);
  arrivals.reset(new char[kRoom]);
  departures.reset(new char[kRoom]);
  sources.resize(members);
  requests.reserve(members * 2);
  pendings.reserve(members * 2);
  doneIndices.resize(members * 2);
  doneBytes.resize(members * 2);
}

CollectiveExchange::~CollectiveExchange() {
  // Cancel all requests, since their memory may be freed now.
  for (uint64_t &request : requests) {
    if (request != post.library.idle) {
      post.library.cancel(&request);
    }
  }
}

std::vector<int64_t> CollectiveExchange::missing() const {
  std::vector<int64_t> ranks;
  for (size_t i = 0; i < requests.size(); ++i) {
    int64_t rank = issued.operation->group.ranks[pendings[i].member];
    bool isMissing = requests[i] != post.library.idle &&
                     (stage != Stage::Greeting || pendings[i].kind == Pending::Kind::Greeting);
    if (isMissing && !std::ranges::count(ranks, rank)) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

void CollectiveExchange::send(size_t member, const char *bytes, size_t count, bool isGreeting) {
  const Operation &operation = *issued.operation;
  int32_t tag = int32_t(2 * operation.group.number + !isGreeting);
  pendings.push_back({member, Pending::Kind::Send, count});
  requests.push_back(post.library.idle);
  ++open;
  post.check(post.library.send(post.world, bytes, count, operation.group.ranks[member], tag,
                               &requests.back()));
}

void CollectiveExchange::receive(size_t member, char *bytes, size_t count, Pending::Kind kind) {
  const Operation &operation = *issued.operation;
  int32_t tag = int32_t(2 * operation.group.number + (kind != Pending::Kind::Greeting));
  pendings.push_back({member, kind, count});
  requests.push_back(post.library.idle);
  ++open;
  post.check(post.library.receive(post.world, bytes, count, operation.group.ranks[member], tag,
                                  &requests.back()));
}

bool CollectiveExchange::advance() {
  if (open == 0) {
    endStage();
    return true;
  }
  size_t count = 0;
  if (!post.check(post.library.test(requests.data(), requests.size(), &count, doneIndices.data(),
                                    doneBytes.data())) ||
      count == 0) {
    return false;
  }
  open -= count;
  for (size_t i = 0; i < count; ++i) {
    const Pending &pending = pendings[doneIndices[i]];
    if (pending.kind == Pending::Kind::Greeting) {
      checkGreeting(pending.member, doneBytes[i]);
    } else if (pending.kind == Pending::Kind::Elements) {
      checkElements(pending, doneBytes[i]);
    }
  }
  return true;
}

bool CollectiveExchange::isInline() const {
  const Operation &operation = *issued.operation;
  static_assert(CollectiveGreeting::kMostHead + size_t(kFewBytes) <= kGreetingBytes);
  const Exchange &exchange = operation.exchanges.front();
  return exchange.longest() * int64_t(sizeOf(operation.collective.type)) <= kFewBytes;
}

void CollectiveExchange::begin(const Issued &next) {
  issued = next;
  const Operation &operation = *issued.operation;
  size_t bytes = sizeOf(operation.collective.type), members = operation.group.ranks.size();
  requests.clear();
  pendings.clear();
  open = 0;
  if (members == 1) {
    size_t all = bytes;
    for (int64_t size : operation.collective.shape) {
      all *= size_t(size);
    }
    if (issued.operand != issued.result && all > 0) {
      std::memcpy(issued.result, issued.operand, all);
    }
    stage = Stage::Over;
    return;
  }
  stage = Stage::Greeting;
  const Exchange &exchange = operation.exchanges.front();
  for (size_t member = 0; member < members; ++member) {
    if (member == operation.me) {
      continue;
    }
    receive(member, greetingFrom(member), kGreetingBytes, Pending::Kind::Greeting);
    const Exchange::Part &part = exchange.sends[member];
    size_t elementBytes = isInline() ? size_t(part.count) * bytes : 0;
    char *elements = CollectiveGreeting::encode(greetingTo(member), operation.fingerprint,
                                                operation.text, elementBytes);
    if (isInline()) {
      exchange.from.pack(placeOf(static_cast<const char *>(issued.operand), part), 0, part.count,
                         elements);
    }
    send(member, greetingTo(member), size_t(elements - greetingTo(member)) + elementBytes, true);
  }
}

/// Fails the run unless `member` has begun the same collective.
void CollectiveExchange::checkGreeting(size_t member, size_t bytes) {
  const Operation &operation = *issued.operation;
  int64_t rank = operation.group.ranks[member];
  std::optional<CollectiveGreeting> greeting =
      CollectiveGreeting::decode({greetingFrom(member), bytes});
  if (!greeting) {
    post.detector.fail(concat("rank ", rank, " has sent an invalid message to rank ", post.self,
                              " in ", operation.text));
    return;
  }
  if (greeting->fingerprint != operation.fingerprint) {
    std::string other(greeting->text);
    post.detector.fail(post.self < rank
                           ? differentCallsText(post.self, operation.text, rank, other)
                           : differentCallsText(rank, other, post.self, operation.text));
    return;
  }
  int64_t count = isInline() ? operation.exchanges.front().comes[member].count : 0;
  checkElements(
      {member, Pending::Kind::Elements, size_t(count) * sizeOf(operation.collective.type)},
      greeting->elements.size());
  sources[member] = greeting->elements.data();
}

void CollectiveExchange::checkElements(const Pending &pending, size_t bytes) {
  if (bytes != pending.bytes) {
    const Operation &operation = *issued.operation;
    post.detector.fail(concat("rank ", operation.group.ranks[pending.member], " has sent ", bytes,
                              " bytes to rank ", post.self, ", expected ", pending.bytes, ", in ",
                              operation.text));
  }
}

void CollectiveExchange::endStage() {
  const Operation &operation = *issued.operation;
  if (stage == Stage::Exchanging) {
    return endRound();
  }
  if (!isInline()) {
    return beginExchange(0);
  }
  // All elements came with the greetings.
  const Exchange &exchange = operation.exchanges.front();
  first = 0;
  bringOwn(exchange, exchange.longest());
  if (exchange.reduces) {
    reduce(exchange, exchange.comes[operation.me].count);
  } else {
    for (size_t member = 0; member < operation.group.ranks.size(); ++member) {
      const Exchange::Part &part = exchange.comes[member];
      if (member != operation.me) {
        exchange.to.unpack(sources[member], 0, part.count,
                           placeOf(static_cast<char *>(issued.result), part));
      }
    }
  }
  beginExchange(1);
}

void CollectiveExchange::beginExchange(size_t index) {
  exchangeIndex = index;
  first = 0;
  if (index == issued.operation->exchanges.size()) {
    stage = Stage::Over;
    return;
  }
  stage = Stage::Exchanging;
  beginRound();
}

int64_t CollectiveExchange::roundLength(const Exchange &exchange) const {
  const Operation &operation = *issued.operation;
  auto bytes = int64_t(sizeOf(operation.collective.type));
  auto members = int64_t(operation.group.ranks.size());
  return exchange.isDirect() ? int64_t(kMostBytes) / bytes
                             : std::max<int64_t>(int64_t(kRoom) / members / 64 * 64 / bytes, 1);
}

char *CollectiveExchange::arrivalFrom(size_t member) {
  return arrivals.get() + member * (kRoom / issued.operation->group.ranks.size() / 64 * 64);
}

void CollectiveExchange::beginRound() {
  const Operation &operation = *issued.operation;
  const Exchange &exchange = operation.exchanges[exchangeIndex];
  int64_t length = roundLength(exchange);
  size_t bytes = sizeOf(operation.collective.type);
  const char *from =
      static_cast<const char *>(exchange.sendsResult ? issued.result : issued.operand);
  char *to = static_cast<char *>(issued.result);
  requests.clear();
  pendings.clear();
  open = 0;
  for (size_t member = 0; member < operation.group.ranks.size(); ++member) {
    const Exchange::Part &comes = exchange.comes[member], &sends = exchange.sends[member];
    int64_t coming = clampCount(comes.count, first, length);
    int64_t sending = clampCount(sends.count, first, length);
    if (member == operation.me) {
      continue;
    }
    if (coming > 0) {
      bool inPlace = !exchange.reduces && exchange.to.isDense();
      char *target =
          inPlace ? to + comes.offset + exchange.to.offsetOf(first) : arrivalFrom(member);
      sources[member] = target;
      receive(member, target, size_t(coming) * bytes, Pending::Kind::Elements);
    }
    if (sending > 0) {
      const char *source = from + sends.offset + exchange.from.offsetOf(first);
      if (!exchange.from.isDense()) {
        char *packed = departures.get() + (arrivalFrom(member) - arrivals.get());
        exchange.from.pack(from + sends.offset, first, sending, packed);
        source = packed;
      }
      send(member, source, size_t(sending) * bytes, false);
    }
  }
}

void CollectiveExchange::endRound() {
  const Operation &operation = *issued.operation;
  const Exchange &exchange = operation.exchanges[exchangeIndex];
  int64_t length = roundLength(exchange);
  bringOwn(exchange, length);
  if (exchange.reduces) {
    reduce(exchange, clampCount(exchange.comes[operation.me].count, first, length));
  } else if (!exchange.to.isDense()) {
    for (size_t member = 0; member < operation.group.ranks.size(); ++member) {
      const Exchange::Part &part = exchange.comes[member];
      if (member != operation.me) {
        exchange.to.unpack(sources[member], first, clampCount(part.count, first, length),
                           placeOf(static_cast<char *>(issued.result), part));
      }
    }
  }
  first += length;
  if (first < exchange.longest()) {
    return beginRound();
  }
  beginExchange(exchangeIndex + 1);
}

/// Copies the member's own part: to the result, or to the buffers of the reduction.
void CollectiveExchange::bringOwn(const Exchange &exchange, int64_t length) {
  const Operation &operation = *issued.operation;
  const char *from =
      static_cast<const char *>(exchange.sendsResult ? issued.result : issued.operand);
  const Exchange::Part &sends = exchange.sends[operation.me], &comes = exchange.comes[operation.me];
  int64_t count = clampCount(comes.count, first, length);
  if (count == 0) {
    return; // There may be no address at all.
  }
  const char *part = from + sends.offset;
  if (exchange.from.isDense()) {
    sources[operation.me] = part + exchange.from.offsetOf(first);
  } else {
    exchange.from.pack(part, first, count, arrivalFrom(operation.me));
    sources[operation.me] = arrivalFrom(operation.me);
  }
  char *target = placeOf(static_cast<char *>(issued.result), comes);
  if (!exchange.reduces && part != target) {
    exchange.to.unpack(sources[operation.me], first, count, target);
  }
}

/// Reduces `count` elements of every member, from `first` on, into the result.
void CollectiveExchange::reduce(const Exchange &exchange, int64_t count) {
  const Operation &operation = *issued.operation;
  ElementType type = operation.collective.type;
  auto bytes = int64_t(sizeOf(type));
  int64_t chunk = kReducedBytes / int64_t(sizeOf(accumulatorOf(type)));
  alignas(64) char sum[kReducedBytes];
  if (count == 0) {
    return; // Then there may be no buffers.
  }
  char *target = static_cast<char *>(issued.result) + exchange.comes[operation.me].offset +
                 exchange.to.offsetOf(first);
  for (int64_t at = 0; at < count; at += chunk) {
    int64_t length = std::min(chunk, count - at);
    beginReduction(type, sum, sources[0] + at * bytes, length);
    for (size_t member = 1; member < operation.group.ranks.size(); ++member) {
      reduceInto(type, operation.collective.reduction, sum, sources[member] + at * bytes, length);
    }
    endReduction(type, target + at * bytes, sum, length);
  }
}
