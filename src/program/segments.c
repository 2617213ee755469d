/* segments.c: see segments.h. */
#include "program/segments.h"

#include <stdlib.h>

static tutti_type shard_type(tutti_type type, int64_t axis, int64_t all, int64_t rows)
{
    if (axis >= 0 && all > 0)
        type.dims[axis] = type.dims[axis] / all * rows;
    return type;
}

/* The query that a shard of so many rows makes; `inputs` and `outputs` hold its types. */
static tutti_kernel_query shard_query(const tutti_kernel_query *query, const tutti_segments *s,
                                      int64_t rows, tutti_type *inputs, tutti_type *outputs)
{
    const tutti_node *inner = s->inner;
    for (int i = 0; i < inner->input_count; i++)
        inputs[i] = shard_type(query->node.inputs[s->inputs[i]], s->axes[i], s->rows, rows);
    for (int i = 0; i < inner->output_count; i++)
        outputs[i] = s->kinds[i] < 0
                         ? inner->types[i]
                         : shard_type(query->node.outputs[i], s->kinds[i], s->rows, rows);
    tutti_kernel_query shard = *query;
    shard.deterministic = false; /* a shard is always whole: any kernel gives it the same bits */
    shard.node = (tutti_infer){.op = inner->op,
                               .name = inner->name,
                               .input_count = inner->input_count,
                               .output_count = inner->output_count,
                               .inputs = inputs,
                               .attrs = inner->attrs,
                               .attr_count = inner->attr_count,
                               .outputs = outputs};
    return shard;
}

void tutti__segment_discard(void *made)
{
    tutti_segment_plan *p = made;
    for (int i = 0; p && i < p->count; i++)
        if (p->sizes[i].plan && p->sizes[i].kernel->discard)
            p->sizes[i].kernel->discard(p->sizes[i].plan);
    free(p);
}

const tutti_segment_size *tutti__segment_size(const tutti_segment_plan *p, int64_t rows)
{
    for (int i = 0; i < p->count; i++)
        if (p->sizes[i].rows == rows)
            return &p->sizes[i];
    return NULL;
}

static tutti_status add_size(tutti_segment_plan *p, const tutti_kernel_query *query,
                             tutti_segment_pick *pick, int64_t rows)
{
    tutti_type inputs[TUTTI_SEGMENT_SLOTS], outputs[TUTTI_SEGMENT_SLOTS];
    if (tutti__segment_size(p, rows))
        return TUTTI_OK;
    if (p->count == TUTTI_SEGMENT_SIZES)
        return tutti_fail(TUTTI_INTERNAL, "shards of more than %d sizes", TUTTI_SEGMENT_SIZES);
    tutti_kernel_query shard = shard_query(query, &p->s, rows, inputs, outputs);
    tutti_segment_size *size = &p->sizes[p->count++];
    *size = (tutti_segment_size){.rows = rows, .kernel = pick(&shard)};
    if (!size->kernel)
        return TUTTI_OK;
    if (size->kernel->prepare)
        TUTTI_TRY(size->kernel->prepare(&shard, &size->plan));
    size->workspace = tutti__kernel_workspace(size->kernel, &shard, size->plan);
    return TUTTI_OK;
}

tutti_status tutti__segment_plan(const tutti_kernel_query *query, tutti_segment_pick *pick,
                                 size_t alignment, void **ret_plan)
{
    enum { PADDING = 256 };
    tutti_segment_plan *p = calloc(1, sizeof *p);
    if (!p)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a sum over shards");
    tutti__segments_of(query->node.attrs, query->node.attr_count, &p->s);
    p->own = tutti__segmented_workspace(&p->s, query->node.inputs, query->node.outputs, alignment);
    p->own = (p->own + PADDING - 1) / PADDING * PADDING;
    tutti_status status = TUTTI_OK;
    for (int i = 0; status == TUTTI_OK && i < p->s.count; i++)
        if (p->s.bounds[i + 1] > p->s.bounds[i])
            status = add_size(p, query, pick, p->s.bounds[i + 1] - p->s.bounds[i]);
    if (status != TUTTI_OK)
        tutti__segment_discard(p);
    else
        *ret_plan = p;
    return status;
}

size_t tutti__segment_room(const void *made)
{
    const tutti_segment_plan *p = made;
    size_t most = 0;
    for (int i = 0; i < p->count; i++)
        most = p->sizes[i].workspace > most ? p->sizes[i].workspace : most;
    return most + p->own + 64;
}

bool tutti__segment_picks(const tutti_kernel_query *query, tutti_segment_pick *pick)
{
    tutti_type inputs[TUTTI_SEGMENT_SLOTS], outputs[TUTTI_SEGMENT_SLOTS];
    tutti_segments s;
    tutti__segments_of(query->node.attrs, query->node.attr_count, &s);
    for (int i = 0; i < s.count; i++) {
        int64_t rows = s.bounds[i + 1] - s.bounds[i];
        tutti_kernel_query shard = shard_query(query, &s, rows, inputs, outputs);
        if (rows > 0 && !pick(&shard))
            return false;
    }
    return true;
}
