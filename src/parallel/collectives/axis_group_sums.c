/* axis_group_sums.c: the deterministic sum of several devices in several processes. Where the
 * shards of a process's replicas follow one another, and all processes have as many, its first
 * replica folds their nodes of the tree to those of the process (base/shards.h), and the processes
 * fold these. Else all replicas get all nodes, and each folds the tree. */
#include "parallel/collectives/axis_group_sums.h"

#include <stdlib.h>
#include <string.h>

#include "base/recycle.h"
#include "base/shards.h"
#include "comm/coll/fold.h"
#include "parallel/collectives/axis_group.h"

typedef struct tree {
    const tutti_axis_group *axis_group;
    int shards;
    tutti_reduction reduction;
    int64_t count;   /* elements of a node */
    size_t bytes;    /* of a node */
    int first;       /* the replica of given[0] */
    char **given;    /* the nodes of each replica, one behind the other */
    char *temporary; /* two nodes for each level */
    tutti_fold_function *add;
} tree;

static int first_shard(const tree *t, int replica)
{
    return (int)((int64_t)replica * t->shards / t->axis_group->size);
}

/* Of the replicas [first, end). */
static int node_count(const tree *t, int first, int end)
{
    return tutti__shard_nodes(first_shard(t, first), first_shard(t, end), 0, t->shards, t->shards);
}

/* The node [a, b) of this process. */
static const void *axis_group_shards_fold(const tree *t, int a, int b, int level, int side)
{
    int replica = t->first;
    while (first_shard(t, replica + 1) <= a)
        replica++;
    int low = first_shard(t, replica), high = first_shard(t, replica + 1);
    if (b <= high)
        return t->given[replica - t->first] +
               (size_t)tutti__shard_nodes(low, high, 0, t->shards, a) * t->bytes;
    int middle = (a + b) / 2;
    const void *halves[] = {axis_group_shards_fold(t, a, middle, level + 1, 0),
                            axis_group_shards_fold(t, middle, b, level + 1, 1)};
    char *sum = t->temporary + (size_t)(2 * level + side) * t->bytes;
    t->add(sum, halves, 2, t->count);
    return sum;
}

/* The nodes of this process below [a, b), one behind the other. */
static char *write_nodes(const tree *t, int a, int b, char *to)
{
    int low = first_shard(t, t->axis_group->first),
        high = first_shard(t, t->axis_group->first + t->axis_group->local);
    if (b <= low || a >= high)
        return to;
    if (low <= a && b <= high) {
        memcpy(to, axis_group_shards_fold(t, a, b, 0, 0), t->bytes);
        return to + t->bytes;
    }
    to = write_nodes(t, a, (a + b) / 2, to);
    return write_nodes(t, (a + b) / 2, b, to);
}

/* Gets the neighbours' nodes, folds them, and meets the other processes; the sum goes to `data`. */
static tutti_status speak(tree *t, tutti_axis_group *axis_group, tutti_dtype dtype, void *data,
                          const tutti_comm_call *options)
{
    tutti_comm_call plain = {.struct_size = sizeof plain, .timeout = options->timeout};
    size_t levels = 2, all = 0,
           own = (size_t)node_count(t, axis_group->first, axis_group->first + axis_group->local);
    while (1 << levels < t->shards)
        levels++;
    for (int i = 0; i < axis_group->local; i++)
        all += (size_t)node_count(t, axis_group->first + i, axis_group->first + i + 1);
    char *memory = tutti__recycle_zeros(1, (all + own + 2 * levels + 3) * t->bytes + 1);
    char **given = tutti__recycle_zeros((size_t)axis_group->local, sizeof *given);
    tutti_status status =
        memory && given ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a sum over shards");
    char *at = memory;
    for (int i = 0; status == TUTTI_OK && i < axis_group->local; i++) {
        int nodes = node_count(t, axis_group->first + i, axis_group->first + i + 1);
        given[i] = i == 0 ? data : at;
        if (i > 0 && nodes > 0)
            status = tutti_comm_recv(axis_group->inner[0], i, 0, at,
                                     (int64_t)((size_t)nodes * t->bytes), &plain);
        at += i > 0 ? (size_t)nodes * t->bytes : 0;
    }
    if (status == TUTTI_OK) {
        t->given = given;
        t->first = axis_group->first;
        t->temporary = at + (own + 1) * t->bytes;
        write_nodes(t, 0, t->shards, at);
        status = tutti_comm_all_reduce(axis_group->world, at, at, t->count, dtype, t->reduction,
                                       options);
    }
    if (status == TUTTI_OK)
        memcpy(data, at, t->bytes);
    tutti__recycle_free(memory);
    tutti__recycle_free(given);
    return status;
}

/* Of all replicas' nodes, side by side. */
static tutti_status fold_everywhere(tree *t, tutti_axis_group *axis_group, int local,
                                    tutti_dtype dtype, void *data, const tutti_comm_call *options)
{
    size_t size = (size_t)axis_group->size, levels = 2;
    int64_t total = 0, *counts = tutti__recycle_zeros(size, sizeof *counts);
    for (int r = 0; counts && r < axis_group->size; r++)
        total += counts[r] = t->count * node_count(t, r, r + 1);
    while (1 << levels < t->shards)
        levels++;
    size_t bytes = (size_t)total * tutti_dtype_size(dtype) + (2 * levels + 2) * t->bytes + 1;
    char *memory = tutti__recycle_take(bytes), *at = memory;
    char **given = tutti__recycle_zeros(size, sizeof *given);
    tutti_status status = counts && memory && given
                              ? TUTTI_OK
                              : tutti_fail(TUTTI_NO_MEMORY, "no memory for a sum over shards");
    if (status == TUTTI_OK)
        status =
            tutti__axis_group_all_gather(axis_group, local, data, counts, memory, dtype,
                                         &(tutti_axis_group_call){.timeout = options->timeout});
    for (int r = 0; status == TUTTI_OK && r < axis_group->size; r++) {
        given[r] = at;
        at += (size_t)counts[r] * tutti_dtype_size(dtype);
    }
    if (status == TUTTI_OK) {
        t->given = given;
        t->first = 0;
        t->temporary = at;
        memcpy(data, axis_group_shards_fold(t, 0, t->shards, 0, 0), t->bytes);
    }
    tutti__recycle_free(counts);
    tutti__recycle_give(memory, bytes);
    tutti__recycle_free(given);
    return status;
}

tutti_status tutti__axis_group_fold_shards(tutti_axis_group *axis_group, int local,
                                           const tutti_comm_piece *piece, tutti_dtype dtype,
                                           tutti_reduction reduction,
                                           const tutti_comm_call *options)
{
    tree t = {.axis_group = axis_group,
              .shards = options->shards,
              .count = piece->count,
              .bytes = (size_t)piece->count * tutti_dtype_size(dtype),
              .reduction = reduction,
              .add = tutti__fold_find(dtype, reduction)};
    tutti_comm *inner = axis_group->inner ? axis_group->inner[local] : NULL;
    tutti_comm_call plain = {.struct_size = sizeof plain, .timeout = options->timeout};
    if (!t.add)
        return tutti_fail(TUTTI_UNSUPPORTED, "values of %s cannot be added",
                          tutti_dtype_name(dtype));
    int nodes = node_count(&t, axis_group->first + local, axis_group->first + local + 1);
    if (!axis_group->even)
        return fold_everywhere(&t, axis_group, local, dtype, piece->data, options);
    if (local > 0 && nodes > 0)
        TUTTI_TRY(
            tutti_comm_send(inner, 0, 0, piece->data, (int64_t)((size_t)nodes * t.bytes), &plain));
    tutti_status status = local > 0 ? TUTTI_OK : speak(&t, axis_group, dtype, piece->data, options);
    if (status != TUTTI_OK) {
        tutti_comm_abort(inner, tutti_error_message());
        return status;
    }
    return tutti_comm_broadcast(inner, piece->data, piece->count, dtype, 0, &plain);
}
