//===- FilesTest.cpp - files that are written and read back -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/local/LocalBackend.h"
#include "checkpoint/Checkpoint.h"
#include "checkpoint/MappedTensors.h"
#include "execution/HostExecutor.h"
#include "support/BFloat16.h"
#include "support/Elements.h"
#include "support/OutputFile.h"
#include "support/Random.h"
#include "tests/ErrorOf.h"
#include "tests/TemporaryFolder.h"
#include "tests/Toy.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace weft::rt;
using testing::HasSubstr;

namespace {

class Files : public testing::Test {
protected:
  TemporaryFolder folder;
};

using OutputFiles = Files;

TEST_F(OutputFiles, AppearWholeOrNotAtAll) {
  std::string path = folder.write("file", "old");
  {
    OutputFile file;
    ASSERT_TRUE(file.open(path) && file.write(std::string("half")));
    EXPECT_EQ(folder.read("file"), "old");
  }
  EXPECT_EQ(folder.read("file"), "old");
  EXPECT_FALSE(folder.has("file.partial"));
  OutputFile file;
  ASSERT_TRUE(file.open(path) && file.write(std::string("new")) && file.commit());
  EXPECT_EQ(folder.read("file"), "new");
  EXPECT_FALSE(folder.has("file.partial"));
}

TEST_F(OutputFiles, FollowSymbolicLinks) {
  folder.write("target", "old");
  std::filesystem::create_symlink("target", folder.path / "link");
  OutputFile file;
  ASSERT_TRUE(file.open(folder.file("link")) && file.write(std::string("new")) && file.commit());
  EXPECT_EQ(folder.read("target"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path / "link"));
}

TEST_F(OutputFiles, CheckingLeavesNothing) {
  EXPECT_EQ(errorOf(checkWritable(folder.file("file"))), "");
  EXPECT_FALSE(folder.has("file"));
  EXPECT_FALSE(folder.has("file.partial"));
  EXPECT_EQ(errorOf(checkWritable(folder.file("none/file"))),
            "cannot write '" + folder.file("none/file") + "': No such file or directory");
  EXPECT_THAT(errorOf(checkWritable(folder.path)), HasSubstr("Is a directory"));
}

TEST_F(OutputFiles, AFullDiskIsAnErrorAndDevicesStayDevices) {
  OutputFile file;
  ASSERT_EQ(errorOf(file.open("/dev/full")), "");
  EXPECT_EQ(errorOf(file.write(std::string("x"))),
            "cannot write '/dev/full': No space left on device");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  StreamFile stream;
  ASSERT_EQ(errorOf(stream.open("/dev/full", 0)), "");
  EXPECT_EQ(errorOf(stream.write(std::string("x"))),
            "cannot write '/dev/full': No space left on device");
  OutputFile null;
  EXPECT_EQ(errorOf(null.open("/dev/null")), "");
  EXPECT_EQ(errorOf(null.write(std::string("x"))), "");
  EXPECT_EQ(errorOf(null.commit()), "");
}

TEST_F(OutputFiles, ReplaceOthersByTheirName) {
  std::string from = folder.write("from", "new"), to = folder.write("to", "old");
  EXPECT_EQ(errorOf(nameWhole(from, to, folder.path)), "");
  EXPECT_EQ(folder.read("to"), "new");
  EXPECT_FALSE(folder.has("from"));
  EXPECT_EQ(errorOf(nameWhole(from, to, folder.path)),
            "cannot write '" + to + "': No such file or directory");
}

TEST_F(OutputFiles, SameFileByAnyName) {
  std::string path = folder.write("file", "");
  std::filesystem::create_symlink("file", folder.path / "link");
  EXPECT_TRUE(isSameFile(path, folder.file("./file")));
  EXPECT_TRUE(isSameFile(path, folder.file("link")));
  EXPECT_TRUE(isSameFile(folder.file("new"), folder.file("./new")));
  EXPECT_FALSE(isSameFile(folder.file("new"), path));
}

/// Returns a file: the length, the header, the data.
std::string tensorsFile(const std::string &header, const std::string &data) {
  uint64_t length = header.size();
  std::string bytes(8, 0);
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

class Tensors : public Files {
protected:
  std::string openError(const std::string &content) {
    std::string error = errorOf(SafetensorsFile().open(folder.write("t", content)));
    if (error.empty()) {
      return "";
    }
    std::string prefix = "'" + folder.file("t") + "' is not a valid safetensors file: ";
    EXPECT_EQ(error.substr(0, prefix.size()), prefix);
    return error.substr(prefix.size());
  }
};

TEST_F(Tensors, RoundTrip) {
  std::vector<TensorHeader> headers = {{"b", ElementType::F64, {1, 2}},
                                       {"a", ElementType::F32, {}},
                                       {"none", ElementType::I32, {0, 3}}};
  auto read = [](size_t i, const Region &, std::span<char> bytes) {
    std::fill(bytes.begin(), bytes.end(), i + 1);
    return true;
  };
  ASSERT_EQ(errorOf(saveTensors(folder.file("t"), headers, {{"step", "3"}}, read)), "");
  SafetensorsFile file;
  ASSERT_EQ(errorOf(file.open(folder.file("t"))), "");
  EXPECT_EQ(file.metadata.at("step"), "3");
  EXPECT_EQ(file.tensors.size(), 3u);
  EXPECT_EQ(file.tensors.at("b").dtype, "F64");
  EXPECT_THAT(file.tensors.at("b").shape, testing::ElementsAre(1, 2));
  EXPECT_EQ(std::string(file.tensors.at("a").data.begin(), file.tensors.at("a").data.end()),
            "\2\2\2\2");
  EXPECT_EQ((folder.read("t").size() - 20) % 8, 0u); // The data is aligned.
}

TEST_F(Tensors, LargeOnesAreWrittenAndCopiedInSlabs) {
  constexpr int64_t kRows = 3000, kColumns = 1000; // 12 MB.
  int slabs = 0;
  auto read = [&](size_t, const Region &slab, std::span<char> bytes) {
    auto *numbers = reinterpret_cast<float *>(bytes.data());
    for (size_t i = 0; i < bytes.size() / sizeof(float); ++i) {
      numbers[i] = float(slab.offset[0] * kColumns + int64_t(i));
    }
    return ++slabs > 0;
  };
  std::vector<TensorHeader> headers = {{"t", ElementType::F32, {kRows, kColumns}}};
  ASSERT_EQ(errorOf(saveTensors(folder.file("t"), headers, {}, read)), "");
  EXPECT_GT(slabs, 1);
  SafetensorsFile file;
  ASSERT_EQ(errorOf(file.open(folder.file("t"))), "");
  MappedTensor tensor = {&file, &file.tensors.at("t"), {{0, 0}, {kRows, kColumns}}};
  Region wanted = {{100, 10}, {2950, 980}}; // 50 rows and no column are outside.
  auto expected = [&](int64_t i) {
    int64_t row = wanted.offset[0] + i / 980, column = wanted.offset[1] + i % 980;
    return row < kRows ? float(row * kColumns + column) : 0;
  };
  std::vector<float> copied(2950 * 980);
  tensor.copy(wanted, copied.data(), sizeof(float));
  int64_t place = 0;
  tensor.copyInSlabs(wanted, sizeof(float), [&](std::span<const char> bytes) {
    EXPECT_EQ(std::memcmp(bytes.data(), copied.data() + place, bytes.size()), 0);
    place += int64_t(bytes.size() / sizeof(float));
  });
  EXPECT_EQ(place, int64_t(copied.size()));
  for (int64_t i = 0; i < place; ++i) {
    ASSERT_EQ(copied[size_t(i)], expected(i)) << i;
  }
}

/// Returns the KiB of files in this process's memory.
int64_t mappedKilobytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line) && !line.starts_with("RssFile:")) {
  }
  return line.empty() ? 0 : std::stoll(line.substr(8));
}

TEST_F(Files, PartsOfMappedFilesLeaveMemoryWhenReleased) {
  std::string content(16 << 20, 'x');
  MappedFile file;
  ASSERT_EQ(errorOf(file.open(folder.write("f", content))), "");
  int64_t before = mappedKilobytes();
  EXPECT_EQ(std::ranges::count(file.bytes(), 'x'), 16 << 20);
  EXPECT_GT(mappedKilobytes(), before + (15 << 10));
  file.release(file.bytes().subspan(1, (8 << 20) - 2)); // It need not begin or end with a page.
  EXPECT_LT(mappedKilobytes(), before + (9 << 10));
  file.release(file.bytes());
  EXPECT_LT(mappedKilobytes(), before + (1 << 10));
  size_t read = 0;
  file.readInParts(file.bytes(), [&](std::span<const char> part) {
    read += size_t(std::ranges::count(part, 'x'));
    EXPECT_LT(mappedKilobytes(), before + (5 << 10));
    return read < (12 << 20);
  });
  EXPECT_EQ(read, size_t(12 << 20)); // It returned false there.
  EXPECT_EQ(std::ranges::count(file.bytes(), 'x'), 16 << 20);
}

TEST_F(Tensors, RefusesWhatIsNotTheFormat) {
  auto one = [](const std::string &fields) { return "{\"x\":{" + fields + "}}"; };
  EXPECT_EQ(openError("abc"), "expected at least 8 bytes, got 3");
  EXPECT_THAT(openError(std::string(8, '\xff')), HasSubstr("expected a header of 1844674407370955"
                                                           "1615 bytes, got 0 bytes"));
  EXPECT_EQ(openError(tensorsFile("{", "")), "the header is not a JSON object");
  EXPECT_EQ(openError(tensorsFile("[]", "")), "the header is not a JSON object");
  EXPECT_EQ(openError(tensorsFile(R"({"__metadata__":1})", "")), "'__metadata__' is not an object");
  EXPECT_EQ(openError(tensorsFile(R"({"__metadata__":{"a":1}})", "")),
            "metadata 'a' is not a string");
  EXPECT_EQ(openError(tensorsFile(R"({"x":1})", "")),
            "tensor 'x' needs exactly the fields dtype, shape and data_offsets");
  EXPECT_EQ(openError(tensorsFile(one(R"("dtype":"F7","shape":[],"data_offsets":[0,1])"), "a")),
            "tensor 'x' has the unknown dtype 'F7'");
  for (const char *numbers : {"[-1]", "[1.5]", "[\"1\"]", "1", "[18446744073709551615]"}) {
    EXPECT_EQ(
        openError(tensorsFile(
            one(std::string(R"("dtype":"U8","data_offsets":[0,1],"shape":)") + numbers), "a")),
        "tensor 'x' has a malformed shape or data_offsets");
  }
  EXPECT_EQ(openError(tensorsFile(one(R"("dtype":"U8","shape":[1],"data_offsets":[0])"), "a")),
            "tensor 'x' has a malformed shape or data_offsets");
  EXPECT_EQ(openError(tensorsFile(one(R"("dtype":"U8","shape":[2],"data_offsets":[0,2])"), "a")),
            "tensor 'x' lies at bytes 0 to 2 of the data, which has 1");
  EXPECT_EQ(
      openError(tensorsFile(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), "abcd")),
      "tensor 'x' of F32 [2] needs 8 bytes, got 4");
  EXPECT_THAT(openError(tensorsFile(one("\"dtype\":\"F64\",\"data_offsets\":[0,0],\"shape\":["
                                        "4611686018427387904,4611686018427387904]"),
                                    "")),
              HasSubstr("needs 18446744073709551615 bytes, got 0"));
}

TEST_F(Tensors, RefusesOverlapsGapsAndRepetitions) {
  auto two = [](const char *a, const char *b) {
    return std::string(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)") + a +
           R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)" + b + "}}";
  };
  EXPECT_EQ(openError(tensorsFile(two("[0,2]", "[2,4]"), "abcd")), "");
  EXPECT_EQ(openError(tensorsFile(two("[0,2]", "[1,3]"), "abc")),
            "tensor 'b' begins at byte 1, inside the one before it, which ends at 2");
  EXPECT_EQ(openError(tensorsFile(two("[3,5]", "[0,2]"), "abcde")),
            "tensor 'a' begins at byte 3, but the one before it ends at 2");
  EXPECT_EQ(openError(tensorsFile(two("[0,2]", "[2,4]"), "abcde")),
            "the tensors end at byte 4 of the data, which has 5");
  EXPECT_EQ(openError(tensorsFile(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                  R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                  "ab")),
            "the header has 'a' twice");
}

TEST_F(Tensors, NoDamageDoesHarm) {
  std::vector<TensorHeader> headers = {{"a", ElementType::F64, {2}}, {"b", ElementType::F32, {3}}};
  ASSERT_TRUE(saveTensors(folder.file("good"), headers, {{"k", "v"}},
                          [](size_t, const Region &, std::span<char>) { return true; }));
  const std::string good = folder.read("good");
  for (uint64_t trial = 0; trial < 1000; ++trial) {
    std::string bad = good;
    uint64_t bits = randomBits(3, trial, 0);
    if (trial % 3 == 0) {
      bad.resize(bits % good.size());
    } else {
      bad[bits % bad.size()] = char(bits >> 56);
      bad[(bits >> 20) % bad.size()] = char(bits >> 48);
    }
    SafetensorsFile file;
    if (Status status = file.open(folder.write("bad", bad)); !status) {
      EXPECT_NE(errorOf(status), "");
    }
  }
}

class Checkpoints : public Files {
protected:
  std::string openError(const std::vector<TensorHeader> &headers, const char *step = "4") {
    auto zero = [](size_t, const Region &, std::span<char>) { return true; };
    std::map<std::string, std::string> metadata;
    if (step) {
      metadata["step"] = step;
    }
    EXPECT_TRUE(saveTensors(folder.file("c"), headers, metadata, zero));
    checkpoint.emplace();
    std::string message = errorOf(checkpoint->open(folder.file("c"), {&program, 1}));
    size_t name = message.find(folder.file("c"));
    return name == std::string::npos ? message
                                     : message.replace(name, folder.file("c").size(), "F");
  }

  const TensorHeader table = {"table", ElementType::F64, {256}};
  const TensorHeader momentum = {"momentum/table", ElementType::F64, {256}};
  Program program = makeToy(1, 1);
  std::optional<Checkpoint> checkpoint;
};

TEST_F(Checkpoints, GoOnWhereTheyEnded) {
  EXPECT_EQ(openError({table, momentum}), "");
  EXPECT_EQ(checkpoint->firstStep(), 4);
  EXPECT_EQ(checkpoint->note(), "");
}

TEST_F(Checkpoints, WithoutOptimizerStateBeginAtZero) {
  EXPECT_EQ(openError({table}), "");
  EXPECT_EQ(checkpoint->firstStep(), 0);
  EXPECT_THAT(checkpoint->note(), HasSubstr("no optimizer state, which starts at zero"));
}

TEST_F(Checkpoints, PassOverAnotherOptimizersState) {
  EXPECT_EQ(openError({table, {"adam_m/table", ElementType::F64, {256}}}), "");
  EXPECT_THAT(checkpoint->note(), HasSubstr("passed over 1 tensors of optimizer state"));
  EXPECT_EQ(openError({table,
                       {"loss_scale", ElementType::F32, {}},
                       {"loss_scale_steps", ElementType::F32, {}},
                       {"amax/layers.0.mlp_norm", ElementType::F32, {16}}}),
            "");
  EXPECT_THAT(checkpoint->note(), HasSubstr("passed over 3 tensors of optimizer state"));
  EXPECT_EQ(openError({table, {"adam_m/other", ElementType::F64, {256}}}),
            "'F' has the tensor 'adam_m/other', which the model does not have");
}

struct Deaf : Observer {
  void observe(int64_t, uint32_t, const void *) override {}
};

/// Returns the values that two ranks, each with a half, load from a table whose elements are
/// `bytes`. The program is of F64, or of F32 if `narrow`.
std::vector<double> loaded(const std::string &path, const std::string &dtype,
                           const std::string &bytes, bool narrow, std::string &note) {
  std::string header = R"({"table":{"dtype":")" + dtype + R"(","shape":[256],"data_offsets":[0,)" +
                       std::to_string(bytes.size()) + "]}}";
  std::ofstream(path, std::ios::binary) << tensorsFile(header, bytes);
  Program program = makeToy(1, 2);
  for (auto *list : {&program.parameters, &program.optimizerState}) {
    list->front().layout.type = narrow ? ElementType::F32 : ElementType::F64;
  }
  Checkpoint checkpoint;
  EXPECT_EQ(errorOf(checkpoint.open(path, {&program, 1})), "");
  note = checkpoint.note();
  std::vector<double> values(256);
  makeLocalBackend(program.rankCount(), {})->run([&](Communicator &link) {
    HostExecutor executor(program, kToyKernels, link.rank());
    Deaf observer;
    EXPECT_TRUE(executor.prepare(link, observer));
    checkpoint.load(program, executor);
    BufferView view = executor.view(program.parameters[0].buffer);
    const void *part = view.data();
    for (size_t i = 0; i < 128; ++i) {
      values[size_t(link.rank()) * 128 + i] =
          narrow ? static_cast<const float *>(part)[i] : static_cast<const double *>(part)[i];
    }
  });
  return values;
}

/// Returns `count` numbers that all types can represent, as stored in a file of `T`.
template <typename T> std::string stored(T (*convert)(float)) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) {
    T value = convert(float(i) / 8 - 3);
    bytes.append(reinterpret_cast<const char *>(&value), sizeof(value));
  }
  return bytes;
}

TEST_F(Checkpoints, AreOfAnyFloatingPointType) {
  const std::pair<const char *, std::string> files[] = {
      {"F64", stored<double>([](float value) { return double(value); })},
      {"F32", stored<float>([](float value) { return value; })},
      {"BF16", stored<uint16_t>([](float value) { return BFloat16(value).bits; })},
      {"F16", stored<uint16_t>(encodeF16)}};
  for (const auto &[dtype, bytes] : files) {
    for (bool narrow : {false, true}) {
      std::string note;
      std::vector<double> values = loaded(folder.file("c"), dtype, bytes, narrow, note);
      for (size_t i = 0; i < 256; ++i) {
        EXPECT_EQ(values[i], double(i) / 8 - 3) << dtype << narrow;
      }
      bool rounds = narrow && std::string(dtype) == "F64";
      EXPECT_EQ(note.find("rounded 1 tensors from F64 to F32") != note.npos, rounds) << note;
    }
  }
}

TEST_F(Checkpoints, RefuseNumbersThatAreTooLarge) {
  for (auto *list : {&program.parameters, &program.optimizerState}) {
    list->front().layout.type = ElementType::F32;
  }
  auto error = [&](double number) {
    std::vector<double> numbers(256, number);
    auto read = [&](size_t, const Region &, std::span<char> bytes) {
      std::memcpy(bytes.data(), numbers.data(), bytes.size());
      return true;
    };
    EXPECT_TRUE(saveTensors(folder.file("c"), {table}, {}, read));
    return errorOf(Checkpoint().open(folder.file("c"), {&program, 1}));
  };
  EXPECT_THAT(error(-1e39), HasSubstr("has -1e+39, expected numbers that fit into F32"));
  EXPECT_EQ(error(3.4e38), "");
  EXPECT_EQ(error(INFINITY), "");
}

TEST_F(Checkpoints, RefuseWhatDoesNotFit) {
  EXPECT_EQ(openError({}), "'F' lacks the parameter 'table'");
  EXPECT_EQ(openError({{"table", ElementType::I32, {256}}}),
            "'table' in 'F' is I32, expected F64, F32, BF16 or F16");
  EXPECT_EQ(openError({{"table", ElementType::F64, {2, 128}}}),
            "'table' in 'F' has shape [2, 128], expected [256]");
  EXPECT_EQ(openError({table, {"chair", ElementType::F64, {1}}}),
            "'F' has the tensor 'chair', which the model does not have");
  EXPECT_EQ(openError({table, {"momentum/table", ElementType::F64, {4}}}),
            "'momentum/table' in 'F' has shape [4], expected [256]");
  EXPECT_EQ(openError({table, momentum}, "many"),
            "'F' has the metadata step 'many', expected a number");
  EXPECT_EQ(openError({table, momentum}, "-3"),
            "'F' has the metadata step '-3', expected a number");
  EXPECT_EQ(openError({table, momentum}, nullptr),
            "'F' has optimizer state but no metadata 'step', expected the number of steps that it "
            "has seen");
  EXPECT_EQ(openError({table}, nullptr), "");
  program.optimizerState.push_back(program.optimizerState[0]);
  program.optimizerState[1].name = "second/table";
  EXPECT_EQ(openError({table, momentum}),
            "'F' has the optimizer state 'momentum/table' but lacks 'second/table'");
}

} // namespace
