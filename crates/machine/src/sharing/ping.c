/* Messages between ranks that are each bound to a processor.
 *
 *     ping PROCESSORS PHASE...        PROCESSORS: 0,1,...: of each rank
 *                                     PHASE: BYTES:ROUNDS:BATCHES:A-B[,C-D...]: pairs of ranks at once
 *
 * Rank 0 prints "cere PHASE SECONDS" for each: a message one way, the least of the batches, the mean of the pairs. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Waits without taking a processor from those who measure. */
static void rest(MPI_Request *request) {
  for (int done = 0; !done; usleep(100))
    MPI_Test(request, &done, MPI_STATUS_IGNORE);
}

static void bind(const char *processors, int rank) {
  for (; rank > 0 && processors; rank--)
    processors = strchr(processors, ',') ? strchr(processors, ',') + 1 : NULL;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (processors)
    CPU_SET(atoi(processors), &set);
  if (!processors || sched_setaffinity(0, sizeof set, &set) != 0) {
    perror("cere: a rank cannot be bound");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

static double ping(char *buffer, int bytes, int other, int first, long rounds, long batches) {
  double least = 1e9;
  for (long batch = 0; batch < batches + 1; batch++) {
    double from = MPI_Wtime();
    for (long round = 0; round < rounds; round++) {
      if (first)
        MPI_Send(buffer, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
      MPI_Recv(buffer, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (!first)
        MPI_Send(buffer, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    }
    double time = (MPI_Wtime() - from) / (2.0 * (double)rounds);
    if (batch > 0 && time < least) /* the first warms up */
      least = time;
  }
  return least;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  bind(argc > 1 ? argv[1] : NULL, rank);
  for (int phase = 2; phase < argc; phase++) {
    char *at = argv[phase];
    int bytes = (int)strtol(at, &at, 10);
    long rounds = strtol(at + 1, &at, 10), batches = strtol(at + 1, &at, 10);
    double sums[2] = {0, 0}, all[2];
    while (*at) {
      int a = (int)strtol(at + 1, &at, 10), b = (int)strtol(at + 1, &at, 10);
      if (rank != a && rank != b)
        continue;
      char *buffer = malloc((size_t)bytes);
      memset(buffer, 1, (size_t)bytes);
      double time = ping(buffer, bytes, rank == a ? b : a, rank == a, rounds, batches);
      free(buffer);
      if (rank == a) {
        sums[0] += time;
        sums[1] += 1;
      }
    }
    MPI_Request request;
    MPI_Iallreduce(sums, all, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    rest(&request);
    if (rank == 0) {
      printf("cere %d %.9e\n", phase - 2, all[0] / all[1]);
      fflush(stdout);
    }
  }
  MPI_Finalize();
  return 0;
}
