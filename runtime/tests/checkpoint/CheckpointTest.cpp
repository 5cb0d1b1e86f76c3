//===- CheckpointTest.cpp - checkpoints of a run ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/local/LocalBackend.h"
#include "checkpoint/CheckpointReader.h"
#include "checkpoint/CheckpointWriter.h"
#include "execution/HostExecutor.h"
#include "report/Metrics.h"
#include "support/Json.h"
#include "support/Random.h"
#include "tests/ErrorOf.h"
#include "tests/TemporaryFolder.h"
#include "tests/Toy.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace weft::rt;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

constexpr int64_t kStep = 7;

class NoObserver : public Observer {
public:
  void observe(int64_t, uint32_t, const void *) override {}
};

/// The ranks of the toy program. Element i of "table" is i, and of its momentum 1000 + i. Elements
/// from `length` on are padding with zeros.
class Cluster {
public:
  explicit Cluster(int64_t data, int64_t model, int64_t length = kToyVocabulary)
      : program(makeToy(data, model)), length(length) {
    for (TensorLayout *layout :
         {&program.parameters[0].layout, &program.optimizerState[0].layout}) {
      layout->globalShape = {length};
      if (length < kToyVocabulary) {
        layout->paddedShape = {kToyVocabulary};
      }
    }
    for (int64_t rank = 0; rank < program.rankCount(); ++rank) {
      executors.push_back(std::make_unique<HostExecutor>(program, kToyKernels, rank));
    }
  }

  RunResult run(const std::function<void(Executor &)> &body) {
    NoObserver observer;
    return makeLocalBackend(program.rankCount(), {})->run([&](Communicator &communicator) {
      Executor &executor = *executors[size_t(communicator.rank())];
      if (executor.prepare(communicator, observer)) {
        body(executor);
      }
    });
  }

  /// Visits a rank's parts of the table and its momentum, with the expected values.
  void forEachValue(Executor &executor,
                    const std::function<void(double &value, double expected)> &visit) {
    Region region = localRegion(program.parameters[0].layout, program.mesh, executor.coordinates());
    const uint32_t buffers[] = {program.parameters[0].buffer, program.optimizerState[0].buffer};
    for (double first : {0.0, 1000.0}) {
      uint32_t buffer = buffers[first > 0];
      std::vector<double> values(size_t(region.shape[0]));
      std::span<char> bytes(reinterpret_cast<char *>(values.data()),
                            values.size() * sizeof(double));
      {
        BufferView view = executor.view(buffer);
        std::copy(view.bytes().begin(), view.bytes().end(), bytes.begin());
      }
      for (int64_t i = 0; i < region.shape[0]; ++i) {
        int64_t place = region.offset[0] + i;
        visit(values[size_t(i)], place < length ? first + double(place) : 0.0);
      }
      executor.write(buffer, 0, bytes);
    }
  }

  Program program;
  const int64_t length;
  std::vector<std::unique_ptr<Executor>> executors;
};

class Checkpointing : public testing::Test {
protected:
  Checkpointing() { std::filesystem::create_directory(folder.path / "ck"); }

  /// Writes a checkpoint of step 7 into "ck".
  void write(int64_t data, int64_t model, uint64_t portion = CheckpointWriter::kPortion,
             int64_t step = kStep) {
    CheckpointFolder place;
    ASSERT_EQ(errorOf(place.open(folder.file("ck"))), "");
    Cluster cluster(data, model, length);
    std::vector<std::unique_ptr<CheckpointWriter>> writers(cluster.executors.size());
    RunResult result = cluster.run([&](Executor &executor) {
      auto &writer = writers[size_t(executor.rank())];
      writer = std::make_unique<CheckpointWriter>(std::span<const Program>(&cluster.program, 1),
                                                  run, place, executor, portion);
      cluster.forEachValue(executor, [](double &value, double expected) { value = expected; });
      EXPECT_TRUE(writer->write(step));
    });
    EXPECT_FALSE(result.failure) << result.failure->message;
  }

  /// Reads the checkpoint on another mesh; returns the number of wrong values.
  int64_t wrongValues(const CheckpointReader &reader, int64_t data, int64_t model) {
    Cluster cluster(data, model, length);
    std::atomic<int64_t> wrong = 0;
    cluster.run([&](Executor &executor) {
      cluster.forEachValue(executor, [](double &value, double) { value = -1; });
      reader.load(cluster.program, executor);
      cluster.forEachValue(executor,
                           [&](double &value, double expected) { wrong += value != expected; });
    });
    return wrong;
  }

  std::string path(const std::string &file) const { return folder.file("ck/" + file); }
  static std::string inside(const std::string &file) { return "ck/step-00000007/" + file; }

  /// Writes a new file: some file systems wait for the disk when an old one is truncated and
  /// refilled.
  void replace(const std::string &file, const std::string &content) {
    std::filesystem::remove(folder.file(inside(file)));
    folder.write(inside(file), content);
  }

  /// Returns why the checkpoint of step 7 is damaged; empty if it is not.
  std::string damage() {
    CheckpointReader reader;
    return errorOf(reader.open(path("step-00000007"), kStep, CheckpointReader::Check::Bytes));
  }

  TemporaryFolder folder;
  /// The elements of the table that are no padding.
  int64_t length = kToyVocabulary;
  const RunIdentity run = {"toy", 3, kToyBatch, kToySequence, {}, DataIdentity{"bytes", 4000}};
};

TEST_F(Checkpointing, AnyMeshReadsWhatAnyOtherWrote) {
  const std::pair<int64_t, int64_t> meshes[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {1, 4}, {4, 2}};
  for (const auto &[data, model] : meshes) {
    write(data, model);
    CheckpointReader reader;
    ASSERT_EQ(errorOf(reader.open(path("step-00000007"), kStep, CheckpointReader::Check::Bytes)),
              "");
    EXPECT_EQ(reader.manifest().step, kStep);
    EXPECT_EQ(reader.manifest().shards.size(), size_t(model)); // Copies are not written.
    EXPECT_EQ(differences(reader.manifest().run, run), "");
    for (const auto &[newData, newModel] : meshes) {
      EXPECT_EQ(errorOf(reader.checkFits(Programs{makeToy(newData, newModel)})), "");
      EXPECT_EQ(wrongValues(reader, newData, newModel), 0)
          << data << "x" << model << " to " << newData << "x" << newModel;
    }
  }
}

TEST_F(Checkpointing, PaddingIsNotKept) {
  for (int64_t some : {250, 190}) { // Of 190, the last of four ranks has none.
    length = some;
    for (int64_t model : {1, 2, 4}) {
      write(2, model);
      CheckpointReader reader;
      ASSERT_EQ(errorOf(reader.open(path("step-00000007"), kStep, CheckpointReader::Check::Bytes)),
                "");
      EXPECT_EQ(reader.manifest().tensors[0].shape, std::vector<int64_t>{some});
      EXPECT_EQ(reader.manifest().shards.size(), size_t(some == 190 && model == 4 ? 3 : model));
      EXPECT_FALSE(reader.checkFits(Programs{makeToy(1, 2)})); // Of 256, without padding.
      for (int64_t newModel : {1, 2, 4}) {
        EXPECT_EQ(errorOf(reader.checkFits(Programs{Cluster(1, newModel, some).program})), "");
        EXPECT_EQ(wrongValues(reader, 1, newModel), 0)
            << some << ": " << model << " to " << newModel;
      }
    }
  }
}

TEST_F(Checkpointing, PortionsMakeNoDifference) {
  write(2, 2);
  std::string whole = folder.read(inside("rank-00001.safetensors"));
  for (uint64_t portion : {1000, 1024, 777, 100000}) {
    write(2, 2, portion);
    EXPECT_EQ(folder.read(inside("rank-00001.safetensors")), whole) << portion;
    EXPECT_EQ(damage(), "");
  }
}

TEST_F(Checkpointing, AnyFlippedByteIsFound) {
  write(1, 2);
  for (const char *file : {"manifest.json", "rank-00000.safetensors", "rank-00001.safetensors"}) {
    const std::string good = folder.read(inside(file));
    for (size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = char(bad[i] ^ (1 << (i % 8)));
      replace(file, bad);
      ASSERT_THAT(damage(), HasSubstr(file)) << "byte " << i;
    }
    replace(file, good);
  }
  EXPECT_EQ(damage(), "");
}

TEST_F(Checkpointing, AnyTruncationIsFound) {
  write(1, 2);
  for (const char *file : {"manifest.json", "rank-00000.safetensors"}) {
    const std::string good = folder.read(inside(file));
    for (size_t size = 0; size < good.size(); ++size) {
      replace(file, good.substr(0, size));
      ASSERT_NE(damage(), "") << file << ", " << size << " bytes";
    }
    replace(file, good + "x");
    EXPECT_NE(damage(), "") << file;
    replace(file, good);
  }
  for (const char *file : {"manifest.json", "rank-00000.safetensors"}) {
    std::filesystem::remove(folder.file(inside(file)));
    EXPECT_EQ(damage(),
              "cannot read '" + folder.file(inside(file)) + "': No such file or directory");
    write(1, 2);
  }
}

/// Puts the right checksum before a manifest, as a forger would.
std::string sealed(const std::string &manifest) {
  std::string rest = manifest.substr(manifest.find('\n') + 1);
  Checksum checksum;
  checksum.add(rest);
  return "{\"checksum\": \"" + digestText(checksum.digest()) + "\",\n" + rest;
}

TEST_F(Checkpointing, NumbersThatAreNotFiniteAreFound) {
  write(1, 2);
  const std::string file = "rank-00001.safetensors";
  std::string bytes = folder.read(inside(file));
  auto digestOf = [&] {
    Checksum checksum;
    checksum.add(bytes);
    return digestText(checksum.digest());
  };
  std::string manifest = folder.read(inside("manifest.json")), before = digestOf();
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  // The rank's part of the table begins at 128.
  const double number = -std::numeric_limits<double>::infinity();
  std::memcpy(bytes.data() + sizeof header + header + 3 * sizeof number, &number, sizeof number);
  replace(file, bytes);
  manifest.replace(manifest.find(before), before.size(), digestOf());
  replace("manifest.json", sealed(manifest));
  EXPECT_EQ(damage(), "'" + folder.file("ck/step-00000007") +
                          "' is not good: after 7 steps 'table' has -inf at [131], expected finite "
                          "numbers");
}

TEST_F(Checkpointing, LiesAreFound) {
  write(1, 2);
  const std::string good = folder.read(inside("manifest.json"));
  auto lie = [&](const std::string &from, const std::string &to) {
    size_t found = good.find(from);
    EXPECT_NE(found, std::string::npos) << from;
    replace("manifest.json", sealed(std::string(good).replace(found, from.size(), to)));
    std::string message = damage(), place = folder.file("ck/step-00000007");
    for (size_t at; (at = message.find(place)) != std::string::npos;) {
      message.replace(at, place.size(), "F");
    }
    return message;
  };
  const std::string damaged = "'F/manifest.json' is damaged: ";
  EXPECT_EQ(lie("\"version\": 1", "\"version\": 2"), damaged + "its version is 2, expected 1");
  EXPECT_EQ(lie("\"version\": 1,\n", ""), damaged + "it lacks the whole number 'version'");
  EXPECT_EQ(lie("\"model\": \"toy\"", "\"model\": 1"), damaged + "it lacks the text 'model'");
  EXPECT_EQ(lie("\"seed\": 3", "\"seed\": -3"), damaged + "it lacks the whole number 'seed'");
  EXPECT_EQ(lie("\"seed\": 3", "\"step\": 7"), damaged + "it has 'step' twice");
  EXPECT_EQ(lie("\"seed\": 3", "\"seed\" 3"), damaged + "it is not a JSON object");
  EXPECT_EQ(lie("\"sample\": 56", "\"sample\": 57"),
            damaged + "its sample is 57, expected 56, step 7 of batches of 8");
  EXPECT_EQ(lie("\"step\": 7,\n\"sample\": 56", "\"step\": 8,\n\"sample\": 64"),
            "'F/manifest.json' is that of step 8");
  EXPECT_EQ(lie("{\"name\":\"data\",\"size\":1}", "3"), damaged + "axis 0 lacks the text 'name'");
  EXPECT_EQ(lie("\"samples\":4000", "\"samples\":\"4000\""),
            damaged + "data lacks the whole number 'samples'");
  EXPECT_EQ(lie("\"data\": {", "\"data\": [{"), damaged + "it is not a JSON object");
  EXPECT_EQ(lie("\"file\":\"rank-00000.safetensors\"", "\"file\":\"../rank-00000.safetensors\""),
            damaged + "shard 0 has the file name '../rank-00000.safetensors', expected one as "
                      "'rank-00000.safetensors'");
  EXPECT_EQ(lie("\"file\":\"rank-00000.safetensors\"", "\"file\":\"rank-00001.safetensors\""),
            damaged + "it lists 'rank-00001.safetensors' twice");
  EXPECT_THAT(lie("\"checksum\":\"xxh3-128:", "\"checksum\":\"md5:"),
              HasSubstr("expected one as 'xxh3-128:00000000000000000000000000000000'"));
  EXPECT_EQ(lie("\"name\":\"momentum/table\"", "\"name\":\"table\""),
            damaged + "it lists the tensor 'table' twice");
  EXPECT_EQ(lie("\"name\":\"table\"", "\"name\":\"chair\""),
            "'F/rank-00000.safetensors' does not hold 'chair' as its manifest says");
  EXPECT_EQ(lie("\"shape\":[256]", "\"shape\":[512]"),
            damaged + "the parts of 'table' do not make up its shape [512]");
  EXPECT_EQ(lie("\"offset\":[128]", "\"offset\":[0]"),
            damaged + "the parts of 'table' do not make up its shape [256]");
  EXPECT_EQ(
      lie("rank-00001.safetensors\",\"offset\":[128]", "rank-00000.safetensors\",\"offset\":[128]"),
      damaged + "a part of 'table' is in 'rank-00000.safetensors', which is the place of "
                "another part");
  EXPECT_EQ(
      lie("rank-00001.safetensors\",\"offset\":[128]", "rank-00005.safetensors\",\"offset\":[128]"),
      damaged + "a part of 'table' is in 'rank-00005.safetensors', which is no shard");
  EXPECT_EQ(lie("\"type\":\"F64\"", "\"type\":\"I64\""),
            "'F/rank-00000.safetensors' does not hold 'table' as its manifest says");
  EXPECT_EQ(lie("\"seed\": 3", "\"seed\": 3"), ""); // No change, no error.

  // Swaps the parts of two shards, whose sizes agree.
  json root = json::parse(good);
  root.erase("checksum");
  std::swap(root["tensors"][0]["pieces"][0]["file"], root["tensors"][0]["pieces"][1]["file"]);
  replace("manifest.json", sealed("\n" + root.dump().substr(1)));
  EXPECT_THAT(damage(), HasSubstr("does not hold 'table' as its manifest says"));
  // A tensor that the program ignores.
  root = json::parse(good);
  root.erase("checksum");
  root["tensors"].erase(1);
  replace("manifest.json", sealed("\n" + root.dump().substr(1)));
  EXPECT_THAT(damage(), HasSubstr("manifest.json' lists 2 parts of tensors, its shards hold 4"));
}

/// Returns every value in `root`, at any depth.
void collect(json &root, std::vector<json *> &values) {
  for (json &value : root) {
    values.push_back(&value);
    if (value.is_structured()) {
      collect(value, values);
    }
  }
}

TEST_F(Checkpointing, NoManifestLeadsAstray) {
  write(1, 2);
  const std::string good = folder.read(inside("manifest.json"));
  const json others[] = {json(),
                         -1,
                         0,
                         1,
                         4611686018427387904,
                         1e300,
                         "",
                         "table",
                         json::array(),
                         json::object(),
                         json::array({0, 0}),
                         true};
  int64_t accepted = 0;
  for (uint64_t trial = 0; trial < 5000; ++trial) {
    uint64_t bits = randomBits(5, trial, 0);
    std::string bad = good;
    if (trial % 2 == 0) { // A mistake of bytes, with the right checksum.
      for (uint64_t i = 0; i <= bits % 3; ++i) {
        uint64_t more = randomBits(5, trial, i + 1);
        bad[more % bad.size()] = char(trial % 4 ? more >> 56 : good[(more >> 32) % good.size()]);
      }
    } else { // A value where another stood.
      json root = json::parse(good);
      std::vector<json *> values;
      root.erase("checksum");
      collect(root, values);
      json value =
          bits % 2 ? others[(bits >> 8) % std::size(others)] : *values[(bits >> 8) % values.size()];
      *values[(bits >> 32) % values.size()] = value;
      bad = "\n" + root.dump().substr(1);
    }
    replace("manifest.json", sealed(bad));
    CheckpointReader reader;
    if (Status status = reader.open(path("step-00000007"), kStep, CheckpointReader::Check::Bytes);
        !status) {
      EXPECT_NE(errorOf(status), "");
      continue;
    }
    // An accepted manifest gives the same values, unless it names another run.
    ++accepted;
    EXPECT_EQ(reader.manifest().step, kStep);
    if (reader.checkFits(Programs{makeToy(1, 2)})) {
      EXPECT_EQ(wrongValues(reader, 1, 2), 0) << bad;
    }
  }
  // Mostly other seeds, plans and meshes, which are compared elsewhere.
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 1500);
}

TEST_F(Checkpointing, OtherTensorsAreRefused) {
  write(1, 1);
  CheckpointReader reader;
  ASSERT_EQ(errorOf(reader.open(path("step-00000007"), kStep, CheckpointReader::Check::Bytes)), "");
  auto refusal = [&](const std::function<void(Program &)> &change) {
    Program program = makeToy(1, 1);
    change(program);
    std::string place = "'" + path("step-00000007") + "'";
    std::string error = errorOf(reader.checkFits({&program, 1}));
    size_t found = error.find(place);
    return found == std::string::npos ? error : error.replace(found, place.size(), "F");
  };
  EXPECT_EQ(refusal([](Program &p) { p.parameters[0].name = "chair"; }), "F lacks 'chair'");
  EXPECT_EQ(refusal([](Program &p) { p.optimizerState.clear(); }),
            "F has the tensor 'momentum/table', which this program does not have");
  EXPECT_EQ(refusal([](Program &p) { p.parameters[0].layout.type = ElementType::F32; }),
            "'table' in F is F64, expected F32");
  EXPECT_EQ(refusal([](Program &p) { p.parameters[0].layout.globalShape = {2, 128}; }),
            "'table' in F has shape [256], expected [2, 128]");
}

TEST(RunIdentities, TellWhatDiffers) {
  RunIdentity saved = {"a", 1, 2, 3, {}, DataIdentity{"bytes", 10}}, now = saved;
  EXPECT_EQ(differences(saved, now), "");
  now.data.reset();
  EXPECT_EQ(differences(saved, now), "");
  now = {"b", 2, 4, 5, 6, DataIdentity{"words", 11}};
  EXPECT_EQ(differences(saved, now),
            "model a, now b; seed 1, now 2; global batch 2, now 4; sequence length 3, now 5; "
            "documents end at nowhere, now 6; "
            "data format bytes, now words; samples 10, now 11");
}

class Folders : public Checkpointing {
protected:
  std::vector<int64_t> steps(const CheckpointFolder &place) {
    Result<std::vector<int64_t>> found = place.list();
    EXPECT_EQ(errorOf(found), "");
    return found ? *found : std::vector<int64_t>();
  }
};

TEST_F(Folders, AreMadeWhenNeededAndLocked) {
  CheckpointFolder place, other;
  ASSERT_EQ(errorOf(place.open(folder.file("new"))), "");
  EXPECT_FALSE(folder.has("new"));
  EXPECT_THAT(steps(place), ElementsAre());
  ASSERT_EQ(errorOf(place.create()), "");
  EXPECT_EQ(errorOf(other.open(folder.file("new"))),
            "'" + folder.file("new") + "' is in use: another run writes its checkpoints there");
  CheckpointFolder missing, file;
  EXPECT_EQ(errorOf(missing.open(folder.file("a/b"))), "");
  EXPECT_EQ(errorOf(missing.create()),
            "cannot write '" + folder.file("a/b") + "': No such file or directory");
  EXPECT_EQ(errorOf(file.open(folder.write("file", ""))),
            "cannot write '" + folder.file("file") + "/.lock': Not a directory");
}

TEST_F(Folders, ListOnlyTheNamesOfCheckpoints) {
  for (const char *name : {"step-00000010", "step-00000009", "step-123456789", "step-8",
                           "step-000000011", "step--0000001", "step-0000000x", "other"}) {
    std::filesystem::create_directory(path(name));
  }
  CheckpointFolder place;
  ASSERT_EQ(errorOf(place.open(folder.file("ck"))), "");
  EXPECT_THAT(steps(place), ElementsAre(123456789, 10, 9));
  EXPECT_FALSE(place.latest());
  folder.write("ck/LATEST", "step-00000009\n");
  EXPECT_EQ(place.latest(), "step-00000009");
  folder.write("ck/LATEST", "");
  EXPECT_EQ(place.latest(), "");
}

TEST_F(Folders, LeftoversAreRemovedAndNothingElse) {
  for (const char *name : {".writing-step-00000010", ".removing-step-00000009",
                           ".writing-step-00000011", ".writing-other", "step-00000003"}) {
    std::filesystem::create_directory(path(name));
    folder.write(std::string("ck/") + name + "/rank-00000.safetensors", "");
  }
  folder.write("ck/.writing-step-00000011/mine.txt", "");
  folder.write("ck/LATEST.partial", "");
  folder.write("elsewhere", "");
  std::filesystem::create_directory_symlink(folder.path, path(".writing-step-00000012"));
  CheckpointFolder place;
  ASSERT_EQ(errorOf(place.open(folder.file("ck"))), "");
  EXPECT_FALSE(folder.has("ck/.writing-step-00000010"));
  EXPECT_FALSE(folder.has("ck/.removing-step-00000009"));
  EXPECT_FALSE(folder.has("ck/LATEST.partial"));
  for (const char *name : {"ck/.writing-step-00000011/mine.txt", "ck/.writing-other",
                           "ck/.writing-step-00000012", "ck/step-00000003", "elsewhere"}) {
    EXPECT_TRUE(folder.has(name)) << name;
  }
}

TEST_F(Folders, TheNewestWholeOnesStay) {
  for (int64_t step : {1, 2, 3, 4, 5, 6}) {
    write(1, 1, CheckpointWriter::kPortion, step);
  }
  folder.write("ck/step-00000001/notes.txt", "");
  CheckpointFolder place;
  ASSERT_EQ(errorOf(place.open(folder.file("ck"))), "");
  EXPECT_EQ(place.latest(), "step-00000006");
  ASSERT_EQ(errorOf(place.prune(5, 2, {4})), "");        // 6 is not its business, 4 does not count.
  EXPECT_THAT(steps(place), ElementsAre(6, 5, 4, 3, 1)); // Step 1 contains another file.
  ASSERT_EQ(errorOf(place.prune(5, 1, {})), "");
  EXPECT_THAT(steps(place), ElementsAre(6, 5, 1));
}

TEST_F(Checkpointing, AFailureStopsAllRanks) {
  std::filesystem::create_directory(path(".writing-step-00000007"));
  folder.write("ck/.writing-step-00000007/mine.txt", "");
  CheckpointFolder place;
  ASSERT_EQ(errorOf(place.open(folder.file("ck"))), "");
  Cluster cluster(2, 1);
  std::vector<std::unique_ptr<CheckpointWriter>> writers(2);
  RunResult result = cluster.run([&](Executor &executor) {
    auto &writer = writers[size_t(executor.rank())];
    writer = std::make_unique<CheckpointWriter>(std::span<const Program>(&cluster.program, 1), run,
                                                place, executor);
    EXPECT_FALSE(writer->write(kStep));
  });
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->message,
            "cannot write '" + path(".writing-step-00000007") + "': File exists");
}

TEST_F(Checkpointing, TheFirstRankWithANumberThatIsNotFiniteStopsAll) {
  // Portions of 12 bytes cut every second number of 8.
  for (uint64_t portion : {uint64_t(12), CheckpointWriter::kPortion}) {
    CheckpointFolder place;
    ASSERT_EQ(errorOf(place.open(folder.file("ck"))), "");
    Cluster cluster(2, 2);
    std::vector<std::unique_ptr<CheckpointWriter>> writers(4);
    RunResult result = cluster.run([&](Executor &executor) {
      auto &writer = writers[size_t(executor.rank())];
      writer = std::make_unique<CheckpointWriter>(std::span<const Program>(&cluster.program, 1),
                                                  run, place, executor, portion);
      cluster.forEachValue(executor, [](double &value, double expected) {
        bool isBad = expected == 1100 || expected == 131 || expected == 250;
        value = isBad ? std::nan("") : expected;
      });
      EXPECT_FALSE(writer->write(kStep));
    });
    ASSERT_TRUE(result.failure);
    EXPECT_EQ(result.failure->message, "after 7 steps 'momentum/table' has nan at [100], expected "
                                       "finite numbers: nothing of it is saved");
    EXPECT_EQ(result.failure->code, ExitCode::NotFinite);
    EXPECT_EQ(result.failure->rank, 0);
    EXPECT_FALSE(folder.has("ck/step-00000007"));
    ASSERT_EQ(errorOf(place.removeLeftovers()), "");
    EXPECT_FALSE(folder.has("ck/.writing-step-00000007"));
  }
}

TEST(Checksums, AreThoseOfTheTool) {
  // printf abc | xxh128sum
  Checksum checksum;
  checksum.add(std::string_view("a"));
  checksum.add(std::string_view("bc"));
  EXPECT_EQ(digestText(checksum.digest()), "xxh3-128:06b05ab6733a618578af5f94892f3950");
  EXPECT_EQ(parseDigest("xxh3-128:06b05ab6733a618578af5f94892f3950"), checksum.digest());
  for (const char *text : {"", "xxh3-128:", "06b05ab6733a618578af5f94892f3950",
                           "xxh3-128:06B05AB6733A618578AF5F94892F3950", "xxh3-128:06b05ab6733a618",
                           "xxh3-128:06b05ab6733a618578af5f94892f39500"}) {
    EXPECT_FALSE(parseDigest(text)) << text;
  }
}

TEST(MetricsFiles, KeepWhatTellsOfEarlierSteps) {
  TemporaryFolder folder;
  auto before = [&](const std::string &content, int64_t step) {
    Result<uint64_t> bytes = metricsBefore(folder.write("m", content), step);
    EXPECT_EQ(errorOf(bytes), "");
    return bytes ? content.substr(0, *bytes) : "";
  };
  EXPECT_EQ(before("{\"step\": 0}\n{\"step\": 1}\n{\"step\": 2}\n", 2),
            "{\"step\": 0}\n{\"step\": 1}\n");
  EXPECT_EQ(before("{\"step\": 0}\n{\"step\": 1}\n{\"st", 2), "{\"step\": 0}\n{\"step\": 1}\n");
  EXPECT_EQ(before("{\"step\": 0}\n{\"step\": 1}", 5), "{\"step\": 0}\n");
  EXPECT_EQ(before("", 5), "");
  for (const std::string &path : {folder.file("none"), std::string("/dev/null")}) {
    Result<uint64_t> bytes = metricsBefore(path, 5);
    EXPECT_TRUE(bytes && *bytes == 0);
  }
  for (const char *content : {"text\n", "{\"step\": 0}\n{\"loss\": 0}\n", "[1]\n", "\n"}) {
    EXPECT_THAT(errorOf(metricsBefore(folder.write("m", content), 5)),
                HasSubstr("' is not a metrics file to continue: line "));
  }
}

} // namespace
