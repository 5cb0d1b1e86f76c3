//===- EmitTest.cpp - object files and executables -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "KernelRunner.h"
#include "mlir/IR/Diagnostics.h"
#include "weft/Pipeline/Emit/DeviceCode.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

namespace weft::test {
namespace {

constexpr char kKernel[] = R"(
func.func private @kernel(%i: index, %x: tensor<4xf32>) -> tensor<4xf32>
    attributes {weft.tied = array<i64: -1>} {
  return %x : tensor<4xf32>
})";

/// Emits the kernel above for a test's program, into a folder of its own.
class EmitTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("weft-emit", folder));
    context = makeContext();
    module = lower(*context, kKernel);
    ASSERT_TRUE(module);
    program.kernels = {{"kernel"}};
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  std::string path(const std::string &name) const { return folder.str().str() + "/" + name; }

  bool emit(const EmitOptions &options = {}, const std::string &name = "kernels.a") {
    mlir::ScopedDiagnosticHandler handler(
        context.get(), [&](mlir::Diagnostic &diagnostic) { message = diagnostic.str(); });
    llvm::FailureOr<EmitReport> emitted = emitArchive(*module, program, options, path(name));
    report = emitted.value_or(EmitReport());
    return succeeded(emitted);
  }

  bool link(const LinkOptions &options) {
    mlir::ScopedDiagnosticHandler handler(
        context.get(), [&](mlir::Diagnostic &diagnostic) { message = diagnostic.str(); });
    return succeeded(linkExecutable(
        options, [&] { return mlir::emitError(mlir::UnknownLoc::get(context.get())); }));
  }

  std::string read(const std::string &name) const {
    std::ifstream file(path(name), std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  /// Names of the files in the folder, in order.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    std::error_code error;
    for (llvm::sys::fs::directory_iterator it(folder, error), end; it != end && !error;
         it.increment(error)) {
      names.push_back(llvm::sys::path::filename(it->path()).str());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  /// An object with a `main` that takes the place of the runtime library.
  std::string makeRuntime(const std::string &body) {
    std::ofstream(path("main.cpp")) << "#include <cstdint>\n"
                                       "using Kernel = void (*)(void *const *, const int64_t *, "
                                       "const int64_t *);\n"
                                       "extern \"C\" const Kernel weft_kernels[];\n"
                                       "extern \"C\" const char weft_program[];\n"
                                       "extern \"C\" const uint64_t weft_program_size;\n"
                                       "int main() {" +
                                           body + "}\n";
    std::string command = "c++ -c " + path("main.cpp") + " -o " + path("main.o");
    EXPECT_EQ(std::system(command.c_str()), 0);
    return path("main.o");
  }

  llvm::SmallString<128> folder;
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  rt::Program program;
  /// The last report.
  std::string message;
  EmitReport report;
};

/// A cache in a folder of its own.
class CacheTest : public EmitTest {
protected:
  EmitOptions cached() const {
    EmitOptions options;
    options.cacheFolder = path("cache");
    return options;
  }

  /// The entries of the cache.
  std::vector<std::string> entries() const {
    std::vector<std::string> paths;
    std::error_code error;
    for (llvm::sys::fs::directory_iterator it(path("cache"), error), end; it != end && !error;
         it.increment(error)) {
      if (llvm::sys::path::filename(it->path()).starts_with("llvmcache-")) {
        paths.push_back(it->path());
      }
    }
    return paths;
  }
};

TEST_F(CacheTest, FindsCodeThatWasMadeBefore) {
  ASSERT_TRUE(emit(cached())) << message;
  EXPECT_EQ(report.kernels, 1u);
  EXPECT_EQ(report.distinct, 1u);
  EXPECT_EQ(report.reused, 0u);
  EXPECT_EQ(entries().size(), 1u);
  std::string first = read("kernels.a");
  ASSERT_TRUE(emit(cached())) << message;
  EXPECT_EQ(report.reused, 1u);
  EXPECT_GT(report.cache.savedSeconds, 0);
  EXPECT_EQ(read("kernels.a"), first);
  ASSERT_TRUE(emit()) << message;
  EXPECT_EQ(report.reused, 0u);
  EXPECT_EQ(read("kernels.a"), first);
}

TEST_F(CacheTest, TellsTargetsApart) {
  ASSERT_TRUE(emit(cached()));
  std::vector<EmitOptions> others(4, cached());
  others[0].cpu = "x86-64";
  others[1].features = "-avx2";
  others[2].optLevel = 1;
  others[3].sanitize = Sanitizer::Address;
  for (const EmitOptions &options : others) {
    ASSERT_TRUE(emit(options)) << message;
    EXPECT_EQ(report.reused, 0u);
    ASSERT_TRUE(emit(options)) << message;
    EXPECT_EQ(report.reused, 1u);
  }
}

/// A program of three kernels, of which two have the same code.
TEST_F(CacheTest, CompilesEachCodeOnce) {
  std::string text = kKernel;
  auto named = [&](const std::string &name, const std::string &size) {
    std::string kernel = text;
    kernel.replace(kernel.find("@kernel"), 7, "@" + name);
    for (size_t at = 0; (at = kernel.find("4xf32", at)) != std::string::npos; at += size.size()) {
      kernel.replace(at, 1, size);
    }
    return kernel;
  };
  program.kernels = {{"kernel_0"}, {"kernel_1"}, {"kernel_2"}};
  module =
      lower(*context, named("kernel_0", "4") + named("kernel_1", "4") + named("kernel_2", "5"));
  ASSERT_TRUE(emit(cached())) << message;
  EXPECT_EQ(report.kernels, 3u);
  EXPECT_EQ(report.distinct, 2u);
  module =
      lower(*context, named("kernel_0", "6") + named("kernel_1", "4") + named("kernel_2", "5"));
  ASSERT_TRUE(emit(cached())) << message;
  EXPECT_EQ(report.distinct, 3u);
  EXPECT_EQ(report.reused, 2u);
}

TEST_F(CacheTest, MakesDamagedEntriesAgain) {
  ASSERT_TRUE(emit(cached()));
  std::string first = read("kernels.a");
  ASSERT_EQ(entries().size(), 1u);
  std::string entry = entries().front();
  std::string whole = read(entry.substr(path("").size()));
  std::string changed = whole;
  changed[changed.size() / 2] ^= 1;
  for (const std::string &bytes : {changed, whole.substr(0, whole.size() / 2), std::string()}) {
    std::ofstream(entry, std::ios::binary) << bytes;
    ASSERT_TRUE(emit(cached())) << message;
    EXPECT_EQ(report.reused, 0u);
    EXPECT_EQ(read("kernels.a"), first);
    EXPECT_EQ(read(entry.substr(path("").size())).size(), whole.size());
  }
  ASSERT_TRUE(emit(cached())) << message;
  EXPECT_EQ(report.reused, 1u);
}

TEST_F(CacheTest, GoesOnWithoutAFolder) {
  std::ofstream(path("cache")) << "a file";
  ASSERT_TRUE(emit(cached()));
  EXPECT_NE(message.find("cannot keep code of kernels in '" + path("cache") + "'"),
            std::string::npos)
      << message;
  EXPECT_EQ(files(), (std::vector<std::string>{"cache", "kernels.a"}));
}

TEST_F(CacheTest, IsWhereTheEnvironmentSays) {
  std::optional<std::string> before = llvm::sys::Process::GetEnv("WEFT_CACHE");
  setenv("WEFT_CACHE", "/somewhere/else", /*overwrite=*/1);
  EXPECT_EQ(defaultCacheFolder(), "/somewhere/else");
  setenv("WEFT_CACHE", "none", /*overwrite=*/1);
  EXPECT_EQ(defaultCacheFolder(), "");
  unsetenv("WEFT_CACHE");
  EXPECT_TRUE(llvm::StringRef(defaultCacheFolder()).ends_with("/weft")) << defaultCacheFolder();
  if (before) {
    setenv("WEFT_CACHE", before->c_str(), /*overwrite=*/1);
  }
}

TEST_F(EmitTest, RefusesUnknownProcessors) {
  EXPECT_FALSE(emit({.cpu = "nonesuch"}));
  EXPECT_NE(message.find("unknown processor 'nonesuch' for x86_64"), std::string::npos) << message;
  EXPECT_TRUE(files().empty());
}

TEST_F(EmitTest, RefusesProcessorsOf32Bits) {
  EXPECT_FALSE(emit({.cpu = "pentium3"}));
  EXPECT_NE(message.find("processor 'pentium3' does not run 64-bit code"), std::string::npos)
      << message;
}

TEST_F(EmitTest, RefusesUnknownFeatures) {
  EXPECT_FALSE(emit({.features = "+nonesuch"}));
  EXPECT_NE(message.find("unknown processor feature '+nonesuch'"), std::string::npos) << message;
  EXPECT_FALSE(emit({.features = "avx"}));
  EXPECT_NE(message.find("with + or - before it"), std::string::npos) << message;
  EXPECT_TRUE(emit({.features = "-avx2,-fma"}));
}

TEST_F(EmitTest, RefusesKernelsWithoutCode) {
  program.kernels.push_back({"other"});
  EXPECT_FALSE(emit());
  EXPECT_NE(message.find("kernel 'other' has no code"), std::string::npos) << message;
  EXPECT_TRUE(files().empty());
}

TEST_F(EmitTest, RefusesInstructionsWithOtherOperands) {
  rt::Instruction instruction;
  instruction.operands.resize(2);
  instruction.immediates = {7};
  program.stepBody() = {instruction};
  EXPECT_TRUE(emit());
  program.stepBody().front().operands.resize(3);
  EXPECT_FALSE(emit());
  EXPECT_NE(message.find("kernel 'kernel' takes 2 buffers and 1 immediates, an instruction gives "
                         "it 3 and 1"),
            std::string::npos)
      << message;
}

TEST_F(EmitTest, RefusesModulesThatAreNotLowered) {
  module = mlir::OwningOpRef<mlir::ModuleOp>(
      mlir::ModuleOp::create(mlir::UnknownLoc::get(context.get())));
  EXPECT_FALSE(emit());
  EXPECT_NE(message.find("kernel 'kernel' has no code"), std::string::npos) << message;
}

TEST_F(EmitTest, RefusesPathsThatCannotBeWritten) {
  EXPECT_FALSE(emit({}, "missing/kernels.a"));
  EXPECT_NE(message.find("cannot emit '" + path("missing/kernels.a") + "'"), std::string::npos)
      << message;
}

TEST_F(EmitTest, WatchesMemoryAndThreads) {
  ASSERT_TRUE(emit({.optLevel = 0}));
  EXPECT_EQ(read("kernels.a").find("__asan_"), std::string::npos);
  ASSERT_TRUE(emit({.sanitize = Sanitizer::Address}));
  EXPECT_NE(read("kernels.a").find("__asan_init"), std::string::npos);
  ASSERT_TRUE(emit({.sanitize = Sanitizer::Thread}));
  EXPECT_NE(read("kernels.a").find("__tsan_init"), std::string::npos);
}

/// The sums of a norm's gradients, of 132 blocks for each column.
TEST_F(EmitTest, CountsWhatKernelsKeepOnDevices) {
  llvm::Expected<CudaToolkit> toolkit = findCudaToolkit();
  if (!toolkit) {
    GTEST_SKIP() << llvm::toString(toolkit.takeError());
  }
  module = lower(*context, R"(
func.func private @kernel(%x: tensor<132x65536xf32>, %s: tensor<65536xf32>,
                          %g: tensor<132x65536xf32>)
    -> (tensor<132x65536xf32>, tensor<65536xf32>) attributes {weft.tied = array<i64: -1, -1>} {
  %y:2 = weft.norm_grad rms %x scale(%s : tensor<65536xf32>)
    gradient(%g : tensor<132x65536xf32>) epsilon = 1.0e-5
    : tensor<132x65536xf32> -> tensor<132x65536xf32>, tensor<65536xf32>
  return %y#0, %y#1 : tensor<132x65536xf32>, tensor<65536xf32>
})",
                 /*devices=*/true);
  ASSERT_TRUE(module);
  program.deviceUses = {{rt::DevicePart::Code, {}}};
  ASSERT_TRUE(emit({.target = TargetKind::Cuda})) << message;
  uint64_t kept = uint64_t(132) * 65536 * 4;
  EXPECT_GT(program.deviceUses[0].bytes.value_or(0), kept);
  EXPECT_LT(program.deviceUses[0].bytes.value_or(0), kept + (1 << 20));
}

TEST_F(EmitTest, LinksPrograms) {
  ASSERT_TRUE(emit());
  std::string runtime =
      makeRuntime("float x[4] = {1, 2, 3, 4}, y[4] = {};\n"
                  "void *buffers[] = {x, y}; int64_t number = 0;\n"
                  "weft_kernels[0](buffers, &number, nullptr);\n"
                  "return y[3] == 4 && weft_program_size > 8 && weft_program[0] != 0 ? 0 : 1;");
  ASSERT_TRUE(link({path("kernels.a"), runtime, path("train")})) << message;
  EXPECT_EQ(std::system(path("train").c_str()), 0);
  EXPECT_EQ(files(), (std::vector<std::string>{"kernels.a", "main.cpp", "main.o", "train"}));
}

TEST_F(EmitTest, LinksProgramsThatWatchMemory) {
  ASSERT_TRUE(emit({.sanitize = Sanitizer::Address}));
  // The result is one element too short.
  std::string runtime = makeRuntime("float *x = new float[4], *y = new float[3];\n"
                                    "void *buffers[] = {x, y}; int64_t number = 0;\n"
                                    "weft_kernels[0](buffers, &number, nullptr);\n"
                                    "return 0;");
  ASSERT_TRUE(link({path("kernels.a"), runtime, path("train"), Sanitizer::Address})) << message;
  std::string command = path("train") + " 2> " + path("log");
  EXPECT_NE(std::system(command.c_str()), 0);
  EXPECT_NE(read("log").find("heap-buffer-overflow"), std::string::npos) << read("log");
}

TEST_F(EmitTest, SaysWhyLinkingFails) {
  ASSERT_TRUE(emit());
  std::string runtime = makeRuntime("extern int missing(); return missing();");
  EXPECT_FALSE(link({path("kernels.a"), runtime, path("train")}));
  EXPECT_NE(message.find("failed: "), std::string::npos) << message;
  EXPECT_NE(message.find("missing()"), std::string::npos) << message;
}

TEST_F(EmitTest, SaysWhatIsMissingToLink) {
  ASSERT_TRUE(emit());
  EXPECT_FALSE(link({path("kernels.a"), path("libweft-rt.a"), path("train")}));
  EXPECT_NE(message.find("there is no '" + path("libweft-rt.a") + "'"), std::string::npos)
      << message;
  setenv("CXX", "nonesuch-c++", /*overwrite=*/1);
  EXPECT_FALSE(link({path("kernels.a"), path("kernels.a"), path("train")}));
  unsetenv("CXX");
  EXPECT_NE(message.find("found no C++ compiler 'nonesuch-c++', which CXX names"),
            std::string::npos)
      << message;
}

/// Code for a processor without fused operations and with short vectors is right, too.
class ProcessorTest : public KernelTest {};
WEFT_INSTANTIATE_FOR_FLOATS(ProcessorTest);

TEST_P(ProcessorTest, Baseline) {
  KernelCall call;
  call.options.cpu = "x86-64";
  call.operands = {randomArray({6, 19}, 1), randomArray({9, 19}, 2)};
  call.results = {Array({6, 9})};
  call.text = R"(
func.func private @kernel(%x: tensor<6x19x$f>, %w: tensor<9x19x$f>) -> tensor<6x9x$f>
    attributes {weft.tied = array<i64: -1>} {
  %y = weft.contract "ik,jk->ij" (%x, %w) : (tensor<6x19x$f>, tensor<9x19x$f>) -> tensor<6x9x$f>
  return %y : tensor<6x9x$f>
})";
  Array expected({6, 9});
  forEach({6, 9, 19}, [&](const std::vector<int64_t> &at) {
    expected({at[0], at[1]}) += call.operands[0]({at[0], at[2]}) * call.operands[1]({at[1], at[2]});
  });
  for (unsigned level : {0, 2}) {
    call.options.optLevel = level;
    expectClose(run(call).results[0], expected, 4);
  }
}

} // namespace
} // namespace weft::test
