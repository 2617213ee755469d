/* flags.c: the program says who is in the job, from its own command line. */
#include "cluster/cluster.h"

static bool given(const char *text)
{
    return text != NULL && *text != '\0';
}

static bool flags_present(const tutti_cluster_options *options)
{
    return given(options->chief) || given(options->workers) || given(options->ps) ||
           given(options->evaluators);
}

static tutti_status flags_resolve(const tutti_cluster_options *options, tutti_cluster *cluster)
{
    TUTTI_TRY(tutti__cluster_add_list(cluster, TUTTI_ROLE_CHIEF, options->chief));
    TUTTI_TRY(tutti__cluster_add_list(cluster, TUTTI_ROLE_WORKER, options->workers));
    TUTTI_TRY(tutti__cluster_add_list(cluster, TUTTI_ROLE_PS, options->ps));
    TUTTI_TRY(tutti__cluster_add_list(cluster, TUTTI_ROLE_EVALUATOR, options->evaluators));
    cluster->role = TUTTI_ROLE_WORKER;
    cluster->index = options->index;
    return given(options->role) ? tutti__role_read(options->role, &cluster->role) : TUTTI_OK;
}

const tutti_resolver tutti_resolver_flags = {
    .name = "flags",
    .order = 0,
    .reads = "the program's own options",
    .present = flags_present,
    .resolve = flags_resolve,
};
