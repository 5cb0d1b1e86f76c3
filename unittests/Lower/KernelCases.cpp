//===- KernelCases.cpp - kernels of tests, for a device to run ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelCases.h"

#include <cstdlib>
#include <map>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "weft/Pipeline/Lower/Passes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace weft::test {

namespace {

/// Processor features that most machines with devices have, whatever this one has.
constexpr char kPortableCpu[] = "x86-64-v3";

const char *nameOf(Kind kind, bool isF64) {
  switch (kind) {
  case Kind::Float:
    return isF64 ? "f64" : "f32";
  case Kind::Int32:
    return "i32";
  case Kind::Int64:
    return "i64";
  case Kind::Float16:
    return "f16";
  case Kind::E4M3:
    return "f8e4m3";
  case Kind::E5M2:
    return "f8e5m2";
  case Kind::BFloat16:
    break;
  }
  return "bf16";
}

void replaceAll(std::string &text, const std::string &from, const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

/// All kernels so far, and what they are called with.
class Recorder : public testing::Environment {
public:
  static Recorder &get() {
    static auto *recorder =
        static_cast<Recorder *>(testing::AddGlobalTestEnvironment(new Recorder));
    return *recorder;
  }

  int64_t addKernel(const std::string &text) {
    auto [place, isNew] = numbers.emplace(text, int64_t(texts.size()));
    if (isNew) {
      texts.push_back(text);
    }
    return place->second;
  }

  /// Where they begin in the file.
  int64_t addData(const Array &array, bool isF64) {
    auto begin = int64_t(data.size());
    std::vector<char> bytes = bytesOf(array, isF64);
    data.append(bytes.begin(), bytes.end());
    data.resize((data.size() + 7) / 8 * 8);
    return begin;
  }

  /// Returns true if the module lowers to kernels; with float64 not all do.
  bool lowers(const std::string &text) {
    mlir::ScopedDiagnosticHandler ignore(context.get(), [](mlir::Diagnostic &) {});
    return bool(lower(*context, text, /*devices=*/true));
  }

  /// Of the arguments of a kernel that are tensors, then of its results that are not tied.
  llvm::json::Array accesses(int64_t kernel);

  void add(llvm::json::Object fields) { cases.push_back(std::move(fields)); }
  size_t count() const { return cases.size(); }

  void TearDown() override {
    if (!cases.empty()) {
      EXPECT_TRUE(write(std::getenv("WEFT_KERNEL_CASES")));
    }
  }

private:
  mlir::OwningOpRef<mlir::ModuleOp> parse(int64_t kernel) {
    return mlir::parseSourceString<mlir::ModuleOp>(texts[size_t(kernel)], context.get());
  }

  bool write(const std::string &folder) {
    return !llvm::sys::fs::create_directories(folder) && writeCode(folder) &&
           writeFile(folder + "/cases.bin", data) && writeFile(folder + "/cases.json", table());
  }

  static bool writeFile(const std::string &path, llvm::StringRef bytes) {
    std::error_code code;
    llvm::raw_fd_ostream stream(path, code);
    if (!code) {
      stream << bytes;
      stream.close();
      code = stream.error();
      stream.clear_error();
    }
    return !code;
  }

  static std::string nameOfKernel(size_t number) { return "kernel_" + std::to_string(number); }

  std::string table() {
    llvm::json::Array kernels;
    for (size_t i = 0; i < texts.size(); ++i) {
      kernels.push_back(nameOfKernel(i));
    }
    std::string text;
    llvm::raw_string_ostream(text) << llvm::json::Value(
        llvm::json::Object{{"kernels", std::move(kernels)}, {"cases", std::move(cases)}});
    return text;
  }

  /// All kernels in one module, which becomes one image.
  bool writeCode(const std::string &folder) {
    mlir::OwningOpRef<mlir::ModuleOp> all =
        mlir::ModuleOp::create(mlir::UnknownLoc::get(context.get()));
    rt::Program program;
    for (size_t i = 0; i < texts.size(); ++i) {
      mlir::OwningOpRef<mlir::ModuleOp> one = parse(int64_t(i));
      auto function = one->lookupSymbol<mlir::func::FuncOp>("kernel");
      function.setName(nameOfKernel(i));
      function->remove();
      all->push_back(function);
      program.kernels.push_back({nameOfKernel(i)});
    }
    mlir::PassManager manager(context.get());
    LowerPipelineOptions lowering;
    lowering.devices = true;
    buildLowerPipeline(manager, lowering);
    EmitOptions options;
    options.target = TargetKind::Cuda;
    options.cpu = kPortableCpu;
    options.cacheFolder = defaultCacheFolder();
    std::string archive = folder + "/kernels.a";
    if (failed(manager.run(*all)) || failed(emitArchive(*all, program, options, archive))) {
      return false;
    }
    std::string command = "c++ -shared -o '" + folder + "/kernels.so' -Wl,--whole-archive '" +
                          archive + "' -Wl,--no-whole-archive -lm";
    return std::system(command.c_str()) == 0 && !llvm::sys::fs::remove(archive);
  }

  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  std::map<std::string, int64_t> numbers;
  std::vector<std::string> texts;
  std::string data;
  llvm::json::Array cases;
};

/// As the runtime numbers them.
enum Access : int64_t { kRead, kWrite, kReadWrite };

llvm::json::Array Recorder::accesses(int64_t kernel) {
  mlir::OwningOpRef<mlir::ModuleOp> module = parse(kernel);
  auto function = module ? module->lookupSymbol<mlir::func::FuncOp>("kernel") : nullptr;
  llvm::json::Array found;
  if (!function) {
    return found;
  }
  llvm::ArrayRef<int64_t> tied =
      function->getAttrOfType<mlir::DenseI64ArrayAttr>("weft.tied").asArrayRef();
  for (mlir::BlockArgument argument : function.getArguments()) {
    if (!argument.getType().isIndex()) {
      found.push_back(
          int64_t(llvm::is_contained(tied, argument.getArgNumber()) ? kReadWrite : kRead));
    }
  }
  for (int64_t operand : tied) {
    if (operand == -1) {
      found.push_back(int64_t(kWrite));
    }
  }
  return found;
}

std::string testName() {
  const testing::TestInfo *test = testing::UnitTest::GetInstance()->current_test_info();
  std::string suite = test->test_suite_name(), name = test->name();
  return suite.substr(suite.find('/') + 1) + "." + name;
}

/// Fills in each buffer's use; returns false, with a test failure, if the text has other buffers.
bool addAccesses(llvm::json::Array &buffers, int64_t kernel) {
  llvm::json::Array accesses = Recorder::get().accesses(kernel);
  if (accesses.size() != buffers.size()) {
    ADD_FAILURE() << "a kernel of " << accesses.size() << " buffers gets " << buffers.size();
    return false;
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    (*buffers[i].getAsObject())["access"] = accesses[i];
  }
  return true;
}

void addCase(const std::string &name, int64_t kernel, int64_t reference, bool isLarge,
             const std::vector<int64_t> &immediates, const std::vector<int64_t> &coordinates,
             llvm::json::Array buffers) {
  if (addAccesses(buffers, kernel)) {
    Recorder::get().add(llvm::json::Object{{"name", name},
                                           {"kernel", kernel},
                                           {"reference", reference},
                                           {"large", isLarge},
                                           {"immediates", llvm::json::Array(immediates)},
                                           {"coordinates", llvm::json::Array(coordinates)},
                                           {"buffers", std::move(buffers)}});
  }
}

} // namespace

bool recordsKernels() {
  static const char *folder = std::getenv("WEFT_KERNEL_CASES");
  return folder && *folder;
}

std::string withTypes(std::string text, const std::string &activation, const std::string &number) {
  replaceAll(text, "$a", activation);
  replaceAll(text, "$f", number);
  return text;
}

int64_t MadeOperand::size() const {
  int64_t count = 1;
  for (int64_t one : shape) {
    count *= one;
  }
  return count;
}

void recordKernel(const KernelCall &call, const std::string &floatType) {
  Recorder &recorder = Recorder::get();
  bool isF64 = floatType == "f64";
  std::string text = withTypes(call.text, "", floatType), wide = withTypes(call.text, "", "f64");
  bool hasWide = wide != text && recorder.lowers(wide);
  llvm::json::Array buffers;
  for (const auto *arrays : {&call.operands, &call.results}) {
    for (const Array &array : *arrays) {
      llvm::json::Object buffer{{"type", nameOf(array.kind, isF64)},
                                {"reference", nameOf(array.kind, isF64 || hasWide)},
                                {"count", array.size()}};
      if (arrays == &call.operands) {
        buffer["offset"] = recorder.addData(array, isF64);
      }
      buffers.push_back(std::move(buffer));
    }
  }
  int64_t kernel = recorder.addKernel(text),
          reference = hasWide ? recorder.addKernel(wide) : kernel;
  addCase(testName() + " " + std::to_string(recorder.count()), kernel, reference, false,
          call.immediates, call.coordinates, std::move(buffers));
}

void recordLargeKernel(const LargeKernel &large) {
  Recorder &recorder = Recorder::get();
  llvm::json::Array buffers;
  int64_t seed = 0;
  for (const auto *operands : {&large.operands, &large.results}) {
    for (const MadeOperand &operand : *operands) {
      buffers.push_back(llvm::json::Object{{"type", nameOf(operand.kind, false)},
                                           {"reference", operand.kind == Kind::BFloat16
                                                             ? large.referenceActivation
                                                             : nameOf(operand.kind, true)},
                                           {"count", operand.size()},
                                           {"seed", ++seed},
                                           {"least", operand.least},
                                           {"most", operand.most}});
    }
  }
  int64_t kernel = recorder.addKernel(withTypes(large.text, "bf16", "f32"));
  int64_t reference = recorder.addKernel(withTypes(large.text, large.referenceActivation, "f64"));
  addCase("Large." + large.name, kernel, reference, true, {}, {}, std::move(buffers));
}

} // namespace weft::test
