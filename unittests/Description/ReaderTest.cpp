//===- ReaderTest.cpp - tests of invalid files ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Helpers.h"
#include "weft/Description/Machine.h"
#include "weft/Description/Model.h"
#include "weft/Description/Plan.h"
#include "weft/Description/Recipe.h"
#include "weft/machine.pb.h"
#include "weft/model.pb.h"
#include "weft/plan.pb.h"
#include "weft/recipe.pb.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

using namespace weft::desc;
using namespace weft::desc::test;

static std::string modelErrors(const std::string &text) { return errors(parseModel(text, "m")); }

namespace {

/// A folder of its own for each test, removed at its end.
class Files : public testing::Test {
protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "weft-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string write(const std::string &text) {
    std::string path = folder + "/file";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  std::string folder;
};

} // namespace

TEST_F(Files, AreLoaded) {
  EXPECT_TRUE(bool(loadModel(write(modelText))));
  EXPECT_TRUE(bool(loadRecipe(write(recipeText))));
  EXPECT_TRUE(bool(loadMachine(write(machineText))));
  EXPECT_TRUE(bool(loadPlan(write(planText))));
}

TEST_F(Files, CannotBeOpened) {
  std::string path = folder + "/none";
  EXPECT_EQ(errors(loadModel(path)), path + ": cannot be opened: No such file or directory\n");
}

TEST_F(Files, NotAllowed) {
  if (geteuid() == 0) {
    GTEST_SKIP() << "root may read every file";
  }
  std::string path = write(modelText);
  chmod(path.c_str(), 0);
  EXPECT_EQ(errors(loadModel(path)), path + ": cannot be opened: Permission denied\n");
}

TEST_F(Files, NotRegular) {
  EXPECT_EQ(errors(loadModel(folder)), folder + ": expected a regular file\n");
  std::string pipe = folder + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(errors(loadModel(pipe)), pipe + ": expected a regular file\n"); // And does not wait.
  EXPECT_EQ(errors(loadModel("/dev/zero")), "/dev/zero: expected a regular file\n");
}

TEST_F(Files, TooLarge) {
  std::string path = write("");
  std::filesystem::resize_file(path, (16 << 20) + 1); // Sparse: takes no space.
  EXPECT_EQ(errors(loadModel(path)),
            path + ": expected at most 16777216 bytes of text, got 16777217\n");
  EXPECT_EQ(modelErrors(std::string((16 << 20) + 1, ' ')),
            "m: expected at most 16777216 bytes of text, got 16777217\n");
}

TEST_F(Files, Empty) {
  std::string path = write("");
  EXPECT_EQ(errors(loadModel(path)), path + ": is empty\n");
  EXPECT_EQ(modelErrors(" \n\t\r\n"), "m: is empty\n");
  EXPECT_EQ(modelErrors("# only a comment"),
            "model_r1: m: version: missing required field, expected 'version: 1'\n");
}

TEST(Syntax, BinaryIsNamed) {
  EXPECT_EQ(modelErrors(std::string("version: 1\nna\0me", 16)),
            "m:2:3: expected text, got a byte of value 0\n");
  EXPECT_EQ(modelErrors("\x7f"
                        "ELF\x02\x01"),
            "m:1:5: expected text, got a byte of value 2\n");
}

TEST(Syntax, LettersBeyondAsciiOnlyInComments) {
  EXPECT_EQ(modelErrors("# caf\xc3\xa9\n" + modelText), "");
  EXPECT_NE(modelErrors("caf\xc3\xa9: 1"), "");
}

TEST(Syntax, UnknownFieldsAreAllListed) {
  EXPECT_EQ(modelErrors(with(with(modelText, "hidden", "hiden"), "ffn", "fnn")),
            "m:4:1: unknown field 'hiden' in Model, did you mean 'hidden'?\n"
            "m:7:1: unknown field 'fnn' in Model, did you mean 'ffn'?\n");
  EXPECT_EQ(modelErrors("norm_eps: 1"),
            "m:1:1: unknown field 'norm_eps' in Model, did you mean 'norm_epsilon'?\n");
  EXPECT_EQ(modelErrors("rotary { base: 1 }"),
            "m:1:10: unknown field 'base' in Rotary; its fields are theta, scaling, factor, "
            "low_frequency_factor, high_frequency_factor, original_maximum_length, fast_turns, "
            "slow_turns, whole_pairs, rotated_scale, score_scale\n");
  EXPECT_EQ(errors(parseRecipe("adamw { beta3: 1 }", "r")),
            "r:1:9: unknown field 'beta3' in AdamW, did you mean 'beta1'?\n");
}

TEST(Syntax, UnknownEnumerationValues) {
  EXPECT_EQ(modelErrors("activation: RELU"),
            "m:1:13: activation: expected one of GELU, GELU_TANH, SWIGLU, got 'RELU'\n");
  EXPECT_EQ(modelErrors("activation: 7"),
            "m:1:13: activation: expected one of GELU, GELU_TANH, SWIGLU, got '7'\n");
  EXPECT_EQ(errors(parseRecipe("precision: F9", "r")),
            "r:1:12: precision: expected one of F64, F32, BF16, TF32, F16, F8, got 'F9'\n");
}

TEST(Syntax, WrongTypes) {
  EXPECT_EQ(modelErrors("layers: many"), "m:1:9: layers: expected integer, got 'many'\n");
  EXPECT_EQ(modelErrors("layers: 1.5"), "m:1:9: layers: expected integer, got '1.5'\n");
  EXPECT_EQ(modelErrors("layers:\t-x"), "m:1:10: layers: expected integer, got 'x'\n");
  EXPECT_EQ(modelErrors("heads: 2 dropout: \"a\""),
            "m:1:19: dropout: expected double, got '\"a\"'\n");
  EXPECT_EQ(modelErrors("name: 3"), "m:1:7: name: expected string, got '3'\n");
  EXPECT_NE(modelErrors("layers: 99999999999999999999").find("layers: "), std::string::npos);
  EXPECT_NE(modelErrors("tied_embeddings: maybe").find("tied_embeddings"), std::string::npos);
}

TEST(Syntax, OtherErrorsHavePlaces) {
  EXPECT_NE(modelErrors("layers: 1\nlayers: 2").find("m:2:"), std::string::npos);
  EXPECT_NE(modelErrors("layers 1").find("m:1:8: "), std::string::npos);
  EXPECT_NE(modelErrors("rotary {").find("m:1:"), std::string::npos);
  EXPECT_NE(modelErrors("name: \"abc").find("m:1:"), std::string::npos);
  EXPECT_NE(modelErrors("[a.b.c]: 1").find("m:1:"), std::string::npos);
  EXPECT_NE(modelErrors("[type.googleapis.com/weft.proto.Model] {}"), "");
}

TEST(Syntax, DepthAndNumberAreBounded) {
  std::string deep;
  for (int i = 0; i < 200000; ++i) {
    deep += "a { ";
  }
  EXPECT_NE(modelErrors(deep), "");
  EXPECT_NE(modelErrors("layers: " + std::string(200000, '[')), "");
  EXPECT_NE(modelErrors("a: " + std::string(200000, '[')), "");
  std::string many;
  for (int i = 0; i < 1000; ++i) {
    many += "unknown: 1\n";
  }
  Result<ModelSpec> model = parseModel(many, "m");
  EXPECT_EQ(model.diagnostics().size(), 21u);
  EXPECT_EQ(model.diagnostics().back().str(), "m:21:8: too many errors, giving up");
  EXPECT_LT(modelErrors(std::string(100000, 'a') + ": 1").size(), 600u);
}

/// The message for an unknown enumeration value finds the enumeration by the field's name alone.
static void collect(const google::protobuf::Descriptor *message,
                    std::map<std::string, const google::protobuf::EnumDescriptor *> &enums) {
  for (int i = 0; i < message->field_count(); ++i) {
    const auto *field = message->field(i);
    if (field->enum_type()) {
      EXPECT_EQ(enums.emplace(field->name(), field->enum_type()).first->second, field->enum_type())
          << field->full_name();
    }
    if (field->message_type()) {
      collect(field->message_type(), enums);
    }
  }
}

TEST(Syntax, EnumerationFieldsHaveNamesOfTheirOwn) {
  using namespace weft::proto;
  for (const auto *root :
       {Model::descriptor(), Recipe::descriptor(), Machine::descriptor(), Plan::descriptor()}) {
    std::map<std::string, const google::protobuf::EnumDescriptor *> enums;
    collect(root, enums);
  }
}

TEST(Reader, SyntaxErrorsSayWhatIsExpected) {
  auto of = [](const std::string &text) { return errors(parsePlan(text, "p")); };
  EXPECT_EQ(of("version: 1 version: 1"),
            "p:1:12: expected a field at most once, got 'version' again\n");
  EXPECT_EQ(of("version: 1 accumulation: 18446744073709551616"),
            "p:1:26: accumulation: expected an integer in the range of the field, got "
            "'18446744073709551616'\n");
  EXPECT_EQ(of("version: 1padding: false"),
            "p:1:11: expected a blank between number and identifier\n");
  EXPECT_EQ(of("\xef\xbb\xbfversion: 1"),
            "p:1:1: expected ASCII, except in strings and comments, got a byte of value 239\n"
            "p:1:1: expected identifier, got '?'\n");
  EXPECT_EQ(of("version: 1 sharding { value: '\\q' dimension: 'ffn' }"),
            "p:1:32: expected an escape sequence of protobuf's text format in a string\n");
}

TEST(Reader, SuggestionsHaveOnlyNamesThatCanBeShown) {
  std::string axes = "axis { name: '" + std::string(70000, 'n') +
                     "' size: 2 } axis { name: 'a\\nb' size: 2 } axis { name: 'tp' size: 2 }";
  EXPECT_NE(errors(parsePlan("version: 1 mesh { " + axes +
                                 " } sharding { dimension: 'ffn' axes: 'other' }",
                             "p"))
                .find("unknown axis 'other'; the mesh's axes are tp\n"),
            std::string::npos);
}
