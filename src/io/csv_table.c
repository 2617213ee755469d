/* csv_table.c: all rows as columns of one type each. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "io/csv.h"
#include "io/number.h"

typedef struct table {
    tutti_csv *csv;
    tutti_arena arena;              /* the fields' bytes */
    TUTTI_VEC(tutti_string) fields; /* row by row */
    int64_t rows;
} table;

static tutti_status keep_row(table *t, const tutti_string *fields)
{
    for (size_t i = 0; i < t->csv->count; i++) {
        tutti_string copy = {tutti__arena_bytes(&t->arena, fields[i].data, (size_t)fields[i].size),
                             fields[i].size};
        if (copy.data == NULL || !TUTTI_VEC_PUSH(&t->fields, copy))
            return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for row %lld",
                              t->csv->lines.source->name, (long long)t->rows + 1);
    }
    t->rows++;
    return TUTTI_OK;
}

static tutti_string field_at(const table *t, int64_t row, size_t column)
{
    size_t index = (size_t)row * t->csv->count + column;
    return index < t->fields.count ? t->fields.data[index] : (tutti_string){0};
}

static tutti_dtype csv_table_infer(const table *t, size_t column)
{
    bool integers = t->rows > 0, numbers = true, any = false;
    for (int64_t r = 0; r < t->rows && numbers; r++) {
        tutti_string f = field_at(t, r, column);
        int64_t integer;
        double real;
        if (tutti__csv_is_missing(t->csv, f)) {
            integers = false;
            continue;
        }
        any = true;
        integers = integers && tutti__integer_parse(f.data, (size_t)f.size, &integer);
        numbers = integers || tutti__number_parse(f.data, (size_t)f.size, &real);
    }
    return !numbers || !any ? TUTTI_STRING : integers ? TUTTI_I64 : TUTTI_F32;
}

static tutti_status fail_value(const table *t, int64_t row, size_t column, tutti_dtype dtype)
{
    tutti_string f = field_at(t, row, column);
    return tutti_fail(TUTTI_CORRUPT, "%s: row %lld, column '%.100s': '%.*s' is no %s",
                      t->csv->lines.source->name, (long long)row + 1, t->csv->names[column],
                      (int)(f.size < 60 ? f.size : 60), f.data, tutti_dtype_name(dtype));
}

static tutti_status csv_table_fill(const table *t, size_t column, tutti_tensor *tensor)
{
    tutti_dtype dtype = tutti_tensor_dtype(tensor);
    for (int64_t r = 0; r < t->rows; r++) {
        tutti_string f = field_at(t, r, column);
        bool missing = tutti__csv_is_missing(t->csv, f);
        int64_t integer;
        double real = NAN;
        if (dtype == TUTTI_STRING) {
            TUTTI_TRY(tutti_tensor_set_string(tensor, r, f.data, missing ? 0 : f.size));
        } else if (tutti_dtype_is_float(dtype)) {
            if (!missing && !tutti__number_parse(f.data, (size_t)f.size, &real))
                return fail_value(t, r, column, dtype);
            tutti_tensor_set(tensor, r, real);
        } else {
            if (missing || !tutti__integer_parse(f.data, (size_t)f.size, &integer))
                return fail_value(t, r, column, dtype);
            tutti_tensor_set_int(tensor, r, integer);
            if (tutti_tensor_get_int(tensor, r) != integer)
                return fail_value(t, r, column, dtype);
        }
    }
    return TUTTI_OK;
}

static tutti_status add_column(const table *t, size_t column, tutti_named_tensors *list)
{
    const tutti_dtype *given = t->csv->options.dtypes;
    tutti_dtype dtype = given != NULL && given[column] != TUTTI_NO_DTYPE
                            ? given[column]
                            : csv_table_infer(t, column);
    tutti_tensor *tensor;
    TUTTI_TRY(tutti_tensor_create(dtype, 1, &t->rows, &tensor));
    tutti_status status = csv_table_fill(t, column, tensor);
    if (status != TUTTI_OK) {
        tutti_tensor_release(tensor);
        return status;
    }
    return tutti__named_add(list, t->csv->names[column], strlen(t->csv->names[column]), tensor);
}

tutti_status tutti__csv_table(tutti_csv *csv, tutti_named_tensors *ret_columns)
{
    table t = {.csv = csv};
    tutti_named_tensors list = {0};
    const tutti_string *fields;
    tutti_status status;
    while ((status = tutti__csv_next(csv, &fields)) == TUTTI_OK && fields != NULL)
        if ((status = keep_row(&t, fields)) != TUTTI_OK)
            break;
    for (size_t i = 0; i < csv->count && status == TUTTI_OK; i++)
        status = add_column(&t, i, &list);
    TUTTI_VEC_FREE(&t.fields);
    tutti__arena_free(&t.arena);
    if (status != TUTTI_OK)
        tutti_named_tensors_clear(&list);
    else
        *ret_columns = list;
    return status;
}
