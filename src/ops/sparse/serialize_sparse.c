/* serialize_sparse.c: a sparse tensor as three strings, or each row of it as three. */
#include <stdlib.h>

#include "ops/sparse/serialized.h"
#include "ops/text/strings.h"

/* indices i64 [n, r], values [n], dense_shape i64 [r] -> string [3], or [rows, 3] */
static tutti_status serialize_sparse_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *indices = &node->inputs[0], *values = &node->inputs[1];
    bool rows = RULE_INT(node, "rows") != 0;
    int64_t dims[TUTTI_MAX_RANK], merged;
    TUTTI_TRY(tutti__need_positions(node, 0, -1));
    if (values->rank != 1 || !tutti__shape_merge(values->dims[0], indices->dims[0], &merged))
        return RULE_FAIL(node, TUTTI_INVALID, "values are %s, need one for each index",
                         tutti_type_text(values, text));
    TUTTI_TRY(tutti__need_dense_shape(node, 2, indices->dims[1], dims));
    if (rows && node->inputs[2].dims[0] < 1)
        return RULE_FAIL(node, TUTTI_INVALID, "a sparse tensor without dimensions has no rows");
    int64_t shape[] = {rows ? dims[0] : 3, 3};
    return tutti__shape_output(node, 0, TUTTI_STRING, rows ? 2 : 1, shape);
}

/* What is written: elements that stand at `order`, in rows by row_start. */
typedef struct job {
    const tutti_kernel_call *call;
    int64_t dims[TUTTI_MAX_RANK];
    int rank;
    bool rows;
    int64_t *order, *row_start; /* elements of row i: order[row_start[i] .. row_start[i + 1]) */
    int64_t row_count;
    int64_t *indices; /* of one row */
    char *values;
    tutti_text *text;
    tutti_string *strings;
} job;

/* A counting sort by row keeps the elements' order. */
static void sort_rows(job *j, int64_t count)
{
    const int64_t *indices = j->call->inputs[0].data;
    for (int64_t i = 0; i < count; i++)
        j->row_start[(j->rows ? indices[i * j->rank] : 0) + 1]++;
    for (int64_t row = 0; row < j->row_count; row++)
        j->row_start[row + 1] += j->row_start[row];
    for (int64_t i = 0; i < count; i++)
        j->order[j->row_start[j->rows ? indices[i * j->rank] : 0]++] = i;
    for (int64_t row = j->row_count; row > 0; row--)
        j->row_start[row] = j->row_start[row - 1];
    j->row_start[0] = 0;
}

static void write_row(job *j, int64_t row)
{
    const int64_t *indices = j->call->inputs[0].data;
    const tutti_view *values = &j->call->inputs[1];
    size_t size = tutti_dtype_size(values->dtype), before = j->text->size;
    int64_t skip = j->rows, rank = j->rank - skip,
            count = j->row_start[row + 1] - j->row_start[row];
    for (int64_t i = 0; i < count; i++) {
        int64_t from = j->order[j->row_start[row] + i];
        if (rank > 0)
            memcpy(j->indices + i * rank, indices + from * j->rank + skip,
                   (size_t)rank * sizeof *indices);
        memcpy(j->values + (size_t)i * size, (const char *)values->data + (size_t)from * size,
               size);
    }
    tutti__serialize(j->text, TUTTI_I64, 2, (int64_t[]){count, rank}, j->indices, count * rank);
    j->strings[3 * row].size = (int64_t)(j->text->size - before);
    before = j->text->size;
    tutti__serialize(j->text, values->dtype, 1, &count, j->values, count);
    j->strings[3 * row + 1].size = (int64_t)(j->text->size - before);
    before = j->text->size;
    tutti__serialize(j->text, TUTTI_I64, 1, &rank, j->dims + skip, rank);
    j->strings[3 * row + 2].size = (int64_t)(j->text->size - before);
}

static tutti_status serialize_sparse_write(job *j, int64_t count)
{
    if (!j->order || !j->row_start || !j->indices || !j->values || !j->strings)
        return RULE_FAIL(j->call, TUTTI_NO_MEMORY, "no memory for %lld elements", (long long)count);
    sort_rows(j, count);
    for (int64_t row = 0; row < j->row_count; row++)
        write_row(j, row);
    if (j->text->failed)
        return RULE_FAIL(j->call, TUTTI_NO_MEMORY, "no memory for %lld strings",
                         (long long)(3 * j->row_count));
    const char *at = j->text->data;
    for (int64_t i = 0; i < 3 * j->row_count; at += j->strings[i].size, i++)
        j->strings[i].data = at;
    int64_t dims[] = {j->rows ? j->row_count : 3, 3};
    return tutti__give_strings(j->call, 0, j->rows ? 2 : 1, dims, j->strings);
}

static tutti_status serialize_sparse_reference(const tutti_kernel_call *call)
{
    tutti_text text = {0};
    job j = {.call = call,
             .rank = (int)call->inputs[0].dims[1],
             .rows = RULE_INT(call, "rows"),
             .text = &text};
    int64_t count = call->inputs[0].dims[0];
    size_t room = (size_t)count + 1;
    TUTTI_TRY(tutti__dense_shape(call, &call->inputs[2], j.dims));
    TUTTI_TRY(tutti__check_positions(call, &call->inputs[0], j.dims));
    j.row_count = j.rows ? j.dims[0] : 1;
    if (j.row_count > INT64_MAX / 256)
        return RULE_FAIL(call, TUTTI_TOO_LARGE, "%lld rows are too many", (long long)j.row_count);
    j.order = malloc(room * sizeof *j.order);
    j.row_start = calloc((size_t)j.row_count + 2, sizeof *j.row_start);
    j.indices = malloc(room * (size_t)(j.rank + 1) * sizeof *j.indices);
    j.values = malloc(room * tutti_dtype_size(call->inputs[1].dtype));
    j.strings = calloc((size_t)(3 * j.row_count) + 1, sizeof *j.strings);
    tutti_status status = serialize_sparse_write(&j, count);
    free(j.order);
    free(j.row_start);
    free(j.indices);
    free(j.values);
    free(j.strings);
    tutti__text_free(&text);
    return status;
}

extern const tutti_op tutti_op_serialize_sparse;
static tutti_sym serialize_sparse_build(tutti_sparse_sym x, bool rows)
{
    return TUTTI_NARY(&tutti_op_serialize_sparse,
                      ((tutti_sym[]){x.indices, x.values, x.dense_shape}), TUTTI_INT("rows", rows));
}

tutti_sym(tutti_serialize_sparse)(tutti_sparse_sym x)
{
    return serialize_sparse_build(x, false);
}

tutti_sym(tutti_serialize_sparse_rows)(tutti_sparse_sym x)
{
    return serialize_sparse_build(x, true);
}

static const tutti_attr_spec attrs[] = {
    {"rows", TUTTI_ATTR_INT, "false"},
    {NULL},
};
static const char *const samples[] = {
    "i64[3,2]{=0,1,2,0,2,3} i32[3] i64[2]{=3,4}",
    "i64[3,2]{=2,3,0,1,2,0} string[3]{=a,bc,d} i64[2]{=3,4} | rows=true",
    "i64[0,1] i32[0] i64[1]{=2} | rows=true",
    NULL,
};

const tutti_op tutti_op_serialize_sparse = {
    .struct_size = sizeof(tutti_op),
    .name = "serialize_sparse",
    .version = 1,
    .doc =
        "serialize_sparse(indices, values, shape; rows): y = [indices, values, shape] as strings; with rows one such line for each index along axis 0",
    .category = "sparse",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .flags = TUTTI_TEXT_FLAGS | TUTTI_OP_FALLIBLE | TUTTI_OP_DYNAMIC,
    .attrs = attrs,
    .infer = serialize_sparse_infer,
    .cost = tutti__cost_move,
    .reference = serialize_sparse_reference,
    .samples = samples,
};
