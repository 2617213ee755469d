/* onnx_proto.c: what reading and writing ONNX's messages share. */
#include "bridge/onnx_proto.h"
#include "bridge/onnx_small.h"

#include <stdlib.h>
#include <string.h>

bool tutti__onnx_grow(tutti_arena *arena, void **items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity) {
        memset((char *)*items + count * size, 0, size);
        return true;
    }
    size_t wanted = *capacity == 0 ? 4 : 2 * *capacity;
    void *larger = tutti__arena_array(arena, wanted, size);
    if (!larger)
        return false;
    if (count > 0)
        memcpy(larger, *items, count * size);
    *items = larger;
    *capacity = wanted;
    return true;
}

tutti_status tutti__onnx_create(tutti_onnx **ret_onnx)
{
    tutti_onnx *onnx = calloc(1, sizeof *onnx);
    if (!onnx)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for an ONNX model");
    onnx->producer = onnx->producer_version = "";
    onnx->graph.name = "";
    *ret_onnx = onnx;
    return TUTTI_OK;
}

void tutti__onnx_free(tutti_onnx *onnx)
{
    if (!onnx)
        return;
    for (size_t i = 0; i < onnx->tensors.count; i++)
        tutti_tensor_release(onnx->tensors.data[i]);
    TUTTI_VEC_FREE(&onnx->tensors);
    tutti__arena_free(&onnx->arena);
    free(onnx);
}

tutti_status tutti__onnx_keep(tutti_onnx *onnx, tutti_tensor *tensor)
{
    if (TUTTI_VEC_PUSH(&onnx->tensors, tensor))
        return TUTTI_OK;
    tutti_tensor_release(tensor);
    return tutti_fail(TUTTI_NO_MEMORY, "no memory for an ONNX model");
}

static const struct {
    tutti_dtype dtype;
    int number;
} dtypes[] = {
    {TUTTI_F32, 1},    {TUTTI_U8, 2},   {TUTTI_I8, 3},   {TUTTI_I32, 6},  {TUTTI_I64, 7},
    {TUTTI_STRING, 8}, {TUTTI_BOOL, 9}, {TUTTI_F16, 10}, {TUTTI_F64, 11}, {TUTTI_BF16, 16},
};

/* Types that we have not: a wider one holds all their values. */
static const struct {
    tutti_dtype dtype;
    int number, bytes;
} stored[] = {
    {TUTTI_I32, 4, 2},  /* uint16 */
    {TUTTI_I32, 5, 2},  /* int16 */
    {TUTTI_I64, 12, 4}, /* uint32 */
    {TUTTI_I64, 13, 8}, /* uint64, below 2^63 */
};

size_t tutti__onnx_stored_bytes(int64_t number)
{
    for (size_t i = 0; i < TUTTI_COUNT(stored); i++)
        if (stored[i].number == number)
            return (size_t)stored[i].bytes;
    tutti_dtype dtype = tutti__onnx_dtype_of(number);
    return dtype == TUTTI_NO_DTYPE ? 0 : tutti_dtype_size(dtype);
}

bool tutti__onnx_is_widened(int64_t number)
{
    return number == 4 || number == 5 || number == 12 || number == 13 || tutti__onnx_small(number);
}

const char *tutti__onnx_element(int64_t number)
{
    static const char *const names[] = {
        "undefined",      "float",    "uint8",        "int8",           "uint16",
        "int16",          "int32",    "int64",        "string",         "bool",
        "float16",        "double",   "uint32",       "uint64",         "complex64",
        "complex128",     "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
        "float8e5m2fnuz", "uint4",    "int4",         "float4e2m1",     "float8e8m0",
        "uint2",          "int2"};
    return number >= 0 && number < (int64_t)TUTTI_COUNT(names) ? names[number] : "unknown";
}

int tutti__onnx_dtype(tutti_dtype dtype)
{
    for (size_t i = 0; i < TUTTI_COUNT(dtypes); i++)
        if (dtypes[i].dtype == dtype)
            return dtypes[i].number;
    return 0;
}

tutti_dtype tutti__onnx_dtype_of(int64_t number)
{
    for (size_t i = 0; i < TUTTI_COUNT(dtypes); i++)
        if (dtypes[i].number == number)
            return dtypes[i].dtype;
    for (size_t i = 0; i < TUTTI_COUNT(stored); i++)
        if (stored[i].number == number)
            return stored[i].dtype;
    const tutti_onnx_small *small = tutti__onnx_small(number);
    return small ? small->held : TUTTI_NO_DTYPE;
}

const tutti_onnx_attr *tutti__onnx_attr(const tutti_onnx_node *node, const char *name,
                                        tutti_onnx_attr_kind kind)
{
    for (size_t i = 0; i < node->attrs.count; i++)
        if (node->attrs.items[i].kind == kind && strcmp(node->attrs.items[i].name, name) == 0)
            return &node->attrs.items[i];
    return NULL;
}
