/* segmented.c: see segmented.h. */
#include "ops/comm/segmented.h"

#include <stdlib.h>
#include <string.h>

#include "base/shards.h"
#include "ops/comm/comm.h"
#include "ops/control/control.h"

void tutti__segments_of(const tutti_attr *attrs, int attr_count, tutti_segments *ret)
{
    const int64_t *list;
    const tutti_graph *body = tutti__attr_graph(attrs, attr_count, "body");
    *ret = (tutti_segments){.inner = body->results.data[0].node,
                            .shards = (int)tutti_attr_int(attrs, attr_count, "shards"),
                            .first = (int)tutti_attr_int(attrs, attr_count, "first")};
    ret->count = tutti_attr_ints(attrs, attr_count, "bounds", &ret->bounds) - 1;
    ret->rows = ret->bounds[ret->count];
    tutti_attr_ints(attrs, attr_count, "axes", &list);
    for (int i = 0; i < ret->inner->input_count; i++) {
        ret->axes[i] = list[i];
        ret->inputs[i] = (int)tutti__int(ret->inner->inputs[i].node, "index");
    }
    tutti_attr_ints(attrs, attr_count, "kinds", &list);
    for (int i = 0; i < ret->inner->output_count; i++)
        ret->kinds[i] = list[i];
}

int tutti__segment_nodes(int shards, int low, int high)
{
    return tutti__shard_nodes(low, high, 0, shards, shards);
}

/* ---- views ---- */

static size_t type_bytes(const tutti_type *type)
{
    return (size_t)tutti_type_count(type) * tutti_dtype_size(type->dtype);
}

static size_t padded(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Elements before an axis: 1 where a cut along it leaves contiguous parts. */
static int64_t outer(const int64_t *dims, int64_t axis)
{
    int64_t count = 1;
    for (int64_t i = 0; i < axis; i++)
        count *= dims[i];
    return count;
}

typedef struct work {
    const tutti_kernel_call *call;
    const tutti_segments *s;
    const tutti_segment_work *by;
    char *inputs[TUTTI_SEGMENT_SLOTS];  /* for parts of inputs that are not contiguous */
    char *outputs[TUTTI_SEGMENT_SLOTS]; /* the same of outputs */
    char *sums[TUTTI_SEGMENT_SLOTS];    /* one for each level of the tree, and one more */
    size_t bytes[TUTTI_SEGMENT_SLOTS];  /* of one summed output */
} work;

static tutti_status copy_bytes(const work *w, char *to, const char *from, size_t size)
{
    if (w->by->copy)
        return w->by->copy(w->by->context, to, from, size);
    memcpy(to, from, size);
    return TUTTI_OK;
}

static tutti_status clear_bytes(const work *w, char *at, size_t size)
{
    if (w->by->clear)
        return w->by->clear(w->by->context, at, size);
    memset(at, 0, size);
    return TUTTI_OK;
}

/* Rows of a view along an axis. */
typedef struct some_rows {
    const tutti_view *whole;
    int64_t axis, start, length;
} some_rows;

/* Copies them between the whole and a part. */
static tutti_status copy_part(const work *w, const some_rows *r, char *part, bool out)
{
    const tutti_view *whole = r->whole;
    int64_t before = outer(whole->dims, r->axis), after = 1;
    size_t size = tutti_dtype_size(whole->dtype);
    for (int i = (int)r->axis + 1; i < whole->rank; i++)
        after *= whole->dims[i];
    size_t line = (size_t)(r->length * after) * size;
    size_t step = (size_t)(whole->dims[r->axis] * after) * size;
    for (int64_t i = 0; i < before && line > 0; i++) {
        char *at = (char *)whole->data + (size_t)i * step + (size_t)(r->start * after) * size;
        char *there = part + (size_t)i * line;
        TUTTI_TRY(copy_bytes(w, out ? at : there, out ? there : at, line));
    }
    return TUTTI_OK;
}

static bool is_aligned(const work *w, const void *data)
{
    return w->by->alignment == 0 || (uintptr_t)data % w->by->alignment == 0;
}

static some_rows rows_of(const work *w, const tutti_view *view, int64_t axis, int shard)
{
    const tutti_segments *s = w->s;
    int64_t unit = s->rows > 0 ? view->dims[axis] / s->rows : 0;
    return (some_rows){view, axis, s->bounds[shard] * unit,
                       (s->bounds[shard + 1] - s->bounds[shard]) * unit};
}

/* The part of a view that a shard has, in `scratch` where it does not stand by itself, filled for
 * inputs; dims gets its dimensions. */
static tutti_status part_of(const work *w, const some_rows *r, char *scratch, bool fill,
                            int64_t *dims, tutti_view *ret)
{
    const tutti_view *view = r->whole;
    memcpy(dims, view->dims, (size_t)view->rank * sizeof *dims);
    dims[r->axis] = r->length;
    *ret = *view;
    ret->dims = dims;
    if (outer(view->dims, r->axis) == 1) {
        size_t row = tutti_dtype_size(view->dtype);
        for (int i = (int)r->axis + 1; i < view->rank; i++)
            row *= (size_t)view->dims[i];
        ret->data = (char *)view->data + (size_t)r->start * row;
        if (is_aligned(w, ret->data))
            return TUTTI_OK;
    }
    ret->data = scratch;
    return fill ? copy_part(w, r, scratch, false) : TUTTI_OK;
}

/* ---- the tree ---- */

/* Runs one shard; its sums go to `into` (by output, NULL for those that are cut). */
static tutti_status run_shard(work *w, int shard, char *const *into)
{
    const tutti_segments *s = w->s;
    const tutti_node *inner = s->inner;
    tutti_view inputs[TUTTI_SEGMENT_SLOTS], outputs[TUTTI_SEGMENT_SLOTS];
    int64_t in_dims[TUTTI_SEGMENT_SLOTS][TUTTI_MAX_RANK];
    int64_t out_dims[TUTTI_SEGMENT_SLOTS][TUTTI_MAX_RANK];
    for (int i = 0; i < inner->input_count; i++) {
        const tutti_view *whole = &w->call->inputs[s->inputs[i]];
        inputs[i] = *whole;
        if (s->axes[i] < 0)
            continue;
        some_rows r = rows_of(w, whole, s->axes[i], shard);
        TUTTI_TRY(part_of(w, &r, w->inputs[i], true, in_dims[i], &inputs[i]));
    }
    for (int i = 0; i < inner->output_count; i++) {
        if (s->kinds[i] >= 0) {
            some_rows r = rows_of(w, &w->call->outputs[i], s->kinds[i], shard);
            TUTTI_TRY(part_of(w, &r, w->outputs[i], false, out_dims[i], &outputs[i]));
            continue;
        }
        const tutti_type *type = &inner->types[i];
        memcpy(out_dims[i], type->dims, sizeof out_dims[i]);
        outputs[i] = (tutti_view){into[i], type->dtype, type->rank, out_dims[i], NULL};
    }
    int64_t count = s->bounds[shard + 1] - s->bounds[shard];
    if (count == 0) {
        for (int i = 0; i < inner->output_count; i++)
            if (s->kinds[i] < 0)
                TUTTI_TRY(clear_bytes(w, into[i], w->bytes[i]));
        return TUTTI_OK;
    }
    tutti_kernel_call call = *w->call;
    call.op = inner->op;
    call.attrs = inner->attrs;
    call.attr_count = inner->attr_count;
    call.input_count = inner->input_count;
    call.output_count = inner->output_count;
    call.inputs = inputs;
    call.outputs = outputs;
    TUTTI_TRY(w->by->run(w->by->context, &call, count));
    for (int i = 0; i < inner->output_count; i++) {
        if (s->kinds[i] < 0 || outputs[i].data != w->outputs[i])
            continue;
        some_rows r = rows_of(w, &w->call->outputs[i], s->kinds[i], shard);
        TUTTI_TRY(copy_part(w, &r, w->outputs[i], true));
    }
    return TUTTI_OK;
}

typedef struct adding {
    char *to;
    const char *from;
    tutti_dtype dtype;
    int64_t count;
} adding;

enum { ADD_PIECE = 16384 };

static void add_piece(void *context, int64_t piece)
{
    const adding *a = context;
    int64_t first = piece * ADD_PIECE, left = a->count - first;
    int64_t count = left < ADD_PIECE ? left : ADD_PIECE;
    if (a->dtype == TUTTI_F32) {
        float *to = (float *)(void *)a->to + first;
        const float *from = (const float *)(const void *)a->from + first;
        for (int64_t i = 0; i < count; i++)
            to[i] += from[i];
        return;
    }
    tutti_view to = {a->to, a->dtype, 1, &a->count, NULL};
    tutti_view from = {(void *)(uintptr_t)a->from, a->dtype, 1, &a->count, NULL};
    for (int64_t i = first; i < first + count; i++) {
        if (tutti_dtype_is_float(a->dtype))
            tutti_view_set(&to, i, tutti_view_get(&to, i) + tutti_view_get(&from, i));
        else
            tutti_view_set_int(&to, i, tutti_view_get_int(&to, i) + tutti_view_get_int(&from, i));
    }
}

/* The node [a, b) into `into`; numbers are those of the job's shards. */
static tutti_status segmented_fold(work *w, int a, int b, int level, char *const *into)
{
    const tutti_segments *s = w->s;
    if (b - a == 1)
        return run_shard(w, a - s->first, into);
    char *right[TUTTI_SEGMENT_SLOTS] = {0};
    for (int i = 0; i < s->inner->output_count; i++)
        if (s->kinds[i] < 0)
            right[i] = w->sums[i] + (size_t)level * padded(w->bytes[i]);
    TUTTI_TRY(segmented_fold(w, a, (a + b) / 2, level + 1, into));
    TUTTI_TRY(segmented_fold(w, (a + b) / 2, b, level + 1, right));
    for (int i = 0; i < s->inner->output_count; i++) {
        if (s->kinds[i] >= 0)
            continue;
        tutti_dtype dtype = s->inner->types[i].dtype;
        adding add = {into[i], right[i], dtype, (int64_t)(w->bytes[i] / tutti_dtype_size(dtype))};
        if (w->by->add)
            TUTTI_TRY(w->by->add(w->by->context, dtype, add.to, add.from, add.count));
        else
            tutti_parallel(w->call, (add.count + ADD_PIECE - 1) / ADD_PIECE, add_piece, &add);
    }
    return TUTTI_OK;
}

static tutti_status fold_nodes(work *w, int a, int b, int *number)
{
    const tutti_segments *s = w->s;
    int low = s->first, high = s->first + s->count;
    if (b <= low || a >= high)
        return TUTTI_OK;
    if (a < low || b > high) {
        TUTTI_TRY(fold_nodes(w, a, (a + b) / 2, number));
        return fold_nodes(w, (a + b) / 2, b, number);
    }
    char *into[TUTTI_SEGMENT_SLOTS] = {0}, *place[TUTTI_SEGMENT_SLOTS] = {0};
    for (int i = 0; i < s->inner->output_count; i++) {
        if (s->kinds[i] >= 0)
            continue;
        place[i] = (char *)w->call->outputs[i].data + (size_t)*number * w->bytes[i];
        into[i] = is_aligned(w, place[i])
                      ? place[i]
                      : w->sums[i] + (size_t)TUTTI_SEGMENT_LEVELS * padded(w->bytes[i]);
    }
    ++*number;
    TUTTI_TRY(segmented_fold(w, a, b, 0, into));
    for (int i = 0; i < s->inner->output_count; i++)
        if (into[i] != place[i])
            TUTTI_TRY(copy_bytes(w, place[i], into[i], w->bytes[i]));
    return TUTTI_OK;
}

static bool is_scattered(const tutti_type *type, int64_t axis)
{
    return axis >= 0 && outer(type->dims, axis) > 1;
}

/* Whether a part may have to be copied. */
static bool is_moved(const tutti_type *type, int64_t axis, size_t alignment)
{
    return is_scattered(type, axis) || (axis >= 0 && alignment > 0);
}

/* Lays out the workspace; with `base` NULL only counts. */
static size_t lay_out(const tutti_segments *s, const tutti_type *inputs, const tutti_type *outputs,
                      size_t alignment, char *base, work *w)
{
    size_t at = 0;
    for (int i = 0; i < s->inner->input_count; i++)
        if (is_moved(&inputs[s->inputs[i]], s->axes[i], alignment)) {
            w->inputs[i] = base ? base + at : NULL;
            at += padded(type_bytes(&inputs[s->inputs[i]]));
        }
    for (int i = 0; i < s->inner->output_count; i++) {
        if (is_moved(&outputs[i], s->kinds[i], alignment)) {
            w->outputs[i] = base ? base + at : NULL;
            at += padded(type_bytes(&outputs[i]));
        }
        if (s->kinds[i] >= 0)
            continue;
        w->bytes[i] = type_bytes(&s->inner->types[i]);
        w->sums[i] = base ? base + at : NULL;
        at += padded(w->bytes[i]) * (TUTTI_SEGMENT_LEVELS + (alignment > 0));
    }
    return at;
}

static void types_of(const tutti_kernel_call *call, tutti_type *inputs, tutti_type *outputs)
{
    for (int i = 0; i < call->input_count; i++)
        inputs[i] =
            tutti_type_make(call->inputs[i].dtype, call->inputs[i].rank, call->inputs[i].dims);
    for (int i = 0; i < call->output_count; i++)
        outputs[i] =
            tutti_type_make(call->outputs[i].dtype, call->outputs[i].rank, call->outputs[i].dims);
}

size_t tutti__segmented_workspace(const tutti_segments *s, const tutti_type *inputs,
                                  const tutti_type *outputs, size_t alignment)
{
    work w = {0};
    return lay_out(s, inputs, outputs, alignment, NULL, &w);
}

tutti_status tutti__segmented(const tutti_kernel_call *call, const tutti_segments *s,
                              void *workspace, const tutti_segment_work *by)
{
    work w = {.call = call, .s = s, .by = by};
    tutti_type inputs[TUTTI_SEGMENT_SLOTS], outputs[TUTTI_SEGMENT_SLOTS];
    int number = 0;
    types_of(call, inputs, outputs);
    lay_out(s, inputs, outputs, by->alignment, workspace, &w);
    return fold_nodes(&w, 0, s->shards, &number);
}

/* ---- the operator ---- */

static tutti_status segmented_infer(tutti_infer *node)
{
    const tutti_attr *types = tutti_attr_find(node->attrs, node->attr_count, "types");
    const int64_t *bounds;
    if (types->count != node->output_count || node->input_count > TUTTI_SEGMENT_SLOTS ||
        node->output_count > TUTTI_SEGMENT_SLOTS ||
        tutti_attr_ints(node->attrs, node->attr_count, "bounds", &bounds) < 1)
        return RULE_FAIL(node, TUTTI_INVALID, "has %d outputs and %d types", node->output_count,
                         types->count);
    for (int i = 0; i < node->output_count; i++)
        node->outputs[i] = types->value.types[i];
    return TUTTI_OK;
}

static tutti_status by_reference(void *context, tutti_kernel_call *shard, int64_t rows)
{
    TUTTI_UNUSED(context);
    TUTTI_UNUSED(rows);
    return shard->op->reference(shard);
}

static tutti_status segmented_reference(const tutti_kernel_call *call)
{
    tutti_segments s;
    tutti_type inputs[TUTTI_SEGMENT_SLOTS] = {0}, outputs[TUTTI_SEGMENT_SLOTS] = {0};
    tutti__segments_of(call->attrs, call->attr_count, &s);
    types_of(call, inputs, outputs);
    void *workspace = malloc(tutti__segmented_workspace(&s, inputs, outputs, 0) + 64);
    if (!workspace)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a sum over shards");
    const tutti_segment_work by = {.run = by_reference};
    tutti_status status = tutti__segmented(call, &s, workspace, &by);
    free(workspace);
    return status;
}

/* A type's part that a shard has. */
static tutti_type cut_type(const tutti_segments *s, const tutti_type *type, int64_t axis, int shard)
{
    tutti_type part = *type;
    if (axis >= 0 && s->rows > 0)
        part.dims[axis] = type->dims[axis] / s->rows * (s->bounds[shard + 1] - s->bounds[shard]);
    return part;
}

/* What the body's operator costs for every shard, and an addition for every sum but the first. */
static void segmented_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti_segments s;
    tutti__segments_of(node->attrs, node->attr_count, &s);
    const tutti_node *inner = s.inner;
    tutti__cost_move(node, ret);
    for (int shard = 0; inner->op->cost && shard < s.count; shard++) {
        tutti_type inputs[TUTTI_SEGMENT_SLOTS], outputs[TUTTI_SEGMENT_SLOTS];
        tutti_cost one = {0};
        for (int i = 0; i < inner->input_count; i++)
            inputs[i] = cut_type(&s, &node->inputs[s.inputs[i]], s.axes[i], shard);
        for (int i = 0; i < inner->output_count; i++) {
            outputs[i] = s.kinds[i] >= 0 ? cut_type(&s, &node->outputs[i], s.kinds[i], shard)
                                         : inner->types[i];
            if (s.kinds[i] < 0 && shard > 0)
                ret->flops += (double)tutti_type_count(&inner->types[i]);
        }
        inner->op->cost(&(tutti_infer){.op = inner->op,
                                       .name = inner->name,
                                       .input_count = inner->input_count,
                                       .output_count = inner->output_count,
                                       .inputs = inputs,
                                       .attrs = inner->attrs,
                                       .attr_count = inner->attr_count,
                                       .outputs = outputs},
                        &one);
        ret->flops += one.flops;
    }
}

static const tutti_attr_spec attrs[] = {
    {"body", TUTTI_ATTR_GRAPH, NULL},  {"types", TUTTI_ATTR_TYPES, NULL},
    {"shards", TUTTI_ATTR_INT, NULL},  {"first", TUTTI_ATTR_INT, NULL},
    {"bounds", TUTTI_ATTR_INTS, NULL}, {"axes", TUTTI_ATTR_INTS, NULL},
    {"kinds", TUTTI_ATTR_INTS, NULL},  {NULL},
};

const tutti_op tutti_op_segmented = {
    .struct_size = sizeof(tutti_op),
    .name = "segmented",
    .version = 1,
    .doc = "segmented(x…): the operator of the body, its sums over the batch made shard by shard "
           "and along one tree",
    .category = "communication",
    .min_inputs = 1,
    .max_inputs = -1,
    .outputs = -1,
    .flags = TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = segmented_infer,
    .cost = segmented_cost,
    .reference = segmented_reference,
};
