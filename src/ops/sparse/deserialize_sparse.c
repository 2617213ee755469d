/* deserialize_sparse.c: sparse tensors from strings; several become one with one more axis. */
#include <stdlib.h>

#include "ops/call.h"
#include "ops/sparse/serialized.h"
#include "ops/text/strings.h"

/* string [3] or [rows, 3] -> indices i64 [n, r], values [n], dense_shape i64 [r] */
static tutti_status deserialize_sparse_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *x = &node->inputs[0];
    int64_t rank = RULE_INT(node, "rank");
    tutti_dtype dtype = (tutti_dtype)RULE_INT(node, "dtype");
    TUTTI_TRY(tutti__need_strings(node, 0));
    if ((x->rank != 1 && x->rank != 2) ||
        (x->dims[x->rank - 1] != 3 && x->dims[x->rank - 1] != TUTTI_ANY))
        return RULE_FAIL(node, TUTTI_INVALID, "input is %s, needs string[3] or string[rows,3]",
                         tutti_type_text(x, text));
    if (rank < 0 || rank > TUTTI_MAX_RANK + 1 - x->rank)
        return RULE_FAIL(node, TUTTI_INVALID, "rank is %lld, needs 0 to %d", (long long)rank,
                         TUTTI_MAX_RANK + 1 - x->rank);
    if (dtype <= TUTTI_NO_DTYPE || dtype >= TUTTI_DTYPE_END)
        return RULE_FAIL(node, TUTTI_INVALID, "dtype is none");
    rank += x->rank - 1;
    TUTTI_TRY(tutti__shape_output(node, 0, TUTTI_I64, 2, (int64_t[]){TUTTI_ANY, rank}));
    TUTTI_TRY(tutti__shape_output(node, 1, dtype, 1, (int64_t[]){TUTTI_ANY}));
    return tutti__shape_output(node, 2, TUTTI_I64, 1, (int64_t[]){rank});
}

/* Entries of all parts one behind the other, each index with the part's number before it when
 * `rows`; the shape is the largest along each axis. */
static void deserialize_sparse_join(const tutti_sparse *parts, int64_t count, bool rows, int rank,
                                    int64_t *indices, tutti_tensor *values, int64_t *shape,
                                    tutti_status *ret_status)
{
    int64_t at = 0;
    for (int i = 0; i < rank; i++)
        shape[i + rows] = 0;
    if (rows)
        shape[0] = count;
    for (int64_t p = 0; p < count && *ret_status == TUTTI_OK; p++) {
        int64_t n = tutti_tensor_count(parts[p].values);
        for (int i = 0; i < rank; i++) {
            int64_t dim = tutti_tensor_get_int(parts[p].dense_shape, i);
            shape[i + rows] = dim > shape[i + rows] ? dim : shape[i + rows];
        }
        for (int64_t e = 0; e < n; e++) {
            if (rows)
                *indices++ = p;
            for (int i = 0; i < rank; i++)
                *indices++ = tutti_tensor_get_int(parts[p].indices, e * rank + i);
        }
        tutti_tensor *place = NULL;
        *ret_status = tutti_tensor_slice(values, 0, at, n, 1, &place);
        if (*ret_status == TUTTI_OK)
            *ret_status = tutti_tensor_copy(place, parts[p].values);
        tutti_tensor_release(place);
        at += n;
    }
}

/* Numbers are copied, strings given, because their bytes must stay. */
static tutti_status give_values(const tutti_kernel_call *call, tutti_tensor *values)
{
    int64_t count = tutti_tensor_count(values);
    if (tutti_tensor_dtype(values) == TUTTI_STRING)
        return tutti__give_strings(call, 1, 1, &count, tutti_tensor_data(values));
    TUTTI_TRY(tutti__call_shape(call, 1, 1, &count));
    if (count > 0)
        memcpy(call->outputs[1].data, tutti_tensor_data(values),
               (size_t)count * tutti_dtype_size(tutti_tensor_dtype(values)));
    return TUTTI_OK;
}

static tutti_status deserialize_sparse_write(const tutti_kernel_call *call,
                                             const tutti_sparse *parts, int64_t count)
{
    bool rows = call->inputs[0].rank == 2;
    int rank = (int)RULE_INT(call, "rank");
    int64_t all = 0;
    tutti_tensor *values;
    for (int64_t p = 0; p < count; p++)
        all += tutti_tensor_count(parts[p].values);
    TUTTI_TRY(tutti__call_shape(call, 0, 2, (int64_t[]){all, rank + rows}));
    TUTTI_TRY(tutti__call_shape(call, 2, 1, (int64_t[]){rank + rows}));
    TUTTI_TRY(tutti_tensor_create((tutti_dtype)RULE_INT(call, "dtype"), 1, &all, &values));
    tutti_status status = TUTTI_OK;
    deserialize_sparse_join(parts, count, rows, rank, call->outputs[0].data, values,
                            call->outputs[2].data, &status);
    if (status == TUTTI_OK)
        status = give_values(call, values);
    tutti_tensor_release(values);
    return status;
}

static tutti_status deserialize_sparse_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0];
    int64_t count = x->rank == 2 ? x->dims[0] : 1, read = 0;
    if (x->dims[x->rank - 1] != 3)
        return RULE_FAIL(call, TUTTI_INVALID, "rows have %lld strings, need 3",
                         (long long)x->dims[x->rank - 1]);
    tutti_sparse *parts = calloc((size_t)count + 1, sizeof *parts);
    if (!parts)
        return RULE_FAIL(call, TUTTI_NO_MEMORY, "no memory for %lld parts", (long long)count);
    tutti_status status = TUTTI_OK;
    for (; read < count && status == TUTTI_OK; read++)
        status = tutti__deserialize_sparse(call, (const tutti_string *)x->data + 3 * read,
                                           (tutti_dtype)RULE_INT(call, "dtype"),
                                           (int)RULE_INT(call, "rank"), &parts[read]);
    if (status == TUTTI_OK)
        status = deserialize_sparse_write(call, parts, count);
    for (int64_t i = 0; i < count; i++)
        tutti_sparse_release(&parts[i]);
    free(parts);
    return status;
}

extern const tutti_op tutti_op_deserialize_sparse;
tutti_sparse_sym(tutti_deserialize_sparse)(tutti_sym x, tutti_dtype dtype, int rank)
{
    tutti_sym node = TUTTI_NARY(&tutti_op_deserialize_sparse, ((tutti_sym[]){x}),
                                TUTTI_INT("dtype", dtype), TUTTI_INT("rank", rank));
    return (tutti_sparse_sym){tutti_sym_output(node, 0), tutti_sym_output(node, 1),
                              tutti_sym_output(node, 2)};
}

static const tutti_attr_spec attrs[] = {
    {"dtype", TUTTI_ATTR_INT, NULL},
    {"rank", TUTTI_ATTR_INT, NULL},
    {NULL},
};
static const char *const samples[] = {
    "string[0,3] | dtype=f32 rank=2",
    "string[0,3] | dtype=string rank=1",
    NULL,
};

const tutti_op tutti_op_deserialize_sparse = {
    .struct_size = sizeof(tutti_op),
    .name = "deserialize_sparse",
    .version = 1,
    .doc =
        "deserialize_sparse(x; dtype, rank): (indices, values, shape) of the sparse tensor that the strings x hold; of rows [n, 3] one tensor with one more axis",
    .category = "sparse",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 3,
    .flags = TUTTI_TEXT_FLAGS | TUTTI_OP_FALLIBLE | TUTTI_OP_DYNAMIC,
    .attrs = attrs,
    .infer = deserialize_sparse_infer,
    .cost = tutti__cost_move,
    .reference = deserialize_sparse_reference,
    .samples = samples,
};
