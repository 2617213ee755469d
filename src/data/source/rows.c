/* rows.c: rows of tensors. */
#include "data/source/rows.h"

#include <pthread.h>
#include <string.h>

#include "base/pool.h"
#include "tensor/tensor.h"

typedef struct settings {
    tutti_tensor *tensors[TUTTI_MAX_COMPONENTS];
    int32_t readings[TUTTI_MAX_COMPONENTS];
} settings;
_Static_assert(sizeof(settings) <= TUTTI_ROWS_SETTINGS, "room for the settings");

void tutti__rows_destroy(tutti_dataset *dataset)
{
    settings *s = dataset->settings;
    for (int i = 0; i < TUTTI_MAX_COMPONENTS; i++)
        tutti_tensor_release(s->tensors[i]);
}

/* k / 255, rounded once, in a form that the compiler turns into vectors: 1/255 = a + b, where k a
 * is exact for every byte k. (A test compares all 256.) */
static inline float unit(uint8_t k)
{
    return (float)k * 0x1.0101p-8f + (float)k * 0x1.0101p-32f;
}

/* So many at a time are vectors also where the compiler makes none of loops whose end it does not
 * know. */
enum { UNITS = 16 };
static inline void read_some_units(const uint8_t *restrict from, float *restrict to)
{
    for (int k = 0; k < UNITS; k++)
        to[k] = unit(from[k]);
}

/* Shuffled rows lie anywhere: a row that comes soon is fetched while others are read. Always
 * inline: else GCC takes it for a function without effect and leaves calls out. */
static inline __attribute__((always_inline)) void
fetch_ahead(const char *data, const int64_t *indices, int64_t i, int64_t count, size_t bytes)
{
    enum { AHEAD = 4, LINE = 64, MOST = 2048 }; /* what is longer, the CPU fetches by itself */
    if (i + AHEAD >= count)
        return;
    const char *row = data + (size_t)indices[i + AHEAD] * bytes;
    for (size_t at = 0; at < bytes && at < MOST; at += LINE)
        __builtin_prefetch(row + at);
}

static void read_units(int64_t count, const int64_t *indices, int64_t width, const uint8_t *from,
                       float *to)
{
    for (int64_t i = 0; i < count; i++, to += width) {
        const uint8_t *row = from + indices[i] * width;
        fetch_ahead((const char *)from, indices, i, count, (size_t)width);
        int64_t k = 0;
        for (; k + UNITS <= width; k += UNITS)
            read_some_units(row + k, to + k);
        for (; k < width; k++)
            to[k] = unit(row[k]);
    }
}

static void read_classes(int64_t count, const int64_t *indices, int64_t width, const uint8_t *from,
                         int64_t *to)
{
    for (int64_t i = 0; i < count; i++, to += width)
        for (int64_t k = 0; k < width; k++)
            to[k] = from[indices[i] * width + k];
}

static tutti_status read_strings(int64_t count, const int64_t *indices, int64_t width,
                                 const tutti_tensor *from, tutti_tensor *to, int64_t first)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < width; k++) {
            tutti_string text = tutti_tensor_get_string(from, indices[i] * width + k);
            TUTTI_TRY(tutti_tensor_set_string(to, (first + i) * width + k, text.data, text.size));
        }
    return TUTTI_OK;
}

/* Rows of one tensor, to be read to `place`. */
typedef struct reading_job {
    const char *data;
    char *place;
    const int64_t *indices;
    int64_t count, width; /* elements of a row */
    size_t size;          /* bytes of one that was read */
    tutti_reading reading;
} reading_job;

enum { PIECE = 16 }; /* rows */

static void read_piece(void *context, int64_t piece)
{
    const reading_job *j = context;
    int64_t first = piece * PIECE, rest = j->count - first, count = rest < PIECE ? rest : PIECE;
    const int64_t *indices = j->indices + first;
    const uint8_t *bytes = (const uint8_t *)j->data;
    char *place = j->place + (size_t)first * j->size;
    if (j->reading == TUTTI_READ_UNIT)
        read_units(count, indices, j->width, bytes, (float *)(void *)place);
    else if (j->reading == TUTTI_READ_CLASS)
        read_classes(count, indices, j->width, bytes, (int64_t *)(void *)place);
    else if (j->size == 8)
        for (int64_t i = 0; i < count; i++)
            memcpy(place + i * 8, j->data + indices[i] * 8, 8);
    else
        for (int64_t i = 0; i < count; i++) {
            fetch_ahead(j->data, indices, i, count, j->size);
            memcpy(place + (size_t)i * j->size, j->data + (size_t)indices[i] * j->size, j->size);
        }
}

/* Of nobody but the caller, and of devices that wait for the next step meanwhile. */
static tutti_pool *helpers;

static void find_helpers(void)
{
    if (tutti__pool_create(1, -1, &helpers) == TUTTI_OK)
        tutti__pool_welcome(helpers, 1);
}

static tutti_status gather_one(const tutti_tensor *from, tutti_reading reading, int64_t count,
                               const int64_t *indices, tutti_tensor *to, int64_t first)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    enum { WORTH = 128 << 10 }; /* bytes */
    int64_t width = from->type.dims[0] > 0 ? from->count / from->type.dims[0] : 0;
    size_t size = (size_t)width * tutti_dtype_size(tutti_tensor_dtype(to));
    if (from->type.dtype == TUTTI_STRING)
        return read_strings(count, indices, width, from, to, first);
    reading_job job = {.data = tutti_tensor_data(from),
                       .place = (char *)tutti_tensor_data(to) + (size_t)first * size,
                       .indices = indices,
                       .count = count,
                       .width = width,
                       .size = size,
                       .reading = reading};
    bool worth = (size_t)count * size >= WORTH;
    if (worth)
        pthread_once(&once, find_helpers);
    tutti__pool_run(worth ? helpers : NULL, (count + PIECE - 1) / PIECE, read_piece, &job);
    return TUTTI_OK;
}

tutti_status tutti__rows_gather(tutti_access *access, uint64_t epoch, int64_t count,
                                const int64_t *indices, tutti_tensor *const *rows, int64_t first)
{
    const settings *s = access->dataset->settings;
    for (int c = 0; c < access->dataset->info.components; c++)
        TUTTI_TRY(gather_one(s->tensors[c], (tutti_reading)s->readings[c], count, indices, rows[c],
                             first));
    return TUTTI_OK;
}

/* Values as stored are views; others are read into tensors of their own. */
static tutti_status row_at(tutti_access *access, int component, int64_t index, tutti_tensor **ret)
{
    const settings *s = access->dataset->settings;
    const tutti_type *type = &access->dataset->info.types[component];
    tutti_tensor *from = s->tensors[component];
    if (s->readings[component] == TUTTI_READ_AS_IS) {
        int64_t strides[TUTTI_MAX_RANK], stride = 1;
        for (int i = type->rank - 1; i >= 0; i--) {
            strides[i] = stride;
            stride *= type->dims[i];
        }
        size_t shift = (size_t)(index * stride) * tutti_dtype_size(type->dtype);
        return tutti__tensor_strided(from, type, strides, from->offset + shift, ret);
    }
    tutti_tensor *made;
    TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), type, &made));
    tutti_status status =
        gather_one(from, (tutti_reading)s->readings[component], 1, &index, made, 0);
    if (status == TUTTI_OK)
        *ret = made;
    else
        tutti_tensor_release(made);
    return status;
}

tutti_status tutti__rows_at(tutti_access *access, uint64_t epoch, int64_t index, tutti_element *ret)
{
    tutti_element element = {0};
    for (int c = 0; c < access->dataset->info.components; c++) {
        tutti_status status = row_at(access, c, index, &element.tensors[c]);
        if (status != TUTTI_OK) {
            tutti_element_release(&element);
            return status;
        }
        element.count++;
    }
    *ret = element;
    return TUTTI_OK;
}

static tutti_type row_type(const tutti_tensor *tensor, tutti_reading reading)
{
    tutti_type type = tensor->type;
    type.rank--;
    memmove(type.dims, type.dims + 1, (size_t)type.rank * sizeof *type.dims);
    type.dtype = reading == TUTTI_READ_UNIT    ? TUTTI_F32
                 : reading == TUTTI_READ_CLASS ? TUTTI_I64
                                               : type.dtype;
    return type;
}

static tutti_status rows_keep(tutti_tensor *tensor, tutti_tensor **ret)
{
    tutti_tensor *host;
    TUTTI_TRY(tutti__tensor_to_host(tensor, &host));
    tutti_status status = tutti_tensor_contiguous(host, ret);
    tutti_tensor_release(host);
    return status;
}

static tutti_status rows_check(int count, tutti_tensor *const *tensors)
{
    if (count < 1 || count > TUTTI_MAX_COMPONENTS)
        return tutti_fail(TUTTI_INVALID, "needs 1 to %d tensors, not %d", TUTTI_MAX_COMPONENTS,
                          count);
    for (int i = 0; i < count; i++) {
        if (!tensors[i])
            return tutti_fail(TUTTI_INVALID, "tensor %d is NULL", i);
        if (tutti_tensor_rank(tensors[i]) == 0)
            return tutti_fail(TUTTI_INVALID, "tensor %d is a scalar; rows need an axis 0", i);
        if (tutti_tensor_dims(tensors[i])[0] != tutti_tensor_dims(tensors[0])[0])
            return tutti_fail(TUTTI_INVALID,
                              "tensor %d has %lld rows, tensor 0 has %lld; all need equally many",
                              i, (long long)tutti_tensor_dims(tensors[i])[0],
                              (long long)tutti_tensor_dims(tensors[0])[0]);
    }
    return TUTTI_OK;
}

tutti_dataset *tutti__rows_dataset(tutti_job *job, const tutti_dataset_def *def, int count,
                                   tutti_tensor *const *tensors, const tutti_reading *readings,
                                   const tutti_type *row_types)
{
    if (!tutti__job_able(job))
        return NULL;
    tutti_status status = rows_check(count, tensors);
    if (status != TUTTI_OK)
        return tutti__dataset_fail(job, def, status);
    tutti_dataset *dataset = tutti__dataset_create(def, job, 0, NULL);
    if (!dataset)
        return NULL;
    settings *s = dataset->settings;
    for (int i = 0; i < count; i++) {
        status = rows_keep(tensors[i], &s->tensors[i]);
        if (status != TUTTI_OK)
            return tutti__dataset_fail(job, def, status);
        s->readings[i] = readings ? readings[i] : TUTTI_READ_AS_IS;
        dataset->info.types[i] =
            row_types ? row_types[i]
                      : row_type(s->tensors[i], readings ? readings[i] : TUTTI_READ_AS_IS);
        tutti__dataset_note(dataset, (uint64_t)s->tensors[i]->count);
    }
    dataset->info.components = count;
    dataset->info.cardinality = tutti_tensor_dims(tensors[0])[0];
    tutti__dataset_default_names(dataset);
    tutti__dataset_set_access(dataset, TUTTI_ACCESS_ROWS);
    return dataset;
}

extern const tutti_dataset_def tutti_dataset_def_tensors;

tutti_dataset *(tutti_from_tensor_slices)(tutti_job *job, int count, tutti_tensor *const *tensors)
{
    return tutti__rows_dataset(job, &tutti_dataset_def_tensors, count, tensors, NULL, NULL);
}

const tutti_dataset_def tutti_dataset_def_tensors = {
    .name = "tensors",
    .doc = "rows of tensors",
    .settings_size = TUTTI_ROWS_SETTINGS,
    .destroy = tutti__rows_destroy,
    .at = tutti__rows_at,
    .gather = tutti__rows_gather,
};
