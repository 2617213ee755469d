/* open.c: where groups come from: threads, forked processes, the ranks of a cluster. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/params.h"
#include "base/pool.h"
#include "base/require.h"
#include "base/standard.h"
#include "base/world.h"
#include "comm/comm.h"
#include "comm/cost/description.h"
#include "comm/group/meeting.h"

enum { MOST_RANKS = 4096 };

static tutti_status check_size(int size, const tutti_comm_options *options, const char *fallback,
                               const tutti_fabric_engine **ret_engine)
{
    if (size < 1 || size > MOST_RANKS)
        return tutti_fail(TUTTI_INVALID, "a group of %d ranks; 1 to %d are possible", size,
                          MOST_RANKS);
    TUTTI_TRY(tutti__comm_check_options(options));
    TUTTI_TRY(tutti__engine_find(options->engine ? options->engine : fallback, ret_engine));
    if (!(*ret_engine)->prepare)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "the engine '%s' cannot connect ranks of one program; start them with "
                          "mpirun",
                          (*ret_engine)->name);
    return TUTTI_OK;
}

/* One rank over an engine that was prepared. */
static tutti_status attach(int rank, int size, const tutti_fabric_engine *engine, void *shared,
                           const tutti_comm_options *options, tutti_comm **ret_comm)
{
    tutti_fabric *fabric;
    void *state = NULL;
    TUTTI_TRY(tutti__fabric_create(rank, size, &fabric));
    for (int i = 0; i < size; i++)
        fabric->engines[i] = engine;
    tutti_status status = engine->attach(fabric, shared, &state);
    if (status == TUTTI_OK) {
        tutti__fabric_add(fabric, engine, state);
        status = tutti__fabric_ready(fabric);
    }
    if (status == TUTTI_OK)
        status =
            tutti__comm_create(fabric, size, NULL, rank, TUTTI_WHOLE_CONTEXT, options, ret_comm);
    tutti__fabric_release(fabric);
    return status;
}

typedef struct settling {
    tutti_comm *comm;
    const tutti_comm_options *options;
    tutti_error error;
    pthread_t thread;
} settling;

static void *open_settle(void *arg)
{
    settling *s = arg;
    tutti_status status = tutti__comm_set_up(s->comm, s->options);
    if (status != TUTTI_OK)
        tutti__error_capture(status, &s->error);
    return NULL;
}

/* Ranks must talk to settle: each on a thread of its own. */
static tutti_status settle_all(int size, tutti_comm **comms, const tutti_comm_options *options)
{
    settling *all = calloc((size_t)size, sizeof *all);
    if (!all)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a group of %d threads", size);
    int started = 0;
    tutti_status status = TUTTI_OK;
    for (; started < size && status == TUTTI_OK; started++) {
        all[started] = (settling){.comm = comms[started], .options = options};
        if (pthread_create(&all[started].thread, NULL, open_settle, &all[started]) != 0) {
            status = tutti_fail(TUTTI_NO_MEMORY, "no thread for rank %d", started);
            for (int i = 0; i < size; i++)
                tutti_comm_abort(comms[i], "the group could not be made");
            break;
        }
    }
    for (int i = 0; i < started; i++) {
        pthread_join(all[i].thread, NULL);
        if (status == TUTTI_OK && all[i].error.status)
            status = tutti__error_restore(&all[i].error);
    }
    free(all);
    return status;
}

tutti_status tutti_comm_local(int size, const tutti_comm_options *given, tutti_comm **ret_comms)
{
    TUTTI_REQUIRE(ret_comms);
    TUTTI_REQUIRE_OPTIONS(given, "TUTTI_COMM_OPTIONS(...)");
    tutti_comm_options options = tutti__comm_defaults(given);
    const tutti_fabric_engine *engine;
    void *shared;
    TUTTI_TRY(check_size(size, &options, "local", &engine));
    TUTTI_TRY(engine->prepare(size, &options, false, &shared));
    tutti_comm **comms = calloc((size_t)size, sizeof *comms);
    tutti_all_calls *calls = NULL;
    tutti_status status = tutti__calls_create(size, &calls);
    if (!comms)
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for a group of %d threads", size);
    int made = 0;
    while (status == TUTTI_OK && made < size) {
        status = attach(made, size, engine, shared, &options, &comms[made]);
        if (status != TUTTI_OK)
            break;
        if (!comms[made]->fabric->segment) /* there its areas say the same */
            tutti__fabric_share_calls(comms[made]->fabric, calls);
        made++;
    }
    tutti__calls_drop(calls);
    engine->discard(shared, made > 0 ? 0 : -1);
    if (status == TUTTI_OK && size > 1)
        status = settle_all(size, comms, &options);
    for (int i = 0; i < made; i++) {
        if (status == TUTTI_OK)
            ret_comms[i] = comms[i];
        else
            tutti__comm_destroy(comms[i]);
    }
    free(comms);
    return status;
}

/* Forks the others; returns this process's rank. */
static tutti_status fork_all(int size, tutti_process *family, int *ret_rank)
{
    atomic_store(&family[0].id, (int)getpid());
    for (int i = 1; i < size; i++) {
        pid_t child = fork();
        if (child == 0) {
            atomic_store(&family[i].id, (int)getpid());
            *ret_rank = i;
            return TUTTI_OK;
        }
        if (child < 0) {
            tutti_status status =
                tutti_fail(TUTTI_NO_MEMORY, "cannot fork rank %d: %s", i, strerror(errno));
            for (int k = 1; k < i; k++)
                kill(atomic_load(&family[k].id), SIGKILL);
            return status;
        }
        atomic_store(&family[i].id, (int)child);
    }
    *ret_rank = 0;
    return TUTTI_OK;
}

/* Everybody watches everybody. */
static tutti_status watch_all(tutti_fabric *fabric, tutti_process *family)
{
    fabric->watch = malloc((size_t)fabric->size * sizeof *fabric->watch);
    if (!fabric->watch)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to watch %d processes", fabric->size);
    for (int i = 0; i < fabric->size; i++)
        fabric->watch[i] = -1;
    fabric->family = family;
    return TUTTI_OK;
}

/* One process after the fork. */
static tutti_status become(int rank, int size, const tutti_fabric_engine *engine, void *shared,
                           tutti_process *family, tutti_all_calls *calls,
                           const tutti_comm_options *options, tutti_comm **ret_comm)
{
    tutti_comm *comm;
    TUTTI_TRY(attach(rank, size, engine, shared, options, &comm));
    tutti_status status = watch_all(comm->fabric, family);
    tutti__fabric_share_calls(comm->fabric, calls);
    comm->forked = true;
    if (status == TUTTI_OK)
        status = tutti__comm_set_up(comm, options);
    if (status == TUTTI_OK)
        *ret_comm = comm;
    else
        tutti__comm_destroy(comm);
    return status;
}

tutti_status tutti_comm_fork(int size, const tutti_comm_options *given, tutti_comm **ret_comm)
{
    TUTTI_REQUIRE(ret_comm);
    TUTTI_REQUIRE_OPTIONS(given, "TUTTI_COMM_OPTIONS(...)");
    tutti_comm_options options = tutti__comm_defaults(given);
    const tutti_fabric_engine *engine;
    void *shared;
    TUTTI_TRY(check_size(size, &options, "shm", &engine));
    TUTTI_TRY(engine->prepare(size, &options, true, &shared));
    tutti_process *family = mmap(NULL, (size_t)size * sizeof *family, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    tutti_all_calls *calls = NULL;
    int rank = -1;
    tutti_status status = tutti__calls_create(size, &calls);
    if (status == TUTTI_OK && family == MAP_FAILED)
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for %d processes", size);
    if (status == TUTTI_OK)
        status = fork_all(size, family, &rank);
    if (status == TUTTI_OK)
        status = become(rank, size, engine, shared, family, calls, &options, ret_comm);
    tutti__calls_drop(calls);
    engine->discard(shared, rank);
    if (status != TUTTI_OK && rank > 0)
        _exit(1); /* the caller's code is for ranks of a group that stands */
    return status;
}

/* Numbers machines in the order of their first ranks, and says how each peer is reached. */
static tutti_status map_peers(tutti_fabric *fabric, const tutti_comm_options *options)
{
    const tutti_peer *peers = fabric->membership->peers;
    const tutti_fabric_engine *near, *far, *named = NULL;
    TUTTI_TRY(tutti__engine_find("shm", &near));
    TUTTI_TRY(tutti__engine_find("tcp", &far));
    if (options->engine)
        TUTTI_TRY(tutti__engine_find(options->engine, &named));
    fabric->named = named;
    fabric->machines = 0;
    for (int i = 0; i < fabric->size; i++) {
        int j = 0;
        while (peers[j].machine != peers[i].machine)
            j++;
        fabric->machine[i] = j == i ? fabric->machines++ : fabric->machine[j];
    }
    for (int i = 0; i < fabric->size; i++) {
        bool same = peers[i].machine == peers[fabric->rank].machine;
        fabric->engines[i] = named && named != near ? named : same ? near : far;
        if (named == near && !same)
            return tutti_fail(TUTTI_INVALID,
                              "the engine 'shm' was asked for, but rank %d (%s) is on another "
                              "machine; leave the engine out, or use 'tcp'",
                              i, peers[i].host);
    }
    return TUTTI_OK;
}

/* A launcher may have bound each rank to CPUs of its own: together they have more than any one. */
static tutti_status count_cpus(tutti_fabric *fabric, int64_t deadline_ns)
{
    typedef struct {
        uint64_t cpus[TUTTI_CPU_WORDS];
    } mask;
    mask own, *all = calloc((size_t)fabric->size, sizeof *all);
    if (!all)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %d ranks", fabric->size);
    tutti__cpu_mask(own.cpus);
    tutti_status status =
        tutti__membership_exchange(fabric->membership, &own, sizeof own, deadline_ns, all);
    int quota = tutti__cpu_quota(), count = 0;
    for (int word = 0; word < TUTTI_CPU_WORDS; word++) {
        uint64_t together = 0;
        for (int i = 0; i < fabric->size; i++)
            if (fabric->machine[i] == fabric->machine[fabric->rank])
                together |= all[i].cpus[word];
        count += __builtin_popcountll(together);
    }
    fabric->cpus = count < quota ? count : quota;
    free(all);
    return status;
}

/* Ranks of one machine that cannot share memory talk as if they were on two. */
static void without_sharing(tutti_fabric *fabric, const tutti_fabric_engine *near,
                            const tutti_fabric_engine *far)
{
    for (int i = 0; i < fabric->size; i++)
        if (fabric->engines[i] == near)
            fabric->engines[i] = far;
    if (fabric->rank == 0)
        tutti__log_job(TUTTI_LOG_WARNING, "%s. They use sockets now, which are slower",
                       tutti_error_message());
}

/* Every engine that connects some pair of ranks, on all ranks in the same way. */
static tutti_status join_engines(tutti_fabric *fabric, const tutti_comm_options *options,
                                 int64_t deadline_ns)
{
    const tutti_fabric_engine *near, *far, *named = NULL;
    TUTTI_TRY(tutti__engine_find("shm", &near));
    TUTTI_TRY(tutti__engine_find("tcp", &far));
    if (options->engine)
        TUTTI_TRY(tutti__engine_find(options->engine, &named));
    bool neighbours = fabric->machines < fabric->size;
    const tutti_fabric_engine *used[2] = {
        named        ? named
        : neighbours ? near
                     : far,
        !named && neighbours && fabric->machines > 1 ? far : NULL,
    };
    for (int i = 0; i < 2 && used[i]; i++) {
        void *state = NULL;
        if (!used[i]->join)
            return tutti_fail(TUTTI_UNSUPPORTED, "the engine '%s' cannot connect processes",
                              used[i]->name);
        tutti_status status = used[i]->join(fabric, options, deadline_ns, &state);
        if (status == TUTTI_UNSUPPORTED && !named && used[i] == near) {
            without_sharing(fabric, near, far);
            used[1] = far;
            continue;
        }
        TUTTI_TRY(status);
        if (state)
            tutti__fabric_add(fabric, used[i], state);
    }
    return TUTTI_OK;
}

/* What is known of the links, by the program or by a description, rank 0's for all. */
static tutti_status learn_cost(tutti_comm *comm, const tutti_comm_options *options)
{
    static const tutti_param links =
        TUTTI_PARAM("LINKS", "", "a file that describes what the links of the cluster cost");
    tutti_cost_wish wish = options->measure ? TUTTI_COST_MEASURED
                           : options->cost  ? TUTTI_COST_KNOWN
                                            : TUTTI_COST_GLANCED;
    const char *path = tutti__param_text(&links);
    if (comm->size < 2)
        return TUTTI_OK;
    if (path[0] && comm->rank == 0 && !options->cost) {
        tutti_description description;
        tutti_status status = tutti__description_read(path, &description);
        if (status != TUTTI_OK)
            return tutti__error_prefix(status, "TUTTI_LINKS");
        tutti__description_apply(&description, &comm->cost);
        wish = TUTTI_COST_KNOWN;
    }
    comm->cost_given = wish == TUTTI_COST_KNOWN;
    return tutti__cost_find(comm, wish);
}

/* What was given, and the engine that a variable names. */
static tutti_comm_options wishes(const tutti_comm_options *given)
{
    static const tutti_param engine =
        TUTTI_PARAM("ENGINE", "", "between processes: shm, tcp, mpi; empty: what fits");
    tutti_comm_options options = tutti__comm_defaults(given);
    if (!options.engine && tutti__param_text(&engine)[0])
        options.engine = tutti__param_text(&engine);
    return options;
}

tutti_status tutti__comm_over(tutti_membership *membership, const tutti_comm_options *given,
                              tutti_comm **ret_comm)
{
    tutti_comm_options options = wishes(given);
    TUTTI_TRY(tutti__comm_check_options(&options));
    int64_t deadline = tutti__comm_deadline_in(options.join_timeout);
    tutti_fabric *fabric;
    tutti_comm *comm = NULL;
    TUTTI_TRY(tutti__fabric_create(membership->rank, membership->size, &fabric));
    fabric->membership = membership;
    tutti_status status = TUTTI_OK;
    if (fabric->size > 1) {
        status = tutti__comm_compare_terms(fabric, &options, deadline);
        if (status == TUTTI_OK)
            status = map_peers(fabric, &options);
        if (status == TUTTI_OK)
            status = count_cpus(fabric, deadline);
        if (status == TUTTI_OK)
            status = join_engines(fabric, &options, deadline);
        if (status == TUTTI_OK)
            status = tutti__fabric_ready(fabric);
        if (status == TUTTI_OK && fabric->segment)
            tutti__fabric_progress_record(fabric);
    }
    if (status == TUTTI_OK)
        status = tutti__comm_create(fabric, fabric->size, NULL, fabric->rank, TUTTI_WHOLE_CONTEXT,
                                    &options, &comm);
    tutti__fabric_release(fabric);
    if (status == TUTTI_OK) {
        tutti_comm_options later = options;
        later.measure = false;
        status = tutti__comm_set_up(comm, &later);
    }
    if (status == TUTTI_OK)
        status = learn_cost(comm, &options);
    if (status != TUTTI_OK && comm && comm->size > 1)
        status = tutti__comm_broke(comm, status, "tutti_comm_open", "");
    if (status != TUTTI_OK)
        tutti__comm_destroy(comm);
    else
        *ret_comm = comm;
    return status;
}

/* Who cannot be reached only the two ends of a link know; the others would hear that one of them is
 * gone. */
static void tell_of_links(tutti_membership *members, const tutti_error *error)
{
    const int64_t soon_ns = 1000000000;
    bool link = error->status == TUTTI_DEADLINE || error->status == TUTTI_IO ||
                error->status == TUTTI_CLOSED;
    if (!link || tutti__membership_failed(members))
        return;
    tutti__membership_break(members, error->status, error->message);
    tutti__membership_await_verdict(members, tutti__now_ns() + soon_ns);
}

tutti_status tutti_comm_open(const tutti_cluster *cluster, const tutti_comm_options *given,
                             tutti_comm **ret_comm)
{
    TUTTI_REQUIRE(cluster);
    TUTTI_REQUIRE(ret_comm);
    TUTTI_REQUIRE_OPTIONS(given, "TUTTI_COMM_OPTIONS(...)");
    tutti_comm_options options = tutti__comm_defaults(given);
    TUTTI_TRY(tutti__comm_check_options(&options));
    int64_t deadline = tutti__comm_deadline_in(options.join_timeout);
    tutti_membership *members;
    tutti_cluster placed = *cluster;
    tutti__standard_descriptors();
    TUTTI_TRY(tutti__comm_find_meeting(&placed, wishes(given).engine, deadline));
    TUTTI_TRY(tutti__membership_join(&placed, deadline, &members));
    tutti_status status = tutti__comm_over(members, &options, ret_comm);
    if (status != TUTTI_OK) {
        tutti_error error;
        tutti__error_capture(status, &error);
        tell_of_links(members, &error);
        tutti__membership_abandon(members);
        return tutti__error_restore(&error);
    }
    (*ret_comm)->opened = true;
    tutti__comm_say_banner(*ret_comm);
    return TUTTI_OK;
}
