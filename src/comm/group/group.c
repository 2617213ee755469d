/* group.c: groups: made, split, closed. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/container.h"
#include "base/params.h"
#include "base/require.h"
#include "base/world.h"
#include "comm/coll/lane.h"
#include "comm/comm.h"
#include "comm/cost/description.h"

/* Numbers of groups: 1 is the group of all ranks; the two highest bits are those of its levels. */
enum { FIRST_CONTEXT = 2, CONTEXT_BITS = 30 };

tutti_comm_options tutti__comm_defaults(const tutti_comm_options *options)
{
    static const tutti_param all_reduce =
        TUTTI_PARAM("ALL_REDUCE", "", "algorithms of all_reduce by size: tree:64k:ring");
    tutti_comm_options full = {.struct_size = sizeof full};
    if (options)
        memcpy(&full, options,
               options->struct_size < sizeof full ? options->struct_size : sizeof full);
    if (!full.all_reduce && tutti__param_text(&all_reduce)[0])
        full.all_reduce = tutti__param_text(&all_reduce);
    full.arena_bytes = full.arena_bytes == 0 ? (int64_t)1 << 30 : full.arena_bytes;
    full.timeout = full.timeout == 0 ? 300 : full.timeout;
    full.join_timeout = full.join_timeout == 0 ? 60 : full.join_timeout;
    return full;
}

tutti_status tutti__comm_check_seconds(const char *what, double seconds)
{
    if (seconds >= 0)
        return TUTTI_OK;
    return tutti_fail(TUTTI_INVALID, "%s of %g s; give seconds, 0 for the default, or INFINITY",
                      what, seconds);
}

tutti_status tutti__comm_check_options(const tutti_comm_options *options)
{
    enum { STREAMS = 64 };
    const int64_t most_arena = INT64_C(1) << 46; /* of all ranks together it can still be counted */
    TUTTI_TRY(tutti__comm_check_seconds(".timeout", options->timeout));
    TUTTI_TRY(tutti__comm_check_seconds(".join_timeout", options->join_timeout));
    if (options->streams < 0 || options->streams > STREAMS)
        return tutti_fail(TUTTI_INVALID, ".streams of %d; give 1 to %d, or 0 for the default",
                          options->streams, STREAMS);
    if (options->arena_bytes < 0)
        return tutti_fail(TUTTI_INVALID, ".arena_bytes of %lld; give bytes, or 0 for the default",
                          (long long)options->arena_bytes);
    if (options->arena_bytes > most_arena)
        return tutti_fail(TUTTI_TOO_LARGE,
                          ".arena_bytes of %lld; no process has address space for more than %lld "
                          "for each rank",
                          (long long)options->arena_bytes, (long long)most_arena);
    for (int link = 0; options->cost && link < TUTTI_LINK_COUNT; link++) {
        TUTTI_TRY(tutti__check_seconds("alpha of .cost", false, options->cost->link[link].alpha));
        for (int i = 0; i < TUTTI_COMM_SIZES; i++)
            TUTTI_TRY(
                tutti__check_seconds("beta of .cost", true, options->cost->link[link].beta[i]));
    }
    return TUTTI_OK;
}

int64_t tutti__comm_deadline_in(double seconds)
{
    return seconds > 1e9 ? TUTTI_NO_DEADLINE : tutti__now_ns() + (int64_t)(seconds * 1e9);
}

static int count_hosts(const tutti_comm *comm)
{
    int hosts = 0;
    for (int i = 0; i < comm->size; i++) {
        int j = 0;
        while (comm->fabric->machine[comm->members[j]] != comm->fabric->machine[comm->members[i]])
            j++;
        hosts += j == i;
    }
    return hosts;
}

void tutti__comm_take_cost(tutti_comm *comm, const tutti_comm_cost *cost)
{
    comm->cost = *cost;
    comm->cost.hosts = comm->hosts;
    tutti__lanes_count(comm->fabric, comm->cost.lanes);
}

tutti_status tutti__comm_create(tutti_fabric *fabric, int size, const int *members, int rank,
                                uint32_t context, const tutti_comm_options *options,
                                tutti_comm **ret_comm)
{
    tutti_algorithm_spec spec = {0};
    if (size < 1)
        return tutti_fail(TUTTI_INVALID, "a group of %d ranks", size);
    if (options->all_reduce)
        TUTTI_TRY(tutti__comm_spec_parse(options->all_reduce, TUTTI_ALL_REDUCE, &spec));
    tutti_comm *comm = calloc(1, sizeof *comm);
    int *copy = calloc((size_t)size, sizeof *copy);
    if (!comm || !copy) {
        free(comm), free(copy);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a group of %d ranks", size);
    }
    for (int i = 0; i < size; i++)
        copy[i] = members ? members[i] : i;
    atomic_fetch_add(&fabric->references, 1);
    *comm = (tutti_comm){.fabric = fabric,
                         .rank = rank,
                         .size = size,
                         .members = copy,
                         .context = context,
                         .spec = spec,
                         .timeout = options->timeout};
    comm->hosts = count_hosts(comm);
    tutti_comm_cost guess = tutti__cost_guess(comm);
    tutti__comm_take_cost(comm, options->cost ? options->cost : &guess);
    *ret_comm = comm;
    return TUTTI_OK;
}

void tutti__comm_destroy(tutti_comm *comm)
{
    if (!comm)
        return;
    tutti__worker_stop(comm);
    tutti__lanes_end(comm);
    tutti__comm_destroy(comm->within);
    tutti__comm_destroy(comm->between);
    tutti__area_close(comm->area);
    tutti_comm_free(comm, comm->bucket);
    if (comm->group.now && comm->fabric->membership) /* else the job was closed before */
        tutti__membership_forget(comm->fabric->membership, comm->group);
    tutti__fabric_release(comm->fabric);
    free(comm->members);
    free(comm->scratch);
    free(comm);
}

/* The segment's rank of each member, or NULL when one of them is not in it. */
static int *places_of(const tutti_comm *comm)
{
    const tutti_fabric *fabric = comm->fabric;
    int *places = malloc((size_t)comm->size * sizeof *places), own = fabric->machine[fabric->rank];
    for (int i = 0; places && i < comm->size; i++) {
        places[i] = 0;
        for (int r = 0; r < comm->members[i]; r++)
            places[i] += fabric->machine[r] == own;
    }
    return places;
}

/* Rank 0's bytes for all, over messages: the group has no other way yet. */
static tutti_status tell_all(tutti_comm *comm, void *bytes, size_t count)
{
    tutti_collective c = {.comm = comm,
                          .rank = comm->rank,
                          .size = comm->size,
                          .out = bytes,
                          .count = (int64_t)count,
                          .element = 1,
                          .tag = TUTTI_COLLECTIVE_TAG,
                          .deadline_ns = tutti__comm_deadline(comm, NULL)};
    TUTTI_TRY(tutti__coll_find("tree")->on[TUTTI_BROADCAST].run(&c));
    atomic_store(&comm->bytes_sent, 0);
    return TUTTI_OK;
}

/* What a rank takes links to cost depends on its machine, and all choose by the same table. */
static tutti_status settle_cost(tutti_comm *comm)
{
    return comm->size > 1 ? tell_all(comm, &comm->cost, sizeof comm->cost) : TUTTI_OK;
}

/* Rank 0 takes memory in the segment and tells the others where. */
static tutti_status settle_area(tutti_comm *comm)
{
    tutti_fabric *fabric = comm->fabric;
    uint64_t offset = 0;
    if (!fabric->segment || comm->hosts > 1 || comm->size < 2)
        return TUTTI_OK;
    if (comm->rank == 0)
        offset = tutti__area_take(fabric, comm->size);
    TUTTI_TRY(tell_all(comm, &offset, sizeof offset));
    int *places = offset ? places_of(comm) : NULL;
    if (!offset)
        return TUTTI_OK; /* the segment is full: messages will do */
    if (!places)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a group of %d ranks", comm->size);
    tutti_status status =
        tutti__area_open(fabric, comm->rank, comm->size, places, offset, &comm->area);
    if (status != TUTTI_OK)
        free(places);
    return status;
}

/* A group of those members for which `chosen` holds. */
static tutti_status settle_part(tutti_comm *comm, const tutti_comm_options *options,
                                const bool *chosen, uint32_t context, tutti_comm **ret_part)
{
    int *members = malloc((size_t)comm->size * sizeof *members), size = 0, rank = -1;
    if (!members)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a group of %d ranks", comm->size);
    for (int i = 0; i < comm->size; i++)
        if (chosen[i]) {
            rank = i == comm->rank ? size : rank;
            members[size++] = comm->members[i];
        }
    tutti_comm_options plain = *options;
    plain.all_reduce = NULL;
    tutti_status status =
        rank < 0 ? TUTTI_OK
                 : tutti__comm_create(comm->fabric, size, members, rank, context, &plain, ret_part);
    if (status == TUTTI_OK && rank >= 0) {
        (*ret_part)->inner = true;
        tutti__comm_take_cost(*ret_part, &comm->cost);
        status = settle_area(*ret_part);
    }
    free(members);
    return status;
}

/* Within this machine, and the first ranks of all machines. */
static tutti_status settle_levels(tutti_comm *comm, const tutti_comm_options *options)
{
    const int *machine = comm->fabric->machine;
    bool *here = calloc((size_t)comm->size * 2, sizeof *here);
    if (!here)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a group of %d ranks", comm->size);
    bool *first = here + comm->size;
    for (int i = 0; i < comm->size; i++) {
        int j = 0;
        while (machine[comm->members[j]] != machine[comm->members[i]])
            j++;
        first[i] = j == i;
        here[i] = machine[comm->members[i]] == machine[comm->members[comm->rank]];
    }
    tutti_status status =
        settle_part(comm, options, here, comm->context | UINT32_C(0x40000000), &comm->within);
    if (status == TUTTI_OK)
        status =
            settle_part(comm, options, first, comm->context | UINT32_C(0x80000000), &comm->between);
    free(here);
    return status;
}

tutti_status tutti__comm_set_up(tutti_comm *comm, const tutti_comm_options *options)
{
    TUTTI_TRY(settle_cost(comm));
    TUTTI_TRY(settle_area(comm));
    if (comm->hosts > 1)
        TUTTI_TRY(settle_levels(comm, options));
    if (options->measure && comm->size > 1)
        TUTTI_TRY(tutti__cost_find(comm, TUTTI_COST_MEASURED));
    return TUTTI_OK;
}

/* color, key, rank, and of rank 0 the number of the new groups */
typedef struct ballot {
    int32_t color, key, rank;
    uint32_t context;
} ballot;

/* A number that no rank has given to a group before, however many groups are split at once: it says
 * who gives it, and how many he has given. 0 when there are no more. */
static uint32_t new_context(tutti_fabric *fabric)
{
    uint64_t size = (uint64_t)fabric->size, limit = UINT64_C(1) << CONTEXT_BITS;
    uint64_t context = FIRST_CONTEXT + (uint64_t)fabric->rank +
                       (uint64_t)atomic_fetch_add(&fabric->contexts, 1) * size;
    if (context < limit)
        return (uint32_t)context;
    atomic_fetch_sub(&fabric->contexts, 1); /* never around */
    return 0;
}

static tutti_status no_context(const tutti_comm *comm, int rank)
{
    return tutti_fail(TUTTI_TOO_LARGE,
                      "rank %d has split %u times, more than groups of %d ranks have numbers for; "
                      "keep groups and use them again",
                      rank, atomic_load(&comm->fabric->contexts), comm->fabric->size);
}

static int by_key(const void *a, const void *b)
{
    const ballot *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Groups of one split have its number; their first members differ. */
static void name_part(tutti_comm *part)
{
    tutti_ranks members = {0};
    if (!part->fabric->membership)
        return;
    for (int i = 0; i < part->size; i++)
        tutti__ranks_add(&members, part->members[i]);
    uint64_t number = (uint64_t)part->context << 32 | (uint32_t)part->members[0];
    part->group = tutti__membership_group(part->fabric->membership, number, &members);
}

/* What members of a new group tell each other belongs to the split: a failure breaks the group that
 * was split, and verdicts know who was in it. It is counted apart from the new group's operations,
 * so that the first of these is number 1. */
static tutti_status settle_split(tutti_comm *part, const tutti_comm_options *options)
{
    tutti_membership *members = part->fabric->membership;
    tutti_rank_group settling = part->group;
    settling.number |= UINT64_C(1) << 63;
    char what[64];
    if (members && part->size > 1)
        tutti__membership_note(members, settling, "tutti_comm_split", 1, true);
    tutti_status status = tutti__comm_set_up(part, options);
    if (status != TUTTI_OK) {
        snprintf(what, sizeof what, "tutti_comm_split into a group of %d ranks", part->size);
        return tutti__comm_broke(part, status, what, "");
    }
    if (members && part->size > 1)
        tutti__membership_note(members, settling, "tutti_comm_split", 1, false);
    return TUTTI_OK;
}

/* Those members of a group, by their ranks in it, as a group of their own; on each of them. */
static tutti_status make_part(tutti_comm *comm, int size, const int *members, int rank,
                              uint32_t context, tutti_comm **ret_part)
{
    tutti_comm_options options = tutti__comm_defaults(TUTTI_COMM_OPTIONS(.timeout = comm->timeout));
    int *of_fabric = malloc((size_t)size * sizeof *of_fabric);
    tutti_comm *part = NULL;
    if (!of_fabric)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a group of %d ranks", size);
    for (int i = 0; i < size; i++)
        of_fabric[i] = comm->members[members[i]];
    tutti_status status =
        tutti__comm_create(comm->fabric, size, of_fabric, rank, context, &options, &part);
    free(of_fabric);
    if (status == TUTTI_OK) {
        tutti__comm_take_cost(part, &comm->cost);
        part->spec = comm->spec;
        part->inherited = true;
        name_part(part);
        status = settle_split(part, &options);
    }
    if (status != TUTTI_OK)
        tutti__comm_destroy(part);
    else
        *ret_part = part;
    return status;
}

tutti_status tutti_comm_split(tutti_comm *comm, int color, int key, tutti_comm **ret_comm)
{
    TUTTI_REQUIRE(comm);
    TUTTI_REQUIRE(ret_comm);
    tutti_fabric *fabric = comm->fabric;
    ballot own = {color, key, comm->rank, comm->rank == 0 ? new_context(fabric) : 0};
    ballot *all = calloc((size_t)comm->size, sizeof *all);
    int *members = malloc((size_t)comm->size * sizeof *members), size = 0, rank = 0;
    tutti_comm *part = NULL;
    tutti_status status = TUTTI_OK;
    if (!all || !members)
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for a group of %d ranks", comm->size);
    if (status == TUTTI_OK)
        status = tutti_comm_all_gather(comm, &own, all, sizeof own, TUTTI_U8,
                                       TUTTI_CALL(.label = "of tutti_comm_split"));
    uint32_t context = status == TUTTI_OK ? all[0].context : 0;
    if (status == TUTTI_OK && context == 0)
        status = no_context(comm, comm->members[0]);
    if (status == TUTTI_OK && color >= 0) {
        qsort(all, (size_t)comm->size, sizeof *all, by_key);
        for (int i = 0; i < comm->size; i++)
            if (all[i].color == color) {
                rank = all[i].rank == comm->rank ? size : rank;
                members[size++] = all[i].rank;
            }
        status = make_part(comm, size, members, rank, context, &part);
    }
    free(all);
    free(members);
    if (status == TUTTI_OK)
        *ret_comm = part;
    return status;
}

/* What the first member tells the others. */
typedef struct invitation {
    uint64_t name;
    uint32_t context;
} invitation;

static tutti_status invite(tutti_comm *comm, int size, const int *members, int rank, uint64_t name,
                           const tutti_comm_call *call, uint32_t *ret_context)
{
    invitation first = {name, rank == 0 ? new_context(comm->fabric) : 0};
    if (rank > 0)
        TUTTI_TRY(
            tutti_comm_recv(comm, members[0], TUTTI_SUBGROUP_TAG, &first, sizeof first, call));
    for (int i = 1; rank == 0 && i < size; i++)
        TUTTI_TRY(
            tutti_comm_send(comm, members[i], TUTTI_SUBGROUP_TAG, &first, sizeof first, call));
    if (first.context == 0)
        return no_context(comm, comm->members[members[0]]);
    *ret_context = first.context;
    return first.name == name
               ? TUTTI_OK
               : tutti_fail(TUTTI_INVALID,
                            "rank %d makes another group than rank %d; ranks must make the same "
                            "groups in the same order",
                            comm->members[members[0]], comm->fabric->rank);
}

tutti_status tutti__comm_subgroup(tutti_comm *comm, int size, const int *members, uint64_t name,
                                  const tutti_comm_call *call, tutti_comm **ret_comm)
{
    uint32_t context = 0;
    int rank = 0;
    while (rank < size && members[rank] != comm->rank)
        rank++;
    if (rank == size)
        return tutti_fail(TUTTI_INTERNAL, "rank %d is not in the group that it makes", comm->rank);
    name = tutti__hash_mix(tutti__hash_bytes(name, members, (size_t)size * sizeof *members),
                           (uint64_t)size);
    TUTTI_TRY(invite(comm, size, members, rank, name, call, &context));
    return make_part(comm, size, members, rank, context, ret_comm);
}

/* Waits for a child: its process, 0 when it has not ended, -1 when somebody else has waited. */
static pid_t reap_one(pid_t child, int64_t deadline_ns, int *ret_ending)
{
    pid_t done;
    while ((done = waitpid(child, ret_ending, WNOHANG)) == 0 && tutti__now_ns() < deadline_ns)
        tutti__world()->sleep_ns(tutti__world()->self, 1000000);
    return done;
}

/* Ranks that were forked end before rank 0 returns. */
static tutti_status reap(tutti_fabric *fabric, int64_t deadline_ns)
{
    tutti_status status = TUTTI_OK;
    for (int i = 1; i < fabric->size; i++) {
        int ending = 0;
        pid_t child = atomic_load(&fabric->family[i].id);
        pid_t done = reap_one(child, deadline_ns, &ending);
        if (done == 0)
            status =
                tutti_fail(TUTTI_DEADLINE, "rank %d (process %d) has not ended", i, (int)child);
        else if (done > 0 && ending != 0)
            status = tutti_fail(TUTTI_CLOSED, "rank %d (process %d) ended with %s %d", i,
                                (int)child, WIFEXITED(ending) ? "exit code" : "signal",
                                WIFEXITED(ending) ? WEXITSTATUS(ending) : WTERMSIG(ending));
    }
    return status;
}

/* The same where the group is broken, which all ranks learn: how they end is no news. One that
 * neither closes it nor ends hangs, or is stopped, and is ended. */
static void reap_broken(tutti_fabric *fabric, int64_t deadline_ns)
{
    const int64_t patience_ns = 60000000000, killed_ns = 10000000000;
    int64_t until = tutti__now_ns() + patience_ns;
    until = until < deadline_ns ? until : deadline_ns;
    for (int i = 1; i < fabric->size; i++) {
        int ending = 0;
        pid_t child = atomic_load(&fabric->family[i].id);
        if (reap_one(child, until, &ending) == 0 && !atomic_load(&fabric->family[i].left) &&
            kill(child, SIGKILL) == 0)
            (void)reap_one(child, tutti__now_ns() + killed_ns, &ending);
    }
}

tutti_status tutti_comm_close(tutti_comm *comm)
{
    if (!comm)
        return TUTTI_OK;
    tutti_fabric *fabric = comm->fabric;
    tutti_membership *members = comm->opened ? fabric->membership : NULL;
    bool reaping = comm->forked && comm->rank == 0, broken = atomic_load(&fabric->broken);
    int64_t deadline = tutti__comm_deadline_in(comm->timeout);
    tutti_status status = TUTTI_OK;
    if (comm->worker)
        tutti__worker_drain(comm);
    /* Nobody leaves while another still needs what it has sent. */
    bool meets = comm->forked || members;
    if (!broken && meets && comm->worker)
        tutti__worker_end_receives(comm);
    if (!broken && meets) {
        atomic_store(&fabric->leaving, true);
        status = tutti_comm_barrier(comm, NULL);
    }
    if (comm->worker) { /* who has met all others in the barrier need not wait again */
        tutti_status sent = tutti__worker_end_messages(comm, !broken && !meets);
        status = status == TUTTI_OK ? sent : status;
    }
    /* Those of other machines hear of a failure from rank 0, which may have read it in the memory
     * of its own: it does not go before it has told them. */
    if (members && broken && tutti__fabric_spans(fabric) && !tutti__membership_failed(members))
        tutti__membership_break(members, fabric->error.status, fabric->error.message);
    tutti_fabric *kept = fabric;
    atomic_fetch_add(&kept->references, 1);
    if (broken && meets) /* as every call since */
        status = tutti__error_restore(&fabric->error);
    broken = broken || atomic_load(&fabric->broken);
    tutti__comm_destroy(comm);
    if (reaping && broken)
        reap_broken(kept, deadline);
    else if (reaping && status == TUTTI_OK)
        status = reap(kept, deadline);
    if (members)
        tutti__fabric_forget_members(kept);
    if (broken) {
        tutti__membership_abandon(members);
        members = NULL;
    }
    tutti__fabric_release(kept);
    if (members && !broken && status == TUTTI_OK) {
        status = tutti__membership_part(members, deadline);
        if (status == TUTTI_OK)
            tutti__comm_say_straggler(members);
    }
    tutti__membership_abandon(members);
    return status;
}

void tutti_comm_abort(tutti_comm *comm, const char *why)
{
    if (!comm)
        return;
    char text[600];
    why = why ? why : "no reason given";
    snprintf(text, sizeof text, "rank %d aborted: %s", comm->fabric->rank, why);
    if (comm->fabric->membership) { /* by which all hear the same, with who was where */
        tutti__membership_abort(comm->fabric->membership, why);
        tutti__fabric_break_here(comm->fabric, TUTTI_CANCELLED, text);
    } else
        (void)tutti__fabric_break(comm->fabric, TUTTI_CANCELLED, text);
}

int tutti_comm_rank(const tutti_comm *comm)
{
    return comm ? comm->rank : -1;
}

int tutti_comm_size(const tutti_comm *comm)
{
    return comm ? comm->size : 0;
}

int tutti_comm_hosts(const tutti_comm *comm)
{
    return comm ? comm->hosts : 0;
}

const char *tutti_comm_engine(const tutti_comm *comm, int peer)
{
    if (!comm || peer < 0 || peer >= comm->size || peer == comm->rank)
        return "";
    return comm->fabric->engines[comm->members[peer]]->name;
}

void tutti_comm_get_cost(const tutti_comm *comm, tutti_comm_cost *ret_cost)
{
    if (comm)
        *ret_cost = comm->cost;
}

int64_t tutti_comm_bytes_sent(const tutti_comm *comm)
{
    if (!comm)
        return 0;
    return atomic_load(&comm->bytes_sent) + tutti_comm_bytes_sent(comm->within) +
           tutti_comm_bytes_sent(comm->between);
}

void *tutti__comm_private_memory(int64_t bytes)
{
    void *memory = aligned_alloc(4096, ((size_t)bytes + 4096) / 4096 * 4096);
    if (memory)
        memset(memory, 0, (size_t)bytes);
    return memory;
}

/* Where the system has no shared memory left, private memory will do: collectives copy. */
tutti_status tutti_comm_allocate(tutti_comm *comm, int64_t bytes, void **ret_memory)
{
    TUTTI_REQUIRE(ret_memory);
    TUTTI_REQUIRE(comm);
    tutti_segment *segment = comm->fabric->segment;
    if (bytes < 0)
        return tutti_fail(TUTTI_INVALID, "%lld bytes of memory", (long long)bytes);
    bool private = !segment;
    void *memory = segment ? tutti__arena_allocate(segment, bytes, &private) : NULL;
    if (private)
        memory = tutti__comm_private_memory(bytes);
    if (!memory && private)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %lld bytes", (long long)bytes);
    if (!memory)
        return tutti_fail(TUTTI_NO_MEMORY,
                          "no room for %lld bytes in the arena of %lld; open the group with a "
                          "larger .arena_bytes",
                          (long long)bytes, (long long)segment->arena_bytes);
    *ret_memory = memory;
    return TUTTI_OK;
}

void tutti_comm_free(tutti_comm *comm, void *memory)
{
    if (!comm || !memory)
        return;
    tutti_segment *segment = comm->fabric->segment;
    if (segment && tutti__arena_owns(segment, memory))
        tutti__arena_give_back(segment, memory);
    else
        free(memory);
}
