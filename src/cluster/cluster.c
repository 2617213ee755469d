/* cluster.c: a resolved cluster: what resolvers fill in, and what users ask. */
#include "cluster/cluster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/require.h"
#include "cluster/secret.h"
#include "tables/resolver.h"

static const char *const role_texts[TUTTI_ROLE_COUNT] = {"chief", "worker", "ps", "evaluator"};

const char *tutti_role_text(tutti_role role)
{
    return (int)role >= 0 && role < TUTTI_ROLE_COUNT ? role_texts[role] : "unknown";
}

tutti_status tutti__role_read(const char *text, tutti_role *ret_role)
{
    if (strcmp(text, "master") == 0)
        text = role_texts[TUTTI_ROLE_CHIEF];
    for (int role = 0; role < TUTTI_ROLE_COUNT; role++)
        if (strcmp(text, role_texts[role]) == 0) {
            *ret_role = (tutti_role)role;
            return TUTTI_OK;
        }
    return tutti_fail(TUTTI_INVALID,
                      "there is no role '%s'; the roles are chief, worker, ps and evaluator", text);
}

/* ---- for resolvers ---- */

tutti_status tutti__cluster_add(tutti_cluster *cluster, tutti_role role, const char *task)
{
    size_t count = 0;
    for (int r = 0; r < TUTTI_ROLE_COUNT; r++)
        count += cluster->tasks[r].count;
    if (count >= TUTTI_MOST_RANKS)
        return tutti_fail(TUTTI_TOO_LARGE, "a cluster has at most %d tasks", TUTTI_MOST_RANKS);
    const char *kept = tutti__arena_string(&cluster->arena, task);
    if (kept == NULL || !TUTTI_VEC_PUSH(&cluster->tasks[role], kept))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the tasks of a cluster");
    return TUTTI_OK;
}

tutti_status tutti__cluster_add_list(tutti_cluster *cluster, tutti_role role, const char *list)
{
    char task[300];
    while (list != NULL && *list != '\0') {
        size_t size = strcspn(list, ",");
        if (size == 0 || size >= sizeof task)
            return tutti_fail(TUTTI_INVALID,
                              "the list of %s tasks has an entry that is empty or too long; write "
                              "host:port,host:port",
                              tutti_role_text(role));
        snprintf(task, sizeof task, "%.*s", (int)size, list);
        TUTTI_TRY(tutti__cluster_add(cluster, role, task));
        list += size + (list[size] == ',');
    }
    return TUTTI_OK;
}

tutti_status tutti__cluster_flat(tutti_cluster *cluster, int rank, int size, int ps)
{
    if (ps < 0 || ps >= size)
        return tutti_fail(
            TUTTI_INVALID,
            "%d parameter servers among %d ranks leave no worker; start more ranks, or "
            "fewer servers (TUTTI_PS, --ps)",
            ps, size);
    for (int r = 0; r < size; r++)
        TUTTI_TRY(
            tutti__cluster_add(cluster, r < size - ps ? TUTTI_ROLE_WORKER : TUTTI_ROLE_PS, ""));
    cluster->role = rank < size - ps ? TUTTI_ROLE_WORKER : TUTTI_ROLE_PS;
    cluster->index = rank < size - ps ? rank : rank - (size - ps);
    return TUTTI_OK;
}

tutti_status tutti__cluster_flat_with_servers(tutti_cluster *cluster, int rank, int size)
{
    int64_t ps;
    TUTTI_TRY(tutti__environment_int("TUTTI_PS", 0, TUTTI_MOST_RANKS, 0, &ps));
    return tutti__cluster_flat(cluster, rank, size, (int)ps);
}

bool tutti__cluster_place(tutti_cluster *cluster, int rank, const char *task)
{
    const char *kept = tutti__arena_string(&cluster->arena, task);
    tutti_role role;
    int index;
    if (kept == NULL || !tutti_cluster_find_rank(cluster, rank, &role, &index))
        return false;
    cluster->tasks[role].data[index] = kept;
    return true;
}

tutti_status tutti__cluster_meet(tutti_cluster *cluster, const char *host, int port)
{
    bool bare_ipv6 = strchr(host, ':') != NULL && host[0] != '[';
    cluster->meeting =
        tutti__arena_format(&cluster->arena, bare_ipv6 ? "[%s]:%d" : "%s:%d", host, port);
    return cluster->meeting != NULL ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory");
}

bool tutti__environment_has(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && *text != '\0';
}

tutti_status tutti__environment_need(const char *name, const char *starter)
{
    if (tutti__environment_has(name))
        return TUTTI_OK;
    return tutti_fail(TUTTI_NOT_FOUND,
                      "%s is not set; start the program with %s, which sets it for every rank",
                      name, starter);
}

tutti_status tutti__environment_int(const char *name, int64_t low, int64_t high, int64_t fallback,
                                    int64_t *ret_value)
{
    const char *text = getenv(name);
    char *end;
    if (text == NULL || *text == '\0') {
        *ret_value = fallback;
        return TUTTI_OK;
    }
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < low || value > high)
        return tutti_fail(TUTTI_INVALID, "%s is '%s'; it must be a whole number from %lld to %lld",
                          name, text, (long long)low, (long long)high);
    *ret_value = value;
    return TUTTI_OK;
}

int tutti__derived_port(const char *job)
{
    return 20000 + (int)(tutti__hash_string(1, job) % 10000);
}

/* ---- resolving ---- */

static const tutti_resolver *find_resolver(const tutti_cluster_options *options)
{
    const tutti_resolver *best = NULL;
    for (const tutti_resolver *const *each = tutti__resolver_table; *each != NULL; each++) {
        bool wanted = options->resolver == NULL ? (*each)->present(options)
                                                : strcmp(options->resolver, (*each)->name) == 0;
        if (wanted && (best == NULL || (*each)->order < best->order))
            best = *each;
    }
    return best;
}

static tutti_status fail_resolver(const char *name)
{
    char names[200] = "";
    for (const tutti_resolver *const *each = tutti__resolver_table; *each != NULL; each++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, " %s", (*each)->name);
    }
    return tutti_fail(TUTTI_NOT_FOUND, "there is no resolver '%s'; these exist:%s", name, names);
}

/* Rank and size from tasks, role and index; the meeting point where the first task says it. */
static tutti_status number_ranks(tutti_cluster *cluster)
{
    int before = 0;
    for (int role = 0; role < TUTTI_ROLE_EVALUATOR; role++) {
        if (role == (int)cluster->role)
            cluster->rank = before + cluster->index;
        before += (int)cluster->tasks[role].count;
    }
    cluster->size = before;
    if (cluster->role == TUTTI_ROLE_EVALUATOR)
        cluster->rank = -1;
    for (int role = 0; cluster->meeting == NULL && role < TUTTI_ROLE_EVALUATOR; role++)
        if (cluster->tasks[role].count > 0)
            cluster->meeting = cluster->tasks[role].data[0];
    return TUTTI_OK;
}

/* A job of several that is described by half. The index of a Job says nothing by itself: many are
 * no jobs of ours. */
static tutti_status refuse_half(void)
{
    const char *size = getenv("TUTTI_SIZE"), *rank = getenv("TUTTI_RANK");
    const char *meeting = getenv("TUTTI_MEETING");
    int64_t ranks, number;
    TUTTI_TRY(tutti__environment_int("TUTTI_SIZE", 1, TUTTI_MOST_RANKS, 1, &ranks));
    TUTTI_TRY(tutti__environment_int("TUTTI_RANK", 0, TUTTI_MOST_RANKS - 1, 0, &number));
    bool several = ranks > 1;
    bool sized = tutti__environment_has("TUTTI_SIZE");
    bool ranked = tutti__environment_has("TUTTI_RANK");
    bool indexed = tutti__environment_has("JOB_COMPLETION_INDEX");
    if (indexed && several && !ranked)
        return tutti_fail(TUTTI_INVALID,
                          "JOB_COMPLETION_INDEX and TUTTI_SIZE=%.20s are set, but TUTTI_SERVICE is "
                          "not; set it to the name of the Job's headless service, or unset "
                          "TUTTI_SIZE",
                          size);
    if (indexed && !sized && tutti__environment_has("TUTTI_SERVICE"))
        return tutti_fail(TUTTI_INVALID,
                          "JOB_COMPLETION_INDEX and TUTTI_SERVICE are set, but TUTTI_SIZE is not; "
                          "set it to the number of pods (completions), or unset TUTTI_SERVICE");
    if (several && !ranked)
        return tutti_fail(
            TUTTI_INVALID,
            "TUTTI_SIZE=%.20s is set, but TUTTI_RANK is not; set it to this process's "
            "number, from 0, and TUTTI_MEETING to the host:port of rank 0, or start "
            "with tutti run",
            size);
    if (ranked && !sized)
        return tutti_fail(TUTTI_INVALID,
                          "TUTTI_RANK=%.20s is set, but TUTTI_SIZE is not; set it to the number of "
                          "ranks, or start with tutti run; for one process unset TUTTI_RANK",
                          rank);
    if (!ranked && !sized && tutti__environment_has("TUTTI_MEETING"))
        return tutti_fail(TUTTI_INVALID,
                          "TUTTI_MEETING=%.200s is set, but TUTTI_RANK and TUTTI_SIZE are not, nor "
                          "a scheduler's variables; set them, or start with tutti run; for one "
                          "process unset TUTTI_MEETING",
                          meeting);
    return TUTTI_OK;
}

/* The same in torchrun's variables. One of the three alone may be anybody's. */
static tutti_status refuse_half_of_torchrun(void)
{
    const char *size = getenv("WORLD_SIZE");
    bool several = size != NULL && strtol(size, NULL, 10) > 1;
    bool ranked = tutti__environment_has("RANK"), met = tutti__environment_has("MASTER_ADDR");
    if (ranked && several)
        return tutti_fail(TUTTI_INVALID,
                          "RANK and WORLD_SIZE=%.20s are set, but MASTER_ADDR is not; set it to "
                          "the name of rank 0's machine (and MASTER_PORT), or unset the two",
                          size);
    if (several && met)
        return tutti_fail(TUTTI_INVALID,
                          "WORLD_SIZE=%.20s and MASTER_ADDR are set, but RANK is not; set it to "
                          "this process's number, from 0, or unset the two",
                          size);
    if (ranked && met)
        return tutti_fail(TUTTI_INVALID,
                          "RANK and MASTER_ADDR are set, but WORLD_SIZE is not; set it to the "
                          "number of ranks, or unset the two");
    return TUTTI_OK;
}

/* This process alone, unless somebody meant to start several and forgot where they meet: each would
 * train by itself. */
static tutti_status resolve_alone(tutti_cluster *cluster)
{
    TUTTI_TRY(refuse_half());
    TUTTI_TRY(refuse_half_of_torchrun());
    TUTTI_TRY(tutti__mpi_refuse_half());
    return tutti__cluster_flat(cluster, 0, 1, 0);
}

static tutti_status resolve_into(const tutti_cluster_options *options, tutti_cluster *cluster)
{
    const tutti_resolver *resolver = find_resolver(options);
    if (resolver == NULL && options->resolver != NULL)
        return fail_resolver(options->resolver);
    cluster->resolver = resolver != NULL ? resolver->name : "single";
    tutti_status status =
        resolver != NULL ? resolver->resolve(options, cluster) : resolve_alone(cluster);
    if (status == TUTTI_OK)
        status = number_ranks(cluster);
    if (status == TUTTI_OK)
        status = tutti__preflight(cluster);
    if (status != TUTTI_OK)
        return tutti__error_prefix(
            status, "cluster from %s%s%s%s",
            resolver != NULL ? resolver->name : "this process alone", resolver != NULL ? " (" : "",
            resolver != NULL ? resolver->reads : "", resolver != NULL ? ")" : "");
    tutti__secret_source(cluster->secret_fd, cluster->secret_source, sizeof cluster->secret_source);
    return TUTTI_OK;
}

tutti_status tutti_cluster_resolve(const tutti_cluster_options *options,
                                   tutti_cluster **ret_cluster)
{
    tutti_cluster_options whole = {.struct_size = sizeof whole};
    TUTTI_REQUIRE_OPTIONS(options, "TUTTI_OPTIONS(tutti_cluster_options, ...)");
    if (options != NULL && options->struct_size > sizeof whole)
        return tutti_fail(TUTTI_INVALID, "tutti_cluster_options of %zu bytes are of a newer tutti",
                          options->struct_size);
    if (options != NULL)
        memcpy(&whole, options, options->struct_size);
    tutti_cluster *cluster = calloc(1, sizeof *cluster);
    if (cluster == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a cluster");
    cluster->secret_fd = cluster->launcher_fd = cluster->listen_fd = -1;
    cluster->local_rank = -1;
    tutti_status status = resolve_into(&whole, cluster);
    if (status != TUTTI_OK)
        tutti_cluster_free(cluster);
    else
        *ret_cluster = cluster;
    return status;
}

void tutti_cluster_free(tutti_cluster *cluster)
{
    if (cluster == NULL)
        return;
    for (int r = 0; r < TUTTI_ROLE_COUNT; r++)
        TUTTI_VEC_FREE(&cluster->tasks[r]);
    tutti__arena_free(&cluster->arena);
    free(cluster);
}

/* ---- what users ask ---- */

int tutti_cluster_rank(const tutti_cluster *cluster)
{
    return cluster ? cluster->rank : -1;
}

int tutti_cluster_size(const tutti_cluster *cluster)
{
    return cluster ? cluster->size : 0;
}

tutti_role tutti_cluster_role(const tutti_cluster *cluster)
{
    return cluster ? cluster->role : TUTTI_ROLE_WORKER;
}

int tutti_cluster_index(const tutti_cluster *cluster)
{
    return cluster ? cluster->index : -1;
}

int tutti_cluster_local_rank(const tutti_cluster *cluster)
{
    return cluster ? cluster->local_rank : -1;
}

int tutti_cluster_local_size(const tutti_cluster *cluster)
{
    return cluster ? cluster->local_size : 0;
}

int tutti_cluster_count(const tutti_cluster *cluster, tutti_role role)
{
    bool known = cluster && (int)role >= 0 && role < TUTTI_ROLE_COUNT;
    return known ? (int)cluster->tasks[role].count : 0;
}

const char *tutti_cluster_task(const tutti_cluster *cluster, tutti_role role, int index)
{
    bool there = index >= 0 && index < tutti_cluster_count(cluster, role);
    return there ? cluster->tasks[role].data[index] : NULL;
}

bool tutti_cluster_find_rank(const tutti_cluster *cluster, int rank, tutti_role *ret_role,
                             int *ret_index)
{
    for (int role = 0; cluster && rank >= 0 && role < TUTTI_ROLE_EVALUATOR; role++) {
        int count = (int)cluster->tasks[role].count;
        if (rank < count) {
            *ret_role = (tutti_role)role;
            *ret_index = rank;
            return true;
        }
        rank -= count;
    }
    return false;
}

const char *tutti_cluster_rendezvous(const tutti_cluster *cluster)
{
    return cluster ? cluster->meeting : "";
}

const char *tutti_cluster_resolver(const tutti_cluster *cluster)
{
    return cluster ? cluster->resolver : "";
}

const char *tutti_cluster_secret_source(const tutti_cluster *cluster)
{
    return cluster ? cluster->secret_source : "none";
}
