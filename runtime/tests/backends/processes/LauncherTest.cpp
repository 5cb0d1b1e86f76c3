//===- LauncherTest.cpp - finds the launcher of this process --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/Launcher.h"

#include <gtest/gtest.h>

#include <map>

using namespace weft::rt::mpi;

namespace {

using Variables = std::map<std::string, std::string>;

const Variables kTorchrun = {{"TORCHELASTIC_RUN_ID", "job7"},
                             {"RANK", "3"},
                             {"WORLD_SIZE", "4"},
                             {"LOCAL_RANK", "3"},
                             {"MASTER_ADDR", "node0"},
                             {"MASTER_PORT", "29500"}};

std::optional<Launcher> find(const Variables &variables) {
  return findLauncher([&](const char *name) {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

/// Returns "mpirun 1 of 4", "none", or the error.
std::string launcherOf(const Variables &variables) {
  auto launcher = find(variables);
  if (launcher && !launcher->problem.empty()) {
    return launcher->problem;
  }
  return launcher ? launcher->name + " " + std::to_string(launcher->rank) + " of " +
                        std::to_string(launcher->size)
                  : "none";
}

TEST(LauncherTest, KnowsEachByItsVariables) {
  EXPECT_EQ(launcherOf({}), "none");
  EXPECT_EQ(launcherOf({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}}),
            "mpirun 1 of 4");
  EXPECT_EQ(launcherOf({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}}), "srun 0 of 2");
  EXPECT_EQ(launcherOf({{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}}), "mpiexec of MPICH 2 of 3");
}

TEST(LauncherTest, KnowsTheNumberOnTheMachine) {
  Variables variables = {{"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "8"}};
  EXPECT_EQ(find(variables)->localRank, std::nullopt);
  EXPECT_EQ(find(variables)->localRankName, "OMPI_COMM_WORLD_LOCAL_RANK");
  variables["OMPI_COMM_WORLD_LOCAL_RANK"] = "1";
  EXPECT_EQ(find(variables)->localRank, 1);
  variables = {{"SLURM_PROCID", "9"}, {"SLURM_STEP_NUM_TASKS", "16"}, {"SLURM_LOCALID", "2"}};
  EXPECT_EQ(find(variables)->localRank, 2);
  EXPECT_EQ(find(kTorchrun)->localRank, 3);
}

TEST(LauncherTest, PrefersWhatStartedTheProcessItself) {
  Variables both = {
      {"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"PMI_RANK", "3"}, {"PMI_SIZE", "8"}};
  EXPECT_EQ(launcherOf(both), "srun 3 of 8");
  // mpirun in an allocation, which has one task for each node.
  both["OMPI_COMM_WORLD_RANK"] = "5";
  both["OMPI_COMM_WORLD_SIZE"] = "16";
  EXPECT_EQ(launcherOf(both), "mpirun 5 of 16");
}

TEST(LauncherTest, AJobOutsideOfSrunIsStartedByItself) {
  EXPECT_EQ(launcherOf({{"SLURM_PROCID", "0"}}), "none");
  EXPECT_EQ(launcherOf({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}), "none");
}

TEST(LauncherTest, PassesOverWhatIsNoRank) {
  for (const char *rank : {"", "-1", "4", "1x", "99999999999999999999"}) {
    EXPECT_EQ(launcherOf({{"OMPI_COMM_WORLD_RANK", rank}, {"OMPI_COMM_WORLD_SIZE", "4"}}), "none")
        << rank;
  }
}

TEST(LauncherTest, TorchrunSaysWhereProcessesMeet) {
  EXPECT_EQ(launcherOf(kTorchrun), "torchrun 3 of 4");
  std::optional<RendezvousPoint> point = find(kTorchrun)->rendezvousPoint;
  EXPECT_EQ(point->host, "node0");
  EXPECT_EQ(point->port, 29501);
  EXPECT_EQ(point->portName, "MASTER_PORT + 1");
  EXPECT_EQ(point->run, "job7");
  Variables own = kTorchrun;
  own["WEFT_PORT"] = "4000";
  EXPECT_EQ(find(own)->rendezvousPoint->port, 4000);
  EXPECT_EQ(find(own)->rendezvousPoint->portName, "WEFT_PORT");
  EXPECT_FALSE(find({{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}})->rendezvousPoint);
}

TEST(LauncherTest, AShellOrAPodMaySetTheSame) {
  Variables pod = {
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "pod-0"}, {"MASTER_PORT", "23456"}};
  EXPECT_EQ(launcherOf(pod), "torchrun 1 of 2");
  EXPECT_EQ(find(pod)->localRank, std::nullopt);
  EXPECT_EQ(find(pod)->localRankName, "LOCAL_RANK");
  EXPECT_EQ(find(pod)->rendezvousPoint->run, "");
}

TEST(LauncherTest, TorchrunIsNearerThanWhatHasStartedIt) {
  Variables both = kTorchrun;
  for (const char *name : {"OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"}) {
    both[name] = "0";
  }
  for (const char *name : {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "PMI_SIZE"}) {
    both[name] = "2";
  }
  EXPECT_EQ(launcherOf(both), "torchrun 3 of 4");
  // A script's variables: mpirun has been started there, or it has itself by srun.
  both.erase("TORCHELASTIC_RUN_ID");
  EXPECT_EQ(launcherOf(both), "mpirun 0 of 2");
  both.erase("OMPI_COMM_WORLD_RANK");
  EXPECT_EQ(launcherOf(both), "torchrun 3 of 4");
  // A job's script whose variables are the same for all processes.
  both.erase("RANK");
  EXPECT_EQ(launcherOf(both), "srun 0 of 2");
}

TEST(LauncherTest, NamesWhatTorchrunDoesNotSayOrSaysWrong) {
  auto without = [](const char *name) {
    Variables variables = kTorchrun;
    variables.erase(name);
    return launcherOf(variables);
  };
  auto with = [](const char *name, const char *value) {
    Variables variables = kTorchrun;
    variables[name] = value;
    return launcherOf(variables);
  };
  const char *const reason = ": variables that torchrun sets say that this is one of several "
                             "processes";
  EXPECT_EQ(without("RANK"),
            std::string("RANK is not set, expected a whole number from 0 to below WORLD_SIZE") +
                reason);
  EXPECT_EQ(without("WORLD_SIZE"),
            std::string("WORLD_SIZE is not set, expected the number of processes") + reason);
  EXPECT_EQ(without("MASTER_ADDR"),
            std::string("MASTER_ADDR is not set, expected the machine of rank 0") + reason);
  EXPECT_EQ(without("MASTER_PORT"),
            std::string("MASTER_PORT is not set, expected a port, 1 to 65534") + reason);
  EXPECT_EQ(with("WORLD_SIZE", "0"), "WORLD_SIZE is '0', expected the number of processes");
  EXPECT_EQ(with("RANK", "4"), "RANK is '4', expected a whole number from 0 to below WORLD_SIZE");
  EXPECT_EQ(with("LOCAL_RANK", "x"),
            "LOCAL_RANK is 'x', expected a whole number from 0 to below WORLD_SIZE");
  EXPECT_EQ(with("MASTER_ADDR", ""), "MASTER_ADDR is '', expected the machine of rank 0");
  EXPECT_EQ(with("MASTER_PORT", "65535"), "MASTER_PORT is '65535', expected a port, 1 to 65534");
  EXPECT_EQ(with("WEFT_PORT", "0"), "WEFT_PORT is '0', expected a port, 1 to 65535");
  // Without the variables that only torchrun sets.
  EXPECT_EQ(launcherOf({{"RANK", "0"}}),
            std::string("WORLD_SIZE is not set, expected the number of processes") + reason);
  EXPECT_EQ(launcherOf({{"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}),
            std::string("RANK is not set, expected a whole number from 0 to below WORLD_SIZE") +
                reason);
  EXPECT_EQ(launcherOf({{"WORLD_SIZE", "2"}}), "none");
}

} // namespace
