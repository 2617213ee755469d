/* terms_test.c: ranks that were opened with other options are refused, on all sides alike. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/group/testing.h"

/* How one of two ranks opens, and what both must be told; NULL: that they are a group. */
typedef struct opening {
    tutti_comm_options options[2];
    const char *variable, *values[2]; /* the environment's; NULL: none */
    const char *told[3];
} opening;

static tutti_status open_as(int rank, const char *workers, const opening *o)
{
    tutti_cluster *cluster;
    tutti_comm *comm = NULL;
    if (o->variable && o->values[rank])
        setenv(o->variable, o->values[rank], 1);
    TUTTI_TRY(tutti_cluster_resolve(
        TUTTI_OPTIONS(tutti_cluster_options, .workers = workers, .role = "worker", .index = rank),
        &cluster));
    tutti_comm_options options = o->options[rank];
    options.struct_size = sizeof options;
    options.join_timeout = 20;
    tutti_status status = tutti_comm_open(cluster, &options, &comm);
    if (!o->told[0])
        return status == TUTTI_OK ? tutti_comm_close(comm) : status;
    for (int i = 0; i < 3 && o->told[i]; i++)
        if (status != TUTTI_INVALID || !strstr(tutti_error_message(), o->told[i]))
            return tutti__error_prefix(TUTTI_CHECK_FAILED, "status %d, not a word of %s",
                                       (int)status, o->told[i]);
    tutti_cluster_free(cluster);
    return TUTTI_OK;
}

static void open_two(const opening *o)
{
    char workers[256];
    pid_t children[2];
    tutti__test_addresses(2, workers, sizeof workers);
    for (int rank = 0; rank < 2; rank++) {
        children[rank] = fork();
        CHECK(children[rank] >= 0);
        if (children[rank] > 0)
            continue;
        tutti_status status = open_as(rank, workers, o);
        if (status != TUTTI_OK)
            fprintf(stderr, "rank %d: %s\n", rank, tutti_error_message());
        _exit(status != TUTTI_OK);
    }
    for (int rank = 0; rank < 2; rank++) {
        int ending = -1;
        waitpid(children[rank], &ending, 0);
        CHECK_INT(ending, 0);
    }
}

TUTTI_TEST(comm_ranks_that_were_opened_with_other_algorithms_are_refused)
{
    open_two(&(opening){.variable = "TUTTI_ALL_REDUCE",
                        .values = {"ring", "tree"},
                        .told = {"TUTTI_ALL_REDUCE", "'ring' on rank 0", "'tree' on rank 1"}});
    open_two(
        &(opening){.options = {{.all_reduce = "ring:64k:tree"}, {0}},
                   .told = {".all_reduce", "'ring:64k:tree' on rank 0", "not given on rank 1"}});
    open_two(&(opening){.options = {{.all_reduce = "ring"}, {0}},
                        .variable = "TUTTI_ALL_REDUCE",
                        .values = {NULL, "ring"}});
}

TUTTI_TEST(comm_ranks_that_were_opened_with_other_engines_are_refused)
{
    open_two(&(opening){.variable = "TUTTI_ENGINE",
                        .values = {"tcp", "shm"},
                        .told = {"TUTTI_ENGINE", "'tcp' on rank 0", "'shm' on rank 1"}});
    open_two(&(opening){.variable = "TUTTI_ENGINE",
                        .values = {"tcp", NULL},
                        .told = {"TUTTI_ENGINE", "'tcp' on rank 0", "not given on rank 1"}});
    open_two(&(opening){.variable = "TUTTI_ENGINE", .values = {"shm", NULL}});
}

TUTTI_TEST(comm_ranks_that_were_opened_with_other_sizes_are_refused)
{
    open_two(&(opening){.options = {{.arena_bytes = 1 << 20}, {.arena_bytes = 1 << 21}},
                        .told = {".arena_bytes", "'1048576' on rank 0", "'2097152' on rank 1"}});
    open_two(&(opening){.options = {{.engine = "tcp"}, {.engine = "tcp", .streams = 2}},
                        .told = {".streams", "'0' on rank 0", "'2' on rank 1"}});
    open_two(&(opening){.options = {{.measure = true}, {0}},
                        .told = {".measure", "'1' on rank 0", "'0' on rank 1"}});
    /* Connections are not for those who share memory. */
    open_two(&(opening){.options = {{.streams = 1}, {.streams = 2}}});
}
