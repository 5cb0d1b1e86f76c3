//===- LowerConvolution.cpp - convolutions and their derivatives ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loops over the window are outside, loops over rows of places inside: these vectorize if the
// window moves by one.
//
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "WindowLoops.h"

#include <optional>

namespace weft::lower {

using namespace mlir;

namespace {

/// Index lists of one place of an image or kernel.
Nums at(Num first, Num second, ArrayRef<Num> places) {
  Nums indices = {first, second};
  indices.append(places.begin(), places.end());
  return indices;
}

/// Sets all places of a sample's channel to zero.
void fillPlane(Code &code, Buffer buffer, Num n, Num c) {
  Num zero = code.real(buffer.getElementType(), 0);
  code.nest(buffer.getShape().drop_front(2),
            [&](ArrayRef<Num> places) { buffer.store(zero, at(n, c, places)); });
}

/// The base of the three kernels: the buffers of the convolution, and its channels by groups.
struct ConvolutionLoops {
  template <typename OpTy>
  ConvolutionLoops(Code &code, OpTy op, Buffer input, Buffer kernel, Buffer output)
      : code(code), input(input), kernel(kernel), output(output),
        windows(windowsOf(op, kernel.getShape().drop_front(2))),
        loops(code, windows, input.getShape().drop_front(2), output.getShape().drop_front(2)),
        inGroup(kernel.getSize(1)),
        outGroup(kernel.getSize(0) / (input.getSize(1) / kernel.getSize(1))) {}

  void fillPlane(Buffer buffer, Num n, Num c) { weft::lower::fillPlane(code, buffer, n, c); }

  Code &code;
  Buffer input, kernel, output;
  llvm::SmallVector<Window> windows;
  WindowLoops loops;
  /// Channels of a group, in the input and in the output.
  int64_t inGroup, outGroup;
};

struct LowerConvolution : HostModel<LowerConvolution, ConvolutionOp> {
  static void lower(Code &code, ConvolutionOp op, ConvolutionOp::Adaptor operands,
                    ValueRange results) {
    ConvolutionLoops of(code, op, code.buffer(operands.getInput()),
                        code.buffer(operands.getKernel()), code.buffer(results[0]));
    code.parallelAll(of.output.getShape().take_front(2), [&](ArrayRef<Num> place) {
      Num n = place[0], o = place[1], first = o / of.outGroup * of.inGroup;
      of.fillPlane(of.output, n, o);
      code.loop(0, of.inGroup, [&](Num c) {
        of.loops.overWindow([&](ArrayRef<Num> k) {
          Num weight = of.kernel.load(at(o, c, k));
          of.loops.overOutputs(k, [&](ArrayRef<Num> p, ArrayRef<Num> x) {
            Nums target = at(n, o, p);
            Num value = of.input.load(at(n, first + c, x));
            of.output.store(code.multiplyAdd(weight, value, of.output.load(target)), target);
          });
        });
      });
    });
  }
};

struct LowerInputGrad : HostModel<LowerInputGrad, ConvolutionInputGradOp> {
  static void lower(Code &code, ConvolutionInputGradOp op, ConvolutionInputGradOp::Adaptor operands,
                    ValueRange results) {
    ConvolutionLoops of(code, op, code.buffer(results[0]), code.buffer(operands.getKernel()),
                        code.buffer(operands.getGradient()));
    code.parallelAll(of.input.getShape().take_front(2), [&](ArrayRef<Num> place) {
      Num n = place[0], c = place[1], first = c / of.inGroup * of.outGroup;
      of.fillPlane(of.input, n, c);
      code.loop(0, of.outGroup, [&](Num o) {
        of.loops.overWindow([&](ArrayRef<Num> k) {
          Num weight = of.kernel.load(at(first + o, code.remainder(c, of.inGroup), k));
          of.loops.overOutputs(k, [&](ArrayRef<Num> p, ArrayRef<Num> x) {
            Nums target = at(n, c, x);
            Num value = of.output.load(at(n, first + o, p));
            of.input.store(code.multiplyAdd(weight, value, of.input.load(target)), target);
          });
        });
      });
    });
  }
};

struct LowerKernelGrad : HostModel<LowerKernelGrad, ConvolutionKernelGradOp> {
  static void lower(Code &code, ConvolutionKernelGradOp op,
                    ConvolutionKernelGradOp::Adaptor operands, ValueRange results) {
    ConvolutionLoops of(code, op, code.buffer(operands.getInput()), code.buffer(results[0]),
                        code.buffer(operands.getGradient()));
    Type type = of.kernel.getElementType();
    code.parallelAll(of.kernel.getShape().take_front(2), [&](ArrayRef<Num> place) {
      Num o = place[0], c = o / of.outGroup * of.inGroup + place[1];
      of.loops.overWindow([&](ArrayRef<Num> k) {
        Nums sums = code.carry(code.index(0), code.index(of.input.getSize(0)), 1,
                               {code.real(type, 0)}, [&](Num n, ArrayRef<Num> carried) {
                                 auto term = [&](ArrayRef<Num> p, ArrayRef<Num> x) {
                                   return of.input.load(at(n, c, x)) * of.output.load(at(n, o, p));
                                 };
                                 return Nums{of.loops.sumOverOutputs(k, carried.front(), term)};
                               });
        of.kernel.store(sums.front(), at(o, place[1], k));
      });
    });
  }
};

/// An image, and its columns as [sample, channel, place of the window…, output place…].
struct ColumnLoops {
  template <typename OpTy>
  ColumnLoops(Code &code, OpTy op, Buffer image, Buffer columns)
      : windows(windowsOf(op, op.getSizes())), image(image) {
    llvm::SmallVector<int64_t> shape(image.getShape().take_front(2));
    for (auto [window, size] : llvm::zip_equal(windows, image.getShape().drop_front(2))) {
      shape.push_back(window.size);
      outputs.push_back(window.countOutputs(size));
    }
    llvm::append_range(shape, outputs);
    this->columns = columns.view(shape);
    loops.emplace(code, windows, image.getShape().drop_front(2), outputs);
  }

  /// Returns true if a window reaches out of the image.
  bool isPadded() const {
    return llvm::any_of(windows, [](const Window &w) { return w.low > 0 || w.high > 0; });
  }
  static Nums columnAt(Num n, Num c, ArrayRef<Num> k, ArrayRef<Num> p) {
    Nums indices = at(n, c, k);
    indices.append(p.begin(), p.end());
    return indices;
  }

  llvm::SmallVector<Window> windows;
  llvm::SmallVector<int64_t> outputs;
  Buffer image, columns;
  std::optional<WindowLoops> loops;
};

struct LowerUnfold : HostModel<LowerUnfold, UnfoldOp> {
  static void lower(Code &code, UnfoldOp op, UnfoldOp::Adaptor operands, ValueRange results) {
    ColumnLoops of(code, op, code.buffer(operands.getInput()), code.buffer(results[0]));
    Num zero = code.real(of.image.getStoredType(), 0);
    code.parallelAll(of.image.getShape().take_front(2), [&](ArrayRef<Num> place) {
      Num n = place[0], c = place[1];
      of.loops->overWindow([&](ArrayRef<Num> k) {
        if (of.isPadded()) {
          code.nest(of.outputs, [&](ArrayRef<Num> p) {
            of.columns.storeStored(zero, ColumnLoops::columnAt(n, c, k, p));
          });
        }
        of.loops->overOutputs(k, [&](ArrayRef<Num> p, ArrayRef<Num> x) {
          of.columns.storeStored(of.image.loadStored(at(n, c, x)),
                                 ColumnLoops::columnAt(n, c, k, p));
        });
      });
    });
  }
};

struct LowerFold : HostModel<LowerFold, FoldOp> {
  static void lower(Code &code, FoldOp op, FoldOp::Adaptor operands, ValueRange results) {
    ColumnLoops of(code, op, code.buffer(results[0]), code.buffer(operands.getInput()));
    code.parallelAll(of.image.getShape().take_front(2), [&](ArrayRef<Num> place) {
      Num n = place[0], c = place[1];
      fillPlane(code, of.image, n, c);
      of.loops->overWindow([&](ArrayRef<Num> k) {
        of.loops->overOutputs(k, [&](ArrayRef<Num> p, ArrayRef<Num> x) {
          Nums target = at(n, c, x);
          Num value = of.columns.load(ColumnLoops::columnAt(n, c, k, p));
          of.image.store(of.image.load(target) + value, target);
        });
      });
    });
  }
};

} // namespace

void attachConvolutionModels(MLIRContext &context) {
  ConvolutionOp::attachInterface<LowerConvolution>(context);
  ConvolutionInputGradOp::attachInterface<LowerInputGrad>(context);
  ConvolutionKernelGradOp::attachInterface<LowerKernelGrad>(context);
  UnfoldOp::attachInterface<LowerUnfold>(context);
  FoldOp::attachInterface<LowerFold>(context);
}

} // namespace weft::lower
