/* random.c: what the random operators share; see random.h. */
#include "ops/random/random.h"

static int ints(const tutti_kernel_call *call, const char *name, const int64_t **ret)
{
    return tutti_attr_ints(call->attrs, call->attr_count, name, ret);
}

tutti_draw tutti__draw_of(const tutti_kernel_call *call, const tutti_view *output)
{
    uint64_t seed = (uint64_t)RULE_INT(call, "seed"), salt = (uint64_t)RULE_INT(call, "salt");
    tutti_draw draw = {.rank = output->rank, .dims = output->dims};
    draw.key.seed = tutti__hash_mix(seed, salt);
    draw.key.stream = (uint64_t)tutti_view_get_int(&call->inputs[0], 0);
    const int64_t *global_dims, *start;
    if (ints(call, "global_dims", &global_dims) > 0 && ints(call, "start", &start) > 0) {
        draw.global_dims = global_dims;
        draw.start = start;
    }
    return draw;
}

uint64_t tutti__draw_index(const tutti_draw *draw, int64_t i)
{
    if (!draw->global_dims)
        return (uint64_t)i;
    uint64_t index = 0, size = 1;
    for (int axis = draw->rank - 1; axis >= 0; axis--) {
        index += (uint64_t)(i % draw->dims[axis] + draw->start[axis]) * size;
        size *= (uint64_t)draw->global_dims[axis];
        i /= draw->dims[axis];
    }
    return index;
}

tutti_status tutti__need_counter(const tutti_infer *node)
{
    return tutti__need_scalar(node, 0, TUTTI_I64, "the counter");
}

tutti_status tutti__need_piece(const tutti_infer *node, const tutti_type *output)
{
    const int64_t *whole, *start;
    int rank = tutti_attr_ints(node->attrs, node->attr_count, "global_dims", &whole);
    int starts = tutti_attr_ints(node->attrs, node->attr_count, "start", &start);
    if (rank == 0 && starts == 0)
        return TUTTI_OK;
    if (rank != output->rank || starts != rank)
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "attributes 'global_dims' and 'start' have %d and %d entries, the output has "
            "%d dimensions",
            rank, starts, output->rank);
    for (int i = 0; i < rank; i++) {
        int64_t size = output->dims[i] == TUTTI_ANY ? 0 : output->dims[i];
        if (start[i] < 0 || whole[i] < 0 || start[i] > whole[i] || size > whole[i] - start[i])
            return RULE_FAIL(
                node, TUTTI_INVALID,
                "dimension %d: a piece of %lld from %lld does not lie in a whole of %lld", i,
                (long long)size, (long long)start[i], (long long)whole[i]);
    }
    return TUTTI_OK;
}

tutti_status tutti__infer_random(tutti_infer *node)
{
    tutti_type type;
    TUTTI_TRY(tutti__need_counter(node));
    TUTTI_TRY(tutti__attrs_type(node, &type));
    if (type.dtype == TUTTI_STRING)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "there are no random strings; give a type of numbers");
    if (node->input_count == 2)
        type = tutti_type_make(type.dtype, node->inputs[1].rank, node->inputs[1].dims);
    else if (!tutti_type_is_static(&type))
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "a dimension is TUTTI_ANY; to take the shape from another value, give it as "
            ".like");
    TUTTI_TRY(tutti__need_piece(node, &type));
    node->outputs[0] = type;
    return TUTTI_OK;
}

tutti_status tutti__infer_random_floats(tutti_infer *node)
{
    TUTTI_TRY(tutti__infer_random(node));
    if (!tutti_dtype_is_float(node->outputs[0].dtype))
        return RULE_FAIL(node, TUTTI_INVALID, "gives f32, f64, f16 or bf16, not %s",
                         tutti_dtype_name(node->outputs[0].dtype));
    return TUTTI_OK;
}

int tutti__split_random(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int rank = node->outputs[0].rank;
    for (int axis = 0; axis < rank && axis < capacity; axis++) {
        ret[axis] = (tutti_split){.inputs = {TUTTI_WHOLE, (int8_t)axis}, .outputs = {(int8_t)axis}};
        if (node->input_count == 1) {
            ret[axis].attr = "dims";
            ret[axis].attr_index = axis;
        }
    }
    return rank;
}

void tutti__cost_random(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_elementwise(node, ret);
    ret->flops *= 40;
}

tutti_status tutti__infer_normal(tutti_infer *node)
{
    double mean = RULE_FLOAT(node, "mean"), stddev = RULE_FLOAT(node, "stddev");
    if (!isfinite(mean) || !isfinite(stddev) || stddev < 0)
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "mean %g and standard deviation %g must be finite, the latter not negative", mean,
            stddev);
    return tutti__infer_random_floats(node);
}

tutti_status tutti__normal_reference(const tutti_kernel_call *call,
                                     double (*normal)(tutti_random_key key, uint64_t index))
{
    const tutti_view *out = &call->outputs[0];
    double mean = RULE_FLOAT(call, "mean"), stddev = RULE_FLOAT(call, "stddev");
    tutti_draw draw = tutti__draw_of(call, out);
    int64_t count = tutti_view_count(out);
    for (int64_t i = 0; i < count; i++)
        tutti_view_set(out, i, mean + stddev * normal(draw.key, tutti__draw_index(&draw, i)));
    return TUTTI_OK;
}
