/* server_calls.c: what a strategy does whose variables live on servers. */
#include <stdlib.h>
#include <string.h>

#include "parallel/strategies/strategy.h"
#include "tables/servers_kind.h"
#include "tutti/parameter_server.h"

int tutti__strategy_meeting_replicas(const tutti_strategy *strategy)
{
    bool has_stages = strategy && strategy->kind && strategy->kind->pipeline;
    return strategy && strategy->axis_group && !has_stages ? strategy->axis_group->size : 1;
}

int tutti__strategy_processes(const tutti_strategy *strategy)
{
    const tutti_axis_group *all = strategy ? strategy->axis_group : NULL;
    return all ? all->size / all->local : 1;
}

/* Chief and workers, or this process alone. */
static void count_workers(tutti_strategy *s, const tutti_cluster *cluster)
{
    int chiefs = tutti_cluster_count(cluster, TUTTI_ROLE_CHIEF);
    s->server_workers = chiefs + tutti_cluster_count(cluster, TUTTI_ROLE_WORKER);
    s->server_rank = tutti_cluster_rank(cluster);
}

static tutti_status check_servers(const tutti_strategy *s, const tutti_cluster *cluster)
{
    if (tutti_cluster_role(cluster) == TUTTI_ROLE_EVALUATOR)
        return tutti_fail(TUTTI_INVALID,
                          "this process is an evaluator: it stands beside the job and does not "
                          "train. Let it evaluate checkpoints of the job, with strategy one_device "
                          "(--strategy one_device)");
    if (tutti_cluster_size(cluster) > 1 && tutti_cluster_count(cluster, TUTTI_ROLE_PS) == 0)
        return tutti_fail(TUTTI_INVALID,
                          "this job has %d workers and no parameter server; say how many of its "
                          "processes serve: --ps 1 (tutti run), TUTTI_PS=1, or ps tasks in "
                          "TF_CONFIG",
                          tutti_cluster_size(cluster));
    if (s->options.mesh || s->options.layout)
        return tutti_fail(TUTTI_INVALID, "workers of parameter servers share no mesh: leave .mesh "
                                         "and .layout out");
    return TUTTI_OK;
}

static int64_t seconds_ns(double seconds, double fallback)
{
    return (int64_t)((seconds > 0 ? seconds : fallback) * 1e9);
}

tutti_status tutti__strategy_open_servers(tutti_strategy *s)
{
    const tutti_strategy_options *o = &s->options;
    const tutti_cluster *cluster = o->cluster;
    if (!cluster) {
        TUTTI_TRY(tutti_cluster_resolve(NULL, &s->cluster));
        cluster = s->cluster;
    }
    TUTTI_TRY(check_servers(s, cluster));
    count_workers(s, cluster);
    tutti_servers_options options = {.cluster = tutti_cluster_size(cluster) > 1 ? cluster : NULL,
                                     .consistency = o->consistency ? o->consistency : "async",
                                     .placement = o->placement ? o->placement : "",
                                     .nan = o->nan ? o->nan : "",
                                     .rate = o->staleness ? o->staleness : "",
                                     .replicas = o->replicas,
                                     .limit = o->server_limit,
                                     .atomic = o->atomic,
                                     .record = o->record ? o->record : "",
                                     .replay = o->replay ? o->replay : "",
                                     .deadline_ns = seconds_ns(o->timeout, 300),
                                     .join_ns = seconds_ns(o->join_timeout, 60)};
    if (!tutti__servers_kind_table[0])
        return tutti_fail(TUTTI_UNSUPPORTED, "this build has no parameter servers");
    s->servers_kind = tutti__servers_kind_table[0];
    tutti_status status = s->servers_kind->open(&options, &s->servers, &s->served);
    if (status == TUTTI_OK && s->served)
        status = tutti_fail(TUTTI_CANCELLED, "this process was a parameter server, and is done");
    return status;
}

tutti_status tutti__strategy_close_servers(tutti_strategy *s)
{
    void *servers = s->servers;
    s->servers = NULL;
    return servers ? s->servers_kind->close(servers, s->error.status == TUTTI_OK) : TUTTI_OK;
}

int tutti__strategy_server_variable(tutti_strategy *s, const char *name)
{
    pthread_mutex_lock(&s->servers_lock);
    int number = (int)(intptr_t)tutti__map_get(&s->server_variables, name) - 1;
    pthread_mutex_unlock(&s->servers_lock);
    return number;
}

tutti_status tutti__strategy_make_server_variable(tutti_strategy *s,
                                                  const tutti_servers_variable *variable,
                                                  int *ret_number)
{
    tutti_status status = TUTTI_OK;
    pthread_mutex_lock(&s->servers_lock);
    int number = (int)(intptr_t)tutti__map_get(&s->server_variables, variable->name) - 1;
    if (number < 0)
        status = s->servers_kind->variable(s->servers, variable, &number);
    if (status == TUTTI_OK)
        status =
            tutti__map_set(&s->server_variables, variable->name, (void *)(intptr_t)(number + 1));
    pthread_mutex_unlock(&s->servers_lock);
    if (status == TUTTI_OK)
        *ret_number = number;
    return status;
}

void tutti__strategy_server_rows(const tutti_strategy *s, int64_t batch, int64_t *ret_first,
                                 int64_t *ret_rows)
{
    int64_t n = s->server_workers, r = s->server_rank, end;
    if (s->options.deterministic) { /* whole shards */
        int64_t shards = s->options.shards;
        *ret_first = tutti__shard_bound(batch, (int)shards, (int)(shards * r / n));
        end = tutti__shard_bound(batch, (int)shards, (int)(shards * (r + 1) / n));
    } else {
        int64_t least = batch / n, more = batch % n;
        *ret_first = r * least + (r < more ? r : more);
        end = *ret_first + least + (r < more);
    }
    *ret_rows = end - *ret_first;
}

tutti_status tutti__strategy_pull_rows(tutti_strategy *s, int number, tutti_tensor *rows,
                                       tutti_tensor **ret_values)
{
    pthread_mutex_lock(&s->servers_lock);
    tutti_status status = s->servers_kind->pull_rows(s->servers, number, rows, ret_values);
    pthread_mutex_unlock(&s->servers_lock);
    return status;
}

/* ---- by name ---- */

/* The variable of that name, or the one whose slot it is: the longest that the name begins with.
 * *ret_named: what the servers know it by. */
static tutti_status find_named(tutti_strategy *s, const char *name, int *ret_variable,
                               const char **ret_named)
{
    char prefix[1200];
    if (!s || !s->servers || !name)
        return tutti_fail(TUTTI_INVALID, "tutti_get and tutti_put need a strategy with parameter "
                                         "servers, and a name");
    *ret_named = "value";
    *ret_variable = tutti__strategy_server_variable(s, name);
    for (size_t length = strlen(name); *ret_variable < 0 && length-- > 0;) {
        if (name[length] != '/' || length >= sizeof prefix)
            continue;
        memcpy(prefix, name, length);
        prefix[length] = '\0';
        *ret_variable = tutti__strategy_server_variable(s, prefix);
        *ret_named = name;
    }
    return *ret_variable >= 0
               ? TUTTI_OK
               : tutti_fail(TUTTI_NOT_FOUND, "the parameter servers have no '%s' (yet)", name);
}

typedef struct named_search {
    const char *name;
    tutti_tensor *found;
} named_search;

static tutti_status keep_named(void *context, const char *name, tutti_tensor *tensor)
{
    named_search *search = context;
    if (!search->found && strcmp(name, search->name) == 0)
        search->found = tutti_tensor_retain(tensor);
    return TUTTI_OK;
}

tutti_status tutti_get(tutti_strategy *strategy, const char *name, tutti_tensor **ret_tensor)
{
    named_search search = {0};
    int variable;
    TUTTI_TRY(find_named(strategy, name, &variable, &search.name));
    tutti_status status =
        strategy->servers_kind->get(strategy->servers, variable, keep_named, &search);
    if (status == TUTTI_OK && !search.found)
        status = tutti_fail(TUTTI_NOT_FOUND, "the parameter servers have no '%s'", name);
    if (status == TUTTI_OK)
        *ret_tensor = search.found;
    else
        tutti_tensor_release(search.found);
    return status;
}

tutti_status tutti_put(tutti_strategy *strategy, const char *name, tutti_tensor *tensor)
{
    int variable;
    const char *named;
    if (!tensor)
        return tutti_fail(TUTTI_INVALID, "tutti_put '%s': the tensor is NULL", name ? name : "");
    TUTTI_TRY(find_named(strategy, name, &variable, &named));
    return strategy->servers_kind->put(strategy->servers, variable, named, tensor);
}
