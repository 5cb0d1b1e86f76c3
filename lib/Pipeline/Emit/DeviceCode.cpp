//===- DeviceCode.cpp - kernels for CUDA devices --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Emit/DeviceCode.h"

#include "DeviceParts.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/TargetSelect.h"

namespace weft {

using namespace llvm;

static Expected<std::unique_ptr<TargetMachine>> makeDeviceMachine() {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target) {
    return createStringError(error);
  }
  // Drivers since CUDA 12.0 take this version of PTX.
  return std::unique_ptr<TargetMachine>(target->createTargetMachine(
      triple, "sm_" + std::to_string(kPtxArchitecture), "+ptx80", TargetOptions(), std::nullopt,
      std::nullopt, CodeGenOptLevel::Aggressive));
}

/// The assembler would unroll loops of hundreds of rounds, beyond what registers hold.
static void keepLoops(llvm::Module &module) {
  for (Function &function : module) {
    if (!function.isDeclaration()) {
      DominatorTree dominators(function);
      LoopInfo loops(dominators);
      for_each(loops.getLoopsInPreorder(), [](Loop *loop) { loop->setLoopAlreadyUnrolled(); });
    }
  }
}

Expected<std::string> emitPtx(mlir::ModuleOp module, const CudaToolkit &toolkit) {
  Expected<std::unique_ptr<TargetMachine>> machine = makeDeviceMachine();
  if (!machine) {
    return machine.takeError();
  }
  LLVMContext context;
  mlir::ModuleOp devices = devicesOf(module);
  Expected<std::unique_ptr<llvm::Module>> code =
      translate(devices, module.getSymName().value_or("kernels"), **machine, context);
  if (!code) {
    return code.takeError();
  }
  addEntries(**code, iterationsOf(devices), threadsOf(devices));
  linkBlocks(**code);
  if (Error error = linkMath(**code, toolkit.libdevice)) {
    return error;
  }
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopInterleaving = false;
  optimize(**code, **machine, /*level=*/2, tuning);
  keepLoops(**code);
  return generate(**code, **machine, CodeGenFileType::AssemblyFile);
}

Expected<DeviceImages> emitImages(mlir::ModuleOp module, const CudaToolkit &toolkit) {
  Expected<std::string> ptx = emitPtx(module, toolkit);
  if (!ptx) {
    return ptx.takeError();
  }
  Expected<std::vector<Cubin>> cubins = assemble(*ptx, kDeviceArchitectures, toolkit);
  if (!cubins) {
    return cubins.takeError();
  }
  return DeviceImages{std::move(*cubins), std::move(*ptx)};
}

namespace {

/// One run of the assembler, and the files that it reads and writes.
class Assembly {
public:
  explicit Assembly(unsigned architecture) { cubin.architecture = architecture; }

  Error start(const CudaToolkit &toolkit, StringRef ptx) {
    if (std::error_code code = makeFiles()) {
      return createStringError("cannot write a temporary file: " + code.message());
    }
    std::string target = "-arch=sm_" + std::to_string(cubin.architecture);
    StringRef arguments[] = {toolkit.ptxas, "-v", "-O3", target, ptx, "-o", result};
    std::string error;
    bool failed = false;
    process = sys::ExecuteNoWait(toolkit.ptxas, arguments, /*Env=*/std::nullopt,
                                 {StringRef(""), StringRef(log), StringRef(log)},
                                 /*MemoryLimit=*/0, &error, &failed);
    return failed ? createStringError("cannot run '" + toolkit.ptxas + "': " + error)
                  : Error::success();
  }

  Expected<Cubin> finish(const CudaToolkit &toolkit) {
    std::string error;
    sys::ProcessInfo end = sys::Wait(process, /*SecondsToWait=*/std::nullopt, &error);
    process = {};
    std::string said = read(log);
    if (end.ReturnCode != 0) {
      return createStringError("'" + toolkit.ptxas + "' failed for sm_" +
                               Twine(cubin.architecture) + ": " +
                               (error.empty() ? StringRef(said).take_front(2000).trim() : error));
    }
    cubin.bytes = read(result);
    readResources(said);
    return std::move(cubin);
  }

  ~Assembly() {
    if (process.Pid != sys::ProcessInfo::InvalidPid) {
      (void)sys::Wait(process, /*SecondsToWait=*/std::nullopt);
    }
  }

private:
  std::error_code makeFiles() {
    for (auto [path, remover, suffix] :
         {std::tuple(&result, &removeResult, "cubin"), std::tuple(&log, &removeLog, "log")}) {
      if (std::error_code code = sys::fs::createTemporaryFile("weft-device", suffix, *path)) {
        return code;
      }
      remover->setFile(*path);
    }
    return {};
  }

  static std::string read(StringRef path) {
    ErrorOr<std::unique_ptr<MemoryBuffer>> text = MemoryBuffer::getFile(path);
    return text ? (*text)->getBuffer().str() : "";
  }

  /// What -v says of all entries together, and of each: its name, then what it takes.
  void readResources(StringRef said) {
    static const Regex entry("Compiling entry function '([^']+)'");
    static const Regex memory("([0-9]+) bytes stack frame, ([0-9]+) bytes spill stores, "
                              "([0-9]+) bytes spill loads");
    static const Regex used("Used ([0-9]+) registers");
    static const Regex shared("([0-9]+) bytes smem");
    static const Regex kept("([0-9]+) bytes gmem");
    auto number = [](StringRef digits) {
      uint64_t value = 0;
      (void)digits.getAsInteger(10, value);
      return value;
    };
    SmallVector<StringRef> found;
    for (StringRef line : split(said, '\n')) {
      if (entry.match(line, &found)) {
        cubin.entries.push_back({found[1].str()});
      }
      if (kept.match(line, &found)) {
        cubin.keptBytes = number(found[1]);
      }
      if (cubin.entries.empty()) {
        continue;
      }
      EntryResources &last = cubin.entries.back();
      if (memory.match(line, &found)) {
        last.stackBytes = unsigned(number(found[1]));
        last.spillBytes = unsigned(number(found[2]) + number(found[3]));
      }
      if (used.match(line, &found)) {
        last.registers = unsigned(number(found[1]));
      }
      if (shared.match(line, &found)) {
        last.sharedBytes = unsigned(number(found[1]));
      }
    }
    sort(cubin.entries, [](const auto &a, const auto &b) { return a.name < b.name; });
  }

  Cubin cubin;
  SmallString<128> result, log;
  FileRemover removeResult, removeLog;
  sys::ProcessInfo process;
};

} // namespace

Expected<std::vector<Cubin>> assemble(StringRef ptx, ArrayRef<unsigned> architectures,
                                      const CudaToolkit &toolkit) {
  SmallString<128> source;
  int file = -1;
  if (std::error_code code = sys::fs::createTemporaryFile("weft-device", "ptx", file, source)) {
    return createStringError("cannot write a temporary file: " + code.message());
  }
  FileRemover removeSource(source);
  {
    raw_fd_ostream stream(file, /*shouldClose=*/true);
    stream << ptx;
    stream.close();
    if (std::error_code code = stream.error()) {
      stream.clear_error();
      return createStringError("cannot write '" + source + "': " + code.message());
    }
  }
  std::list<Assembly> assemblies;
  for (unsigned architecture : architectures) {
    if (Error error = assemblies.emplace_back(architecture).start(toolkit, source)) {
      return error;
    }
  }
  std::vector<Cubin> cubins;
  for (Assembly &assembly : assemblies) {
    Expected<Cubin> cubin = assembly.finish(toolkit);
    if (!cubin) {
      return cubin.takeError();
    }
    cubins.push_back(std::move(*cubin));
  }
  return cubins;
}

} // namespace weft
