//===- KernelRunner.cpp - compiles kernels and runs them -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"

#include "BlockEmulator.h"
#include "DeviceRunner.h"
#include "GuardedMemory.h"
#include "KernelCases.h"
#include "ModuleMemory.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <dlfcn.h>
#include <numeric>
#include <random>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "weft/Dialect/Weft/IR/ScalarOps.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Emit/Emit.h"
#include "weft/Pipeline/Lower/HostLowering.h"
#include "weft/Pipeline/Lower/Passes.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"

namespace weft::test {

namespace {

/// One element of fewer bits.
template <const llvm::fltSemantics &(*semantics)(), typename Bits = uint16_t> struct Narrow {
  Bits bits;

  explicit Narrow(double value) {
    llvm::APFloat number(value);
    bool isInexact = false;
    number.convert(semantics(), llvm::APFloat::rmNearestTiesToEven, &isInexact);
    bits = static_cast<Bits>(number.bitcastToAPInt().getZExtValue());
  }
  explicit operator double() const {
    return llvm::APFloat(semantics(), llvm::APInt(8 * sizeof(Bits), bits)).convertToDouble();
  }
};
using BF16 = Narrow<llvm::APFloat::BFloat>;
using F16 = Narrow<llvm::APFloat::IEEEhalf>;
using E4M3 = Narrow<llvm::APFloat::Float8E4M3FN, uint8_t>;
using E5M2 = Narrow<llvm::APFloat::Float8E5M2, uint8_t>;

size_t sizeOf(Kind kind, bool isF64) {
  switch (kind) {
  case Kind::E4M3:
  case Kind::E5M2:
    return 1;
  case Kind::BFloat16:
  case Kind::Float16:
    return 2;
  case Kind::Float:
    return isF64 ? 8 : 4;
  case Kind::Int32:
    return 4;
  case Kind::Int64:
    return 8;
  }
  return 0;
}

/// Every buffer begins at a multiple of kAlignment, so that nobody has what is behind one up to the
/// next: a host's kernel might read it. A device's has no need to.
enum class Rounding { ToAlignment, None };

/// Memory of one array as a kernel sees it.
class Memory : public GuardedMemory {
public:
  Memory(const std::string &name, const Array &array, bool isF64,
         Rounding rounding = Rounding::ToAlignment, Place place = Place::AtEnd,
         char fill = kNoNumber)
      : GuardedMemory(name, array.data.size() * sizeOf(array.kind, isF64),
                      rounding == Rounding::None ? sizeOf(array.kind, isF64)
                                                 : size_t(rt::kAlignment),
                      place, fill),
        array(array), isF64(isF64) {}

  void write() {
    for (size_t i = 0; i < array.data.size(); ++i) {
      visit(i, [&]<typename T>(T &element) { element = static_cast<T>(array.data[i]); });
    }
  }

  Array read() {
    for (size_t i = 0; i < array.data.size(); ++i) {
      visit(i, [&](auto &element) { array.data[i] = static_cast<double>(element); });
    }
    expectWithin();
    return array;
  }

private:
  template <typename Body> void visit(size_t i, Body body) {
    if (array.kind == Kind::Int32) {
      body(reinterpret_cast<int32_t *>(get())[i]);
    } else if (array.kind == Kind::Int64) {
      body(reinterpret_cast<int64_t *>(get())[i]);
    } else if (array.kind == Kind::BFloat16) {
      body(reinterpret_cast<BF16 *>(get())[i]);
    } else if (array.kind == Kind::Float16) {
      body(reinterpret_cast<F16 *>(get())[i]);
    } else if (array.kind == Kind::E4M3) {
      body(reinterpret_cast<E4M3 *>(get())[i]);
    } else if (array.kind == Kind::E5M2) {
      body(reinterpret_cast<E5M2 *>(get())[i]);
    } else if (isF64) {
      body(reinterpret_cast<double *>(get())[i]);
    } else {
      body(reinterpret_cast<float *>(get())[i]);
    }
  }

  Array array;
  bool isF64;
};

/// The number of device threads per iteration of each phase, see kThreadsAttrName.
std::vector<int64_t> threadsOf(mlir::ModuleOp devices) {
  std::vector<int64_t> threads;
  for (mlir::Operation &op : *devices.getBody()) {
    if (auto counts = op.getAttrOfType<mlir::DenseI64ArrayAttr>(kThreadsAttrName)) {
      threads = counts.asArrayRef().vec();
    }
  }
  return threads;
}

/// Returns true if devices run other code than the host.
bool hasOwnShape(mlir::ModuleOp host, mlir::ModuleOp devices) {
  return !mlir::OperationEquivalence::isEquivalentTo(host.lookupSymbol("kernel"),
                                                     devices.lookupSymbol("kernel"),
                                                     mlir::OperationEquivalence::IgnoreLocations);
}

struct KernelLibrary {
  KernelLibrary() = default;
  KernelLibrary(void *handle, const rt::KernelCode *kernel) : handle(handle), kernel(kernel) {}
  KernelLibrary(KernelLibrary &&other) noexcept
      : handle(std::exchange(other.handle, nullptr)), kernel(other.kernel) {}
  ~KernelLibrary() {
    if (handle) {
      dlclose(handle);
    }
  }

  void *handle = nullptr;
  const rt::KernelCode *kernel = nullptr;
};

/// The kernel of `module`, loaded from an archive that the compiler wrote.
KernelLibrary compile(mlir::ModuleOp module, EmitOptions options) {
  options.cacheFolder = defaultCacheFolder();
  rt::Program program;
  program.kernels = {{"kernel"}};
  llvm::SmallString<128> archive, library;
  // The loader would take a library of the same path for one that it has already, though that is
  // gone.
  static int number = 0;
  std::string name = "weft-kernel-" + std::to_string(number++);
  (void)llvm::sys::fs::createTemporaryFile(name, "a", archive);
  (void)llvm::sys::fs::createTemporaryFile(name, "so", library);
  llvm::FileRemover removeArchive(archive), removeLibrary(library);
  if (failed(emitArchive(module, program, options, archive))) {
    return {};
  }
  // No compiler's driver, which would take as long as a compilation: what kernels call is here.
  std::string command =
      "ld -shared -o " + library.str().str() + " --whole-archive " + archive.str().str();
  if (std::system(command.c_str()) != 0) {
    return {};
  }
  void *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    ADD_FAILURE() << dlerror();
    return {};
  }
  return {handle, static_cast<const rt::KernelCode *>(dlsym(handle, "weft_kernels"))};
}

/// Runs the iterations of each phase in uneven ranges, the last ones first: no phase may care.
void runInParts(const rt::KernelCode &kernel,
                const std::function<void(int64_t, int64_t, int64_t)> &run) {
  for (int64_t phase = 0; phase < kernel.phaseCount; ++phase) {
    for (int64_t end = kernel.iterations[phase]; end > 0;) {
      int64_t begin = end / 3;
      run(phase, begin, end);
      end = begin;
    }
  }
}

} // namespace

std::unique_ptr<mlir::MLIRContext> makeContext() {
  mlir::DialectRegistry registry;
  registry.insert<WeftDialect, mlir::func::FuncDialect>();
  registerScalarOpModels(registry);
  registerHostLoweringModels(registry);
  registerEmitTranslations(registry);
  return std::make_unique<mlir::MLIRContext>(registry);
}

mlir::OwningOpRef<mlir::ModuleOp> lower(mlir::MLIRContext &context, const std::string &text,
                                        bool devices) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  mlir::PassManager manager(&context);
  LowerPipelineOptions options;
  options.devices = devices;
  buildLowerPipeline(manager, options);
  if (!module || failed(manager.run(*module))) {
    return nullptr;
  }
  return module;
}

Array::Array(std::vector<int64_t> givenShape, Kind kind)
    : shape(std::move(givenShape)), kind(kind) {
  int64_t count = 1;
  for (int64_t size : shape) {
    count *= size;
  }
  data.assign(static_cast<size_t>(count), 0);
}

int64_t Array::at(std::initializer_list<int64_t> indices) const {
  int64_t place = 0;
  size_t dim = 0;
  for (int64_t index : indices) {
    place = place * shape[dim++] + index;
  }
  return place;
}

std::string Array::type(const std::string &floatType) const {
  std::string text = "tensor<";
  for (int64_t size : shape) {
    text += std::to_string(size) + "x";
  }
  switch (kind) {
  case Kind::Float:
    return text + floatType + ">";
  case Kind::Int32:
    return text + "i32>";
  case Kind::Int64:
    return text + "i64>";
  case Kind::BFloat16:
    return text + "bf16>";
  case Kind::E4M3:
    return text + "f8E4M3FN>";
  case Kind::E5M2:
    return text + "f8E5M2>";
  case Kind::Float16:
    break;
  }
  return text + "f16>";
}

Array randomArray(std::vector<int64_t> shape, unsigned salt) {
  Array array(std::move(shape));
  std::mt19937 generator(salt);
  for (double &element : array.data) {
    element = static_cast<double>(static_cast<int32_t>(generator()) >> 9) * 0x1p-22;
  }
  return array;
}

double roundedToBF16(double value) { return static_cast<double>(BF16(value)); }
double roundedToF16(double value) { return static_cast<double>(F16(value)); }

Array randomIds(std::vector<int64_t> shape, int64_t least, int64_t most, unsigned salt) {
  Array array(std::move(shape), Kind::Int32);
  std::mt19937 generator(salt);
  for (double &element : array.data) {
    element = static_cast<double>(least + generator() % (most - least + 1));
  }
  return array;
}

std::vector<char> bytesOf(const Array &array, bool isF64) {
  Memory memory("an array", array, isF64);
  memory.write();
  auto begin = static_cast<const char *>(memory.get());
  return {begin, begin + array.data.size() * sizeOf(array.kind, isF64)};
}

Array counter(int64_t value) {
  Array array({}, Kind::Int64);
  array.data[0] = static_cast<double>(value);
  return array;
}

void forEach(const std::vector<int64_t> &shape,
             const std::function<void(const std::vector<int64_t> &)> &body) {
  std::vector<int64_t> indices(shape.size(), 0);
  for (;;) {
    body(indices);
    size_t dim = shape.size();
    while (dim > 0 && ++indices[dim - 1] == shape[dim - 1]) {
      indices[--dim] = 0;
    }
    if (dim == 0) {
      return;
    }
  }
}

namespace {

/// What may be around memory, in it before it is written, and which block comes first: no kernel
/// may care.
struct Surroundings {
  Place place;
  Fill fill;
  bool isReversed;
};
constexpr Surroundings kFirst = {Place::AtEnd, {kNoNumber, kNoNumber}, false};
constexpr Surroundings kSecond = {Place::AtBegin, {kSmallNumber, kSmallIndex}, true};

/// Calls `run(buffers)` with memory of the operands and results of `call`.
Outcome withMemory(const KernelCall &call, bool isF64, Rounding rounding,
                   const Surroundings &surroundings,
                   const std::function<void(void *const *)> &run) {
  Outcome outcome{call.operands, call.results};
  std::vector<Memory> memory;
  memory.reserve(call.operands.size() + call.results.size());
  auto add = [&](const char *what, size_t number, const Array &array) -> Memory & {
    bool isInteger = array.kind == Kind::Int32 || array.kind == Kind::Int64;
    return memory.emplace_back(what + std::to_string(number), array, isF64, rounding,
                               surroundings.place,
                               isInteger ? surroundings.fill.integers : surroundings.fill.floats);
  };
  for (size_t i = 0; i < call.operands.size(); ++i) {
    add("operand ", i, call.operands[i]).write();
  }
  for (size_t i = 0; i < call.results.size(); ++i) {
    add("result ", i, call.results[i]);
  }
  std::vector<void *> buffers;
  for (const Memory &part : memory) {
    buffers.push_back(part.get());
  }
  nameRunning(call.text);
  run(buffers.data());
  nameRunning("");
  expectNoTouches();
  for (size_t i = 0; i < memory.size(); ++i) {
    bool isOperand = i < call.operands.size();
    (isOperand ? outcome.operands[i] : outcome.results[i - call.operands.size()]) =
        memory[i].read();
  }
  return outcome;
}

Outcome runOnHost(const KernelCall &call, bool isF64, const rt::KernelCode &kernel,
                  const Surroundings &surroundings) {
  return withMemory(call, isF64, Rounding::ToAlignment, surroundings, [&](void *const *buffers) {
    runInParts(kernel, [&](int64_t phase, int64_t begin, int64_t end) {
      kernel.function(buffers, call.immediates.data(), call.coordinates.data(), phase, begin, end);
    });
  });
}

/// A phase's iterations as they come: drawn, or the other way around, so that of each two either
/// is the first one once.
std::vector<int64_t> orderOf(int64_t phase, int64_t count, bool isReversed) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 dice(static_cast<unsigned>(phase));
  std::shuffle(order.begin(), order.end(), dice);
  if (isReversed) {
    std::reverse(order.begin(), order.end());
  }
  return order;
}

/// Most blocks are alike, and to watch one takes several times as long. So these are the ones at
/// both ends, of which causal attention's with the most turns is one, and two that are drawn in the
/// second run.
bool isWatched(int64_t iteration, const std::vector<int64_t> &order, bool isSecond) {
  return isSecond ? iteration == order.front() || iteration == order.back()
                  : iteration == 0 || iteration == static_cast<int64_t>(order.size()) - 1;
}

/// As a device would: a block for an iteration where threads share it.
Outcome runOnDevice(const KernelCall &call, bool isF64, const rt::KernelCode &kernel,
                    const std::vector<int64_t> &threads, GuardedModule &module, unsigned seed,
                    const Surroundings &surroundings) {
  std::mt19937 dice(seed);
  module.fill(surroundings.fill);
  return withMemory(call, isF64, Rounding::None, surroundings, [&](void *const *buffers) {
    for (int64_t phase = 0; phase < kernel.phaseCount; ++phase) {
      int64_t together = threads.empty() ? 0 : threads[size_t(phase)];
      bool isReversed = surroundings.isReversed;
      std::vector<int64_t> order = orderOf(phase, kernel.iterations[phase], isReversed);
      for (int64_t i : order) {
        auto body = [&] {
          kernel.function(buffers, call.immediates.data(), call.coordinates.data(), phase, i,
                          i + 1);
        };
        if (together == 0) {
          body();
        } else {
          module.fillShared();
          runBlock(together, dice, body, isWatched(i, order, isReversed));
        }
      }
    }
    module.expectWithin();
  });
}

/// The same bits, or both not a number.
void expectSame(const std::vector<Array> &got, const std::vector<Array> &expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    for (size_t j = 0; j < expected[i].data.size(); ++j) {
      double one = got[i].data[j], other = expected[i].data[j];
      ASSERT_TRUE(one == other || (std::isnan(one) && std::isnan(other)))
          << "element " << j << " differs from run to run: " << other << ", then " << one;
    }
  }
}

void expectSame(const Outcome &got, const Outcome &expected) {
  expectSame(got.operands, expected.operands);
  expectSame(got.results, expected.results);
}

/// Sums are made in another order, so that last bits differ.
void expectAlike(const Array &device, const Array &host, bool isF64) {
  double greatest = 1e-30;
  for (double value : host.data) {
    greatest = std::isfinite(value) ? std::max(greatest, std::abs(value)) : greatest;
  }
  double rounding = host.kind == Kind::BFloat16 ? 0x1p-7 : isF64 ? 1e-12 : 4e-6;
  bool isInteger = host.kind == Kind::Int32 || host.kind == Kind::Int64;
  for (int64_t i = 0; i < host.size(); ++i) {
    double got = device.data[i], expected = host.data[i];
    bool isSame = got == expected || (std::isnan(got) && std::isnan(expected));
    ASSERT_TRUE(isSame || (!isInteger && std::abs(got - expected) <= rounding * greatest))
        << "element " << i << " on a device: expected " << expected << ", got " << got;
  }
}

} // namespace

Outcome KernelTest::run(const KernelCall &call) {
  Outcome outcome{call.operands, call.results};
  std::string text = withTypes(call.text, "", GetParam());
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  mlir::OwningOpRef<mlir::ModuleOp> module = lower(*context, text, /*devices=*/true);
  KernelLibrary library = module ? compile(*module, call.options) : KernelLibrary();
  const rt::KernelCode *kernel = library.kernel;
  if (!kernel) {
    ADD_FAILURE() << "does not compile: " << call.text;
    return outcome;
  }
  outcome = runOnHost(call, isF64(), *kernel, kFirst);
  expectSame(runOnHost(call, isF64(), *kernel, kSecond), outcome);
  if (call.settle) {
    call.settle(outcome);
  }
  if (recordsKernels()) { // To be judged by what a device does.
    recordKernel(call, GetParam());
    return outcome;
  }
  auto devices = module->lookupSymbol<mlir::ModuleOp>(kDevicesName);
  if (hasOwnShape(*module, devices)) {
    runOnBlocks(call, isF64(), devices, outcome);
  }
  return outcome;
}

void runOnBlocks(const KernelCall &call, bool isF64, mlir::ModuleOp devices, const Outcome &host) {
  std::vector<int64_t> threads = threadsOf(devices);
  std::vector<ModuleMemory> parts = guardMemory(devices);
  KernelLibrary library = compile(devices, call.options);
  ASSERT_NE(library.kernel, nullptr) << "does not compile for devices: " << call.text;
  GuardedModule memory(library.handle, std::move(parts));
  auto run = [&](unsigned seed, const Surroundings &surroundings) {
    return runOnDevice(call, isF64, *library.kernel, threads, memory, seed, surroundings);
  };
  Outcome first = run(1, kFirst);
  expectSame(run(2, kSecond), first);
  memory.expectWatched();
  if (call.settle) {
    call.settle(first);
  }
  auto check = [&](const auto &got, const auto &expected) {
    for (size_t i = 0; i < expected.size(); ++i) {
      expectAlike(got[i], expected[i], isF64);
    }
  };
  check(first.operands, host.operands);
  check(first.results, host.results);
}

void KernelTest::expectClose(const Array &actual, const Array &expected, double slack) {
  ASSERT_EQ(actual.shape, expected.shape);
  double greatest = 1e-30;
  for (double value : expected.data) {
    greatest = std::max(greatest, std::abs(value));
  }
  double allowed = (isF64() ? 1e-12 : 2e-6) * slack * greatest;
  for (int64_t i = 0; i < expected.size(); ++i) {
    double error = std::abs(actual.data[i] - expected.data[i]);
    ASSERT_TRUE(error <= allowed) << "element " << i << ": expected " << expected.data[i]
                                  << ", got " << actual.data[i] << ", allowed " << allowed;
  }
}

} // namespace weft::test
