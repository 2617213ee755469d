/* gradient.c: see gradient.h. Sums are made in double and rounded once. */
#include "service/store/gradient.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "tensor/dtype.h"

int64_t tutti__store_row_elements(const tutti_type *type)
{
    int64_t count = 1;
    for (int i = 1; i < type->rank; i++)
        count *= type->dims[i];
    return count;
}

static size_t row_bytes(const tutti_type *type)
{
    return (size_t)tutti__store_row_elements(type) * tutti_dtype_size(type->dtype);
}

/* Bytes of all rows, or SIZE_MAX where they are more than memory. */
static size_t dense_bytes(const tutti_type *type)
{
    int64_t bytes;
    int64_t count = tutti_type_count(type);
    return count >= 0 && tutti__mul_size(count, (int64_t)tutti_dtype_size(type->dtype), &bytes)
               ? (size_t)bytes
               : SIZE_MAX;
}

tutti_status tutti__store_gradient_fits(const char *shard, const tutti_type *type,
                                        const tutti_store_message *m)
{
    char text[TUTTI_TYPE_TEXT];
    size_t rows = tutti__store_row_count(m);
    if (m->form == TUTTI_STORE_NOTHING || (m->form == TUTTI_STORE_DENSE && rows == 0)) {
        size_t wanted = m->form == TUTTI_STORE_DENSE ? dense_bytes(type) : 0;
        if (m->data.size == wanted)
            return TUTTI_OK;
        return tutti_fail(TUTTI_INVALID,
                          "shard '%s' is %s, so a push of it has %zu bytes; this one has %zu",
                          shard, tutti_type_text(type, text), wanted, m->data.size);
    }
    if (m->form != TUTTI_STORE_ROWS || type->rank < 1)
        return tutti_fail(TUTTI_INVALID, "shard '%s' is %s, which has no rows to push", shard,
                          tutti_type_text(type, text));
    if (m->data.size != rows * row_bytes(type))
        return tutti_fail(
            TUTTI_INVALID, "shard '%s' is %s, so %zu rows of it have %zu bytes; this push has %zu",
            shard, tutti_type_text(type, text), rows, rows * row_bytes(type), m->data.size);
    for (size_t i = 0; i < rows; i++) {
        int64_t row = tutti__store_row(m, i);
        if (row < 0 || (type->dims[0] != TUTTI_ANY && row >= type->dims[0]))
            return tutti_fail(TUTTI_OUT_OF_RANGE,
                              "shard '%s' is %s and has no row %" PRId64 " (index %zu of the push)",
                              shard, tutti_type_text(type, text), row, i);
    }
    return TUTTI_OK;
}

enum { BLOCK = 256 };

bool tutti__store_gradient_is_finite(const tutti_type *type, const tutti_store_message *m)
{
    size_t element = tutti_dtype_size(type->dtype);
    double block[BLOCK];
    if (!tutti_dtype_is_float(type->dtype))
        return true;
    for (size_t at = 0; at < m->data.size; at += BLOCK * element) {
        size_t count = (m->data.size - at) / element;
        count = count < BLOCK ? count : BLOCK;
        tutti__elements_to_doubles(type->dtype, m->data.bytes + at, (int64_t)count, block);
        for (size_t i = 0; i < count; i++)
            if (!isfinite(block[i]))
                return false;
    }
    return true;
}

void tutti__store_gradient_free(tutti_store_gradient *gradient)
{
    free(gradient->rows);
    free(gradient->data);
    *gradient = (tutti_store_gradient){0};
}

static tutti_status gradient_room(uint32_t form, size_t rows, size_t bytes,
                                  tutti_store_gradient *ret)
{
    tutti_store_gradient made = {.form = form, .row_count = rows, .bytes = bytes};
    made.rows = rows > 0 ? malloc(rows * sizeof *made.rows) : NULL;
    made.data = bytes > 0 ? calloc(1, bytes) : NULL;
    if ((rows > 0 && !made.rows) || (bytes > 0 && !made.data)) {
        tutti__store_gradient_free(&made);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a gradient of %zu bytes", bytes);
    }
    *ret = made;
    return TUTTI_OK;
}

/* to += weight * from, elements of the type, into doubles. */
static void add_to(const tutti_type *type, const uint8_t *from, int64_t count, double weight,
                   double *to)
{
    size_t element = tutti_dtype_size(type->dtype);
    double block[BLOCK];
    for (int64_t at = 0; at < count; at += BLOCK) {
        int64_t here = count - at < BLOCK ? count - at : BLOCK;
        tutti__elements_to_doubles(type->dtype, from + (size_t)at * element, here, block);
        for (int64_t i = 0; i < here; i++)
            to[at + i] += weight * block[i];
    }
}

/* One row of one gradient, on its way into a sum. */
typedef struct gradient_row {
    int64_t row;
    size_t order; /* in which they are summed */
    const uint8_t *from;
    double weight;
} gradient_row;

static int compare_rows(const void *a, const void *b)
{
    const gradient_row *x = a, *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* Sums rows of equal index; `list` is sorted here. The sum over `divisor` is rounded once; a row
 * that stands alone with weight and divisor 1 keeps its bits. */
static tutti_status gradient_sum_rows(const tutti_type *type, size_t count, gradient_row *list,
                                      double divisor, tutti_store_gradient *ret)
{
    int64_t elements = tutti__store_row_elements(type);
    size_t size = row_bytes(type), distinct = 0;
    double *sum = malloc((size_t)(elements > 0 ? elements : 1) * sizeof *sum);
    qsort(list, count, sizeof *list, compare_rows);
    for (size_t i = 0; i < count; i++)
        distinct += i == 0 || list[i].row != list[i - 1].row;
    tutti_status status =
        sum ? gradient_room(TUTTI_STORE_ROWS, distinct, distinct * size, ret)
            : tutti_fail(TUTTI_NO_MEMORY, "no memory for a row of %zu bytes", size);
    for (size_t i = 0, at = 0; status == TUTTI_OK && i < count; at++) {
        size_t next = i + 1;
        ret->rows[at] = list[i].row;
        while (next < count && list[next].row == list[i].row)
            next++;
        if (next == i + 1 && list[i].weight == 1 && divisor == 1 && size > 0) {
            memcpy(ret->data + at * size, list[i].from, size);
        } else {
            memset(sum, 0, (size_t)elements * sizeof *sum);
            for (size_t j = i; j < next; j++)
                add_to(type, list[j].from, elements, list[j].weight, sum);
            for (int64_t e = 0; e < elements; e++)
                sum[e] /= divisor;
            tutti__elements_from_doubles(type->dtype, ret->data + at * size, elements, sum);
        }
        i = next;
    }
    free(sum);
    return status;
}

tutti_status tutti__store_gradient_take(const tutti_type *type, const tutti_store_message *m,
                                        tutti_store_gradient *ret)
{
    if (m->form != TUTTI_STORE_ROWS) {
        TUTTI_TRY(gradient_room(m->form, 0, m->data.size, ret));
        if (m->data.size > 0)
            memcpy(ret->data, m->data.bytes, m->data.size);
        return TUTTI_OK;
    }
    size_t count = tutti__store_row_count(m), size = row_bytes(type);
    gradient_row *list = malloc((count > 0 ? count : 1) * sizeof *list);
    if (!list)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %zu rows", count);
    for (size_t i = 0; i < count; i++)
        list[i] = (gradient_row){tutti__store_row(m, i), i, m->data.bytes + i * size, 1};
    tutti_status status = gradient_sum_rows(type, count, list, 1, ret);
    free(list);
    return status;
}

static tutti_status gradient_mean_rows(const tutti_type *type, size_t count,
                                       const tutti_store_gradient *const *gradients,
                                       const double *weights, double total,
                                       tutti_store_gradient *ret)
{
    size_t rows = 0, at = 0, size = row_bytes(type);
    for (size_t i = 0; i < count; i++)
        rows += gradients[i]->row_count;
    gradient_row *list = malloc((rows > 0 ? rows : 1) * sizeof *list);
    if (!list)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %zu rows", rows);
    for (size_t i = 0; i < count; i++)
        for (size_t r = 0; r < gradients[i]->row_count; r++, at++)
            list[at] = (gradient_row){gradients[i]->rows[r], at, gradients[i]->data + r * size,
                                      weights[i]};
    tutti_status status = gradient_sum_rows(type, rows, list, total, ret);
    free(list);
    return status;
}

/* Gradients that count alike are summed pairwise, each sum rounded to the type: the tree along
 * which one process sums the shards of a batch in deterministic mode. */
static void mean_block(const tutti_type *type, size_t count,
                       const tutti_store_gradient *const *gradients, size_t at, int64_t here,
                       double (*sums)[BLOCK], uint8_t *ret)
{
    for (size_t i = 0; i < count; i++)
        tutti__elements_to_doubles(type->dtype, gradients[i]->data + at, here, sums[i]);
    for (size_t step = 1; step < count; step *= 2)
        for (size_t i = 0; i + step < count; i += 2 * step) {
            for (int64_t e = 0; e < here; e++)
                sums[i][e] += sums[i + step][e];
            tutti__elements_from_doubles(type->dtype, ret, here, sums[i]);
            tutti__elements_to_doubles(type->dtype, ret, here, sums[i]);
        }
    for (int64_t e = 0; e < here; e++)
        sums[0][e] /= (double)count;
    tutti__elements_from_doubles(type->dtype, ret, here, sums[0]);
}

static tutti_status gradient_mean_alike(const tutti_type *type, size_t count,
                                        const tutti_store_gradient *const *gradients,
                                        tutti_store_gradient *ret)
{
    size_t element = tutti_dtype_size(type->dtype);
    double(*sums)[BLOCK] = calloc(count, sizeof *sums);
    tutti_store_gradient made = {0};
    tutti_status status =
        sums ? gradient_room(TUTTI_STORE_DENSE, 0, dense_bytes(type), &made)
             : tutti_fail(TUTTI_NO_MEMORY, "no memory for the mean of %zu gradients", count);
    for (size_t at = 0; status == TUTTI_OK && at < made.bytes; at += BLOCK * element) {
        size_t left = (made.bytes - at) / element;
        mean_block(type, count, gradients, at, (int64_t)(left < BLOCK ? left : BLOCK), sums,
                   made.data + at);
    }
    free(sums);
    if (status == TUTTI_OK)
        *ret = made;
    return status;
}

static tutti_status gradient_mean_dense(const tutti_type *type, size_t count,
                                        const tutti_store_gradient *const *gradients,
                                        const double *weights, double total,
                                        tutti_store_gradient *ret)
{
    int64_t elements = tutti_type_count(type), row = tutti__store_row_elements(type);
    double *sum = calloc((size_t)(elements > 0 ? elements : 1), sizeof *sum);
    tutti_store_gradient made = {0};
    tutti_status status =
        sum ? gradient_room(TUTTI_STORE_DENSE, 0, dense_bytes(type), &made)
            : tutti_fail(TUTTI_NO_MEMORY, "no memory for the mean of %zu gradients", count);
    for (size_t i = 0; status == TUTTI_OK && i < count; i++) {
        const tutti_store_gradient *g = gradients[i];
        if (g->form == TUTTI_STORE_DENSE)
            add_to(type, g->data, elements, weights[i], sum);
        for (size_t r = 0; r < g->row_count; r++)
            add_to(type, g->data + r * row_bytes(type), row, weights[i], sum + g->rows[r] * row);
    }
    if (status == TUTTI_OK) {
        for (int64_t i = 0; i < elements; i++)
            sum[i] /= total;
        tutti__elements_from_doubles(type->dtype, made.data, elements, sum);
        *ret = made;
    }
    free(sum);
    return status;
}

tutti_status tutti__store_gradient_mean(const tutti_type *type, size_t count,
                                        const tutti_store_gradient *const *gradients,
                                        const double *weights, tutti_store_gradient *ret)
{
    double total = 0;
    bool dense = false, rows = false, alike = true;
    for (size_t i = 0; i < count; i++) {
        total += weights[i];
        dense = dense || gradients[i]->form == TUTTI_STORE_DENSE;
        rows = rows || gradients[i]->form == TUTTI_STORE_ROWS;
        alike = alike && weights[i] == 1;
    }
    if (dense && !rows && alike)
        return gradient_mean_alike(type, count, gradients, ret);
    if (dense)
        return gradient_mean_dense(type, count, gradients, weights, total, ret);
    if (rows)
        return gradient_mean_rows(type, count, gradients, weights, total, ret);
    *ret = (tutti_store_gradient){0};
    return TUTTI_OK;
}

void tutti__store_gradient_scale(const tutti_type *type, tutti_store_gradient *gradient,
                                 double factor)
{
    size_t element = tutti_dtype_size(type->dtype), count = gradient->bytes / element;
    double block[BLOCK];
    if (factor == 1)
        return;
    for (size_t at = 0; at < count; at += BLOCK) {
        size_t here = count - at < BLOCK ? count - at : BLOCK;
        uint8_t *data = gradient->data + at * element;
        tutti__elements_to_doubles(type->dtype, data, (int64_t)here, block);
        for (size_t i = 0; i < here; i++)
            block[i] *= factor;
        tutti__elements_from_doubles(type->dtype, data, (int64_t)here, block);
    }
}

tutti_status tutti__store_gradient_dense(const tutti_type *type,
                                         const tutti_store_gradient *gradient,
                                         tutti_store_gradient *ret)
{
    size_t size = row_bytes(type);
    TUTTI_TRY(gradient_room(TUTTI_STORE_DENSE, 0, dense_bytes(type), ret));
    for (size_t i = 0; i < gradient->row_count; i++)
        memcpy(ret->data + (size_t)gradient->rows[i] * size, gradient->data + i * size, size);
    return TUTTI_OK;
}

void tutti__store_gradient_save(const tutti_store_gradient *gradient, tutti_text *out)
{
    saved_put(out, gradient->form);
    saved_put(out, gradient->row_count);
    for (size_t i = 0; i < gradient->row_count; i++)
        saved_put(out, (uint64_t)gradient->rows[i]);
    saved_put_bytes(out, gradient->data, gradient->bytes);
}

tutti_status tutti__store_gradient_load(const tutti_type *type, saved_reader *in,
                                        tutti_store_gradient *ret)
{
    tutti_store_message m = {.form = (uint32_t)saved_get(in)};
    size_t rows = saved_get_count(in, 8);
    m.rows = (tutti_packed_data){in->at, rows * 8};
    in->at += rows * 8;
    m.data = saved_get_bytes(in);
    if (in->bad || m.form >= TUTTI_STORE_FORMS)
        return tutti_fail(TUTTI_CORRUPT, "a saved gradient is cut short");
    TUTTI_TRY(tutti__store_gradient_fits("saved", type, &m));
    return tutti__store_gradient_take(type, &m, ret);
}
