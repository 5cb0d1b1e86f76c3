//===- LauncherTest.cpp - who has started the process ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/mpi/Launcher.h"

#include <gtest/gtest.h>

#include <map>

using namespace weft::rt::mpi;

namespace {

using Variables = std::map<std::string, std::string>;

/// "mpirun 1 of 4", or "none".
std::string launcherOf(const Variables &variables) {
  auto launcher = findLauncher([&](const char *name) {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
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
  auto find = [&] {
    return findLauncher([&](const char *name) {
      auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  };
  EXPECT_EQ(find()->localRank, std::nullopt);
  EXPECT_EQ(find()->localRankName, "OMPI_COMM_WORLD_LOCAL_RANK");
  variables["OMPI_COMM_WORLD_LOCAL_RANK"] = "1";
  EXPECT_EQ(find()->localRank, 1);
  variables = {{"SLURM_PROCID", "9"}, {"SLURM_STEP_NUM_TASKS", "16"}, {"SLURM_LOCALID", "2"}};
  EXPECT_EQ(find()->localRank, 2);
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

} // namespace
