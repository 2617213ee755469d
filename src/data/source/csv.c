/* csv.c: tables of comma-separated values. */
#include <stdlib.h>
#include <string.h>

#include "data/bytes.h"
#include "data/source/rows.h"
#include "io/csv.h"

extern const tutti_dataset_def tutti_dataset_def_csv;

/* Columns that were chosen, each with a reference of its own. */
typedef struct choice {
    int count; /* without the label */
    const char *names[TUTTI_MAX_COMPONENTS];
    tutti_tensor *tensors[TUTTI_MAX_COMPONENTS];
    int64_t classes;
} choice;

static void choice_clear(choice *c)
{
    for (int i = 0; i < c->count; i++)
        tutti_tensor_release(c->tensors[i]);
    c->count = 0;
}

static tutti_status csv_find(const char *path, const tutti_named_tensors *table, const char *name,
                             tutti_tensor **ret)
{
    tutti_tensor *column = tutti_named_tensors_find(table, name);
    if (column) {
        *ret = column;
        return TUTTI_OK;
    }
    tutti_text known = {0};
    for (size_t i = 0; i < table->count && i < 20; i++)
        tutti__text_add(&known, "%s%s", i ? ", " : "", table->items[i].name);
    tutti_status status =
        tutti_fail(TUTTI_NOT_FOUND, "%s has no column '%s'; it has: %s%s", path, name,
                   known.data ? known.data : "", table->count > 20 ? ", …" : "");
    tutti__text_free(&known);
    return status;
}

static int csv_compare(const void *a, const void *b)
{
    const tutti_string *x = a, *y = b;
    int64_t least = x->size < y->size ? x->size : y->size;
    int order = least > 0 ? memcmp(x->data, y->data, (size_t)least) : 0;
    return order ? order : (x->size > y->size) - (x->size < y->size);
}

/* Texts to numbers of classes, in the texts' order. */
static tutti_status number_texts(tutti_tensor *column, int64_t *ret_classes, tutti_tensor **ret)
{
    int64_t count = tutti_tensor_count(column), classes = 0;
    tutti_tensor *numbers;
    tutti_string *texts = malloc((size_t)(count + 1) * sizeof *texts);
    if (!texts)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %lld labels", (long long)count);
    for (int64_t i = 0; i < count; i++)
        texts[i] = tutti_tensor_get_string(column, i);
    qsort(texts, (size_t)count, sizeof *texts, csv_compare);
    for (int64_t i = 0; i < count; i++)
        if (i == 0 || csv_compare(&texts[i], &texts[classes - 1]) != 0)
            texts[classes++] = texts[i];
    tutti_status status = tutti_tensor_create(TUTTI_I64, 1, &count, &numbers);
    for (int64_t i = 0; status == TUTTI_OK && i < count; i++) {
        tutti_string text = tutti_tensor_get_string(column, i);
        tutti_string *place = bsearch(&text, texts, (size_t)classes, sizeof *texts, csv_compare);
        tutti_tensor_set_int(numbers, i, place - texts);
    }
    free(texts);
    if (status == TUTTI_OK) {
        *ret_classes = classes;
        *ret = numbers;
    }
    return status;
}

/* Labels that are whole numbers from 0 on count their classes. */
static int64_t count_classes(const tutti_tensor *labels)
{
    int64_t most = -1;
    for (int64_t i = 0; i < tutti_tensor_count(labels); i++) {
        int64_t label = tutti_tensor_get_int(labels, i);
        if (label < 0 || label > 1000000)
            return 0;
        most = label > most ? label : most;
    }
    return most + 1;
}

static tutti_status read_label(choice *c, tutti_tensor *column, const char *name)
{
    tutti_tensor *labels = NULL;
    if (tutti_tensor_dtype(column) == TUTTI_STRING)
        TUTTI_TRY(number_texts(column, &c->classes, &labels));
    else
        labels = tutti_tensor_retain(column);
    if (tutti_tensor_dtype(column) == TUTTI_I64)
        c->classes = count_classes(column);
    c->names[c->count] = name;
    c->tensors[c->count++] = labels;
    return TUTTI_OK;
}

static tutti_status csv_add(choice *c, const char *path, const char *name, tutti_tensor *column,
                            int room)
{
    if (c->count == room)
        return tutti_fail(TUTTI_INVALID,
                          "%s has more than %d columns; choose some with .columns, or make one "
                          "vector of them with .stack = true",
                          path, room);
    c->names[c->count] = name;
    c->tensors[c->count++] = tutti_tensor_retain(column);
    return TUTTI_OK;
}

/* The label stands last, also when it is among the chosen columns. */
static bool is_label(const tutti_csv_settings *s, const char *name)
{
    return s->label && strcmp(name, s->label) == 0;
}

/* Numbers of several columns as f32[rows, columns]. `wanted` NULL: all but the label. */
static tutti_status stack(const char *path, const tutti_named_tensors *table,
                          const tutti_csv_settings *s, choice *c)
{
    bool all = !s->columns[0];
    const tutti_tensor *columns[TUTTI_MAX_COMPONENTS] = {NULL};
    int64_t dims[2] = {table->count ? tutti_tensor_count(table->items[0].tensor) : 0, 0};
    tutti_tensor *rows, *column;
    for (int i = 0; !all && i < TUTTI_MAX_COMPONENTS && s->columns[i]; i++) {
        TUTTI_TRY(csv_find(path, table, s->columns[i], &column));
        columns[i] = column;
        dims[1] += !is_label(s, s->columns[i]);
    }
    if (all)
        dims[1] = (int64_t)table->count - (s->label != NULL);
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 2, dims, &rows));
    c->names[c->count] = "x";
    c->tensors[c->count++] = rows;
    int64_t at = 0;
    for (size_t i = 0; at < dims[1]; i++) {
        const char *name = all ? table->items[i].name : s->columns[i];
        const tutti_tensor *from = all ? table->items[i].tensor : columns[i];
        if (is_label(s, name))
            continue;
        if (tutti_tensor_dtype(from) == TUTTI_STRING)
            return tutti_fail(TUTTI_INVALID, "%s: column '%s' holds texts; .stack needs numbers",
                              path, name);
        for (int64_t r = 0; r < dims[0]; r++)
            ((float *)tutti_tensor_data(rows))[r * dims[1] + at] = (float)tutti_tensor_get(from, r);
        at++;
    }
    return TUTTI_OK;
}

static tutti_status csv_choose(const char *path, const tutti_named_tensors *table,
                               const tutti_csv_settings *s, choice *c)
{
    tutti_tensor *label = NULL, *column;
    int room = TUTTI_MAX_COMPONENTS - (s->label != NULL);
    if (s->label)
        TUTTI_TRY(csv_find(path, table, s->label, &label));
    if (s->stack) {
        TUTTI_TRY(stack(path, table, s, c));
    } else if (s->columns[0]) {
        for (int i = 0; i < TUTTI_MAX_COMPONENTS && s->columns[i]; i++) {
            TUTTI_TRY(csv_find(path, table, s->columns[i], &column));
            if (!is_label(s, s->columns[i]))
                TUTTI_TRY(csv_add(c, path, s->columns[i], column, room));
        }
    } else {
        for (size_t i = 0; i < table->count; i++)
            if (!is_label(s, table->items[i].name))
                TUTTI_TRY(csv_add(c, path, table->items[i].name, table->items[i].tensor, room));
    }
    return label ? read_label(c, label, s->label) : TUTTI_OK;
}

static tutti_status read_table(const char *path, const tutti_csv_settings *s,
                               tutti_named_tensors *ret)
{
    void *data;
    size_t size;
    tutti_source *source;
    tutti_csv csv = {0};
    tutti_csv_options options = {
        .delimiter = s->separator, .no_header = s->no_header, .missing = s->missing};
    TUTTI_TRY(tutti__bytes_read(path, &data, &size));
    tutti_status status = tutti__source_bytes(path, data, size, &source);
    if (status == TUTTI_OK)
        status = tutti__csv_open(source, &options, &csv);
    if (status == TUTTI_OK)
        status = tutti__csv_table(&csv, ret);
    tutti__csv_close(&csv);
    free(data);
    return status;
}

tutti_dataset *tutti_csv_with(tutti_job *job, const char *path, const tutti_csv_settings *settings)
{
    const tutti_dataset_def *def = &tutti_dataset_def_csv;
    static const tutti_csv_settings none;
    const tutti_csv_settings *s = settings ? settings : &none;
    tutti_named_tensors table = {0};
    choice c = {0};
    tutti_dataset *dataset = NULL;
    if (!tutti__job_able(job))
        return NULL;
    tutti_status status = read_table(path, s, &table);
    if (status == TUTTI_OK)
        status = csv_choose(path, &table, s, &c);
    if (status == TUTTI_OK)
        dataset = tutti__rows_dataset(job, def, c.count, c.tensors, NULL, NULL);
    else
        tutti__dataset_fail(job, def, status);
    for (int i = 0; dataset && i < c.count; i++)
        dataset->info.names[i] = tutti__dataset_name(job, c.names[i]);
    if (dataset)
        dataset->info.classes = c.classes;
    choice_clear(&c);
    tutti_named_tensors_clear(&table);
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_csv = {
    .name = "csv",
    .doc = "tables of comma-separated values",
    .settings_size = TUTTI_ROWS_SETTINGS,
    .destroy = tutti__rows_destroy,
    .at = tutti__rows_at,
    .gather = tutti__rows_gather,
};
