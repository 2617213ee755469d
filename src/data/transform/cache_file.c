/* cache_file.c: reads its input once and keeps it in a file.
 *
 *     "TUTTIDC1"  magic
 *     elements    as element_bytes.c writes them, one after the other
 *     index       for each element u64 end and u64 hash of its bytes
 *     footer      u64 elements, u64 index offset, u64 pipeline, u64 hash of index and of the three
 *                 numbers before, "TUTTIDC1"
 *
 * The file appears when the input was read to its end. While one iterator writes it, others pass
 * the input through. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "data/transform/cache.h"
#include "io/stream.h"

#define MAGIC "TUTTIDC1"
#define MAGIC_SIZE 8
#define FOOTER_SIZE 40
#define ELEMENT_LIMIT ((int64_t)4 << 30)

typedef struct entry {
    uint64_t end, hash;
} entry;
typedef struct settings {
    const char *path;
    pthread_mutex_t mutex; /* of what follows */
    bool writing;          /* some iterator writes the file */
    tutti_source *source;  /* the file, once it is there */
    entry *index;
    int64_t count;
} settings;
typedef struct state {
    bool reading;
    tutti_sink *sink; /* of the writer */
    entry *index;
    size_t count, capacity;
} state;

static void cache_file_destroy(tutti_dataset *dataset)
{
    settings *s = dataset->settings;
    tutti__source_close(s->source);
    free(s->index);
    pthread_mutex_destroy(&s->mutex);
}

static tutti_status cache_file_refuse(const settings *s, const char *why)
{
    return tutti_fail(TUTTI_CORRUPT, "the cache %s %s; remove it, and it will be written anew",
                      s->path, why);
}

static uint64_t footer_hash(const uint8_t *index, size_t size, const uint8_t *footer)
{
    return tutti__hash_bytes(tutti__hash_bytes(1, index, size), footer, 24);
}

/* Entries as they stand in the file, checked: ends grow and stay before the index. */
static tutti_status take_index(settings *s, const uint8_t *bytes, int64_t count, uint64_t index_at)
{
    uint64_t before = MAGIC_SIZE;
    entry *index = malloc((size_t)(count + 1) * sizeof *index);
    if (!index)
        return tutti_fail(TUTTI_NO_MEMORY, "cache: no memory for %lld elements", (long long)count);
    for (int64_t i = 0; i < count; i++) {
        index[i] = (entry){tutti__get_u64(bytes + 16 * i), tutti__get_u64(bytes + 16 * i + 8)};
        if (index[i].end <= before || index[i].end > index_at) {
            free(index);
            return cache_file_refuse(s, "has elements that overlap");
        }
        before = index[i].end;
    }
    if (before != index_at) {
        free(index);
        return cache_file_refuse(s, "has a hole");
    }
    s->index = index;
    s->count = count;
    return TUTTI_OK;
}

static tutti_status read_index(settings *s, tutti_source *source, uint64_t pipeline)
{
    uint8_t footer[FOOTER_SIZE], magic[MAGIC_SIZE];
    int64_t size = source->size - FOOTER_SIZE;
    if (size < MAGIC_SIZE)
        return cache_file_refuse(s, "is too short");
    TUTTI_TRY(tutti__source_read(source, 0, magic, MAGIC_SIZE, "magic"));
    TUTTI_TRY(tutti__source_read(source, size, footer, FOOTER_SIZE, "footer"));
    uint64_t count = tutti__get_u64(footer), index_at = tutti__get_u64(footer + 8);
    if (memcmp(magic, MAGIC, MAGIC_SIZE) != 0 || memcmp(footer + 32, MAGIC, MAGIC_SIZE) != 0 ||
        index_at < MAGIC_SIZE || index_at > (uint64_t)size ||
        ((uint64_t)size - index_at) % 16 != 0 || ((uint64_t)size - index_at) / 16 != count)
        return cache_file_refuse(s, "is damaged or no such file");
    if (tutti__get_u64(footer + 16) != pipeline)
        return cache_file_refuse(s, "belongs to another pipeline");
    uint8_t *bytes = malloc((size_t)count * 16 + 1);
    if (!bytes)
        return tutti_fail(TUTTI_NO_MEMORY, "cache: no memory for an index");
    tutti_status status =
        tutti__source_read(source, (int64_t)index_at, bytes, (size_t)count * 16, "index");
    if (status == TUTTI_OK &&
        footer_hash(bytes, (size_t)count * 16, footer) != tutti__get_u64(footer + 24))
        status = cache_file_refuse(s, "is damaged");
    if (status == TUTTI_OK)
        status = take_index(s, bytes, (int64_t)count, index_at);
    free(bytes);
    return status;
}

/* Looks for the file. Under the lock; TUTTI_NOT_FOUND when there is none. */
static tutti_status find_file(settings *s, uint64_t pipeline)
{
    tutti_source *source;
    if (s->source)
        return TUTTI_OK;
    TUTTI_TRY(tutti__source_file(s->path, &source));
    tutti_status status = read_index(s, source, pipeline);
    if (status == TUTTI_OK)
        s->source = source;
    else
        tutti__source_close(source);
    return status;
}

static tutti_status begin_writing(tutti_iterator *iterator)
{
    settings *s = iterator->dataset->settings;
    state *own = iterator->state;
    TUTTI_TRY(tutti__sink_file(s->path, TUTTI_FILE_REPLACE, &own->sink));
    s->writing = true;
    return tutti__sink_write(own->sink, MAGIC, MAGIC_SIZE);
}

static tutti_status cache_file_open(tutti_iterator *iterator)
{
    settings *s = iterator->dataset->settings;
    state *own = iterator->state;
    pthread_mutex_lock(&s->mutex);
    tutti_status status = find_file(s, iterator->dataset->inputs[0]->hash);
    own->reading = status == TUTTI_OK;
    if (status == TUTTI_NOT_FOUND)
        status = s->writing ? TUTTI_OK : begin_writing(iterator);
    pthread_mutex_unlock(&s->mutex);
    if (status == TUTTI_OK && !own->reading)
        status = tutti__iterator_open(iterator->dataset->inputs[0], 0, iterator->cancel,
                                      &iterator->inputs[0]);
    return status;
}

static tutti_status read_element(const settings *s, int64_t number, tutti_element *ret)
{
    int64_t begin = number == 0 ? MAGIC_SIZE : (int64_t)s->index[number - 1].end;
    int64_t size = (int64_t)s->index[number].end - begin;
    if (size > ELEMENT_LIMIT)
        return cache_file_refuse(s, "has an element of more than 4 GiB");
    void *bytes = malloc((size_t)size);
    if (!bytes)
        return tutti_fail(TUTTI_NO_MEMORY, "cache: no memory for %lld bytes", (long long)size);
    tutti_status status = tutti__source_read(s->source, begin, bytes, (size_t)size, "element");
    if (status == TUTTI_OK && tutti__hash_bytes(1, bytes, (size_t)size) != s->index[number].hash)
        status = cache_file_refuse(s, "is damaged");
    if (status == TUTTI_OK)
        status = tutti__element_decode(s->path, bytes, (size_t)size, ret);
    free(bytes);
    return status;
}

static tutti_status write_element(state *own, const tutti_element *element)
{
    tutti_text bytes = {0};
    if (!tutti__vec_grow((void **)&own->index, own->count, &own->capacity, sizeof *own->index))
        return tutti_fail(TUTTI_NO_MEMORY, "cache: no memory for an index");
    tutti_status status = tutti__element_encode(element, &bytes);
    if (status == TUTTI_OK)
        status = tutti__sink_write(own->sink, bytes.data, bytes.size);
    if (status == TUTTI_OK)
        own->index[own->count++] =
            (entry){(uint64_t)own->sink->size, tutti__hash_bytes(1, bytes.data, bytes.size)};
    tutti__text_free(&bytes);
    return status;
}

static tutti_status write_footer(state *own, uint64_t pipeline)
{
    uint8_t footer[FOOTER_SIZE];
    uint64_t index_at = (uint64_t)own->sink->size;
    uint8_t *bytes = malloc(own->count * 16 + 1);
    if (!bytes)
        return tutti_fail(TUTTI_NO_MEMORY, "cache: no memory for an index");
    for (size_t i = 0; i < own->count; i++) {
        tutti__put_u64(bytes + 16 * i, own->index[i].end);
        tutti__put_u64(bytes + 16 * i + 8, own->index[i].hash);
    }
    tutti__put_u64(footer, own->count);
    tutti__put_u64(footer + 8, index_at);
    tutti__put_u64(footer + 16, pipeline);
    tutti__put_u64(footer + 24, footer_hash(bytes, own->count * 16, footer));
    memcpy(footer + 32, MAGIC, MAGIC_SIZE);
    tutti_status status = tutti__sink_write(own->sink, bytes, own->count * 16);
    free(bytes);
    return status == TUTTI_OK ? tutti__sink_write(own->sink, footer, FOOTER_SIZE) : status;
}

/* The input has ended: the file takes its place. */
static tutti_status cache_file_finish(tutti_iterator *iterator)
{
    settings *s = iterator->dataset->settings;
    state *own = iterator->state;
    tutti_status status = write_footer(own, iterator->dataset->inputs[0]->hash);
    status = tutti__sink_end(own->sink, status);
    own->sink = NULL;
    pthread_mutex_lock(&s->mutex);
    s->writing = false;
    pthread_mutex_unlock(&s->mutex);
    return status;
}

static tutti_status cache_file_next(tutti_iterator *iterator, tutti_element *ret)
{
    const settings *s = iterator->dataset->settings;
    state *own = iterator->state;
    if (own->reading)
        return iterator->delivered < s->count ? read_element(s, iterator->delivered, ret)
                                              : TUTTI_OK;
    tutti_element element = {0};
    TUTTI_TRY(tutti__iterator_next(iterator->inputs[0], &element));
    tutti_status status = TUTTI_OK;
    if (own->sink)
        status = element.count > 0 ? write_element(own, &element) : cache_file_finish(iterator);
    if (status != TUTTI_OK)
        tutti_element_release(&element);
    else
        *ret = element;
    return status;
}

static tutti_status cache_file_skip(tutti_iterator *iterator, int64_t count, int64_t *ret_skipped)
{
    const settings *s = iterator->dataset->settings;
    state *own = iterator->state;
    int64_t done = 0;
    if (own->reading) {
        done = s->count - iterator->delivered;
        *ret_skipped = done < count ? done : count;
        return TUTTI_OK;
    }
    for (int64_t before = iterator->delivered; done < count; done++) {
        tutti_element element = {0};
        iterator->delivered = before + done;
        tutti_status status = cache_file_next(iterator, &element);
        iterator->delivered = before;
        if (status != TUTTI_OK)
            return status;
        if (element.count == 0)
            break;
        tutti_element_release(&element);
    }
    *ret_skipped = done;
    return TUTTI_OK;
}

static void cache_file_close(tutti_iterator *iterator)
{
    settings *s = iterator->dataset->settings;
    state *own = iterator->state;
    free(own->index);
    if (!own->sink)
        return;
    tutti__sink_abort(own->sink);
    pthread_mutex_lock(&s->mutex);
    s->writing = false;
    pthread_mutex_unlock(&s->mutex);
}

extern const tutti_dataset_def tutti_dataset_def_cache_file;

tutti_dataset *tutti__cache_file(tutti_dataset *input, const char *path)
{
    tutti_dataset *dataset = tutti__dataset_create(&tutti_dataset_def_cache_file, NULL, 1, &input);
    if (!dataset)
        return NULL;
    settings *s = dataset->settings;
    pthread_mutex_init(&s->mutex, NULL);
    s->path = tutti__dataset_name(dataset->job, path);
    dataset->info.cardinality = input->info.cardinality;
    dataset->info.reorders = false;
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_cache_file = {
    .name = "cache_file",
    .doc = "the input, read once and kept in a file",
    .settings_size = sizeof(settings),
    .state_size = sizeof(state),
    .destroy = cache_file_destroy,
    .open = cache_file_open,
    .next = cache_file_next,
    .skip = cache_file_skip,
    .close = cache_file_close,
    .opens_inputs = true,
};
