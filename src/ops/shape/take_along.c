/* take_along.c: one element for each index along an axis, all other axes in step. */
#include "ops/shape/scatter.h"

bool tutti__along_agrees(int64_t size, int64_t indices, bool fewer)
{
    int64_t merged;
    return tutti__shape_merge(size, indices, &merged) || (fewer && indices <= size);
}

/* Axes on either side of the axis are one where the indices are not fewer there. */
tutti_along tutti__along(const tutti_view *indices, const int64_t *dims, int axis)
{
    tutti_along along = {.indices = indices, .size = dims[axis]};
    int64_t strides[TUTTI_MAX_RANK];
    tutti__strides_of(indices->rank, dims, strides);
    along.stride = strides[axis];
    for (int i = 0; i < indices->rank; i++) {
        int last = along.rank - 1;
        if (indices->dims[i] == 1 && i != axis)
            continue;
        if (i != axis && last >= 0 && along.strides[last] == strides[i] * indices->dims[i]) {
            along.dims[last] *= indices->dims[i];
        } else {
            last = along.rank++;
            along.dims[last] = indices->dims[i];
        }
        along.strides[last] = i == axis ? 0 : strides[i];
    }
    return along;
}

/* A run of indices along the last axis, whose places begin at `base`. */
static void places_of_run(const tutti_along *along, int64_t first, int64_t count, int64_t base,
                          int64_t *ret_places)
{
    int64_t size = along->size, stride = along->stride, step = along->strides[along->rank - 1];
    if (along->indices->dtype == TUTTI_I32) {
        const int32_t *index = (const int32_t *)along->indices->data + first;
        for (int64_t n = 0; n < count; n++)
            ret_places[n] = base + n * step + (index[n] < 0 ? index[n] + size : index[n]) * stride;
    } else {
        const int64_t *index = (const int64_t *)along->indices->data + first;
        for (int64_t n = 0; n < count; n++)
            ret_places[n] = base + n * step + (index[n] < 0 ? index[n] + size : index[n]) * stride;
    }
}

void tutti__along_places(const tutti_along *along, int64_t first, int64_t count,
                         int64_t *ret_places)
{
    int64_t at[TUTTI_MAX_RANK], base = 0, rest = first;
    int last = along->rank - 1;
    for (int i = last; i >= 0; i--) {
        at[i] = rest % along->dims[i];
        rest /= along->dims[i];
        base += at[i] * along->strides[i];
    }
    for (int64_t n = 0, run; n < count; n += run) {
        run = along->dims[last] - at[last] < count - n ? along->dims[last] - at[last] : count - n;
        places_of_run(along, first + n, run, base, ret_places + n);
        base -= at[last] * along->strides[last];
        at[last] = 0;
        for (int i = last - 1; i >= 0; i--) {
            base += along->strides[i];
            if (++at[i] < along->dims[i])
                break;
            base -= at[i] * along->strides[i];
            at[i] = 0;
        }
    }
}

static tutti_status take_along_infer(tutti_infer *node)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    const tutti_type *x = &node->inputs[0], *indices = &node->inputs[1];
    tutti_type y = *indices;
    bool fewer = RULE_INT(node, "fewer");
    int axis;
    TUTTI_TRY(tutti__rule_axis(node, RULE_INT(node, "axis"), x->rank, &axis));
    TUTTI_TRY(tutti__shape_indices(node, 1));
    bool agree = indices->rank == x->rank;
    for (int i = 0; agree && i < x->rank; i++) {
        agree = i == axis || tutti__along_agrees(x->dims[i], indices->dims[i], fewer);
        if (agree && i != axis && !fewer)
            (void)tutti__shape_merge(x->dims[i], indices->dims[i], &y.dims[i]);
    }
    if (!agree)
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "input is %s, indices are %s; all dimensions but that of axis %d must agree",
            tutti_type_text(x, a), tutti_type_text(indices, b), axis);
    return tutti__shape_output(node, 0, x->dtype, y.rank, y.dims);
}

static tutti_status take_along_gradient(tutti_gradient_call *node)
{
    if (node->wanted[0])
        node->input_grads[0] =
            tutti__put_along(node->inputs[1], node->output_grads[0], node->inputs[0],
                             (int)RULE_INT(node, "axis"), RULE_INT(node, "fewer"));
    return TUTTI_OK;
}

enum { RUN = 512, PIECE = 16 * RUN }; /* indices whose places are found, and taken, at once */

typedef struct {
    const tutti_along *along;
    const tutti_view *x, *y;
    int64_t count;
} job;

static void take_piece(void *context, int64_t index)
{
    const job *all = context;
    int64_t places[RUN], first = index * PIECE;
    int64_t end = all->count - first < PIECE ? all->count : first + PIECE;
    for (; first < end; first += RUN) {
        int64_t count = end - first < RUN ? end - first : RUN;
        tutti__along_places(all->along, first, count, places);
        tutti__pick(tutti_dtype_size(all->x->dtype), count, tutti__element(all->y, first),
                    all->x->data, places);
    }
}

static tutti_status take_along_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0], *indices = &call->inputs[1], *y = &call->outputs[0];
    int axis = tutti__axis_of(RULE_INT(call, "axis"), x->rank);
    tutti_along along = tutti__along(indices, x->dims, axis);
    job all = {&along, x, y, tutti_view_count(indices)};
    TUTTI_TRY(tutti__indices_check(call, 1, axis, 1, x->dims));
    tutti_parallel(call, (all.count + PIECE - 1) / PIECE, take_piece, &all);
    return TUTTI_OK;
}

/* Beside the axis all are cut, unless the indices are fewer; along it only the indices. */
static int take_along_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int axis = tutti__axis_of(RULE_INT(node, "axis"), node->inputs[0].rank);
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    for (int i = 0; i < node->inputs[0].rank; i++) {
        if (i != axis && RULE_INT(node, "fewer") &&
            node->inputs[0].dims[i] != node->inputs[1].dims[i])
            continue;
        tutti_split *way = tutti__cut(&cuts);
        way->inputs[0] = (int8_t)(i == axis ? TUTTI_WHOLE : i);
        way->inputs[1] = way->outputs[0] = (int8_t)i;
    }
    return cuts.count;
}

extern const tutti_op tutti_op_take_along;
tutti_sym(tutti_take_along)(tutti_sym x, tutti_sym indices, int axis)
{
    return TUTTI_NARY(&tutti_op_take_along, ((tutti_sym[]){x, indices}), TUTTI_INT("axis", axis));
}

tutti_sym tutti__take_along(tutti_sym x, tutti_sym indices, int axis, bool fewer)
{
    return TUTTI_NARY(&tutti_op_take_along, ((tutti_sym[]){x, indices}), TUTTI_INT("axis", axis),
                      TUTTI_INT("fewer", fewer));
}

static const tutti_attr_spec attrs[] = {
    {"axis", TUTTI_ATTR_INT, "-1"},
    {"fewer", TUTTI_ATTR_INT, "0"}, /* the indices may be, beside the axis */
    {NULL},
};
static const char *const samples[] = {
    "f32[3,5] i32[3,2]{0:5}",
    "f32[3,5,4] i32[2,3,3]{0:5} | axis=1 fewer=1",
    "f32[4,2,3] i64[5,1,3]{0:4} | axis=0 fewer=1",
    "f32[4,2,3] i64[3,2,3]{0:4} | axis=0",
    "i32[2,4,2] i32[2,3,2]{0:4} | axis=1",
    "f32[3,5] i32[3,0]",
    NULL,
};

const tutti_op tutti_op_take_along = {
    .struct_size = sizeof(tutti_op),
    .name = "take_along",
    .version = 1,
    .doc = "take_along(x, indices; axis): y[i, j, k] = x[i, indices[i, j, k], k] for axis 1",
    .category = "shape",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_FALLIBLE,
    .attrs = attrs,
    .infer = take_along_infer,
    .gradient = take_along_gradient,
    .cost = tutti__cost_move,
    .split = take_along_split,
    .reference = take_along_reference,
    .samples = samples,
};
