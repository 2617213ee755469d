/* reader.c: bytes, words, strings, types and tensors out of hostile bytes; see reader.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/reader.h"
#include "tensor/type.h"

tutti_status tutti__read_bytes(tutti_reader *r, size_t size, const unsigned char **ret)
{
    if (size > r->left)
        return TUTTI_READ_FAIL("it ends %zu bytes too early", size - r->left);
    *ret = r->at;
    r->at += size;
    r->left -= size;
    return TUTTI_OK;
}

static uint64_t reader_load(const unsigned char *bytes, int size)
{
    uint64_t value = 0;
    for (int i = 0; i < size; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

tutti_status tutti__read_word(tutti_reader *r, uint32_t *ret)
{
    const unsigned char *bytes;
    TUTTI_TRY(tutti__read_bytes(r, 4, &bytes));
    *ret = (uint32_t)reader_load(bytes, 4);
    return TUTTI_OK;
}

tutti_status tutti__read_long(tutti_reader *r, uint64_t *ret)
{
    const unsigned char *bytes;
    TUTTI_TRY(tutti__read_bytes(r, 8, &bytes));
    *ret = reader_load(bytes, 8);
    return TUTTI_OK;
}

/* A number of things of which each takes at least `size` bytes of what is left. */
tutti_status tutti__read_count(tutti_reader *r, size_t size, const char *what, uint32_t *ret)
{
    uint32_t count;
    TUTTI_TRY(tutti__read_word(r, &count));
    if (count > r->left / size || count > INT32_MAX)
        return TUTTI_READ_FAIL("%" PRIu32 " %s are announced, but only %zu bytes are left", count,
                               what, r->left);
    *ret = count;
    return TUTTI_OK;
}

/* A string of the table. It lives as long as the reader. */
tutti_status tutti__read_string(tutti_reader *r, const char **ret)
{
    uint32_t index;
    TUTTI_TRY(tutti__read_word(r, &index));
    if (index >= r->string_count)
        return TUTTI_READ_FAIL("string %" PRIu32 " of %" PRIu32, index, r->string_count);
    *ret = r->strings[index];
    return TUTTI_OK;
}

tutti_status tutti__read_strings(tutti_reader *r)
{
    TUTTI_TRY(tutti__read_count(r, 4, "strings", &r->string_count));
    r->strings = tutti__arena_array(&r->arena, (size_t)r->string_count + 1, sizeof *r->strings);
    if (!r->strings)
        return tutti_fail(TUTTI_NO_MEMORY, "serialised graph: no memory for %" PRIu32 " strings",
                          r->string_count);
    for (uint32_t i = 0; i < r->string_count; i++) {
        uint32_t size;
        const unsigned char *bytes;
        TUTTI_TRY(tutti__read_count(r, 1, "bytes of a string", &size));
        TUTTI_TRY(tutti__read_bytes(r, size, &bytes));
        if (size > TUTTI_GRAPH_MAX_STRING)
            return TUTTI_READ_FAIL("string %" PRIu32 " has %" PRIu32
                                   " bytes, at most %d are allowed",
                                   i, size, TUTTI_GRAPH_MAX_STRING);
        for (uint32_t b = 0; b < size; b++)
            if (bytes[b] < ' ' || bytes[b] == 127)
                return TUTTI_READ_FAIL("string %" PRIu32 " holds a control character", i);
        r->strings[i] = tutti__arena_bytes(&r->arena, bytes, size);
        if (!r->strings[i])
            return tutti_fail(TUTTI_NO_MEMORY, "serialised graph: no memory for its strings");
    }
    return TUTTI_OK;
}

tutti_status tutti__read_operator(tutti_reader *r, const tutti_op **ret)
{
    const char *name;
    uint32_t version;
    char key[256];
    TUTTI_TRY(tutti__read_string(r, &name));
    TUTTI_TRY(tutti__read_word(r, &version));
    if (strlen(name) > 200)
        return TUTTI_READ_FAIL("an operator's name has %zu bytes", strlen(name));
    snprintf(key, sizeof key, "%s@%" PRId32, name, (int32_t)version);
    *ret = strchr(name, '@') ? NULL : tutti_op_find(key);
    if (!*ret)
        return tutti_fail(
            TUTTI_NOT_FOUND,
            "serialised graph: there is no operator '%s' here%s; register it with tutti_op_register, or "
            "load the module that holds it",
            key, tutti_op_find(name) ? ", only another version of it" : "");
    return TUTTI_OK;
}

/* Dimensions are sizes, or TUTTI_ANY. */
tutti_status tutti__read_type(tutti_reader *r, tutti_type *ret)
{
    uint32_t word;
    TUTTI_TRY(tutti__read_word(r, &word));
    tutti_type type = {.dtype = (tutti_dtype)(word & 255),
                       .rank = (int32_t)(word >> 8 & 255),
                       .handle = word >> 16 == 1};
    if (tutti_dtype_size(type.dtype) == 0 || type.rank > TUTTI_MAX_RANK || word >> 16 > 1)
        return TUTTI_READ_FAIL("%08" PRIx32 " is no type", word);
    for (int i = 0; i < type.rank; i++) {
        uint64_t size;
        TUTTI_TRY(tutti__read_long(r, &size));
        type.dims[i] = (int64_t)size;
        if (type.dims[i] < TUTTI_ANY)
            return TUTTI_READ_FAIL("a dimension is %" PRId64, type.dims[i]);
    }
    *ret = type;
    return TUTTI_OK;
}

static tutti_status get_string_elements(tutti_reader *r, const tutti_type *type, int64_t count,
                                        tutti_tensor **ret)
{
    tutti_status status = TUTTI_OK;
    if (count > (int64_t)(r->left / 4))
        return TUTTI_READ_FAIL("a tensor of %" PRId64 " strings, but only %zu bytes are left",
                               count, r->left);
    tutti_string *strings = calloc((size_t)count + 1, sizeof *strings);
    if (!strings)
        return tutti_fail(TUTTI_NO_MEMORY, "serialised graph: no memory for a tensor of strings");
    for (int64_t i = 0; status == TUTTI_OK && i < count; i++) {
        uint32_t size = 0;
        const unsigned char *bytes = NULL;
        status = tutti__read_word(r, &size);
        if (status == TUTTI_OK)
            status = tutti__read_bytes(r, size, &bytes);
        strings[i] = (tutti_string){(const char *)bytes, size};
    }
    if (status == TUTTI_OK)
        status = tutti_tensor_from(type->dtype, type->rank, type->dims, strings, ret);
    free(strings);
    return status;
}

tutti_status tutti__read_tensor(tutti_reader *r, tutti_tensor **ret)
{
    tutti_type type;
    int64_t bytes;
    const unsigned char *data;
    TUTTI_TRY(tutti__read_type(r, &type));
    if (type.handle || !tutti_type_is_static(&type) || tutti__type_bytes(&type, &bytes) != TUTTI_OK)
        return TUTTI_READ_FAIL("a tensor has no size");
    if (type.dtype == TUTTI_STRING)
        return get_string_elements(r, &type, tutti_type_count(&type), ret);
    TUTTI_TRY(tutti__read_bytes(r, (size_t)bytes, &data));
    for (int64_t i = 0; type.dtype == TUTTI_BOOL && i < bytes; i++)
        if (data[i] > 1)
            return TUTTI_READ_FAIL("a bool is %d", data[i]);
    return tutti_tensor_from(type.dtype, type.rank, type.dims, data, ret);
}

static tutti_status read_shard(tutti_reader *r, tutti_graph *graph, const tutti_type *type,
                               tutti_axis_shard *ret)
{
    const char *axis;
    uint32_t kind, number; /* the dimension, the reduction or 0 */
    TUTTI_TRY(tutti__read_string(r, &axis));
    TUTTI_TRY(tutti__read_word(r, &kind));
    TUTTI_TRY(tutti__read_word(r, &number));
    if (!axis[0] || strlen(axis) > TUTTI_GRAPH_MAX_AXIS || kind > TUTTI_VARYING ||
        number >= (kind == TUTTI_SPLIT     ? (uint32_t)type->rank
                   : kind == TUTTI_PARTIAL ? TUTTI_PROD + 1u
                                           : 1u))
        return TUTTI_READ_FAIL("a sharding over axis '%s' has kind %" PRIu32
                               " and dimension or reduction %" PRIu32,
                               axis, kind, number);
    *ret = (tutti_axis_shard){.axis = tutti__arena_string(&graph->arena, axis),
                              .kind = (tutti_shard_kind)kind,
                              .dimension = kind == TUTTI_SPLIT ? (int)number : 0,
                              .reduction =
                                  kind == TUTTI_PARTIAL ? (tutti_reduction)number : TUTTI_SUM};
    return ret->axis ? TUTTI_OK
                     : tutti_fail(TUTTI_NO_MEMORY, "serialised graph: no memory for a sharding");
}

static tutti_status read_sharding(tutti_reader *r, tutti_node *node, int output)
{
    uint32_t count;
    TUTTI_TRY(tutti__read_word(r, &count));
    if (count == 0)
        return TUTTI_OK;
    if (--count > r->left / 12 || count > TUTTI_GRAPH_MAX_AXES)
        return TUTTI_READ_FAIL("%" PRIu32 " mesh axes are announced, but only %zu bytes are left, "
                               "and at most %d are allowed",
                               count, r->left, TUTTI_GRAPH_MAX_AXES);
    tutti_sharding *sharding = tutti__arena_take(&node->graph->arena, sizeof *sharding);
    tutti_axis_shard *shards = tutti__arena_array(&node->graph->arena, count, sizeof *shards);
    if (!sharding || !shards)
        return tutti_fail(TUTTI_NO_MEMORY, "serialised graph: no memory for a sharding");
    for (uint32_t i = 0; i < count; i++) {
        TUTTI_TRY(read_shard(r, node->graph, &node->types[output], &shards[i]));
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(shards[k].axis, shards[i].axis) == 0)
                return TUTTI_READ_FAIL("a sharding of %s '%s' names mesh axis '%s' twice",
                                       node->op->name, node->name, shards[i].axis);
    }
    *sharding = (tutti_sharding){(int)count, shards};
    node->shardings[output] = sharding;
    return TUTTI_OK;
}

tutti_status tutti__read_shardings(tutti_reader *r, tutti_node *node)
{
    uint32_t count;
    TUTTI_TRY(tutti__read_word(r, &count));
    if (count == 0)
        return TUTTI_OK;
    if (count != (uint32_t)node->output_count)
        return TUTTI_READ_FAIL("%s '%s' has %d outputs, but %" PRIu32 " shardings", node->op->name,
                               node->name, node->output_count, count);
    node->shardings = tutti__arena_array(&node->graph->arena, count, sizeof *node->shardings);
    if (!node->shardings)
        return tutti_fail(TUTTI_NO_MEMORY, "serialised graph: no memory for shardings");
    for (int i = 0; i < node->output_count; i++)
        TUTTI_TRY(read_sharding(r, node, i));
    return TUTTI_OK;
}
