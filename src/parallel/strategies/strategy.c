/* strategy.c: strategies by name, their devices and their axis group. */
#include "parallel/strategies/strategy.h"
#include "comm/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "base/require.h"
#include "program/target.h"
#include "tables/strategy_kind.h"

static const tutti_param shards_param =
    TUTTI_PARAM("SHARDS", "8", "parts that a batch is cut into in deterministic mode");

static const tutti_strategy_kind *find_kind(const char *name)
{
    for (const tutti_strategy_kind *const *kind = tutti__strategy_kind_table; *kind; kind++)
        if (strcmp((*kind)->name, name) == 0)
            return *kind;
    return NULL;
}

static tutti_status unknown_kind(const char *name)
{
    tutti_text text = {0};
    tutti__text_add(&text, "auto");
    for (const tutti_strategy_kind *const *kind = tutti__strategy_kind_table; *kind; kind++)
        tutti__text_add(&text, ", %s", (*kind)->name);
    tutti_status status = tutti_fail(TUTTI_NOT_FOUND, "there is no strategy '%s'; there are: %s",
                                     name, text.data ? text.data : "none");
    tutti__text_free(&text);
    return status;
}

/* ---- making and ending ---- */

static const char *keep_text(tutti_strategy *s, const char *text)
{
    return text ? tutti__arena_string(&s->strings, text) : NULL;
}

static void keep_options(tutti_strategy *s, const tutti_strategy_options *options)
{
    if (options)
        memcpy(&s->options, options,
               options->struct_size < sizeof s->options ? options->struct_size : sizeof s->options);
    s->options.devices = keep_text(s, s->options.devices);
    s->options.central = keep_text(s, s->options.central);
    s->options.reduction = keep_text(s, s->options.reduction);
    s->options.engine = keep_text(s, s->options.engine);
    s->options.compression = keep_text(s, s->options.compression);
    s->options.sparse = keep_text(s, s->options.sparse);
    s->options.mesh = keep_text(s, s->options.mesh);
    s->options.layout = keep_text(s, s->options.layout);
    s->options.consistency = keep_text(s, s->options.consistency);
    s->options.placement = keep_text(s, s->options.placement);
    s->options.nan = keep_text(s, s->options.nan);
    s->options.staleness = keep_text(s, s->options.staleness);
    s->options.record = keep_text(s, s->options.record);
    s->options.replay = keep_text(s, s->options.replay);
    s->options.schedule = keep_text(s, s->options.schedule);
}

tutti_status tutti__strategy_take_shards(tutti_strategy *s)
{
    enum { MOST = 1024 };
    int64_t shards;
    if (s->options.shards > MOST)
        return tutti_fail(TUTTI_INVALID, "a batch is cut into 1 to %d shards, not %d", MOST,
                          s->options.shards);
    if (s->options.shards <= 0) {
        TUTTI_TRY(tutti__param_in(&shards_param, 1, MOST, &shards));
        s->options.shards = (int)shards;
    }
    return TUTTI_OK;
}

/* Every worker would train the whole job for itself, and all would write the same files. */
static tutti_status refuse_workers(const tutti_strategy *s)
{
    tutti_cluster *cluster;
    TUTTI_TRY(tutti_cluster_resolve(NULL, &cluster)); /* a job that is described wrongly is none */
    int size = tutti_cluster_size(cluster);
    tutti_status status = TUTTI_OK;
    if (size > 1)
        status = tutti_fail(TUTTI_INVALID,
                            "strategy %s is for one process, and %s started %d workers; use "
                            "multi_worker_mirrored (or leave --strategy out), or start one process",
                            s->kind->name, tutti_cluster_resolver(cluster), size);
    tutti_cluster_free(cluster);
    return status;
}

/* A parameter server would train as one worker more, and an evaluator a second job beside this one.
 */
static tutti_status refuse_roles(const tutti_strategy *s, const tutti_cluster *cluster)
{
    int servers = tutti_cluster_count(cluster, TUTTI_ROLE_PS);
    if (tutti_cluster_role(cluster) == TUTTI_ROLE_EVALUATOR)
        return tutti_fail(TUTTI_INVALID,
                          "this process is an evaluator: it stands beside the job and does not "
                          "train. Let it evaluate checkpoints of the job, with strategy one_device "
                          "(--strategy one_device)");
    if (servers > 0)
        return tutti_fail(
            TUTTI_UNSUPPORTED,
            "this job has %d parameter server%s, for which strategy %s has no use: "
            "all its processes are workers. Train with --strategy parameter_server, or "
            "leave them out (--ps, TUTTI_PS, the ps tasks of the cluster)",
            servers, servers == 1 ? "" : "s", s->kind->name);
    return TUTTI_OK;
}

/* The processes of the job meet; NULL where there is one. */
static tutti_status meet(tutti_strategy *s, tutti_comm **ret)
{
    const tutti_cluster *cluster = s->options.cluster;
    *ret = NULL;
    if (!s->kind->processes)
        return s->kind->several && !s->kind->servers ? refuse_workers(s) : TUTTI_OK;
    if (!cluster) {
        TUTTI_TRY(tutti_cluster_resolve(NULL, &s->cluster));
        cluster = s->cluster;
    }
    TUTTI_TRY(refuse_roles(s, cluster));
    if (tutti_cluster_size(cluster) == 1)
        return TUTTI_OK;
    tutti_comm_options options = {.struct_size = sizeof options,
                                  .engine = s->options.engine,
                                  .timeout = s->options.timeout,
                                  .join_timeout = s->options.join_timeout,
                                  .measure = true};
    return tutti_comm_open(cluster, &options, ret);
}

/* The names that users of one room or another know algorithms by. */
const char *tutti__strategy_algorithm(const tutti_strategy *s, int hosts)
{
    const char *name = s->options.reduction;
    if (name && strcmp(name, "hierarchical") == 0 && hosts == 1)
        return NULL; /* one machine has one level: by cost */
    if (name && (strcmp(name, "reduce_to_one") == 0 || strcmp(name, "one_device") == 0))
        return "central";
    return name;
}

static const char *algorithm_of(const tutti_strategy *s, const tutti_comm *world)
{
    return tutti__strategy_algorithm(s, world ? tutti_comm_hosts(world) : 1);
}

static void *strategy_allocate(void *self, size_t bytes)
{
    void *memory;
    return tutti_comm_allocate(self, (int64_t)bytes, &memory) == TUTTI_OK ? memory : NULL;
}

static void release(void *self, void *memory)
{
    tutti_comm_free(self, memory);
}

/* -1: there is none of that name. */
static int sparse_way(const tutti_strategy_options *options)
{
    static const char *const names[] = {"auto", "gather", "dense"};
    for (int i = 0; options->sparse && i < 3; i++)
        if (strcmp(options->sparse, names[i]) == 0)
            return i;
    return options->sparse ? -1 : TUTTI_SPARSE_AUTO;
}

static const char *wire_name(const tutti_strategy_options *options)
{
    if (options->deterministic)
        return NULL;
    return options->compression          ? options->compression
           : options->wire == TUTTI_BF16 ? "bf16"
           : options->wire == TUTTI_F16  ? "f16"
                                         : NULL;
}

/* What travels in 16 bits or compressed is added up in 32 on the way, by an algorithm of its own.
 */
tutti_status tutti__strategy_check_wire(const tutti_strategy *s, int hosts)
{
    const char *wire = wire_name(&s->options), *named = tutti__strategy_algorithm(s, hosts);
    if (!wire || !named || strcmp(named, "compressed") == 0)
        return TUTTI_OK;
    return tutti_fail(TUTTI_INVALID,
                      "wire=%s has a way of its own to add up gradients, which "
                      "reduction=%s cannot replace; leave one of them out",
                      wire, s->options.reduction);
}

static tutti_status open_strategy(tutti_strategy *s)
{
    tutti_comm *world;
    TUTTI_TRY(tutti__strategy_take_shards(s));
    if (s->options.deterministic && s->options.shard > TUTTI_SHARD_ELEMENT)
        return tutti_fail(TUTTI_INVALID,
                          "deterministic mode gives the same batches to any number of workers, and "
                          "shard=%s does not; use shard=element",
                          tutti__share_name(s->options.shard));
    if (algorithm_of(s, NULL))
        TUTTI_TRY(tutti_comm_spec_check(algorithm_of(s, NULL)));
    if (sparse_way(&s->options) < 0)
        return tutti_fail(
            TUTTI_INVALID,
            "there is no way '%s' for gradients of rows; there are: auto, gather, dense",
            s->options.sparse);
    if (s->options.compression)
        TUTTI_TRY(tutti_compressor_check(s->options.compression));
    if (s->options.compression && (s->options.wire == TUTTI_BF16 || s->options.wire == TUTTI_F16))
        return tutti_fail(TUTTI_INVALID,
                          "gradients go by .compression (%s) or by .wire (%s), not "
                          "by both; leave one of them out",
                          s->options.compression, tutti_dtype_name(s->options.wire));
    TUTTI_TRY(tutti__strategy_stage_devices(s));
    TUTTI_TRY(tutti__strategy_devices(s));
    TUTTI_TRY(tutti__strategy_central(s));
    TUTTI_TRY(meet(s, &world));
    const char **names = calloc((size_t)s->local, sizeof *names);
    if (!names) {
        tutti_comm_close(world);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for devices");
    }
    for (int i = 0; i < s->local; i++)
        names[i] = s->devices[i];
    s->device_names = names;
    TUTTI_TRY(tutti__axis_groups_create(NULL, world, true, NULL, &s->groups));
    s->groups->algorithm = algorithm_of(s, world);
    TUTTI_TRY(tutti__axis_groups_add(
        s->groups, TUTTI_BATCH_AXIS, world ? tutti_comm_size(world) : 1,
        world ? tutti_comm_rank(world) : 0, s->local, names, &s->axis_group));
    TUTTI_TRY(tutti__strategy_consistent(s, wire_name(&s->options)));
    TUTTI_TRY(tutti__strategy_stages(s));
    TUTTI_TRY(tutti__strategy_layout(s));
    if (s->kind->servers)
        TUTTI_TRY(tutti__strategy_open_servers(s));
    TUTTI_TRY(tutti__axis_group_trace_open(s->axis_group));
    s->memory = (tutti_shared_memory){world, strategy_allocate, release};
    if (s->axis_group->size > 1)
        TUTTI_TRY(tutti__strategy_check_wire(s, world ? tutti_comm_hosts(world) : 1));
    tutti_spmd spmd = tutti__strategy_spmd(s, 0);
    int ranks = tutti__spmd_batch_ranks(&spmd);
    if (s->options.deterministic && ranks > s->options.shards)
        return tutti_fail(
            TUTTI_INVALID,
            "deterministic mode cuts a batch into %d shards, which %d replicas cannot "
            "share; give more: --set shards=%d",
            s->options.shards, ranks, ranks);
    return TUTTI_OK;
}

const tutti_cluster *tutti__strategy_cluster(const tutti_strategy *strategy)
{
    return strategy->options.cluster ? strategy->options.cluster : strategy->cluster;
}

const tutti_shared_memory *tutti__strategy_memory(const tutti_strategy *strategy)
{
    return strategy->axis_group && strategy->axis_group->world ? &strategy->memory : NULL;
}

/* What "auto" stands for. */
static const char *strategy_choose(const tutti_strategy_options *options)
{
    tutti_cluster *cluster = NULL;
    bool workers = false;
    if (options && options->cluster)
        return tutti_cluster_count(options->cluster, TUTTI_ROLE_PS) > 0 ? "parameter_server"
                                                                        : "multi_worker_mirrored";
    if (tutti_cluster_resolve(NULL, &cluster) != TUTTI_OK)
        return "multi_worker_mirrored"; /* which says what is wrong with the job's description */
    workers =
        tutti_cluster_size(cluster) > 1 || tutti_cluster_role(cluster) == TUTTI_ROLE_EVALUATOR;
    bool servers = tutti_cluster_count(cluster, TUTTI_ROLE_PS) > 0;
    tutti_cluster_free(cluster);
    if (servers)
        return "parameter_server";
    if (workers)
        return "multi_worker_mirrored";
    const char *devices = options ? options->devices : NULL;
    return devices && (strchr(devices, ',') || strchr(devices, '*')) ? "mirrored" : "one_device";
}

tutti_strategy *tutti__strategy_new(const char *name, const tutti_strategy_options *options)
{
    tutti_strategy *s = calloc(1, sizeof *s);
    if (!s) {
        (void)tutti_fail(TUTTI_NO_MEMORY, "no memory for a strategy");
        return NULL;
    }
    s->references = 1;
    pthread_mutex_init(&s->servers_lock, NULL);
    tutti_status given = tutti__require_options(options, sizeof *options, "tutti_strategy_create",
                                                "TUTTI_OPTIONS(tutti_strategy_options, ...)");
    s->kind = given == TUTTI_OK ? find_kind(name) : NULL;
    keep_options(s, given == TUTTI_OK ? options : NULL);
    if (!s->kind)
        tutti__error_capture(given == TUTTI_OK ? unknown_kind(name) : given, &s->error);
    return s;
}

tutti_strategy *tutti_strategy_create(const char *name, const tutti_strategy_options *options)
{
    const char *wanted = !name || strcmp(name, "auto") == 0 ? strategy_choose(options) : name;
    tutti_strategy *s = tutti__strategy_new(wanted, options);
    if (!s || !s->kind)
        return s;
    tutti_status status = open_strategy(s);
    if (status != TUTTI_OK)
        tutti__error_capture(status, &s->error);
    return s;
}

tutti_strategy *tutti__strategy_retain(tutti_strategy *strategy)
{
    if (strategy)
        atomic_fetch_add(&strategy->references, 1);
    return strategy;
}

tutti_status tutti_strategy_close(tutti_strategy *strategy)
{
    if (!strategy || atomic_fetch_sub(&strategy->references, 1) != 1)
        return TUTTI_OK;
    tutti_status status = tutti__strategy_close_servers(strategy);
    tutti_status closed = tutti__axis_groups_close(strategy->groups);
    status = status == TUTTI_OK ? closed : status;
    tutti_cluster_free(strategy->cluster);
    tutti__mesh_destroy(strategy->mesh);
    tutti__map_free(&strategy->server_variables);
    pthread_mutex_destroy(&strategy->servers_lock);
    free(strategy->counts);
    free(strategy->devices);
    free(strategy->device_names);
    free(strategy->limits);
    tutti__arena_free(&strategy->strings);
    free(strategy);
    return status;
}

/* ---- what it is ---- */

tutti_status tutti_strategy_check(const tutti_strategy *strategy)
{
    if (!strategy)
        return tutti_fail(TUTTI_INVALID, "there is no strategy");
    return strategy->error.status == TUTTI_OK ? TUTTI_OK : tutti__error_restore(&strategy->error);
}

const char *tutti_strategy_name(const tutti_strategy *strategy)
{
    return strategy && strategy->kind ? strategy->kind->name : "none";
}

int tutti_strategy_replicas(const tutti_strategy *strategy)
{
    return tutti__strategy_meeting_replicas(strategy) *
           (strategy && strategy->servers ? strategy->server_workers : 1);
}

int tutti_strategy_local(const tutti_strategy *strategy)
{
    bool has_stages = strategy && strategy->kind && strategy->kind->pipeline;
    return strategy && strategy->axis_group && !has_stages ? strategy->axis_group->local : 1;
}

int tutti_strategy_workers(const tutti_strategy *strategy)
{
    return tutti__strategy_processes(strategy) *
           (strategy && strategy->servers ? strategy->server_workers : 1);
}

int tutti_strategy_rank(const tutti_strategy *strategy)
{
    if (strategy && strategy->servers_kind)
        return strategy->server_rank;
    return strategy && strategy->axis_group
               ? strategy->axis_group->first / strategy->axis_group->local
               : 0;
}

const char *tutti_strategy_device(const tutti_strategy *strategy, int local)
{
    return strategy && local >= 0 && local < strategy->local ? strategy->devices[local] : NULL;
}

bool tutti__strategy_rewrites(const tutti_strategy *strategy)
{
    return strategy && strategy->mesh &&
           (strategy->axis_group->size > 1 || strategy->options.deterministic ||
            strategy->kind->pipeline);
}

/* Whether messages take a network: then the processor is free while they are under way. Within a
 * machine sockets are work for the same cores: beside the backward pass they gain nothing. */
static bool leaves_machine(const tutti_axis_group *axis_group)
{
    return axis_group->world && tutti_comm_hosts(axis_group->world) > 1;
}

/* Within a machine one bucket is best: nothing runs beside it. Else large enough that the time of a
 * message's bytes is 20 times that of the message. */
static int64_t bucket_bytes(const tutti_axis_group *axis_group)
{
    tutti_comm_cost cost;
    if (!leaves_machine(axis_group))
        return (int64_t)256 << 20;
    tutti_comm_get_cost(axis_group->world, &cost);
    int link = cost.hosts > 1 ? TUTTI_LINK_BETWEEN : TUTTI_LINK_WITHIN;
    double bytes =
        20 * cost.link[link].alpha /
        (cost.link[link].beta[TUTTI_COMM_AT_MIB] > 0 ? cost.link[link].beta[TUTTI_COMM_AT_MIB]
                                                     : 1e-10);
    return bytes < 1 << 20 ? 1 << 20 : bytes > 25 << 20 ? 25 << 20 : (int64_t)bytes;
}

/* Workers of servers share the shards of a batch. */
static int own_shards(const tutti_strategy *s)
{
    int first = s->options.shards * s->server_rank, count = s->options.shards;
    if (!s->servers)
        return count;
    int own = (first + count) / s->server_workers - first / s->server_workers;
    return own > 0 ? own : 1;
}

tutti_spmd tutti__strategy_spmd(const tutti_strategy *strategy, int64_t batch)
{
    const tutti_strategy_options *options = &strategy->options;
    return (tutti_spmd){
        .layout = &strategy->layout,
        .replicas = tutti_strategy_replicas(strategy),
        .first = strategy->kind->pipeline ? 0 : strategy->axis_group->first,
        .local = tutti_strategy_local(strategy),
        .devices = strategy->device_names,
        .batch = batch,
        .shards = options->deterministic ? own_shards(strategy) : 0,
        .central = strategy->kind->central ? strategy->central : NULL,
        .bucket_bytes =
            options->bucket_bytes > 0 ? options->bucket_bytes : bucket_bytes(strategy->axis_group),
        .overlap =
            options->overlap > 0 || (options->overlap == 0 && leaves_machine(strategy->axis_group)),
        .sparse = (tutti_sparse_way)sparse_way(options),
        .zero = options->zero > 0         ? options->zero
                : strategy->kind->sharded ? 3
                                          : 2,
        .weights_least = options->replicate_below > 0 ? options->replicate_below : 1024,
        .wire = wire_name(options)};
}

tutti_spmd tutti__strategy_spmd_own(const tutti_strategy *strategy, const int64_t *counts,
                                    int64_t batch)
{
    tutti_spmd spmd = tutti__strategy_spmd(strategy, batch);
    spmd.counts = counts;
    return spmd;
}

void tutti_strategy_rows(const tutti_strategy *strategy, int64_t batch, int replica,
                         int64_t *ret_first, int64_t *ret_rows)
{
    if (!strategy || !strategy->mesh) {
        *ret_first = 0;
        *ret_rows = batch;
        return;
    }
    tutti_spmd spmd = tutti__strategy_spmd(strategy, batch);
    tutti__spmd_rows(&spmd, batch, replica, ret_first, ret_rows);
}

void tutti_strategy_own_rows(const tutti_strategy *strategy, int64_t batch, int64_t *ret_first,
                             int64_t *ret_rows)
{
    *ret_first = 0;
    *ret_rows = batch;
    if (!strategy || !strategy->mesh)
        return;
    if (strategy->servers) {
        tutti__strategy_server_rows(strategy, batch, ret_first, ret_rows);
        return;
    }
    tutti_spmd spmd = tutti__strategy_spmd(strategy, batch);
    tutti__spmd_own_rows(&spmd, batch, ret_first, ret_rows);
}

/* ---- the one in force ---- */

enum { MOST_NESTED = 16 };
static _Thread_local tutti_strategy *entered[MOST_NESTED];
static _Thread_local int depth;

void tutti_strategy_enter(tutti_strategy *strategy)
{
    if (depth < MOST_NESTED)
        entered[depth] = strategy;
    depth++;
}

void tutti_strategy_leave(void)
{
    depth -= depth > 0;
}

tutti_strategy *tutti_strategy_current(void)
{
    return depth > 0 && depth <= MOST_NESTED ? entered[depth - 1] : NULL;
}

/* ---- what verdicts say of the training ---- */

static tutti_membership *members_of(const tutti_strategy *s)
{
    return s && s->axis_group && s->axis_group->world ? s->axis_group->world->fabric->membership
                                                      : NULL;
}

void tutti__strategy_at_step(const tutti_strategy *strategy, int64_t step)
{
    if (members_of(strategy))
        tutti__membership_at_step(members_of(strategy), step);
}

void tutti__strategy_saved(const tutti_strategy *strategy, int64_t step, const char *path)
{
    if (members_of(strategy))
        tutti__membership_saved(members_of(strategy), step, path);
}

tutti_status tutti__strategy_survive(const tutti_strategy *strategy, tutti_status status)
{
    return status != TUTTI_OK && members_of(strategy)
               ? tutti__axis_groups_survive(strategy->groups, status)
               : status;
}
