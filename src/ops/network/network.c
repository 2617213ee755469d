/* network.c: what the network operators share; see network.h. */
#include "ops/network/network.h"

#include "base/container.h"

static tutti_status no_memory(int64_t count)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory for %lld doubles of a reference kernel",
                      (long long)count);
}

tutti_status tutti__scratch_doubles(tutti_arena *scratch, int64_t count, double **ret)
{
    double *data = tutti__arena_array(scratch, (size_t)count, sizeof *data);
    if (data == NULL)
        return no_memory(count);
    *ret = data;
    return TUTTI_OK;
}

static tutti_status network_load(tutti_arena *scratch, const tutti_view *view, const double **ret)
{
    int64_t count = tutti_view_count(view);
    double *data = NULL;
    TUTTI_TRY(tutti__scratch_doubles(scratch, count, &data));
    if (view->dtype == TUTTI_F32) {
        const float *source = view->data;
        for (int64_t i = 0; i < count; i++)
            data[i] = (double)source[i];
    } else if (view->dtype == TUTTI_F64) {
        memcpy(data, view->data, (size_t)count * sizeof *data);
    } else {
        for (int64_t i = 0; i < count; i++)
            data[i] = tutti_view_get(view, i);
    }
    *ret = data;
    return TUTTI_OK;
}

static void store(const tutti_view *view, const double *data)
{
    int64_t count = tutti_view_count(view);
    if (view->dtype == TUTTI_F32) {
        float *target = view->data;
        for (int64_t i = 0; i < count; i++)
            target[i] = (float)data[i];
    } else if (view->dtype == TUTTI_F64) {
        memcpy(view->data, data, (size_t)count * sizeof *data);
    } else {
        for (int64_t i = 0; i < count; i++)
            tutti_view_set(view, i, data[i]);
    }
}

static tutti_status run_on_doubles(const tutti_kernel_call *call, tutti_doubles_fn *body,
                                   tutti_arena *scratch)
{
    const double *inputs[TUTTI_SPLIT_SLOTS] = {0};
    double *outputs[TUTTI_SPLIT_SLOTS] = {0};
    for (int i = 0; i < call->input_count; i++)
        if (tutti_dtype_is_float(call->inputs[i].dtype))
            TUTTI_TRY(network_load(scratch, &call->inputs[i], &inputs[i]));
    for (int i = 0; i < call->output_count; i++)
        if (tutti_dtype_is_float(call->outputs[i].dtype))
            TUTTI_TRY(
                tutti__scratch_doubles(scratch, tutti_view_count(&call->outputs[i]), &outputs[i]));
    TUTTI_TRY(body(call, inputs, outputs, scratch));
    for (int i = 0; i < call->output_count; i++)
        if (outputs[i] != NULL)
            store(&call->outputs[i], outputs[i]);
    return TUTTI_OK;
}

tutti_status tutti__on_doubles(const tutti_kernel_call *call, tutti_doubles_fn *body)
{
    tutti_arena scratch = {0};
    tutti_status status = run_on_doubles(call, body, &scratch);
    tutti__arena_free(&scratch);
    return status;
}

void tutti__add_outer(int64_t rows, int64_t columns, const double *a, const double *b, double *out)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            out[r * columns + c] += a[r] * b[c];
}

void tutti__add_product(int64_t rows, int64_t inner, int64_t columns, const double *a,
                        const double *b, double *out)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < inner; k++) {
            double factor = a[r * inner + k];
            for (int64_t c = 0; c < columns; c++)
                out[r * columns + c] += factor * b[k * columns + c];
        }
}

void tutti__add_product_transposed(int64_t rows, int64_t inner, int64_t columns, const double *a,
                                   const double *b, double *out)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < inner; k++)
            out[r * inner + k] += tutti__dot(columns, a + r * columns, b + k * columns);
}

tutti_status tutti__need_floats(const tutti_infer *node, int first, int count)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    for (int i = first; i < first + count; i++) {
        if (!tutti_dtype_is_float(node->inputs[i].dtype) || node->inputs[i].handle)
            return RULE_FAIL(node, TUTTI_INVALID,
                             "input %d is %s, needs f32, f64, f16 or bf16; convert it with "
                             "tutti_cast(x, TUTTI_F32)",
                             i, tutti_type_text(&node->inputs[i], a));
        if (node->inputs[i].dtype != node->inputs[first].dtype)
            return RULE_FAIL(
                node, TUTTI_INVALID,
                "input %d is %s, input %d is %s; element types must agree, convert one "
                "with tutti_cast",
                first, tutti_type_text(&node->inputs[first], a), i,
                tutti_type_text(&node->inputs[i], b));
    }
    return TUTTI_OK;
}

tutti_status tutti__need_rank(const tutti_infer *node, int i, const char *what, int rank,
                              const char *layout)
{
    char text[TUTTI_TYPE_TEXT];
    if (node->inputs[i].rank == rank)
        return TUTTI_OK;
    return RULE_FAIL(node, TUTTI_INVALID,
                     "%s has %d dimensions (%s), needs %d %s; change its shape with tutti_reshape",
                     what, node->inputs[i].rank, tutti_type_text(&node->inputs[i], text), rank,
                     layout);
}

tutti_status tutti__need_dim(const tutti_infer *node, int i, const char *what, int axis,
                             int64_t expected, const char *meaning)
{
    char text[TUTTI_TYPE_TEXT];
    int64_t actual = node->inputs[i].dims[axis];
    if (actual == expected || actual == TUTTI_ANY || expected == TUTTI_ANY)
        return TUTTI_OK;
    return RULE_FAIL(node, TUTTI_INVALID, "%s is %s; its dimension %d is %lld, needs %lld (%s)",
                     what, tutti_type_text(&node->inputs[i], text), axis, (long long)actual,
                     (long long)expected, meaning);
}

tutti_status tutti__need_like(const tutti_infer *node, int i, const char *what,
                              const tutti_type *like)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    const tutti_type *type = &node->inputs[i];
    bool same = type->rank == like->rank;
    for (int axis = 0; same && axis < type->rank; axis++)
        same = type->dims[axis] == like->dims[axis] || type->dims[axis] == TUTTI_ANY ||
               like->dims[axis] == TUTTI_ANY;
    if (same)
        return TUTTI_OK;
    return RULE_FAIL(node, TUTTI_INVALID, "%s is %s, needs the shape of %s", what,
                     tutti_type_text(type, a), tutti_type_text(like, b));
}

double tutti__elements(const tutti_type *type)
{
    double count = 1;
    for (int i = 0; i < type->rank; i++)
        count *= type->dims[i] < 0 ? 1.0 : (double)type->dims[i];
    return count;
}

void tutti__cost_flops(const tutti_infer *node, double flops, tutti_cost *ret)
{
    tutti__cost_move(node, ret);
    ret->flops = flops;
}

void tutti__way_add(tutti_ways *ways, int input_count, const int *inputs, int output_count,
                    const int *outputs)
{
    if (ways->count < ways->capacity) {
        tutti_split *way = &ways->ret[ways->count];
        *way = (tutti_split){0};
        memset(way->inputs, TUTTI_WHOLE, sizeof way->inputs);
        memset(way->outputs, TUTTI_WHOLE, sizeof way->outputs);
        for (int i = 0; i < input_count; i++)
            way->inputs[i] = (int8_t)inputs[i];
        for (int i = 0; i < output_count; i++)
            way->outputs[i] = (int8_t)outputs[i];
    }
    ways->count++;
}

tutti_sym tutti__widened(tutti_sym x)
{
    tutti_dtype dtype = tutti_sym_type(x).dtype;
    return dtype == TUTTI_F16 || dtype == TUTTI_BF16 ? tutti_cast(x, TUTTI_F32) : x;
}

tutti_sym tutti__narrowed(tutti_sym x, tutti_dtype dtype)
{
    return tutti_sym_type(x).dtype == dtype ? x : tutti_cast(x, dtype);
}
