//===- WindowLoops.cpp - loops over windows on images --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WindowLoops.h"

namespace weft::lower {

Num WindowLoops::leastReaching(Num distance, int64_t step, int64_t limit) {
  Num zero = code.index(0), most = code.index(limit);
  Num least = (distance + (step - 1)) / step; // Rounds up where `distance` is positive.
  least = code.select(distance <= zero, zero, least);
  return code.select(least < most, least, most);
}

Num WindowLoops::countUpTo(Num distance, int64_t step, int64_t limit) {
  Num zero = code.index(0), most = code.index(limit);
  Num count = distance / step + 1;
  count = code.select(distance < zero, zero, count);
  return code.select(count < most, count, most);
}

WindowLoops::Range WindowLoops::outputsInside(size_t dim, Num k) {
  const Window &window = windows[dim];
  bool isAlwaysInside =
      window.low == 0 &&
      (outputs[dim] - 1) * window.stride + (window.size - 1) * window.dilation < inputs[dim];
  if (isAlwaysInside) {
    return {code.index(0), code.index(outputs[dim])};
  }
  Num place = k * window.dilation - window.low; // Of output 0.
  return {leastReaching(-place, window.stride, outputs[dim]),
          countUpTo(code.index(inputs[dim] - 1) - place, window.stride, outputs[dim])};
}

WindowLoops::Range WindowLoops::windowInside(size_t dim, Num p) {
  const Window &window = windows[dim];
  Num place = p * window.stride - window.low; // Of the window's first.
  return {leastReaching(-place, window.dilation, window.size),
          countUpTo(code.index(inputs[dim] - 1) - place, window.dilation, window.size)};
}

Num WindowLoops::inputAt(size_t dim, Num p, Num k) {
  const Window &window = windows[dim];
  return p * window.stride + (k * window.dilation - window.low);
}

void WindowLoops::overWindow(llvm::function_ref<void(Places)> body) {
  code.nest(llvm::map_to_vector(windows, [](const Window &window) { return window.size; }), body);
}

void WindowLoops::overOutputs(Places k, llvm::function_ref<void(Places, Places)> body) {
  Nums p, x;
  auto build = [&](auto &self) -> void {
    size_t dim = p.size();
    if (dim == windows.size()) {
      body(p, x);
      return;
    }
    Range range = outputsInside(dim, k[dim]);
    code.loop(range.from, range.to, [&](Num i) {
      p.push_back(i);
      x.push_back(inputAt(dim, i, k[dim]));
      self(self);
      p.pop_back();
      x.pop_back();
    });
  };
  build(build);
}

Num WindowLoops::sumOverOutputs(Places k, Num start, llvm::function_ref<Num(Places, Places)> term) {
  Nums p, x;
  auto at = [&](Num i, llvm::function_ref<Num()> body) {
    size_t dim = p.size();
    p.push_back(i);
    x.push_back(inputAt(dim, i, k[dim]));
    Num value = body();
    p.pop_back();
    x.pop_back();
    return value;
  };
  auto build = [&](auto &self, Num carried) -> Num {
    size_t dim = p.size();
    Range range = outputsInside(dim, k[dim]);
    if (dim + 1 == windows.size()) {
      return carried + code.sum(start.getType(), range.from, range.to,
                                [&](Num i) { return at(i, [&] { return term(p, x); }); });
    }
    return code
        .carry(range.from, range.to, 1, {carried},
               [&](Num i, llvm::ArrayRef<Num> inner) {
                 return Nums{at(i, [&] { return self(self, inner.front()); })};
               })
        .front();
  };
  return build(build, start);
}

Nums WindowLoops::carryWindow(Places p, llvm::ArrayRef<Num> start,
                              llvm::function_ref<Nums(Places, llvm::ArrayRef<Num>)> body) {
  Nums x;
  auto build = [&](auto &self, llvm::ArrayRef<Num> carried) -> Nums {
    size_t dim = x.size();
    if (dim == windows.size()) {
      return body(x, carried);
    }
    Range range = windowInside(dim, p[dim]);
    return code.carry(range.from, range.to, 1, carried, [&](Num k, llvm::ArrayRef<Num> inner) {
      x.push_back(inputAt(dim, p[dim], k));
      Nums next = self(self, inner);
      x.pop_back();
      return next;
    });
  };
  return build(build, start);
}

Nums WindowLoops::firstPlace(Places p) {
  Nums x;
  for (size_t dim = 0; dim < windows.size(); ++dim) {
    x.push_back(inputAt(dim, p[dim], windowInside(dim, p[dim]).from));
  }
  return x;
}

} // namespace weft::lower
