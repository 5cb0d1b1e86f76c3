//===- AlgorithmCache.cpp - a file of the algorithms chosen for matmuls --===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/AlgorithmCache.h"

#include "support/Checksum.h"
#include "support/OutputFile.h"
#include "support/Text.h"
#include "weft-rt/Program.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <sys/file.h>
#include <unistd.h>

using namespace weft::rt;
using namespace weft::rt::cuda;

static constexpr char kHeader[] = "weft product ways 3\n";
/// The largest valid file.
static constexpr std::uintmax_t kMostBytes = 64 << 20;

std::string cuda::keyOf(const Matmul &p) {
  const Epilogue &e = p.epilogue;
  return concat(nameOf(p.type), "/", nameOf(p.typeOfB()), p.isTF32 ? " by tf32" : "",
                p.isResultF32 ? " to f32 " : " ", p.m, "x", p.n, "x", p.k, " ", int(p.transposeA),
                int(p.transposeB), " ", p.lda, "/", p.ldb, "/", p.ldc, " ", p.batch, " ", p.strideA,
                "/", p.strideB, "/", p.strideC, " ", int(e.hasAddend), int(e.hasBias),
                int(e.activation), int(e.hasAux), int(e.sums), " ", p.workspaceBytes);
}

std::string cuda::defaultCacheFile() {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  std::string folder = cache && *cache == '/' ? cache
                       : home && *home == '/' ? concat(home, "/.cache")
                                              : "";
  return folder.empty() ? "" : folder + "/weft/product-ways";
}

static std::string digestOf(const std::string &text) {
  Checksum checksum;
  checksum.add(text);
  return digestText(checksum.digest());
}

/// Parses the words of an algorithm. Returns false unless there are exactly as many as needed.
static bool parseWay(const std::string &text, MatmulAlgorithm &way) {
  std::istringstream in(text);
  for (uint64_t &word : way.words) {
    in >> std::hex >> word;
  }
  return !in.fail() && (in >> std::ws).eof();
}

bool AlgorithmCache::parse(const std::string &text) {
  size_t end = text.rfind("xxh3-128:");
  if (!text.starts_with(kHeader) || end == std::string::npos ||
      text.substr(end) != digestOf(text.substr(0, end)) + "\n") {
    return false;
  }
  std::istringstream in(text.substr(sizeof kHeader - 1, end - (sizeof kHeader - 1)));
  std::map<std::pair<std::string, std::string>, MatmulAlgorithm> read;
  for (std::string line; std::getline(in, line);) {
    size_t first = line.find('\t');
    size_t second = first == std::string::npos ? first : line.find('\t', first + 1);
    MatmulAlgorithm way = {};
    if (second == std::string::npos || !parseWay(line.substr(second + 1), way)) {
      return false;
    }
    read[{line.substr(0, first), line.substr(first + 1, second - first - 1)}] = way;
  }
  ways.merge(read); // Existing entries are newer.
  return true;
}

std::string AlgorithmCache::text() const {
  std::ostringstream out;
  out << kHeader << std::hex;
  for (const auto &[key, way] : ways) {
    out << key.first << '\t' << key.second << '\t';
    for (size_t i = 0; i < std::size(way.words); ++i) {
      out << (i ? " " : "") << way.words[i];
    }
    out << '\n';
  }
  return out.str() + digestOf(out.str()) + "\n";
}

Status AlgorithmCache::read(const std::string &file) {
  std::error_code none;
  if (!std::filesystem::exists(file, none)) {
    return {};
  }
  std::uintmax_t bytes = std::filesystem::file_size(file, none);
  std::ifstream in(file, std::ios::binary);
  if (none || bytes > kMostBytes || !in) {
    return makeError("'", file, "' is not a file of matmul algorithms");
  }
  std::string content(std::istreambuf_iterator<char>(in), {});
  return parse(content) ? Status() : makeError("'", file, "' is damaged, or of another version");
}

namespace {

/// Holds an exclusive lock on a file; the system releases it if the process dies.
class FileLock {
public:
  explicit FileLock(const std::string &path)
      : descriptor(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666)) {
    while (descriptor >= 0 && ::flock(descriptor, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  FileLock(const FileLock &) = delete;
  FileLock &operator=(const FileLock &) = delete;
  ~FileLock() {
    if (descriptor >= 0) {
      ::close(descriptor);
    }
  }

private:
  const int descriptor;
};

} // namespace

Status AlgorithmCache::write(const std::string &file) {
  std::error_code code;
  std::filesystem::path folder = std::filesystem::path(file).parent_path();
  if (!folder.empty() && !std::filesystem::create_directories(folder, code) && code) {
    return makeError("cannot make the folder '", folder.string(), "': ", code.message());
  }
  FileLock lock(file + ".lock");
  (void)read(file); // A damaged file is replaced.
  return writeFile(file, text());
}

const MatmulAlgorithm *AlgorithmCache::find(const std::string &kind, const Matmul &matmul) const {
  auto it = ways.find({kind, keyOf(matmul)});
  return it == ways.end() ? nullptr : &it->second;
}

void AlgorithmCache::set(const std::string &kind, const Matmul &matmul,
                         const MatmulAlgorithm &way) {
  ways[{kind, keyOf(matmul)}] = way;
}
