/* modules.c: a program in a folder of its own finds the modules of the installation. LIBRARY is the
 * folder of the installed library. The static library knows only where it was to be installed,
 * which a staging folder is not, so the folder is named there. */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE 1 /* setenv */
#endif
#include <tutti/cluster.h>
#include <tutti/comm.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    char folder[4000], module[4096];
    const char *library = getenv("LIBRARY");
    snprintf(folder, sizeof folder, "%s/tutti", library ? library : "");
    snprintf(module, sizeof module, "%s/tutti_mpi.so", folder);
    if (access(module, R_OK) != 0) {
        puts("modules: skipped: OpenMPI's headers were not there");
        return 0;
    }
    if (count > 0 && strstr(arguments[0], "_static"))
        setenv("TUTTI_MODULES", folder, 1);
    tutti_cluster *cluster = NULL;
    tutti_comm *comm = NULL;
    tutti_status status = tutti_cluster_resolve(NULL, &cluster);
    if (status == TUTTI_OK)
        status = tutti_comm_open(cluster, TUTTI_COMM_OPTIONS(.engine = "mpi"), &comm);
    if (status != TUTTI_OK)
        fprintf(stderr, "%s lies there, and yet: %s\n", module, tutti_error_message());
    tutti_comm_close(comm);
    tutti_cluster_free(cluster);
    return status == TUTTI_OK ? 0 : 1;
}
