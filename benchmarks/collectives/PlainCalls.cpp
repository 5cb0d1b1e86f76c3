//===- PlainCalls.cpp - times plain collectives of MPI ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sizes.h"

#include <mpi.h>

using namespace weft;

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (size_t kind = 0; kind < bench::kKinds.size(); ++kind) {
    for (int64_t bytes : bench::kSizes) {
      std::vector<float> operand(size_t(bytes) / sizeof(float), 1.0F), result(operand.size());
      int count = int(bench::operandElements(kind, bytes, ranks)), part = count / ranks;
      auto once = [&] {
        switch (kind) {
        case 0:
          return MPI_Allreduce(operand.data(), result.data(), count, MPI_FLOAT, MPI_SUM,
                               MPI_COMM_WORLD);
        case 1:
          return MPI_Reduce_scatter_block(operand.data(), result.data(), part, MPI_FLOAT, MPI_SUM,
                                          MPI_COMM_WORLD);
        case 2:
          return MPI_Allgather(operand.data(), count, MPI_FLOAT, result.data(), count, MPI_FLOAT,
                               MPI_COMM_WORLD);
        default:
          return MPI_Alltoall(operand.data(), part, MPI_FLOAT, result.data(), part, MPI_FLOAT,
                              MPI_COMM_WORLD);
        }
      };
      double seconds = bench::secondsOf(bytes, [&] { return once() == MPI_SUCCESS; });
      if (rank == 0) {
        bench::print(kind, bytes, seconds);
      }
    }
  }
  MPI_Finalize();
  return 0;
}
