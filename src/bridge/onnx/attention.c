/* attention.c: attention as products and a softmax:
 * softmax(scale q k^T + mask) v, queries that see later keys hidden by -inf when causal. */
#include "bridge/onnx.h"

#include <math.h>

/* 0, 1, … along axis 2 of an input [batch, heads, positions, features], as i64 [positions], for a
 * number of positions that is known only when it runs. */
static const char *write_positions(tutti_onnx_export *x, int input)
{
    const char *from = tutti__onnx_ints(x, 3, (int64_t[]){0, 0, 0});
    const char *to = tutti__onnx_ints(x, 3, (int64_t[]){1, 1, 1});
    const char *axes = tutti__onnx_ints(x, 3, (int64_t[]){0, 1, 3});
    const char *part = ONNX(x, "Slice", tutti__onnx_in(x, input), from, to, axes);
    const char *line = ONNX(x, "Squeeze", part, axes);
    const char *ones = ONNX(x, "ConstantOfShape", ONNX(x, "Shape", line));
    tutti_tensor *one;
    if (tutti_tensor_create(TUTTI_I64, 1, (int64_t[]){1}, &one) != TUTTI_OK) {
        tutti__onnx_write_fail(x, TUTTI_NO_MEMORY, "no memory for the file");
        return "";
    }
    tutti_tensor_set_int(one, 0, 1);
    tutti__onnx_set_tensor(x, "value", one);
    const char *positions = ONNX(x, "CumSum", ones, tutti__onnx_number(x, TUTTI_I64, 0));
    tutti__onnx_set_int(x, "exclusive", 1);
    return positions;
}

/* bool [queries, keys]: query i sees key j <= first + i. */
static const char *write_seen(tutti_onnx_export *x)
{
    const int64_t queries = tutti__onnx_type_in(x, 0)->dims[2];
    const int64_t keys = tutti__onnx_type_in(x, 1)->dims[2], first = NODE_INT(x, "first_query");
    tutti_tensor *seen;
    if (queries >= 0 && keys >= 0 && queries * keys <= 1 << 24) {
        if (tutti_tensor_create(TUTTI_BOOL, 2, (int64_t[]){queries, keys}, &seen) != TUTTI_OK) {
            tutti__onnx_write_fail(x, TUTTI_NO_MEMORY, "no memory for the file");
            return "";
        }
        for (int64_t i = 0; i < queries * keys; i++)
            tutti_tensor_set_int(seen, i, i % keys <= first + i / keys);
        return tutti__onnx_constant(x, seen);
    }
    const char *query = write_positions(x, 0), *key = write_positions(x, 1);
    if (first != 0)
        query = ONNX(x, "Add", query, tutti__onnx_number(x, TUTTI_I64, (double)first));
    return ONNX(x, "LessOrEqual", tutti__onnx_unsqueezed(x, key, 0),
                tutti__onnx_unsqueezed(x, query, 1));
}

static const char *write_scores(tutti_onnx_export *x)
{
    static const int64_t order[] = {0, 1, 3, 2};
    tutti_dtype dtype = x->node->types[0].dtype;
    double scale = NODE_FLOAT(x, "scale");
    int64_t features = tutti__onnx_type_in(x, 0)->dims[3];
    if (scale == 0 && features <= 0)
        tutti__onnx_write_fail(x, TUTTI_UNSUPPORTED, "the number of features must be known");
    scale = scale == 0 ? 1 / sqrt((double)features) : scale;
    const char *query = ONNX(x, "Mul", tutti__onnx_in(x, 0), tutti__onnx_number(x, dtype, scale));
    const char *keys = tutti__onnx_turned(x, tutti__onnx_in(x, 1), 4, order);
    return ONNX(x, "MatMul", query, keys);
}

/* A query that sees no key has the softmax of -inf alone, which is NaN: it gives zeros. */
static void write_attention(tutti_onnx_export *x)
{
    tutti_dtype dtype = x->node->types[0].dtype;
    bool masked = x->node->input_count > 3;
    const char *scores = write_scores(x);
    if (masked)
        scores = ONNX(x, "Add", scores, tutti__onnx_in(x, 3));
    if (NODE_INT(x, "causal"))
        scores = ONNX(x, "Where", write_seen(x), scores, tutti__onnx_number(x, dtype, -INFINITY));
    const char *parts = ONNX(x, "Softmax", scores);
    tutti__onnx_set_int(x, "axis", -1);
    if (masked)
        parts = ONNX(x, "Where", ONNX(x, "IsNaN", parts), tutti__onnx_number(x, dtype, 0), parts);
    tutti__onnx_out(x, 0, ONNX(x, "MatMul", parts, tutti__onnx_in(x, 2)));
}

const tutti_onnx_op tutti_onnx_attention = {
    .op = "attention",
    .write = write_attention,
};
