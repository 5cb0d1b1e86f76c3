//===- ReaderTest.cpp - ONNX files are read and checked ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Onnx/Graph.h"

#include "tests/TemporaryFolder.h"

#include <gtest/gtest.h>

using namespace weft::onnx;

namespace {

constexpr const char *kHead = "ir_version: 8 opset_import { version: 17 } graph { ";
constexpr const char *kPorts =
    R"(input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_param: "b" } )"
    R"(dim { dim_value: 3 } } } } } output { name: "y" type { tensor_type { elem_type: 1 } } } )";
constexpr const char *kNode = R"(node { op_type: "Relu" input: "x" output: "y" } )";

/// A folder with one model.
struct Files {
  weft::rt::TemporaryFolder folder;

  weft::desc::Result<Graph> load(const std::string &text) {
    return loadGraph(folder.write("model.textproto", text));
  }
  weft::desc::Result<Graph> loadBody(const std::string &body) { return load(kHead + body + "}"); }
  /// Returns the error of a graph of this body, without the name of the file.
  std::string errorOf(const std::string &body) {
    weft::desc::Result<Graph> graph = loadBody(body);
    EXPECT_FALSE(graph) << body;
    std::string text = weft::desc::str(graph.diagnostics()), path = folder.file("model.textproto");
    EXPECT_TRUE(text.starts_with(path + ": "));
    return text.substr(std::min(text.size(), path.size() + 2));
  }
};

} // namespace

TEST(Reader, NodesPortsAndTensors) {
  Files files;
  auto graph = files.loadBody(std::string(kPorts) + kNode +
                              R"(initializer { dims: 2 data_type: 7 name: "i" int64_data: [3, -4] }
         initializer { dims: 2 data_type: 1 name: "f" raw_data: "\000\000\200\077\000\000\200\077" })");
  ASSERT_TRUE(graph) << weft::desc::str(graph.diagnostics());
  EXPECT_EQ(graph->opset, 17);
  EXPECT_EQ(std::get<std::string>(graph->inputs.at(0).dimensions.at(0)), "b");
  EXPECT_EQ(std::get<int64_t>(graph->inputs.at(0).dimensions.at(1)), 3);
  EXPECT_EQ(graph->order, (std::vector<std::string>{"i", "f"}));
  EXPECT_EQ(graph->initializer("i")->read().values, (std::vector<double>{3, -4}));
  EXPECT_FALSE(graph->initializer("i")->isUniform());
  EXPECT_TRUE(graph->initializer("f")->isUniform());
  EXPECT_EQ(graph->initializer("none"), nullptr);
  EXPECT_EQ(liveNodes(*graph).size(), 1u);
}

TEST(Reader, EveryValueIsGivenOnceBeforeItIsUsed) {
  Files files;
  std::string ports = kPorts;
  EXPECT_EQ(files.errorOf(ports + kNode + kNode), "node 1 (Relu): value 'y' is defined twice\n");
  EXPECT_EQ(files.errorOf(ports + R"(node { op_type: "Relu" input: "z" output: "y" })"),
            "node 0 (Relu): uses value 'z', which no earlier node computes\n");
  EXPECT_EQ(files.errorOf(ports + R"(node { op_type: "Relu" input: "y" output: "y" })"),
            "node 0 (Relu): uses value 'y', which no earlier node computes\n");
  EXPECT_EQ(files.errorOf(ports), "output 'y': no node computes this value\n");
  EXPECT_EQ(files.errorOf(ports + kNode + R"(node { op_type: "Identity" input: "x" })"),
            "node 1 (Identity): has no output\n");
}

TEST(Reader, ShapesOfTensors) {
  Files files;
  std::string rest = std::string(kPorts) + kNode;
  EXPECT_EQ(files.errorOf(rest + "initializer { data_type: 1 float_data: 1 }"),
            "initializer 0: has no name\n");
  for (const char *dims :
       {"dims: -1", "dims: [4294967296, 4294967296]", "dims: [1099511627776, 4294967296]",
        "dims: [0, 4294967296, 4294967296]"}) {
    EXPECT_EQ(files.errorOf(rest + "initializer { data_type: 1 name: 'w' " + dims + " }"),
              "initializer 'w': has an impossible shape\n");
  }
  EXPECT_EQ(files.errorOf(rest + "initializer { data_type: 1 name: 'w' dims: 2 float_data: 1 }"),
            "initializer 'w': expected 2 elements of float32, got 4 bytes\n");
}

TEST(Reader, ExternalDataLiesBesideTheModel) {
  Files files;
  files.folder.write("w.bin", std::string(12, '\0'));
  auto withData = [](const std::string &location, const std::string &more = "") {
    return std::string(kPorts) + kNode +
           "initializer { data_type: 1 name: 'w' dims: 2 data_location: EXTERNAL external_data { "
           "key: 'location' value: '" +
           location + "' } " + more + " }";
  };
  auto entry = [](const std::string &key, const std::string &value) {
    return "external_data { key: '" + key + "' value: '" + value + "' }";
  };
  EXPECT_TRUE(files.loadBody(withData("w.bin", entry("offset", "4"))));
  EXPECT_EQ(files.errorOf(withData("w.bin", entry("offset", "5"))),
            "initializer 'w': expected 8 bytes from byte 5 of 'w.bin' on, which has 12 bytes\n");
  EXPECT_EQ(files.errorOf(withData("w.bin", entry("offset", "-1"))),
            "initializer 'w': expected offset and length of the external data as numbers\n");
  for (const char *outside : {"../w.bin", "/etc/passwd", "in/../../w.bin", ""}) {
    EXPECT_EQ(files.errorOf(withData(outside)),
              std::string("initializer 'w': expected external data in a file beside the model, "
                          "got '") +
                  outside + "'\n");
  }
}

TEST(Reader, DeepTextDoesNotReachTheStack) {
  Files files;
  std::string text = kHead;
  for (int i = 0; i < 100000; ++i) {
    text += "node { attribute { g { ";
  }
  EXPECT_FALSE(files.load(text));
}

TEST(Reader, AMessageIsOneLine) {
  Files files;
  EXPECT_EQ(files.errorOf(std::string(kPorts) + R"(node { op_type: "A\nB" name: "c\td" })"),
            "node 0 (A?B 'c?d'): has no output\n");
}
