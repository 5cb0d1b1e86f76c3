//===- DeviceCode.cpp - kernels for CUDA devices --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Emit/DeviceCode.h"

#include "DeviceParts.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Bitcode/BitcodeWriter.h"
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
  // Drivers since CUDA 12.0 accept this version of PTX.
  return std::unique_ptr<TargetMachine>(target->createTargetMachine(
      triple, "sm_" + std::to_string(kPtxArchitecture), "+ptx80", TargetOptions(), std::nullopt,
      std::nullopt, CodeGenOptLevel::Aggressive));
}

/// Keeps the assembler from unrolling loops of hundreds of rounds, which spills registers.
static void keepLoops(llvm::Module &module) {
  for (Function &function : module) {
    if (!function.isDeclaration()) {
      DominatorTree dominators(function);
      LoopInfo loops(dominators);
      for_each(loops.getLoopsInPreorder(), [](Loop *loop) { loop->setLoopAlreadyUnrolled(); });
    }
  }
}

static Expected<std::string> emitPtx(mlir::ModuleOp module, const CudaToolkit &toolkit,
                                     CodeCache &cache) {
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
  std::string bitcode;
  raw_string_ostream stream(bitcode);
  WriteBitcodeToFile(**code, stream);
  return cache.get(keyOf({"ptx", bitcode}), [&] {
    PipelineTuningOptions tuning;
    tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopInterleaving = false;
    optimize(**code, **machine, /*level=*/2, tuning);
    keepLoops(**code);
    return generate(**code, **machine, CodeGenFileType::AssemblyFile);
  });
}

Expected<std::string> emitPtx(mlir::ModuleOp module, const CudaToolkit &toolkit) {
  CodeCache none("");
  return emitPtx(module, toolkit, none);
}

namespace {

/// One run of the assembler, and the files that it reads and writes.
class Assembly {
public:
  /// Returns the assembler's output and the machine code, joined by `pack`.
  Expected<std::string> run(const CudaToolkit &toolkit, StringRef ptx, unsigned architecture) {
    if (std::error_code code = makeFiles(ptx)) {
      return createStringError("cannot write a temporary file: " + code.message());
    }
    std::string target = "-arch=sm_" + std::to_string(architecture);
    StringRef arguments[] = {toolkit.ptxas, "-v", "-O3", target, source, "-o", result};
    std::string error;
    int status = sys::ExecuteAndWait(toolkit.ptxas, arguments, /*Env=*/std::nullopt,
                                     {StringRef(""), StringRef(log), StringRef(log)},
                                     /*SecondsToWait=*/0, /*MemoryLimit=*/0, &error);
    std::string said = read(log);
    if (status != 0) {
      return createStringError("'" + toolkit.ptxas + "' failed for sm_" + Twine(architecture) +
                               ": " +
                               (error.empty() ? StringRef(said).take_front(2000).trim() : error));
    }
    return pack(said, read(result));
  }

private:
  std::error_code makeFiles(StringRef ptx) {
    for (auto [path, remover, suffix] :
         {std::tuple(&source, &removeSource, "ptx"), std::tuple(&result, &removeResult, "cubin"),
          std::tuple(&log, &removeLog, "log")}) {
      if (std::error_code code = sys::fs::createTemporaryFile("weft-device", suffix, *path)) {
        return code;
      }
      remover->setFile(*path);
    }
    std::error_code code;
    raw_fd_ostream stream(source, code);
    if (!code) {
      stream << ptx;
      stream.close();
      code = stream.error();
      stream.clear_error(); // Else the stream ends the process when it goes.
    }
    return code;
  }

  static std::string read(StringRef path) {
    ErrorOr<std::unique_ptr<MemoryBuffer>> text = MemoryBuffer::getFile(path);
    return text ? (*text)->getBuffer().str() : "";
  }

  /// Joins the length of the assembler's output, a line break, that output, and the code.
  static std::string pack(StringRef said, StringRef code) {
    return (Twine(said.size()) + "\n" + said + code).str();
  }

  SmallString<128> source, result, log;
  FileRemover removeSource, removeResult, removeLog;
};

/// Parses the output of -v for all entries together, and for each: its name, then its resources.
void readResources(StringRef said, Cubin &cubin) {
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

/// Returns the cubin in `packed`, the result of an assembly.
Cubin unpack(StringRef packed, unsigned architecture) {
  auto [digits, text] = packed.split('\n');
  size_t length = 0;
  (void)digits.getAsInteger(10, length);
  Cubin cubin;
  cubin.architecture = architecture;
  readResources(text.take_front(length), cubin);
  cubin.bytes = text.drop_front(length).str();
  return cubin;
}

} // namespace

Expected<DeviceImages> emitImages(mlir::ModuleOp module, const CudaToolkit &toolkit,
                                  CodeCache &cache) {
  Expected<std::string> ptx = emitPtx(module, toolkit, cache);
  if (!ptx) {
    return ptx.takeError();
  }
  // Without a version, the assembler is unknown, so the cache is not used.
  CodeCache none("");
  CodeCache &known = toolkit.version.empty() ? none : cache;
  DeviceImages images;
  images.cubins.resize(std::size(kDeviceArchitectures));
  Error failure =
      forEachInParallel(module.getContext(), images.cubins.size(), [&](size_t i) -> Error {
        unsigned architecture = kDeviceArchitectures[i];
        std::string key = keyOf({"cubin", toolkit.version, std::to_string(architecture), *ptx});
        Expected<std::string> packed =
            known.get(key, [&] { return Assembly().run(toolkit, *ptx, architecture); });
        if (!packed) {
          return packed.takeError();
        }
        images.cubins[i] = unpack(*packed, architecture);
        return Error::success();
      });
  if (failure) {
    return failure;
  }
  images.ptx = std::move(*ptx);
  return images;
}

Expected<DeviceImages> emitImages(mlir::ModuleOp module, const CudaToolkit &toolkit) {
  CodeCache none("");
  return emitImages(module, toolkit, none);
}

} // namespace weft
