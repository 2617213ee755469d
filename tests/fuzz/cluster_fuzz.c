/* cluster_fuzz.c: what schedulers write into the environment: TF_CONFIG, Slurm's host lists. */
#include <string.h>

#include "cluster/cluster.h"
#include "fuzz.h"

static tutti_status count(void *context, const char *host)
{
    promise(strlen(host) > 0 && strlen(host) < 256);
    promise(++*(int *)context <= TUTTI_MOST_RANKS);
    return TUTTI_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), host[64];
    tutti_cluster *cluster = NULL;
    int hosts = 0, port;
    promise(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    setenv("TF_CONFIG", text, 1);
    if (*text != '\0' &&
        went_well(tutti_cluster_resolve(
            TUTTI_OPTIONS(tutti_cluster_options, .resolver = "tf_config"), &cluster)))
        promise(tutti_cluster_rank(cluster) < tutti_cluster_size(cluster));
    tutti_cluster_free(cluster);
    if (size < 200)
        went_well(tutti__hostlist(text, count, &hosts));
    tutti__task_split(text, host, sizeof host, &port);
    free(text);
    return 0;
}
