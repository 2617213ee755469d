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

static void run_under_mpirun(const char *command, const char *algorithm)
{
    char text[PATH_MAX + 512], line[512], all[4096] = "";
    snprintf(
        text, sizeof text,
        "timeout 60 mpirun %s --oversubscribe -n 2 %s bench collectives --engine mpi --bytes 64k "
        "--algorithm %s --json 2>&1",
        geteuid() == 0 ? "--allow-run-as-root" : "", command, algorithm);
    FILE *pipe = popen(text, "r");
    CHECK(pipe != NULL);
    while (fgets(line, sizeof line, pipe))
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s", line);
    int ending = pclose(pipe);
    if (strstr(all, "tutti_mpi.so"))
        SKIP("the module for MPI was not built: no mpi.h");
    CHECK_CONTAINS(all, "\"engine\":\"mpi\"");
    CHECK_INT(ending, 0);
}

TUTTI_TEST(comm_mpi_under_mpirun)
{
    char command[PATH_MAX];
    find_command(command, sizeof command);
    if (system("command -v mpirun > /dev/null 2>&1") != 0)
        SKIP("there is no mpirun");
    if (!command[0])
        SKIP("the command tutti was not built");
    if (TUTTI_TEST_SANITIZED)
        SKIP("MPI under a sanitizer");
    run_under_mpirun(command, "ring");
    run_under_mpirun(command, "native");
}
