/* csv_table.c: all rows as columns of one type each. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "io/csv.h"
#include "io/number.h"

/* What the cells of a column were so far. */
typedef struct seen {
    bool texts, fractions, holes, any; /* holes: cells that are missing; any: one that is not */
} seen;

typedef struct table {
    tutti_csv *csv;
    tutti_arena arena;              /* the fields' bytes */
    TUTTI_VEC(tutti_string) fields; /* row by row */
    int64_t rows;
    seen *columns;
} table;

static void see(const tutti_csv *csv, seen *column, tutti_string f)
{
    int64_t integer;
    double real;
    if (column->texts)
        return;
    if (tutti__csv_is_missing(csv, f)) {
        column->holes = true;
        return;
    }
    column->any = true;
    if ((column->fractions || !tutti__integer_parse(f.data, (size_t)f.size, &integer))) {
        column->fractions = true;
        column->texts = !tutti__number_parse(f.data, (size_t)f.size, &real);
    }
}

static tutti_dtype type_of(const seen *column)
{
    return column->texts || !column->any        ? TUTTI_STRING
           : column->fractions || column->holes ? TUTTI_F32
                                                : TUTTI_I64;
}

static tutti_status keep_row(table *t, const tutti_string *fields)
{
    for (size_t i = 0; i < t->csv->count; i++) {
        tutti_string copy = {tutti__arena_bytes(&t->arena, fields[i].data, (size_t)fields[i].size),
                             fields[i].size};
        if (copy.data == NULL || !TUTTI_VEC_PUSH(&t->fields, copy))
            return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for row %lld",
                              t->csv->lines.source->name, (long long)t->rows + 1);
    }
    return TUTTI_OK;
}

static tutti_string field_at(const table *t, int64_t row, size_t column)
{
    size_t index = (size_t)row * t->csv->count + column;
    return index < t->fields.count ? t->fields.data[index] : (tutti_string){0};
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
                            : type_of(&t->columns[column]);
    tutti_tensor *tensor;
    TUTTI_TRY(tutti_tensor_create(dtype, 1, &t->rows, &tensor));
    tutti_status status = csv_table_fill(t, column, tensor);
    if (status != TUTTI_OK) {
        tutti_tensor_release(tensor);
        return status;
    }
    return tutti__named_add(list, t->csv->names[column], strlen(t->csv->names[column]), tensor);
}

/* The rest of the file, its rows kept or only looked at. */
static tutti_status read_rows(table *t, bool keep)
{
    const tutti_string *fields;
    t->columns = calloc(t->csv->count + 1, sizeof *t->columns);
    if (t->columns == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for %zu columns",
                          t->csv->lines.source->name, t->csv->count);
    for (;;) {
        TUTTI_TRY(tutti__csv_next(t->csv, &fields));
        if (fields == NULL)
            return TUTTI_OK;
        for (size_t i = 0; i < t->csv->count; i++)
            see(t->csv, &t->columns[i], fields[i]);
        if (keep)
            TUTTI_TRY(keep_row(t, fields));
        t->rows++;
    }
}

static void free_table(table *t)
{
    TUTTI_VEC_FREE(&t->fields);
    tutti__arena_free(&t->arena);
    free(t->columns);
}

tutti_status tutti__csv_table(tutti_csv *csv, tutti_named_tensors *ret_columns)
{
    table t = {.csv = csv};
    tutti_named_tensors list = {0};
    tutti_status status = read_rows(&t, true);
    for (size_t i = 0; i < csv->count && status == TUTTI_OK; i++)
        status = add_column(&t, i, &list);
    free_table(&t);
    if (status != TUTTI_OK)
        tutti_named_tensors_clear(&list);
    else
        *ret_columns = list;
    return status;
}

tutti_status tutti__csv_types(tutti_csv *csv, tutti_dtype **ret_types, int64_t *ret_rows)
{
    table t = {.csv = csv};
    tutti_dtype *types = calloc(csv->count + 1, sizeof *types);
    tutti_status status = types != NULL
                              ? read_rows(&t, false)
                              : tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for %zu columns",
                                           csv->lines.source->name, csv->count);
    for (size_t i = 0; i < csv->count && status == TUTTI_OK; i++)
        types[i] = type_of(&t.columns[i]);
    free_table(&t);
    if (status != TUTTI_OK) {
        free(types);
        return status;
    }
    *ret_types = types;
    *ret_rows = t.rows;
    return TUTTI_OK;
}
