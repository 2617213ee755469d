/* rule_hashed.c: rows that exist where they were touched: a table of 10^15 rows, or of keys without
 * bound. A row that nobody pushed reads as its first value, a function of the table's name and the
 * row, and takes no memory.
 *
 * A touched row has a record: the value and the optimizer's slots, one behind the other. An update
 * gathers records into blocks of TUTTI_STORE_BLOCK_ROWS, runs the graph on each block, and puts
 * them back; what is no row (a step count) moves once for the whole update. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/c_locale.h"
#include "base/random.h"
#include "service/store/update_graph.h"
#include "tensor/dtype.h"

enum { ROWS = TUTTI_STORE_BLOCK_ROWS };

typedef enum first_kind { FIRST_CONSTANT, FIRST_NORMAL, FIRST_UNIFORM } first_kind;

typedef struct hashed_rule {
    tutti_store_rule rule;
    tutti_type block; /* [ROWS, …] */
    size_t row;       /* bytes of a row of one variable */
    int64_t elements; /* of a row */
    tutti_update_graph update;
    TUTTI_VEC(tutti_sym) parts;  /* of a record: the value, then slots */
    TUTTI_VEC(tutti_sym) others; /* variables that are no rows */
    uint8_t *begin;              /* a record before its first update; the value's part unused */
    first_kind first;
    double first_number;
    uint64_t seed;
    TUTTI_VEC(int64_t) keys; /* in the order in which they were touched */
    uint8_t *records;        /* [keys.capacity] */
    size_t record_room;
    uint32_t *index; /* open addressing: place in keys + 1; 0: empty */
    size_t index_size;
} hashed_rule;

static size_t record_bytes(const hashed_rule *r)
{
    return r->row * r->parts.count;
}

static uint8_t *record_at(const hashed_rule *r, size_t i)
{
    return r->records + i * record_bytes(r);
}

static uint32_t *index_of(const hashed_rule *r, int64_t key)
{
    size_t at = (size_t)tutti__hash_mix(r->seed, (uint64_t)key) & (r->index_size - 1);
    while (r->index[at] != 0 && r->keys.data[r->index[at] - 1] != key)
        at = (at + 1) & (r->index_size - 1);
    return &r->index[at];
}

static bool index_grow(hashed_rule *r)
{
    size_t size = r->index_size > 0 ? 2 * r->index_size : 64;
    uint32_t *old = r->index, *made = calloc(size, sizeof *made);
    if (!made)
        return false;
    r->index = made;
    r->index_size = size;
    for (size_t i = 0; i < r->keys.count; i++)
        *index_of(r, r->keys.data[i]) = (uint32_t)i + 1;
    free(old);
    return true;
}

static void first_value(const hashed_rule *r, int64_t key, uint8_t *to)
{
    tutti_random_key random = {r->seed, (uint64_t)key};
    for (int64_t i = 0; i < r->elements; i++) {
        double x = r->first_number;
        if (r->first == FIRST_NORMAL)
            x *= tutti__random_normal(random, (uint64_t)i);
        else if (r->first == FIRST_UNIFORM)
            x *= 2 * (double)tutti__random_f32(random, (uint64_t)i) - 1;
        tutti__elements_from_doubles(r->block.dtype,
                                     to + (size_t)i * tutti_dtype_size(r->block.dtype), 1, &x);
    }
}

/* Room for the records of as many keys as there is room for. */
static bool records_grow(hashed_rule *r)
{
    uint8_t *records = realloc(r->records, r->keys.capacity * record_bytes(r) + 1);
    if (!records)
        return false;
    r->records = records;
    r->record_room = r->keys.capacity;
    return true;
}

/* The record of a row, made where it was never touched. *ret_place counts from 0. */
static tutti_status touch(hashed_rule *r, int64_t key, size_t *ret_place)
{
    bool good = r->keys.count < UINT32_MAX - 1 &&
                (2 * (r->keys.count + 1) <= r->index_size || index_grow(r));
    uint32_t *found = good ? index_of(r, key) : NULL;
    if (found && *found != 0) {
        *ret_place = *found - 1;
        return TUTTI_OK;
    }
    good = good && TUTTI_VEC_RESERVE_ONE(&r->keys);
    good = good && (r->record_room == r->keys.capacity || records_grow(r));
    if (!good)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for one more row beside %zu", r->keys.count);
    size_t place = r->keys.count++;
    r->keys.data[place] = key;
    *found = (uint32_t)place + 1;
    memcpy(record_at(r, place), r->begin, record_bytes(r));
    first_value(r, key, record_at(r, place));
    *ret_place = place;
    return TUTTI_OK;
}

/* ---- opening ---- */

static tutti_status read_first(const tutti_store_message *create, hashed_rule *r)
{
    static const char *const names[] = {"constant:", "normal:", "uniform:"};
    const char *text = create->initial;
    r->seed = tutti__hash_string(0, create->text);
    if (text[0] == '\0')
        return TUTTI_OK;
    for (int i = 0; i < (int)TUTTI_COUNT(names); i++) {
        size_t length = strlen(names[i]);
        char *end;
        if (strncmp(text, names[i], length) != 0)
            continue;
        r->first = (first_kind)i;
        r->first_number = tutti__strtod(text + length, &end);
        if (end != text + length && *end == '\0')
            return TUTTI_OK;
    }
    return tutti_fail(TUTTI_INVALID,
                      "shard '%s': rows cannot begin with '%s'; there are constant:x, "
                      "normal:deviation and uniform:limit",
                      create->text, text);
}

/* Which variables have rows; what a record begins with. */
static tutti_status find_records(hashed_rule *r)
{
    bool good = TUTTI_VEC_PUSH(&r->parts, r->update.value);
    for (size_t i = 0; good && i < r->update.variables.count; i++) {
        tutti_sym v = r->update.variables.data[i];
        tutti_type type = tutti_sym_type(v);
        type.handle = false;
        if (v.node == r->update.value.node)
            continue;
        good = tutti_type_equal(&type, &r->block) ? TUTTI_VEC_PUSH(&r->parts, v)
                                                  : TUTTI_VEC_PUSH(&r->others, v);
    }
    r->begin = good ? calloc(1, record_bytes(r) + 1) : NULL;
    if (!r->begin)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a table of rows");
    for (size_t p = 1; p < r->parts.count; p++) {
        tutti_tensor *slot = NULL;
        TUTTI_TRY(tutti_session_get(r->update.session, r->parts.data[p], &slot));
        memcpy(r->begin + p * r->row, tutti_tensor_data(slot), r->row);
        tutti_tensor_release(slot);
    }
    return TUTTI_OK;
}

static void hashed_close(tutti_store_rule *rule)
{
    hashed_rule *r = (void *)rule;
    tutti__store_update_graph_close(&r->update);
    TUTTI_VEC_FREE(&r->parts);
    TUTTI_VEC_FREE(&r->others);
    TUTTI_VEC_FREE(&r->keys);
    free(r->begin);
    free(r->records);
    free(r->index);
    free(r);
}

static tutti_status hashed_begin(const tutti_store_message *create, const tutti_type *type,
                                 hashed_rule *r)
{
    if (type->rank < 1 || create->data.size > 0)
        return tutti_fail(
            TUTTI_INVALID,
            "shard '%s': a table whose rows exist where they are touched has rows, and "
            "begins with an initializer, not with a value",
            create->text);
    r->block = *type;
    r->block.dims[0] = ROWS;
    r->elements = tutti__store_row_elements(type);
    r->row = (size_t)r->elements * tutti_dtype_size(type->dtype);
    TUTTI_TRY(read_first(create, r));
    TUTTI_TRY(tutti__store_update_graph_open(create->text, create->graph, &r->block, &r->update));
    TUTTI_TRY(find_records(r));
    return index_grow(r) ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a table of rows");
}

extern const tutti_store_rule_kind tutti_store_rule_hashed;

static tutti_status hashed_open(const tutti_store_message *create, const tutti_type *type,
                                tutti_store_rule **ret)
{
    hashed_rule *r = calloc(1, sizeof *r);
    if (!r)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for shard '%s'", create->text);
    r->rule.kind = &tutti_store_rule_hashed;
    tutti_status status = hashed_begin(create, type, r);
    if (status == TUTTI_OK)
        *ret = &r->rule;
    else
        hashed_close(&r->rule);
    return status;
}

/* ---- updating ---- */

/* Rows of one part of these records into its variable; rows of a block that nobody needs begin
 * anew.
 */
static tutti_status part_set(hashed_rule *r, size_t part, size_t count, const size_t *places)
{
    tutti_tensor *tensor = NULL;
    TUTTI_TRY(tutti_tensor_create(r->block.dtype, r->block.rank, r->block.dims, &tensor));
    uint8_t *data = tutti_tensor_data(tensor);
    for (size_t i = 0; i < ROWS; i++)
        memcpy(data + i * r->row, (i < count ? record_at(r, places[i]) : r->begin) + part * r->row,
               r->row);
    tutti_status status = tutti_session_set(r->update.session, r->parts.data[part], tensor);
    tutti_tensor_release(tensor);
    return status;
}

static tutti_status part_get(hashed_rule *r, size_t part, size_t count, const size_t *places)
{
    tutti_tensor *tensor = NULL;
    TUTTI_TRY(tutti_session_get(r->update.session, r->parts.data[part], &tensor));
    const uint8_t *data = tutti_tensor_data(tensor);
    for (size_t i = 0; i < count; i++)
        memcpy(record_at(r, places[i]) + part * r->row, data + i * r->row, r->row);
    tutti_tensor_release(tensor);
    return TUTTI_OK;
}

/* A rule that takes rows gets those of the block that are needed, numbered within it. */
static tutti_status run_on(hashed_rule *r, const tutti_store_update *update, tutti_tensor *gradient,
                           size_t count)
{
    tutti_tensor *indices = NULL, *rows = NULL;
    int64_t numbers[ROWS], needed = (int64_t)count;
    if (tutti_sym_ok(r->update.gradient))
        return tutti__store_update_graph_run(&r->update, update, gradient, NULL);
    for (int64_t i = 0; i < needed; i++)
        numbers[i] = i;
    TUTTI_TRY(tutti_tensor_from(TUTTI_I64, 1, &needed, numbers, &indices));
    tutti_status status = tutti_tensor_slice(gradient, 0, 0, needed, 1, &rows);
    if (status == TUTTI_OK)
        status = tutti__store_update_graph_run(&r->update, update, rows, indices);
    tutti_tensor_release(indices);
    tutti_tensor_release(rows);
    return status;
}

static tutti_status run_block(hashed_rule *r, const tutti_store_update *update, size_t first,
                              size_t count)
{
    size_t places[ROWS];
    tutti_tensor *gradient = NULL;
    for (size_t i = 0; i < count; i++)
        TUTTI_TRY(touch(r, update->gradient->rows[first + i], &places[i]));
    for (size_t p = 0; p < r->parts.count; p++)
        TUTTI_TRY(part_set(r, p, count, places));
    TUTTI_TRY(tutti_tensor_create(r->block.dtype, r->block.rank, r->block.dims, &gradient));
    if (count * r->row > 0)
        memcpy(tutti_tensor_data(gradient), update->gradient->data + first * r->row,
               count * r->row);
    tutti_status status = run_on(r, update, gradient, count);
    tutti_tensor_release(gradient);
    for (size_t p = 0; status == TUTTI_OK && p < r->parts.count; p++)
        status = part_get(r, p, count, places);
    return status;
}

/* What is no row is as before in every block, so that it moves once. */
static tutti_status hashed_apply(tutti_store_rule *rule, const tutti_store_update *update)
{
    hashed_rule *r = (void *)rule;
    size_t rows = update->gradient->row_count;
    tutti_tensor **before = calloc(r->others.count + 1, sizeof(tutti_tensor *));
    tutti_status status =
        before ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory to update rows");
    for (size_t i = 0; status == TUTTI_OK && i < r->others.count; i++)
        status = tutti_session_get(r->update.session, r->others.data[i], &before[i]);
    for (size_t at = 0; status == TUTTI_OK && at < rows; at += ROWS) {
        for (size_t i = 0; at > 0 && status == TUTTI_OK && i < r->others.count; i++)
            if (r->others.data[i].node != r->update.rate.node)
                status = tutti_session_set(r->update.session, r->others.data[i], before[i]);
        if (status == TUTTI_OK)
            status = run_block(r, update, at, rows - at < ROWS ? rows - at : ROWS);
    }
    for (size_t i = 0; before && i < r->others.count; i++)
        tutti_tensor_release(before[i]);
    free(before);
    return status;
}

static tutti_status hashed_read(tutti_store_rule *rule, bool all, tutti_packed_data rows,
                                tutti_tensor **ret)
{
    hashed_rule *r = (void *)rule;
    tutti_type type = r->block;
    tutti_tensor *made = NULL;
    if (all)
        return tutti_fail(TUTTI_UNSUPPORTED, "a table without bound is read by rows");
    type.dims[0] = (int64_t)(rows.size / 8);
    TUTTI_TRY(tutti_tensor_create(type.dtype, type.rank, type.dims, &made));
    for (size_t i = 0; i < rows.size / 8; i++) {
        int64_t key = tutti__packed_long(rows, i);
        uint32_t place = *index_of(r, key);
        uint8_t *to = (uint8_t *)tutti_tensor_data(made) + i * r->row;
        if (place != 0)
            memcpy(to, record_at(r, place - 1), r->row);
        else
            first_value(r, key, to);
    }
    *ret = made;
    return TUTTI_OK;
}

/* ---- saving ---- */

static tutti_status hashed_save(tutti_store_rule *rule, tutti_text *out)
{
    hashed_rule *r = (void *)rule;
    saved_put_number(out, r->update.factor);
    for (size_t i = 0; i < r->others.count; i++) {
        tutti_tensor *value = NULL;
        TUTTI_TRY(tutti_session_get(r->update.session, r->others.data[i], &value));
        saved_put_bytes(out, tutti_tensor_data(value),
                        (size_t)tutti_tensor_count(value) *
                            tutti_dtype_size(tutti_tensor_dtype(value)));
        tutti_tensor_release(value);
    }
    saved_put(out, r->keys.count);
    for (size_t i = 0; i < r->keys.count; i++)
        saved_put(out, (uint64_t)r->keys.data[i]);
    saved_put_bytes(out, r->records, r->keys.count * record_bytes(r));
    return TUTTI_OK;
}

static tutti_status hashed_load(tutti_store_rule *rule, saved_reader *in)
{
    hashed_rule *r = (void *)rule;
    r->update.factor = saved_get_number(in);
    for (size_t i = 0; i < r->others.count; i++) {
        tutti_type type = tutti_sym_type(r->others.data[i]);
        tutti_packed_data data = saved_get_bytes(in);
        tutti_tensor *value = NULL;
        if (in->bad || data.size != (size_t)tutti_type_count(&type) * tutti_dtype_size(type.dtype))
            return tutti_fail(TUTTI_CORRUPT, "a saved table of rows is cut short");
        TUTTI_TRY(tutti_tensor_from(type.dtype, type.rank, type.dims, data.bytes, &value));
        tutti_status status = tutti_session_set(r->update.session, r->others.data[i], value);
        tutti_tensor_release(value);
        TUTTI_TRY(status);
    }
    size_t count = saved_get_count(in, 8), place;
    for (size_t i = 0; !in->bad && i < count; i++)
        TUTTI_TRY(touch(r, (int64_t)saved_get(in), &place));
    tutti_packed_data records = saved_get_bytes(in);
    if (in->bad || r->keys.count != count || records.size != count * record_bytes(r))
        return tutti_fail(TUTTI_CORRUPT, "a saved table of rows is damaged");
    if (records.size > 0)
        memcpy(r->records, records.bytes, records.size);
    return TUTTI_OK;
}

static int64_t hashed_bytes(const tutti_store_rule *rule)
{
    const hashed_rule *r = (const void *)rule;
    return (int64_t)(r->record_room * (record_bytes(r) + sizeof(int64_t)) +
                     r->index_size * sizeof *r->index);
}

const tutti_store_rule_kind tutti_store_rule_hashed = {
    .name = "hashed",
    .doc = "rows that exist where they were touched, updated by a graph in blocks",
    .sparse = true,
    .open = hashed_open,
    .apply = hashed_apply,
    .read = hashed_read,
    .save = hashed_save,
    .load = hashed_load,
    .bytes = hashed_bytes,
    .close = hashed_close,
};
