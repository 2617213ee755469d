/* agree.c: see agree.h. All replicas exchange notes of one size before every exchange of tensors,
 * and once more at their end, whatever they do in between. So one that fails is heard where the
 * others wait next, and the strategy can be used again: notes and exchanges still match. */
#include "parallel/strategies/agree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
