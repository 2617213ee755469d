/* mpi_test.c: our collectives and MPI's own under the real mpirun, through the command. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/test.h"

/* The command beside this program, or "" where it was not built. */
static void find_command(char *ret_path, size_t size)
{
    char path[PATH_MAX - 16] = "";
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    char *slash = length > 0 ? strrchr(path, '/') : NULL;
    ret_path[0] = 0;
    if (!slash)
        return;
    snprintf(ret_path, size, "%.*s/tutti", (int)(slash - path), path);
    if (access(ret_path, X_OK) != 0)
        ret_path[0] = 0;
}

static void run_under_mpirun(const char *mpirun, const char *command, const char *algorithm)
{
    char text[PATH_MAX + 512], line[512], all[4096] = "";
    snprintf(text, sizeof text,
             "timeout 60 %s -n 2 %s bench collectives --engine mpi --bytes 64k --algorithm %s "
             "--json 2>&1",
             mpirun, command, algorithm);
    FILE *pipe = popen(text, "r");
    CHECK(pipe != NULL);
    while (fgets(line, sizeof line, pipe))
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s", line);
    int ending = pclose(pipe);
    if (strstr(all, "needs the module"))
        SKIP("the module for this MPI was not built: its headers were not there");
    CHECK_CONTAINS(all, "\"engine\":\"mpi\"");
    CHECK_INT(ending, 0);
}

/* `mpirun` with what it needs, after `program` was found. */
static void test_under(const char *program, const char *mpirun)
{
    char command[PATH_MAX], check[100];
    find_command(command, sizeof command);
    snprintf(check, sizeof check, "command -v %s > /dev/null 2>&1", program);
    if (system(check) != 0)
        SKIP("there is no %s", program);
    if (!command[0])
        SKIP("the command tutti was not built");
    if (TUTTI_TEST_SANITIZED)
        SKIP("MPI under a sanitizer");
    run_under_mpirun(mpirun, command, "ring");
    run_under_mpirun(mpirun, command, "native");
}

TUTTI_TEST(comm_mpi_under_openmpis_mpirun)
{
    test_under("mpirun.openmpi", geteuid() == 0
                                     ? "mpirun.openmpi --allow-run-as-root --oversubscribe"
                                     : "mpirun.openmpi --oversubscribe");
}

TUTTI_TEST(comm_mpi_under_mpichs_mpirun)
{
    test_under("mpirun.mpich", "mpirun.mpich");
}
