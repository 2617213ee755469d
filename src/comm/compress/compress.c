/* compress.c: compressors by name. */
#include "comm/compress/compress.h"
#include "base/require.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/container.h"
#include "comm/coll/wire.h"
#include "comm/comm.h"
#include "tables/compression.h"

static void say_unknown(const char *name)
{
    tutti_text names = {0};
    for (const tutti_compression *const *each = tutti__compression_table; *each; each++)
        tutti__text_add(&names, "%s%s%s%s", names.size ? ", " : "", (*each)->name,
                        (*each)->argument ? ":" : "", (*each)->argument ? (*each)->argument : "");
    tutti_fail(TUTTI_INVALID, "there is no compression '%s'; there are: %s", name,
               names.data ? names.data : "none");
    tutti__text_free(&names);
}

static tutti_status read_name(const char *name, const tutti_compression **ret_by, double *ret)
{
    size_t length = strcspn(name, ":");
    const tutti_compression *by = NULL;
    for (const tutti_compression *const *each = tutti__compression_table; *each; each++)
        if (strlen((*each)->name) == length && strncmp((*each)->name, name, length) == 0)
            by = *each;
    if (!by || (name[length] == ':') != (by->argument != NULL)) {
        say_unknown(name);
        return TUTTI_INVALID;
    }
    double value = 0;
    if (by->argument) {
        char *end;
        value = tutti__strtod(name + length + 1, &end);
        if (end == name + length + 1 || *end || !(value >= by->least) || !(value <= by->most) ||
            (by->whole && value != floor(value)))
            return tutti_fail(TUTTI_INVALID, "compression '%s': %s takes a %snumber from %g to %g",
                              name, by->argument, by->whole ? "whole " : "", by->least, by->most);
    }
    *ret_by = by;
    *ret = value;
    return TUTTI_OK;
}

tutti_status tutti_compressor_check(const char *name)
{
    TUTTI_REQUIRE(name);
    const tutti_compression *by;
    double argument;
    return read_name(name, &by, &argument);
}

/* The last dimension gives columns, the others rows. */
static tutti_status read_shape(int dim_count, const int64_t *dims, int64_t *ret_rows,
                               int64_t *ret_columns)
{
    int64_t rows = 1, count;
    for (int i = 0; i < dim_count; i++)
        if (dims[i] < 0 || (i + 1 < dim_count && !tutti__mul_size(rows, dims[i], &rows)))
            return tutti_fail(TUTTI_INVALID, "a compressor for dimension %d of %lld", i,
                              (long long)dims[i]);
    int64_t columns = dim_count > 0 ? dims[dim_count - 1] : 1;
    if (!tutti__mul_size(rows, columns, &count) || !tutti__mul_size(count, 16, &count))
        return tutti_fail(TUTTI_TOO_LARGE, "a compressor for %lld x %lld numbers", (long long)rows,
                          (long long)columns);
    *ret_rows = rows;
    *ret_columns = columns;
    return TUTTI_OK;
}

tutti_status tutti_compressor_create(const char *name, int dim_count, const int64_t *dims,
                                     tutti_compressor **ret_compressor)
{
    TUTTI_REQUIRE(name);
    if (dim_count > 0)
        TUTTI_REQUIRE(dims);
    TUTTI_REQUIRE(ret_compressor);
    tutti_compressor made = {0};
    TUTTI_TRY(read_name(name, &made.by, &made.argument));
    TUTTI_TRY(read_shape(dim_count, dims, &made.rows, &made.columns));
    made.state_count = made.by->state ? made.by->state(&made) : 0;
    tutti_compressor *compressor = malloc(sizeof *compressor);
    if (made.state_count > 0)
        made.state = calloc((size_t)made.state_count, sizeof *made.state);
    if (!compressor || (made.state_count > 0 && !made.state)) {
        free(compressor), free(made.state);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to remember %lld numbers for '%s'",
                          (long long)made.state_count, name);
    }
    *compressor = made;
    if (made.by->begin)
        made.by->begin(compressor);
    *ret_compressor = compressor;
    return TUTTI_OK;
}

void tutti_compressor_free(tutti_compressor *compressor)
{
    if (!compressor)
        return;
    free(compressor->state);
    free(compressor);
}

int64_t tutti_compressor_bytes(const tutti_compressor *compressor)
{
    if (compressor->by->bytes)
        return compressor->by->bytes(compressor);
    return compressor->rows * compressor->columns * (int64_t)tutti_dtype_size(compressor->by->wire);
}

float *tutti_compressor_state(tutti_compressor *compressor, int64_t *ret_count)
{
    *ret_count = compressor->state_count;
    return compressor->state;
}

tutti_status tutti__compressor_fits(tutti_collective *c)
{
    const tutti_compressor *compressor = c->compressor;
    if (c->dtype != TUTTI_F32 || c->count != compressor->rows * compressor->columns || c->shards ||
        c->codec || (c->reduction != TUTTI_SUM && c->reduction != TUTTI_MEAN))
        return tutti_fail(TUTTI_INVALID,
                          "all_reduce of %lld x %s by '%s': the compressor was made for %lld x "
                          "%lld numbers of f32 and can do sum and mean, without wire, codec or "
                          "shards",
                          (long long)c->count, tutti_dtype_name(c->dtype), compressor->by->name,
                          (long long)compressor->rows, (long long)compressor->columns);
    if (compressor->by->wire) {
        c->codec = tutti__wire_codec(compressor->by->wire);
        c->compressor = NULL;
    }
    return TUTTI_OK;
}

tutti_status tutti__compressor_call(const tutti_collective *outer, tutti_operation operation,
                                    const void *in, void *out, int64_t count, tutti_dtype dtype)
{
    tutti_collective inner = {.comm = outer->comm,
                              .rank = outer->rank,
                              .size = outer->size,
                              .operation = operation,
                              .name = outer->name,
                              .in = in,
                              .out = out,
                              .count = count,
                              .dtype = dtype,
                              .element = tutti_dtype_size(dtype),
                              .reduction = outer->reduction,
                              .tag = outer->tag,
                              .deadline_ns = outer->deadline_ns};
    inner.fold = tutti__fold_find(dtype, inner.reduction);
    return tutti__coll_choose(&inner)->on[operation].run(&inner);
}
