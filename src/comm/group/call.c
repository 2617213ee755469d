/* call.c: the public collectives: checks, choice of the algorithm, and what a failure means. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/container.h"
#include "base/require.h"
#include "base/world.h"
#include "comm/coll/number.h"
#include "comm/coll/wire.h"
#include "comm/comm.h"
#include "comm/compress/compress.h"
#include "comm/group/overlap.h"

/* Longer than ranks are asked for what they know, also where rank 0 does not react and each finds
 * that out after another. */
enum { VERDICT_NS = 1500000000 };

int64_t tutti__comm_deadline(const tutti_comm *comm, const tutti_comm_call *call)
{
    return tutti__comm_deadline_in(call && call->timeout > 0 ? call->timeout : comm->timeout);
}

/* A connection ended: did a process? The system knows it a little later. One that has closed the
 * group is none. */
static void look_for_dead(tutti_fabric *fabric, tutti_status status)
{
    enum { LOOKS = 10, BETWEEN_US = 2000 };
    bool ended = status == TUTTI_CLOSED || status == TUTTI_IO;
    for (int i = 0; i < (ended ? LOOKS : 1); i++) {
        if (i > 0)
            usleep(BETWEEN_US);
        fabric->watched_ns = 0;
        if (tutti__fabric_check(fabric) != TUTTI_OK)
            return;
    }
}

tutti_status tutti__comm_cause(tutti_fabric *fabric, tutti_status status)
{
    tutti_membership *members = fabric->membership;
    if (tutti__fabric_is_told(fabric))
        return tutti__fabric_check(fabric);
    if (members && status == TUTTI_DEADLINE && !tutti__membership_deciding(members))
        return status; /* nobody has died: one is late, and that is the cause */
    if (members && !atomic_load(&fabric->broken)) {
        tutti_error seen;
        tutti__error_capture(status, &seen);
        if (tutti__membership_await_verdict(members, tutti__now_ns() + VERDICT_NS))
            return tutti__membership_fail(members);
        return tutti__error_restore(&seen);
    }
    if (fabric->family) {
        tutti_error seen;
        tutti__error_capture(status, &seen);
        look_for_dead(fabric, status);
        status = tutti__error_restore(&seen);
    }
    return atomic_load(&fabric->broken) ? tutti__error_restore(&fabric->error) : status;
}

/* Members that have not begun the collective that this rank is in, without shared areas: as
 * tutti__area_missing. */
static int name_absent(const tutti_comm *comm, char *ret_names, size_t size)
{
    enum { NAMED = 4 };
    uint64_t place = tutti__calls_place(comm->context, comm->sequence);
    char name[320];
    int missing = 0;
    size_t used = 0;
    ret_names[0] = 0;
    for (int i = 0; i < comm->size; i++) {
        int rank = comm->members[i];
        bool here = i == comm->rank ||
                    tutti__calls_look(&comm->fabric->calls->of[rank], place) == TUTTI_HAS_COME;
        if (!here && missing++ <= NAMED && used < size)
            used += (size_t)snprintf(
                ret_names + used, size - used, "%s%s", missing > 1 ? ", " : "",
                missing > NAMED ? "…" : tutti__fabric_name(comm->fabric, rank, name, sizeof name));
    }
    return missing;
}

/* How many have not come to the collective at all, with names; -1: nobody here knows. */
static int find_missing(const tutti_comm *comm, char *ret_names, size_t size)
{
    return comm->area            ? tutti__area_missing(comm->area, comm->sequence, ret_names, size)
           : comm->fabric->calls ? name_absent(comm, ret_names, size)
                                 : -1;
}

/* Messages are waited for from who is waiting himself: who has not come at all is why, and becomes
 * the thread's message, where that is known. */
static void name_missing(const tutti_comm *comm)
{
    char names[600];
    int missing = find_missing(comm, names, sizeof names);
    if (missing > 0)
        (void)tutti_fail(TUTTI_DEADLINE,
                         "waited too long for %s; %d of %d ranks of the group had come", names,
                         comm->size - missing, comm->size);
}

/* Who waits for another that waits himself knows little of why: everybody is asked who has come. It
 * is rank 0 that asks, so that it is missing itself where no answer comes. */
static tutti_status ask_why(tutti_fabric *fabric, const char *why)
{
    char text[1400], name[320];
    tutti__membership_break(fabric->membership, TUTTI_DEADLINE, why);
    if (tutti__membership_await_verdict(fabric->membership, tutti__now_ns() + VERDICT_NS))
        return tutti__fabric_check(fabric);
    snprintf(text, sizeof text, "%s does not answer; rank %d was in %s",
             tutti__fabric_name(fabric, 0, name, sizeof name), fabric->rank, why);
    return tutti__fabric_break(fabric, TUTTI_DEADLINE, text);
}

/* Tells all ranks. */
static tutti_status tell_why(tutti_fabric *fabric, tutti_status status, const char *why)
{
    if (fabric->membership && status == TUTTI_DEADLINE)
        return ask_why(fabric, why);
    status = tutti__fabric_break(fabric, status, why);
    if (fabric->membership && tutti__fabric_spans(fabric))
        tutti__membership_break(fabric->membership, status, why);
    return status;
}

/* What failed is told to all: by the rank where it did, or with the operation that ranks were in.
 */
static bool is_told_by_verdict(const tutti_fabric *fabric)
{
    tutti_verdict verdict;
    if (!fabric->membership || !tutti__membership_failed(fabric->membership))
        return false;
    tutti__membership_verdict(fabric->membership, &verdict);
    return verdict.why == TUTTI_FAILURE_BROKEN || verdict.operation[0] != '\0';
}

/* Of a forked group: a member that is stopped is why the others wait for each other. It becomes the
 * thread's message; false: there is none. */
static bool name_stopped(const tutti_comm *comm)
{
    char name[320], others[600], come[64] = "";
    tutti_error seen;
    tutti__error_capture(TUTTI_DEADLINE, &seen);
    int i = 0;
    while (i < comm->size && !tutti__fabric_is_stopped(comm->fabric, comm->members[i]))
        i++;
    if (i == comm->size) {
        (void)tutti__error_restore(&seen);
        return false;
    }
    int missing = find_missing(comm, others, sizeof others);
    if (missing >= 0)
        snprintf(come, sizeof come, "; %d of %d ranks of the group had come", comm->size - missing,
                 comm->size);
    tutti__fabric_name(comm->fabric, comm->members[i], name, sizeof name);
    (void)tutti_fail(TUTTI_DEADLINE, "%s is stopped%s", name, come);
    return true;
}

tutti_status tutti__comm_broke(tutti_comm *comm, tutti_status status, const char *what,
                               const char *then)
{
    char why[1024];
    tutti_fabric *fabric = comm->fabric;
    tutti__fabric_give_up(fabric); /* at once: looking for the cause may take a while */
    if (status == TUTTI_CLOSED || status == TUTTI_IO || status == TUTTI_DEADLINE)
        status = tutti__comm_cause(fabric, status);
    if (tutti__fabric_is_told(fabric) || atomic_load(&fabric->broken) || is_told_by_verdict(fabric))
        return tutti__fabric_check(fabric); /* another rank was first */
    bool late = status == TUTTI_DEADLINE, stopped = late && fabric->family && name_stopped(comm);
    snprintf(why, sizeof why, "%s: %s%s", what, tutti_error_message(),
             late && !stopped ? then : "");
    return tell_why(fabric, status, why);
}

/* Without shared areas: whether those that have begun the same collective are in the same call. */
static tutti_status compare_noted(const tutti_comm *comm)
{
    tutti_calls *of = comm->fabric->calls->of;
    uint64_t place = tutti__calls_place(comm->context, comm->sequence), mine, other;
    if (!tutti__calls_is_in(&of[comm->fabric->rank], place, &mine))
        return TUTTI_OK;
    for (int i = 0; i < comm->size; i++)
        if (tutti__calls_is_in(&of[comm->members[i]], place, &other) && other != mine)
            return tutti__calls_differ(comm->fabric, comm->members[i], other, comm->fabric->rank,
                                       mine);
    return TUTTI_OK;
}

/* Where it is known of others what they are in: nobody is late then, they wait for another call. */
static tutti_status compare_calls(const tutti_comm *comm)
{
    return comm->area            ? tutti__area_compare(comm->area)
           : comm->fabric->calls ? compare_noted(comm)
                                 : TUTTI_OK;
}

/* "100 x f32"; of blocks that differ all together. */
static void say_size(const tutti_collective *c, char *ret_text, size_t size)
{
    int64_t total = 0;
    for (int r = 0; c->counts && r < c->size; r++)
        total += c->counts[r];
    snprintf(ret_text, size, "%lld x %s%s", (long long)(c->counts ? total : c->count),
             tutti_dtype_name(c->dtype), c->counts ? " in all" : "");
}

/* The collective is named in every message of a failure, which breaks the group. */
static tutti_status broke(tutti_collective *c, const tutti_coll *by, tutti_status status)
{
    char what[600], after[200] = "", words[160], root[32] = "", size[64];
    bool rooted = c->operation == TUTTI_BROADCAST || c->operation == TUTTI_REDUCE ||
                  c->operation == TUTTI_GATHER || c->operation == TUTTI_SCATTER;
    if (status == TUTTI_DEADLINE && compare_calls(c->comm) != TUTTI_OK)
        status = TUTTI_INVALID;
    if (status == TUTTI_DEADLINE)
        name_missing(c->comm);
    if (status == TUTTI_INVALID &&
        c->comm->sequence > 1) /* perhaps it was there that they parted */
        snprintf(after, sizeof after, ", on rank %d after %s", c->comm->fabric->rank,
                 tutti__call_words(c->comm->before, words, sizeof words));
    if (rooted)
        snprintf(root, sizeof root, ", root %d", c->root);
    say_size(c, size, sizeof size);
    snprintf(what, sizeof what, "%s number %llu (%s, %s%s, %d ranks)%s", c->name,
             (unsigned long long)c->comm->sequence, by ? by->name : "none", size, root, c->size,
             after);
    status = tutti__comm_broke(c->comm, status, what, "");
    if (c->comm->area) /* the program takes back what it gave */
        tutti__area_drain(c->comm->area);
    return status;
}

/* A group of one. */
static void run_alone(const tutti_collective *c)
{
    size_t bytes = (size_t)c->count * c->element;
    if (c->operation != TUTTI_BARRIER && c->operation != TUTTI_BROADCAST && c->out != c->in &&
        c->counts == NULL && bytes)
        memmove(c->out, c->in, bytes);
    else if (c->counts && c->out != c->in && c->counts[0])
        memmove(c->out, c->in, (size_t)c->counts[0] * c->element);
}

/* Who comes when others have failed already must not succeed with what they have left in the links:
 * it waits until they say why. */
static tutti_status enter(tutti_fabric *fabric)
{
    enum { LOOKS = 2000, BETWEEN_NS = 1000000 }; /* longer than anybody looks for a cause */
    for (int i = 0; i < LOOKS; i++) {
        if (tutti__fabric_is_broken(fabric))
            return tutti__fabric_check(fabric);
        if (!tutti__fabric_is_given_up(fabric))
            return TUTTI_OK;
        tutti__world()->sleep_ns(tutti__world()->self, BETWEEN_NS);
    }
    return tutti__fabric_break(fabric, TUTTI_CLOSED,
                               "another rank has given up in a collective, and has not said why");
}

/* Of how it goes, where that is asked for: messages of other algorithms are not for this call. */
static uint32_t form_of(const tutti_comm_call *call)
{
    if (!call->algorithm && !call->wire && !call->shards)
        return 0;
    return (uint32_t)tutti__hash_string((uint64_t)call->wire * 64 + (uint64_t)call->shards,
                                        call->algorithm ? call->algorithm : "");
}

/* A part of another collective takes no place from that one, which verdicts are about. */
static bool is_looked_at(const tutti_comm *comm)
{
    return comm->fabric->noted && (!comm->inner || !comm->fabric->membership);
}

/* What others may look at while they wait for this rank. */
static void tell_others(const tutti_collective *c, uint64_t number, bool noted)
{
    const tutti_comm *comm = c->comm;
    if (noted)
        tutti__membership_note(comm->fabric->membership, comm->group, c->name, comm->sequence,
                               true);
    if (comm->area) {
        comm->area->call = number;
        tutti__area_enter(comm->area, comm->sequence);
    }
    if (is_looked_at(comm))
        tutti__fabric_note(comm->fabric, comm->context, c->name, comm->sequence, number);
}

tutti_status tutti__collective_run(tutti_collective *c, const tutti_comm_call *call)
{
    tutti_comm *comm = c->comm;
    tutti_fabric *fabric = comm->fabric;
    const tutti_coll *by = NULL;
    tutti_algorithm_spec spec;
    int parts = 1;
    bool alone = c->size == 1 && !c->shards, noted = fabric->membership && !comm->inner;
    TUTTI_TRY(enter(fabric));
    tutti_status status = alone ? TUTTI_OK : tutti__collective_choose(c, call, &spec, &by, &parts);
    if (status == TUTTI_INVALID)
        return status; /* before anybody hears of it: the next one has its number */
    uint64_t number = tutti__call_number(c);
    comm->sequence++;
    comm->history = tutti__call_history(comm->history, number, form_of(call));
    c->tag = tutti__call_tag(comm->history, comm->sequence);
    if (alone) {
        TUTTI_TRY(tutti__fabric_check(fabric)); /* it waits for nobody, so nothing else looks */
        run_alone(c);
        return TUTTI_OK;
    }
    tell_others(c, number, noted);
    if (status == TUTTI_OK)
        status = tutti__collective_do(c, by, parts);
    if (status != TUTTI_OK)
        return broke(c, by, status); /* nobody leaves an operation that fails */
    if (noted)
        tutti__membership_note(fabric->membership, comm->group, c->name, comm->sequence, false);
    if (is_looked_at(comm))
        tutti__fabric_note_left(fabric);
    comm->before = number;
    return TUTTI_OK;
}

void tutti__comm_mark(tutti_comm *comm, uint64_t number)
{
    comm->history = tutti__call_history(comm->history, number, 0);
}

static tutti_status call_check(const tutti_collective *c, bool folds)
{
    const char *name = tutti__operation_names[c->operation];
    int64_t bytes, total;
    if (c->count < 0)
        return tutti_fail(TUTTI_INVALID, "%s: count is %lld; it cannot be negative", name,
                          (long long)c->count);
    if (c->dtype == TUTTI_STRING || c->element == 0)
        return tutti_fail(TUTTI_INVALID, "%s: elements of type %s cannot travel", name,
                          tutti_dtype_name(c->dtype));
    if (folds && !c->fold)
        return tutti_fail(TUTTI_INVALID,
                          "%s: reduction %d of %s is not defined; types are f32 f64 f16 bf16 i32 "
                          "i64 i8 u8",
                          name, (int)c->reduction, tutti_dtype_name(c->dtype));
    if (c->root < 0 || c->root >= c->size)
        return tutti_fail(TUTTI_OUT_OF_RANGE, "%s: root is %d; ranks are 0 to %d", name, c->root,
                          c->size - 1);
    if (!tutti__mul_size(c->count, (int64_t)c->element, &bytes) ||
        !tutti__mul_size(bytes, c->size + 1, &total))
        return tutti_fail(TUTTI_TOO_LARGE, "%s: %lld x %s for each of %d ranks overflows", name,
                          (long long)c->count, tutti_dtype_name(c->dtype), c->size);
    return TUTTI_OK;
}

/* Whoever gives or gets elements says where they lie. */
static tutti_status check_memory(const tutti_collective *c, bool shards)
{
    bool root = c->rank == c->root, in = !shards /* it may have none */, out = true;
    switch (c->operation) {
    case TUTTI_REDUCE:
    case TUTTI_GATHER:
        out = root;
        break;
    case TUTTI_SCATTER:
        in = root;
        break;
    case TUTTI_BROADCAST:
        in = false;
        break;
    case TUTTI_BARRIER:
        return TUTTI_OK;
    default:
        out = !c->counts; /* perhaps nobody gives any */
    }
    if ((!in || c->in) && (!out || c->out))
        return TUTTI_OK;
    return tutti_fail(TUTTI_INVALID, "%s: %s is NULL, for %lld x %s",
                      tutti__operation_names[c->operation], in && !c->in ? "in" : "out",
                      (long long)(c->counts ? c->counts[c->rank] : c->count),
                      tutti_dtype_name(c->dtype));
}

tutti_status tutti__call_full(const char *name, const tutti_comm_call *call,
                              tutti_comm_call *ret_full)
{
    *ret_full = (tutti_comm_call){.struct_size = sizeof *ret_full};
    if (call && call->struct_size == 0)
        TUTTI_TRY(tutti__require_options(call, sizeof *call, name, "TUTTI_CALL(...)"));
    if (call)
        memcpy(ret_full, call,
               call->struct_size < sizeof *ret_full ? call->struct_size : sizeof *ret_full);
    return TUTTI_OK;
}

/* Who has no elements need not have memory; algorithms need not ask. */
static void point_at_nothing(tutti_collective *c)
{
    static char nothing[8];
    int64_t own = c->counts ? c->counts[c->rank] : c->count;
    c->in = c->in || own != 0 ? c->in : nothing;
    c->out = c->out || c->counts || own != 0 ? c->out : nothing;
}

static tutti_status call_prepare(tutti_collective *c, const tutti_comm_call *call, bool folds)
{
    c->rank = c->comm->rank;
    c->size = c->comm->size;
    point_at_nothing(c);
    c->element = tutti_dtype_size(c->dtype);
    c->fold = folds ? tutti__fold_find(c->dtype, c->reduction) : NULL;
    c->name = tutti__comm_label(tutti__operation_names[c->operation], call->label);
    TUTTI_TRY(call_check(c, folds));
    TUTTI_TRY(check_memory(c, call->shards > 0));
    return c->in == c->out && c->operation <= TUTTI_ALL_REDUCE ? TUTTI_OK : tutti__call_apart(c);
}

/* What only an all_reduce does must not be asked of others, who would do something else. */
static tutti_status check_form(const tutti_collective *c, const tutti_comm_call *call)
{
    const char *asked = call->wire         ? ".wire"
                        : call->codec      ? ".codec"
                        : call->shards     ? ".shards"
                        : call->compressor ? ".compressor"
                                           : NULL;
    if (c->operation == TUTTI_ALL_REDUCE || !asked)
        return TUTTI_OK;
    return tutti_fail(TUTTI_INVALID, "%s: %s is for all_reduce only; leave it out",
                      tutti__operation_names[c->operation], asked);
}

static tutti_status call_start(tutti_collective *c, const tutti_comm_call *given, bool folds)
{
    tutti_comm_call call;
    TUTTI_TRY(tutti__call_full(tutti__operation_names[c->operation], given, &call));
    TUTTI_TRY(check_form(c, &call));
    TUTTI_TRY(call_prepare(c, &call, folds));
    if (!(call.timeout >= 0))
        return tutti__comm_check_seconds(".timeout", call.timeout);
    if (call.request)
        return tutti__worker_queue(c->comm, c, &call, call.request);
    if (c->comm->worker)
        TUTTI_TRY(tutti__worker_drain(c->comm));
    c->deadline_ns = tutti__comm_deadline(c->comm, &call);
    return tutti__collective_run(c, &call);
}

tutti_status tutti_comm_barrier(tutti_comm *comm, const tutti_comm_call *call)
{
    TUTTI_REQUIRE(comm);
    return call_start(
        &(tutti_collective){.comm = comm, .operation = TUTTI_BARRIER, .dtype = TUTTI_U8}, call,
        false);
}

tutti_status tutti_comm_broadcast(tutti_comm *comm, void *data, int64_t count, tutti_dtype dtype,
                                  int root, const tutti_comm_call *call)
{
    TUTTI_REQUIRE(comm);
    return call_start(&(tutti_collective){.comm = comm,
                                          .operation = TUTTI_BROADCAST,
                                          .in = data,
                                          .out = data,
                                          .count = count,
                                          .dtype = dtype,
                                          .root = root},
                      call, false);
}

tutti_status tutti_comm_reduce(tutti_comm *comm, const void *in, void *out, int64_t count,
                               tutti_dtype dtype, tutti_reduction reduction, int root,
                               const tutti_comm_call *call)
{
    TUTTI_REQUIRE(comm);
    return call_start(&(tutti_collective){.comm = comm,
                                          .operation = TUTTI_REDUCE,
                                          .in = in,
                                          .out = out,
                                          .count = count,
                                          .dtype = dtype,
                                          .reduction = reduction,
                                          .root = root},
                      call, true);
}

static tutti_status wire_of(const tutti_comm_call *call, tutti_dtype dtype,
                            const tutti_comm_codec **ret_codec)
{
    if (!call || (!call->wire && !call->codec) || (call->wire == dtype && !call->codec)) {
        *ret_codec = NULL;
        return TUTTI_OK;
    }
    const tutti_comm_codec *codec = call->codec;
    if (codec && call->wire)
        return tutti_fail(TUTTI_INVALID,
                          "all_reduce: .wire and .codec both say what travels; leave one out");
    if (codec && (!codec->name || !codec->bound || !codec->encode || !codec->decode))
        return tutti_fail(TUTTI_INVALID,
                          "all_reduce: the codec '%s' lacks a name or one of bound, encode, decode",
                          codec->name ? codec->name : "");
    *ret_codec = codec ? codec : tutti__wire_codec(call->wire);
    if (!*ret_codec || dtype != TUTTI_F32 || call->shards)
        return tutti_fail(
            TUTTI_INVALID,
            "all_reduce: %s as %s on the wire is not possible; f32 can travel as f16, "
            "bf16 or by a codec, without shards",
            tutti_dtype_name(dtype),
            call->codec ? call->codec->name : tutti_dtype_name(call->wire));
    return TUTTI_OK;
}

static tutti_status all_reduce_of(tutti_collective *c, const tutti_comm_call *call)
{
    c->operation = TUTTI_ALL_REDUCE;
    c->shards = call->shards;
    c->folded = call->folded;
    c->compressor = call->compressor;
    TUTTI_TRY(wire_of(call, c->dtype, &c->codec));
    if (c->shards < 0)
        return tutti_fail(TUTTI_INVALID, "all_reduce: %d shards; 0 means one for each rank",
                          c->shards);
    return c->compressor ? tutti__compressor_fits(c) : TUTTI_OK;
}

tutti_status tutti_comm_all_reduce(tutti_comm *comm, const void *in, void *out, int64_t count,
                                   tutti_dtype dtype, tutti_reduction reduction,
                                   const tutti_comm_call *given)
{
    TUTTI_REQUIRE(comm);
    tutti_comm_call call;
    TUTTI_TRY(tutti__call_full("all_reduce", given, &call));
    tutti_collective c = {
        .comm = comm, .in = in, .out = out, .count = count, .dtype = dtype, .reduction = reduction};
    TUTTI_TRY(all_reduce_of(&c, &call));
    return call_start(&c, &call, true);
}

tutti_status tutti__all_reduce_now(tutti_comm *comm, void *data, int64_t count, uint64_t pieces,
                                   tutti_dtype dtype, tutti_reduction reduction,
                                   const tutti_comm_call *call, int64_t deadline_ns)
{
    tutti_collective c = {.comm = comm,
                          .in = data,
                          .out = data,
                          .count = count,
                          .pieces = pieces,
                          .dtype = dtype,
                          .reduction = reduction,
                          .deadline_ns = deadline_ns};
    TUTTI_TRY(all_reduce_of(&c, call));
    TUTTI_TRY(call_prepare(&c, call, true));
    return tutti__collective_run(&c, call);
}

tutti_status tutti_comm_reduce_scatter(tutti_comm *comm, const void *in, void *out, int64_t count,
                                       tutti_dtype dtype, tutti_reduction reduction,
                                       const tutti_comm_call *call)
{
    TUTTI_REQUIRE(comm);
    return call_start(&(tutti_collective){.comm = comm,
                                          .operation = TUTTI_REDUCE_SCATTER,
                                          .in = in,
                                          .out = out,
                                          .count = count,
                                          .dtype = dtype,
                                          .reduction = reduction},
                      call, true);
}

tutti_status tutti_comm_all_gather(tutti_comm *comm, const void *in, void *out, int64_t count,
                                   tutti_dtype dtype, const tutti_comm_call *call)
{
    TUTTI_REQUIRE(comm);
    return call_start(&(tutti_collective){.comm = comm,
                                          .operation = TUTTI_ALL_GATHER,
                                          .in = in,
                                          .out = out,
                                          .count = count,
                                          .dtype = dtype},
                      call, false);
}

static tutti_status gather_uneven(tutti_comm *comm, const void *in, const int64_t *counts,
                                  void *out, tutti_dtype dtype, const tutti_comm_into *into,
                                  bool *ret_placed, const tutti_comm_call *call)
{
    int64_t total = 0;
    for (int r = 0; r < comm->size; r++)
        if (counts[r] < 0 || !tutti__add_size(total, counts[r], &total))
            return tutti_fail(TUTTI_INVALID, "all_gather: rank %d's count is %lld", r,
                              (long long)counts[r]);
    tutti_collective c = {.comm = comm,
                          .operation = TUTTI_ALL_GATHER,
                          .in = in,
                          .out = out,
                          .count = total / comm->size + 1,
                          .counts = counts,
                          .dtype = dtype,
                          .into = into};
    tutti_status status = call_start(&c, call, false);
    *ret_placed = c.placed;
    return status;
}

tutti_status tutti__reduce_scatter_common(tutti_comm *comm, void *data, int64_t count,
                                          tutti_dtype dtype, void *common, int64_t common_count,
                                          const tutti_comm_call *call)
{
    tutti_comm_common beside = {common, common_count, false};
    tutti_collective c = {.comm = comm,
                          .operation = TUTTI_REDUCE_SCATTER,
                          .in = data,
                          .out = (char *)data +
                                 (size_t)comm->rank * (size_t)count * tutti_dtype_size(dtype),
                          .count = count,
                          .dtype = dtype,
                          .reduction = TUTTI_SUM,
                          .common = &beside};
    TUTTI_TRY(call_start(&c, call, true));
    return beside.done || common_count == 0
               ? TUTTI_OK
               : tutti_comm_all_reduce(comm, common, common, common_count, dtype, TUTTI_SUM, call);
}

tutti_status tutti_comm_all_gather_uneven(tutti_comm *comm, const void *in, const int64_t *counts,
                                          void *out, tutti_dtype dtype, const tutti_comm_call *call)
{
    bool placed;
    TUTTI_REQUIRE(comm);
    TUTTI_REQUIRE(counts);
    return gather_uneven(comm, in, counts, out, dtype, NULL, &placed, call);
}

tutti_status tutti__all_gather_into(tutti_comm *comm, const void *in, const int64_t *counts,
                                    void *out, tutti_dtype dtype, const tutti_comm_into *into,
                                    const tutti_comm_call *call)
{
    bool placed;
    const char *block = out;
    TUTTI_TRY(gather_uneven(comm, in, counts, out, dtype, into, &placed, call));
    for (int r = 0; !placed && r < comm->size; r++) {
        size_t bytes = (size_t)counts[r] * tutti_dtype_size(dtype);
        if (r != comm->rank && bytes > 0)
            into->place(into->context, r, 0, block, bytes);
        block += bytes;
    }
    return TUTTI_OK;
}

tutti_status tutti_comm_gather(tutti_comm *comm, const void *in, void *out, int64_t count,
                               tutti_dtype dtype, int root, const tutti_comm_call *call)
{
    TUTTI_REQUIRE(comm);
    return call_start(&(tutti_collective){.comm = comm,
                                          .operation = TUTTI_GATHER,
                                          .in = in,
                                          .out = out,
                                          .count = count,
                                          .dtype = dtype,
                                          .root = root},
                      call, false);
}

tutti_status tutti_comm_scatter(tutti_comm *comm, const void *in, void *out, int64_t count,
                                tutti_dtype dtype, int root, const tutti_comm_call *call)
{
    TUTTI_REQUIRE(comm);
    return call_start(&(tutti_collective){.comm = comm,
                                          .operation = TUTTI_SCATTER,
                                          .in = in,
                                          .out = out,
                                          .count = count,
                                          .dtype = dtype,
                                          .root = root},
                      call, false);
}

tutti_status tutti_comm_all_to_all(tutti_comm *comm, const void *in, void *out, int64_t count,
                                   tutti_dtype dtype, const tutti_comm_call *call)
{
    TUTTI_REQUIRE(comm);
    return call_start(&(tutti_collective){.comm = comm,
                                          .operation = TUTTI_ALL_TO_ALL,
                                          .in = in,
                                          .out = out,
                                          .count = count,
                                          .dtype = dtype},
                      call, false);
}
