/* replica.c: code that runs once on each replica, and what it exchanges. */
#include "parallel/strategies/replica.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/require.h"
#include "tutti/ops.h"

typedef struct runner {
    tutti_replica replica;
    tutti_replica_fn *fn;
    void *context;
    tutti_error error; /* of its own code */
    tutti_error heard; /* of another replica's */
    pthread_t thread;
    bool started;
} runner;

static void *replica_run(void *argument)
{
    runner *r = argument;
    tutti__error_forget();
    tutti_status status =
        tutti__error_say(r->fn(&r->replica, r->context), "the replica's function");
    if (status != TUTTI_OK)
        tutti__error_capture(status, &r->error);
    status = tutti__replica_end(&r->replica, &r->error);
    if (status != TUTTI_OK)
        tutti__error_capture(status, &r->heard);
    return NULL;
}

/* What failed here, before what was heard of it. */
static tutti_status outcome(const runner *runners, int count)
{
    for (int i = 0; i < count; i++)
        if (runners[i].error.status != TUTTI_OK && runners[i].heard.status == TUTTI_OK)
            return tutti__error_restore(&runners[i].error);
    for (int i = 0; i < count; i++)
        if (runners[i].heard.status != TUTTI_OK)
            return tutti__error_restore(&runners[i].heard);
    return TUTTI_OK;
}

static tutti_status replica_check(const tutti_replica *replica)
{
    TUTTI_REQUIRE(replica);
    return tutti_strategy_check(replica->strategy);
}

tutti_status tutti_replica_run(tutti_strategy *strategy, tutti_replica_fn *fn, void *context)
{
    TUTTI_REQUIRE(fn);
    TUTTI_TRY(tutti_strategy_check(strategy));
    int count = strategy->axis_group->local;
    runner *runners = count > 0 ? calloc((size_t)count, sizeof *runners) : NULL;
    if (!runners)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %d replicas", count);
    for (int i = 0; i < count; i++) {
        runners[i] = (runner){.fn = fn, .context = context};
        runners[i].replica = (tutti_replica){.strategy = strategy,
                                             .index = strategy->axis_group->first + i,
                                             .count = strategy->axis_group->size,
                                             .local = i,
                                             .device = strategy->devices[i]};
        strategy->axis_group->over[i].status = TUTTI_OK;
    }
    for (int i = 1; i < count; i++) {
        runners[i].started =
            pthread_create(&runners[i].thread, NULL, replica_run, &runners[i]) == 0;
        if (!runners[i].started) { /* nobody speaks for it */
            tutti__error_capture(tutti_fail(TUTTI_NO_MEMORY, "no thread for replica %d", i),
                                 &runners[i].error);
            tutti_comm_abort(strategy->axis_group->inner[i], runners[i].error.message);
        }
    }
    replica_run(&runners[0]);
    for (int i = 1; i < count; i++)
        if (runners[i].started)
            pthread_join(runners[i].thread, NULL);
    tutti_status status = outcome(runners, count);
    free(runners);
    return status;
}

static tutti_status copy_of(tutti_tensor *value, tutti_tensor **ret)
{
    tutti_tensor *contiguous;
    if (!value)
        return tutti_fail(TUTTI_INVALID, "the replica has no value to give");
    if (tutti_tensor_dtype(value) == TUTTI_STRING)
        return tutti_fail(TUTTI_UNSUPPORTED, "replicas exchange numbers, not strings");
    TUTTI_TRY(tutti_tensor_contiguous(value, &contiguous));
    tutti_status status =
        tutti_tensor_from(tutti_tensor_dtype(value), tutti_tensor_rank(value),
                          tutti_tensor_dims(value), tutti_tensor_data(contiguous), ret);
    tutti_tensor_release(contiguous);
    return status;
}

static tutti_status replica_keep(tutti_tensor *value, tutti_status status, tutti_tensor **ret)
{
    if (status == TUTTI_OK)
        *ret = value;
    else
        tutti_tensor_release(value);
    return status;
}

static double timeout_of(const tutti_replica *replica)
{
    return replica->strategy->options.timeout;
}

tutti_status tutti_replica_reduce(const tutti_replica *replica, tutti_tensor *value,
                                  tutti_reduction how, tutti_tensor **ret_value)
{
    TUTTI_TRY(replica_check(replica));
    tutti_tensor *own;
    tutti_axis_group *axis_group = replica->strategy->axis_group;
    TUTTI_TRY(copy_of(value, &own));
    tutti_comm_piece piece = {tutti_tensor_data(own), tutti_tensor_count(own)};
    bool mean = how == TUTTI_MEAN && tutti_dtype_is_float(tutti_tensor_dtype(own));
    if (how == TUTTI_MEAN && !mean) {
        tutti_tensor_release(own);
        return tutti_fail(TUTTI_INVALID, "a mean of %s is not defined; cast it first",
                          tutti_dtype_name(tutti_tensor_dtype(value)));
    }
    tutti_status status = tutti__replica_agree(replica, TUTTI_ACT_REDUCE, how, own, NULL);
    if (status == TUTTI_OK)
        status = tutti__axis_group_all_reduce(
            axis_group, replica->local, 1, &piece, tutti_tensor_dtype(own), mean ? TUTTI_SUM : how,
            &(tutti_axis_group_call){.name = "reduce", .timeout = timeout_of(replica)});
    for (int64_t i = 0; status == TUTTI_OK && mean && i < piece.count; i++)
        tutti_tensor_set(own, i, tutti_tensor_get(own, i) / axis_group->size);
    return replica_keep(own, status, ret_value);
}

static tutti_status replica_gather(const tutti_replica *replica, tutti_tensor *value, int64_t *rows,
                                   tutti_tensor **ret)
{
    tutti_axis_group *axis_group = replica->strategy->axis_group;
    int64_t dims[TUTTI_MAX_RANK], total = 0, row = 1;
    memcpy(dims, tutti_tensor_dims(value), (size_t)tutti_tensor_rank(value) * sizeof *dims);
    TUTTI_TRY(tutti__replica_agree(replica, TUTTI_ACT_GATHER, 0, value, rows));
    for (int i = 1; i < tutti_tensor_rank(value); i++)
        row *= dims[i];
    for (int r = 0; r < axis_group->size; r++) {
        total += rows[r];
        rows[r] *= row;
    }
    dims[0] = total;
    tutti_tensor *all;
    TUTTI_TRY(tutti_tensor_create(tutti_tensor_dtype(value), tutti_tensor_rank(value), dims, &all));
    tutti_status status = tutti__axis_group_all_gather(
        axis_group, replica->local, tutti_tensor_data(value), rows, tutti_tensor_data(all),
        tutti_tensor_dtype(value),
        &(tutti_axis_group_call){.name = "gather", .timeout = timeout_of(replica)});
    return replica_keep(all, status, ret);
}

tutti_status tutti_replica_gather(const tutti_replica *replica, tutti_tensor *value,
                                  tutti_tensor **ret_value)
{
    TUTTI_TRY(replica_check(replica));
    tutti_tensor *own;
    if (value && tutti_tensor_rank(value) == 0)
        return tutti_fail(TUTTI_INVALID, "scalars have no dimension to be joined along");
    TUTTI_TRY(copy_of(value, &own));
    int64_t *rows = calloc((size_t)replica->count, sizeof *rows);
    tutti_status status = rows ? replica_gather(replica, own, rows, ret_value)
                               : tutti_fail(TUTTI_NO_MEMORY, "no memory to gather");
    free(rows);
    tutti_tensor_release(own);
    return status;
}

tutti_status tutti_replica_broadcast(const tutti_replica *replica, tutti_tensor *value,
                                     tutti_tensor **ret_value)
{
    TUTTI_TRY(replica_check(replica));
    tutti_tensor *own;
    TUTTI_TRY(copy_of(value, &own));
    tutti_status status = tutti__replica_agree(replica, TUTTI_ACT_BROADCAST, 0, own, NULL);
    if (status == TUTTI_OK)
        status = tutti__axis_group_broadcast(
            replica->strategy->axis_group, replica->local, tutti_tensor_data(own),
            tutti_tensor_count(own), tutti_tensor_dtype(own), 0,
            &(tutti_axis_group_call){.name = "broadcast", .timeout = timeout_of(replica)});
    return replica_keep(own, status, ret_value);
}

tutti_sym tutti_compute_average_loss(tutti_sym losses, int64_t batch)
{
    if (batch < 1 && losses.node)
        return tutti__poison(losses.node->graph, TUTTI_INVALID,
                             "tutti_compute_average_loss: a batch of %lld examples",
                             (long long)batch);
    return tutti_mul(tutti_sum(losses), 1 / (double)(batch > 0 ? batch : 1));
}

/* ---- what replicas tell each other before they exchange ---- */

typedef struct note {
    int64_t act, detail, dtype, rank, dims[TUTTI_MAX_RANK];
} note;
enum { NOTE = sizeof(note) / sizeof(int64_t), MESSAGE = sizeof((tutti_error){0}.message) };

static const char *name_of(int64_t act)
{
    static const char *const names[] = {"nothing",   "reduce", "gather",
                                        "broadcast", "end",    "failure"};
    return names[act];
}

static tutti_axis_group_call call_of(const tutti_replica *replica, const char *name)
{
    return (tutti_axis_group_call){.name = name, .timeout = replica->strategy->options.timeout};
}

/* What `own` has to say reaches all: it is the message of the first replica that failed. */
static tutti_status tell(const tutti_replica *replica, int failed, const char *own)
{
    char message[MESSAGE] = "";
    if (replica->index == failed)
        snprintf(message, sizeof message, "%s", own);
    tutti_axis_group_call call = call_of(replica, "failure");
    TUTTI_TRY(tutti__axis_group_broadcast(replica->strategy->axis_group, replica->local, message,
                                          MESSAGE, TUTTI_U8, failed, &call));
    return tutti_fail(TUTTI_CANCELLED, "replica %d failed: %.*s", failed, MESSAGE - 1, message);
}

/* Replica `other` against the first. */
static tutti_status agree_compare(const note *first, const note *n, int other)
{
    char text[2][TUTTI_TYPE_TEXT];
    if (n->act != first->act || n->detail != first->detail)
        return tutti_fail(TUTTI_INVALID,
                          "replica %d is at its %s, replica 0 at %s %s; all replicas have to make "
                          "the same calls in the same order",
                          other, name_of(n->act), n->act == first->act ? "another" : "its",
                          name_of(first->act));
    tutti_type a = tutti_type_make((tutti_dtype)first->dtype, (int)first->rank, first->dims);
    tutti_type b = tutti_type_make((tutti_dtype)n->dtype, (int)n->rank, n->dims);
    const char *rule = "";
    if (n->act == TUTTI_ACT_GATHER) {
        rule = ", but for dimension 0";
        a.dims[0] = b.dims[0] = 0;
    }
    if (tutti_type_equal(&a, &b))
        return TUTTI_OK;
    a.dims[0] = first->dims[0];
    b.dims[0] = n->dims[0];
    return tutti_fail(TUTTI_INVALID,
                      "%s: replica %d gives %s, replica 0 %s; all replicas have to give tensors of "
                      "one type and shape%s",
                      name_of(n->act), other, tutti_type_text(&b, text[0]),
                      tutti_type_text(&a, text[1]), rule);
}

/* Everybody has the same notes, and comes to the same end. */
static tutti_status agree_judge(const tutti_replica *replica, const note *notes, const char *own,
                                int *ret_failed)
{
    for (int r = 0; r < replica->count; r++)
        if (notes[r].act == TUTTI_ACT_FAIL) {
            *ret_failed = r;
            return tell(replica, r, own);
        }
    for (int r = 1; r < replica->count; r++)
        TUTTI_TRY(agree_compare(&notes[0], &notes[r], r));
    return TUTTI_OK;
}

static tutti_status exchange(const tutti_replica *replica, const note *own, note *notes)
{
    notes[replica->index] = *own;
    tutti_comm_piece piece = {notes, (int64_t)replica->count * NOTE};
    tutti_axis_group_call call = call_of(replica, name_of(own->act));
    return tutti__axis_group_all_reduce(replica->strategy->axis_group, replica->local, 1, &piece,
                                        TUTTI_I64, TUTTI_SUM, &call);
}

/* `ret_failed`: the first replica whose code has failed, or -1. */
static tutti_status agree(const tutti_replica *replica, const note *own, const char *message,
                          int64_t *ret_rows, int *ret_failed)
{
    tutti_error *over = &replica->strategy->axis_group->over[replica->local];
    *ret_failed = -1;
    if (over->status != TUTTI_OK)
        return tutti__error_restore(over);
    note *notes = calloc((size_t)replica->count, sizeof *notes);
    if (!notes)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %d replicas", replica->count);
    tutti_status status = exchange(replica, own, notes);
    bool lost = status != TUTTI_OK;
    if (status == TUTTI_OK)
        status = agree_judge(replica, notes, message, ret_failed);
    for (int r = 0; r < replica->count; r++) /* it is not there any more when others go on */
        lost = lost || (status != TUTTI_OK && notes[r].act >= TUTTI_ACT_END);
    if (lost)
        tutti__error_capture(status, over);
    for (int r = 0; ret_rows && r < replica->count; r++)
        ret_rows[r] = notes[r].dims[0];
    free(notes);
    return status;
}

tutti_status tutti__replica_agree(const tutti_replica *replica, tutti_replica_act act,
                                  int64_t detail, const tutti_tensor *value, int64_t *ret_rows)
{
    int failed;
    note own = {.act = act, .detail = detail};
    const tutti_type *type = tutti_tensor_type(value);
    own.dtype = type->dtype;
    own.rank = type->rank;
    memcpy(own.dims, type->dims, (size_t)type->rank * sizeof *own.dims);
    return agree(replica, &own, "", ret_rows, &failed);
}

tutti_status tutti__replica_end(const tutti_replica *replica, tutti_error *own)
{
    int failed;
    note last = {.act = own->status == TUTTI_OK ? TUTTI_ACT_END : TUTTI_ACT_FAIL};
    tutti_status status = agree(replica, &last, own->message, NULL, &failed);
    return failed == replica->index ? TUTTI_OK : status;
}
