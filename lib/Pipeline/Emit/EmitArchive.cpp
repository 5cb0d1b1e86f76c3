//===- EmitArchive.cpp - machine code for kernels -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CodeCache.h"
#include "CodeGeneration.h"
#include "DeviceParts.h"
#include "KernelTable.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "weft/Pipeline/Emit/Emit.h"
#include "weft/Pipeline/Lower/HostLowering.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Support/FileSystem.h"

namespace weft {

using namespace llvm;

namespace {

Error write(StringRef bytes, StringRef path) {
  std::error_code code;
  raw_fd_ostream stream(path, code);
  if (!code) {
    stream << bytes;
    stream.close();
    code = stream.error();
    stream.clear_error(); // Else the stream ends the process when it goes.
  }
  return code ? createStringError(code.message()) : Error::success();
}

/// Threads that a multiprocessor of any supported architecture runs.
constexpr uint64_t kThreadsEach = 2048;
/// Bytes of a thread's stack that every context has: the default of its limit.
constexpr uint64_t kContextStackBytes = 1024;

/// Sets in `programs` the memory for code and stacks, that of the architecture that needs most.
/// Omits kernels that a library may replace: devices do not load them then.
void noteDevice(MutableArrayRef<rt::Program> programs, const DeviceImages &images,
                std::optional<int64_t> multiprocessors) {
  auto isLeftOut = [&](StringRef entry) {
    StringRef name = entry.take_front(entry.rfind("_phase_"));
    return any_of(programs.front().kernels, [&](const rt::Kernel &kernel) {
      return kernel.attention && name == kernel.name;
    });
  };
  uint64_t code = 0, stack = 0;
  for (const Cubin &cubin : images.cubins) {
    code = std::max<uint64_t>(code, cubin.bytes.size() + cubin.keptBytes);
    for (const EntryResources &entry : cubin.entries) {
      if (entry.stackBytes > stack && !isLeftOut(entry.name)) {
        stack = entry.stackBytes;
      }
    }
  }
  for (rt::Program &program : programs) {
    for (rt::DeviceUse &use : program.deviceUses) {
      if (use.part == rt::DevicePart::Code) {
        use.bytes = code;
      } else if (use.part == rt::DevicePart::Stacks &&
                 (multiprocessors || stack <= kContextStackBytes)) {
        use.bytes = (std::max(stack, kContextStackBytes) - kContextStackBytes) * kThreadsEach *
                    uint64_t(multiprocessors.value_or(0));
      }
    }
  }
}

/// Returns the functions of the kernels that all programs share, in order.
Expected<std::vector<mlir::LLVM::LLVMFuncOp>> findKernels(ArrayRef<rt::Program> programs,
                                                          const mlir::SymbolTable &symbols) {
  std::vector<mlir::LLVM::LLVMFuncOp> kernels;
  for (const rt::Kernel &kernel : programs.front().kernels) {
    auto function = symbols.lookup<mlir::LLVM::LLVMFuncOp>(kernel.name);
    if (!function || function.isExternal() || function.getNumArguments() <= kPartArguments ||
        !function->hasAttr(kIterationsAttrName)) {
      return createStringError("kernel '" + kernel.name + "' has no code");
    }
    kernels.push_back(function);
  }
  return kernels;
}

/// Object files with their names in an archive.
struct Objects {
  std::vector<std::string> names, contents;

  void add(std::string name, std::string content) {
    names.push_back(std::move(name));
    contents.push_back(std::move(content));
  }

  /// Returns the bytes of an archive of all of them, without times and owners.
  Expected<std::string> archive() const {
    std::vector<NewArchiveMember> members;
    for (auto [name, content] : zip_equal(names, contents)) {
      members.emplace_back(MemoryBufferRef(content, name));
    }
    Expected<std::unique_ptr<MemoryBuffer>> bytes =
        writeArchiveToBuffer(members, SymtabWritingMode::NormalSymtab, object::Archive::K_GNU,
                             /*Deterministic=*/true, /*Thin=*/false);
    return bytes ? Expected<std::string>((*bytes)->getBuffer().str()) : bytes.takeError();
  }
};

/// One run of the phase.
class Emission {
public:
  Emission(mlir::ModuleOp module, MutableArrayRef<rt::Program> programs, const EmitOptions &options)
      : module(module), programs(programs), options(options), cache(options.cacheFolder) {}

  Expected<EmitReport> run(StringRef path);

private:
  Error makeSources(const HostTarget &target, TargetMachine &machine);
  Error compileSources(const HostTarget &target);
  Error makeImages();
  Error makeTable(const HostTarget &target, TargetMachine &machine);

  mlir::ModuleOp module;
  MutableArrayRef<rt::Program> programs;
  const EmitOptions &options;
  CodeCache cache;
  std::vector<mlir::LLVM::LLVMFuncOp> kernels;
  /// For each kernel.
  std::vector<KernelSource> sources;
  size_t distinct = 0, reused = 0;
  std::optional<DeviceImages> images;
  Objects objects;
};

Error Emission::makeSources(const HostTarget &target, TargetMachine &machine) {
  mlir::SymbolTable symbols(module);
  Expected<std::vector<mlir::LLVM::LLVMFuncOp>> found = findKernels(programs, symbols);
  if (!found) {
    return found.takeError();
  }
  kernels = std::move(*found);
  sources.resize(kernels.size());
  return forEachInParallel(module.getContext(), kernels.size(), [&](size_t i) -> Error {
    Expected<KernelSource> source = makeSource(kernels[i], symbols, machine, target);
    return source ? (sources[i] = std::move(*source), Error::success()) : source.takeError();
  });
}

Error Emission::compileSources(const HostTarget &target) {
  std::vector<const KernelSource *> all;
  StringSet<> keys;
  for (const KernelSource &source : sources) {
    if (keys.insert(source.key).second) {
      all.push_back(&source);
    }
  }
  distinct = all.size();
  std::vector<std::string> compiled(distinct);
  size_t foundBefore = cache.use().found; // Images.
  Error error = forEachInParallel(module.getContext(), distinct, [&](size_t i) -> Error {
    Expected<std::string> object =
        cache.get(all[i]->key, [&] { return compileSource(*all[i], target); });
    return object ? (compiled[i] = std::move(*object), Error::success()) : object.takeError();
  });
  reused = cache.use().found - foundBefore;
  for (size_t i = 0; i < distinct && !error; ++i) {
    objects.add(all[i]->wrapper + ".o", std::move(compiled[i]));
  }
  return error;
}

Error Emission::makeImages() {
  if (options.target != TargetKind::Cuda) {
    return Error::success();
  }
  Expected<CudaToolkit> toolkit = findCudaToolkit();
  Expected<DeviceImages> made = toolkit ? emitImages(module, *toolkit, cache) : toolkit.takeError();
  if (!made) {
    return made.takeError();
  }
  images = std::move(*made);
  noteDevice(programs, *images, options.multiprocessors);
  return Error::success();
}

Error Emission::makeTable(const HostTarget &target, TargetMachine &machine) {
  KernelIterations iterations = iterationsOf(module), deviceIterations, deviceThreads;
  if (images) {
    deviceIterations = iterationsOf(devicesOf(module));
    deviceThreads = threadsOf(devicesOf(module));
  }
  std::vector<KernelEntry> entries;
  for (auto [source, kernel] : zip_equal(sources, kernels)) {
    StringRef name = kernel.getName();
    auto of = [name](const KernelIterations &numbers) -> ArrayRef<int64_t> {
      auto found = numbers.find(name);
      return found == numbers.end() ? ArrayRef<int64_t>() : ArrayRef<int64_t>(found->second);
    };
    entries.push_back({source.wrapper, operandsOf(kernel), of(iterations), of(deviceIterations),
                       of(deviceThreads)});
  }
  LLVMContext context;
  llvm::Module table("table", context);
  table.setTargetTriple(machine.getTargetTriple());
  table.setDataLayout(machine.createDataLayout());
  if (Error error = addKernelTable(table, programs, entries)) {
    return error;
  }
  if (images) {
    addImages(table, *images);
  }
  Expected<std::string> object = compile(table, target);
  return object ? (objects.add("table.o", std::move(*object)), Error::success())
                : object.takeError();
}

Expected<EmitReport> Emission::run(StringRef path) {
  Expected<HostTarget> target = resolveTarget(options);
  if (!target) {
    return target.takeError();
  }
  Expected<std::unique_ptr<TargetMachine>> machine = makeTargetMachine(*target);
  if (!machine) {
    return machine.takeError();
  }
  // Images first: the table holds the program, which holds their sizes.
  if (Error error = makeSources(*target, **machine)) {
    return error;
  }
  if (Error error = makeImages()) {
    return error;
  }
  // Before kernels are compiled, since it finds instructions that do not fit them.
  if (Error error = makeTable(*target, **machine)) {
    return error;
  }
  if (Error error = compileSources(*target)) {
    return error;
  }
  Expected<std::string> bytes = objects.archive();
  if (!bytes) {
    return bytes.takeError();
  }
  if (Error unwritten = write(*bytes, path)) {
    return unwritten;
  }
  cache.prune();
  return EmitReport{kernels.size(), distinct, reused, cache.use()};
}

} // namespace

void registerEmitTranslations(mlir::DialectRegistry &registry) {
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
}

FailureOr<EmitReport> emitArchive(mlir::ModuleOp module, MutableArrayRef<rt::Program> programs,
                                  const EmitOptions &options, StringRef path) {
  Expected<EmitReport> report = Emission(module, programs, options).run(path);
  if (!report) {
    return module.emitError("cannot emit '") << path << "': " << toString(report.takeError());
  }
  if (const std::string &problem = report->cache.problem; !problem.empty()) {
    module.emitWarning("cannot keep code of kernels in '")
        << options.cacheFolder << "': " << problem;
  }
  return *report;
}

} // namespace weft
