/* gather_updates.c: processes share the updates of a bucket: its sum goes to each in part, and what
 * each has updated goes to all. */
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "exec/kernels/axis_group.h"
#include "ops/comm/comm.h"

/* Elements of a bucket; behind a single value there is nothing that would have to be aligned. */
static int64_t elements_of(const tutti_bucket *bucket)
{
    return bucket->count == 1 ? tutti_view_count(&bucket->outputs[0])
                              : (int64_t)(bucket->bytes / sizeof(float));
}

/* What of a bucket everybody wants: values that are not cut, and what no block holds. */
typedef struct common {
    int64_t offset, count; /* elements of the bucket */
} common;

static int find_common(const tutti_kernel_call *call, const tutti_attr *cut, int64_t count,
                       int64_t size, common *ret)
{
    int64_t at = 0, left = tutti__owned_block(count, size) * size;
    int found = 0, next = 0;
    for (int i = 0; i < call->output_count; i++) {
        if (next < cut->count && cut->value.ints[next] == i)
            next++;
        else if (tutti_view_count(&call->outputs[i]) > 0)
            ret[found++] = (common){at, tutti_view_count(&call->outputs[i])};
        at += (int64_t)(tutti__bucket_bytes(&call->outputs[i]) / sizeof(float));
    }
    if (left < count)
        ret[found++] = (common){left, count - left};
    return found;
}

static void copy_common(int count, const common *list, float *message, float *apart, bool back)
{
    for (int i = 0; i < count; i++) {
        size_t bytes = (size_t)list[i].count * sizeof *apart;
        memcpy(back ? message + list[i].offset : apart, back ? apart : message + list[i].offset,
               bytes);
        apart += list[i].count;
    }
}

tutti_status tutti__reduce_owned(const tutti_kernel_call *call, const tutti_bucket *bucket,
                                 const tutti_axis_group_meeting *meeting, const tutti_attr *cut)
{
    tutti_comm *world = meeting->axis_group->world;
    int64_t size = tutti_comm_size(world), count = elements_of(bucket), all = 0;
    int64_t block = tutti__owned_block(count, size);
    float *message = (float *)(void *)bucket->memory;
    tutti_comm_call options = {.struct_size = sizeof options,
                               .timeout = meeting->call.timeout,
                               .label = meeting->call.name};
    common *list = calloc((size_t)call->output_count + 1, sizeof *list);
    int found = list ? find_common(call, cut, count, size, list) : 0;
    for (int i = 0; i < found; i++)
        all += list[i].count;
    float *apart = list ? malloc((size_t)(all + 1) * sizeof *apart) : NULL;
    tutti_status status = apart ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory to sum");
    if (status == TUTTI_OK) {
        copy_common(found, list, message, apart, false);
        status =
            tutti__reduce_scatter_common(world, message, block, TUTTI_F32, apart, all, &options);
    }
    if (status == TUTTI_OK)
        copy_common(found, list, message, apart, true);
    free(apart);
    free(list);
    return status;
}

/* Where the variables of a bucket are, and the blocks of all ranks. */
typedef struct gathering {
    int count;
    struct place {
        int64_t offset, count; /* elements of the bucket */
        float *variable;
    } * places;
    int64_t *counts; /* by rank */
} gathering;

/* Elements of another rank's block go into the variables that they belong to. */
static void gather_updates_place(void *context, int rank, size_t offset, const void *bytes,
                                 size_t size)
{
    const gathering *g = context;
    int64_t first = (int64_t)(offset / sizeof(float));
    for (int r = 0; r < rank; r++)
        first += g->counts[r];
    int64_t end = first + (int64_t)(size / sizeof(float));
    for (int i = 0; i < g->count; i++) {
        const struct place *p = &g->places[i];
        int64_t low = p->offset > first ? p->offset : first;
        int64_t high = p->offset + p->count < end ? p->offset + p->count : end;
        if (low < high)
            memcpy(p->variable + (low - p->offset), (const float *)bytes + (low - first),
                   (size_t)(high - low) * sizeof(float));
    }
}

static void find_places(const tutti_kernel_call *call, const tutti_attr *of, gathering *g)
{
    int64_t at = 0;
    for (int i = 0; i + of->count < call->input_count; i++) {
        const tutti_view *value = &call->inputs[of->count + i];
        for (int k = 0; k < of->count; k++)
            if (of->value.ints[k] == i)
                g->places[g->count++] =
                    (struct place){at, tutti_view_count(value), call->inputs[k].data};
        at += (int64_t)(tutti__bucket_bytes(value) / sizeof(float));
    }
}

static tutti_status gather_updates_gather(const tutti_kernel_call *call, const tutti_attr *of,
                                          const tutti_bucket *bucket,
                                          const tutti_axis_group_meeting *meeting)
{
    tutti_comm *world = meeting->axis_group->world;
    int64_t size = tutti_comm_size(world), count = elements_of(bucket), first, end;
    float *message = (float *)(void *)bucket->memory;
    gathering g = {.places = calloc((size_t)of->count, sizeof *g.places),
                   .counts = calloc((size_t)size, sizeof *g.counts)};
    tutti_status status =
        g.places && g.counts ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a collective");
    for (int64_t r = 0; status == TUTTI_OK && r < size; r++) {
        tutti__owned_bounds(count, size, r, &first, &end);
        g.counts[r] = end - first;
    }
    if (status == TUTTI_OK) {
        find_places(call, of, &g);
        tutti__owned_bounds(count, size, tutti_comm_rank(world), &first, &end);
        tutti_comm_call options = {.struct_size = sizeof options,
                                   .timeout = meeting->call.timeout,
                                   .label = meeting->call.name};
        status = tutti__all_gather_into(world, message + first, g.counts, message, TUTTI_F32,
                                        &(tutti_comm_into){gather_updates_place, &g}, &options);
    }
    free(g.places);
    free(g.counts);
    return status;
}

static tutti_status gather_updates_run(const tutti_kernel_call *call)
{
    const tutti_attr *of = tutti_attr_find(call->attrs, call->attr_count, "of");
    tutti_axis_group_meeting meeting;
    tutti_bucket bucket;
    if (tutti_attr_int(call->attrs, call->attr_count, "size") == 1)
        return TUTTI_OK;
    TUTTI_TRY(tutti__axis_group_begin(call, &meeting));
    TUTTI_TRY(tutti__bucket_open(call->input_count - of->count, call->inputs + of->count,
                                 call->inputs + of->count, &bucket));
    tutti_status status = gather_updates_gather(call, of, &bucket, &meeting);
    tutti__bucket_close(&bucket);
    return tutti__axis_group_done(call, &meeting, status, (int64_t)bucket.bytes);
}

const tutti_kernel tutti_kernel_gather_updates = {
    .name = "gather_updates.team",
    .version = 1,
    .op = "gather_updates",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .run = gather_updates_run,
};
