/* collectives_mpi.c: MPI_Allreduce of f32, timed as bench/collectives.c does. Prints one JSON line
 * a size: mpicc -O2 collectives_mpi.c && mpirun -n 2 ./a.out 8 67108864 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double best_seconds(float *data, int count, long bytes)
{
    int times = bytes >= 1 << 18 ? 1 : bytes >= 1 << 14 ? 20 : 100;
    int rounds = bytes >= 16 << 20 ? 20 : 40;
    double best = 1e9;
    for (int round = 0; round < rounds; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        for (int i = 0; i < times; i++)
            MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        double each = (MPI_Wtime() - start) / times, slowest;
        MPI_Allreduce(&each, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        best = slowest < best ? slowest : best;
    }
    return best;
}

int main(int argc, char **argv)
{
    int rank, size, length;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = 0;
    for (int i = 1; i < argc; i++) {
        long bytes = atol(argv[i]);
        int count = (int)(bytes / 4);
        float *data = calloc((size_t)count + 1, sizeof *data);
        if (!data)
            MPI_Abort(MPI_COMM_WORLD, 1);
        memset(data, 0, (size_t)bytes);
        double seconds = best_seconds(data, count, bytes);
        double bus = 2.0 * (size - 1) / size * (double)bytes / seconds * 1e-9;
        if (rank == 0)
            printf("{\"op\":\"all_reduce\",\"peer\":\"openmpi\",\"version\":\"%s\",\"ranks\":%d,"
                   "\"bytes\":%ld,\"us\":%.4g,\"bus_gb_per_s\":%.4g}\n",
                   version, size, bytes, seconds * 1e6, bus);
        free(data);
    }
    MPI_Finalize();
    return 0;
}
