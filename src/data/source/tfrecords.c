/* tfrecords.c: records of TFRecord files, as bytes or as tf.train.Examples. */
#include <string.h>

#include "data/source/paths.h"
#include "io/example.h"
#include "io/tfrecord.h"

typedef struct settings {
    tutti_paths paths; /* first */
    int feature_count; /* 0: bytes */
    tutti_feature features[TUTTI_MAX_COMPONENTS];
} settings;
typedef struct state {
    tutti_file_span span; /* the file that is read, or will be next */
    bool open;
    tutti_tfrecord reader;
} state;

/* The next file that is this process's; s->open stays false behind the last. */
static tutti_status open_next(tutti_iterator *iterator)
{
    const settings *given = iterator->dataset->settings;
    state *s = iterator->state;
    tutti_source *source;
    TUTTI_TRY(tutti__paths_next(&given->paths, iterator->share, &s->span));
    if (s->span.file >= given->paths.count)
        return TUTTI_OK;
    const char *path = given->paths.list[s->span.file];
    TUTTI_TRY(tutti__source_file(path, &source));
    TUTTI_TRY(tutti__tfrecord_open(source, 0, &s->reader));
    s->open = true;
    if (s->reader.packed && s->span.sizes)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "%s: a packed file cannot be cut by bytes; share by file or element: "
                          "--set shard=file",
                          path);
    return tutti__tfrecord_pass(&s->reader, s->span.begin);
}

/* The next record; *ret_data NULL behind the last file. Of a range of bytes, the records that begin
 * in it. */
static tutti_status next_record(tutti_iterator *iterator, const uint8_t **ret_data,
                                size_t *ret_size)
{
    state *s = iterator->state;
    for (*ret_data = NULL; !*ret_data;) {
        if (!s->open)
            TUTTI_TRY(open_next(iterator));
        if (!s->open)
            return TUTTI_OK;
        if (s->reader.at < s->span.end)
            TUTTI_TRY(tutti__tfrecord_next(&s->reader, ret_data, ret_size));
        if (*ret_data)
            return TUTTI_OK;
        tutti__tfrecord_close(&s->reader);
        s->open = false;
    }
    return TUTTI_OK;
}

/* A feature that is missing: nothing where its size is free, else zeros. */
static tutti_status absent(const tutti_feature *feature, tutti_tensor **ret)
{
    int64_t dims[TUTTI_MAX_RANK];
    if (!feature->optional)
        return tutti_fail(TUTTI_NOT_FOUND,
                          "the Example has no feature '%s'; .optional = true allows that",
                          feature->name);
    for (int i = 0; i < feature->rank; i++)
        dims[i] = feature->dims[i] == TUTTI_ANY ? 0 : feature->dims[i];
    return tutti_tensor_create(feature->dtype, feature->rank, dims, ret);
}

static tutti_status shape(const tutti_feature *feature, tutti_tensor *values, tutti_tensor **ret)
{
    char got[TUTTI_TYPE_TEXT], wanted[TUTTI_TYPE_TEXT];
    tutti_type type = tutti_type_make(feature->dtype, feature->rank, feature->dims);
    int64_t count = tutti_type_count(&type);
    bool free_size = count == TUTTI_ANY;
    if (free_size && tutti_tensor_count(values) == 0) /* an empty list may be of no kind */
        return tutti_tensor_create(feature->dtype, 1, (int64_t[]){0}, ret);
    if (tutti_tensor_dtype(values) != feature->dtype ||
        (!free_size && count != tutti_tensor_count(values)))
        return tutti_fail(TUTTI_INVALID, "feature '%s' is %s, the list of features says %s",
                          feature->name, tutti_type_text(tutti_tensor_type(values), got),
                          tutti_type_text(&type, wanted));
    return tutti_tensor_reshape(values, feature->rank, feature->dims, ret);
}

static tutti_status pick(const settings *given, const tutti_named_tensors *list, tutti_element *ret)
{
    tutti_element element = {0};
    for (int i = 0; i < given->feature_count; i++) {
        const tutti_feature *feature = &given->features[i];
        tutti_tensor *found = tutti_named_tensors_find(list, feature->name);
        bool counts = feature->rank == 1 && feature->dims[0] == TUTTI_ANY; /* none are some, too */
        bool empty = !found || (tutti_tensor_count(found) == 0 && !counts);
        tutti_status status = empty ? absent(feature, &element.tensors[i])
                                    : shape(feature, found, &element.tensors[i]);
        if (status != TUTTI_OK) {
            tutti_element_release(&element);
            return status;
        }
        element.count++;
    }
    *ret = element;
    return TUTTI_OK;
}

static tutti_status parse(const tutti_iterator *iterator, const uint8_t *data, size_t size,
                          tutti_element *ret)
{
    const settings *given = iterator->dataset->settings;
    const state *s = iterator->state;
    tutti_named_tensors list = {0};
    if (given->feature_count == 0) {
        tutti_string text = {(const char *)data, (int64_t)size};
        tutti_tensor *record;
        TUTTI_TRY(tutti_tensor_from(TUTTI_STRING, 0, NULL, &text, &record));
        return tutti_element_set(ret, 0, record);
    }
    TUTTI_TRY(tutti__example_parse(given->paths.list[s->span.file], data, size, &list));
    tutti_status status = pick(given, &list, ret);
    tutti_named_tensors_clear(&list);
    return status;
}

static tutti_status tfrecords_next(tutti_iterator *iterator, tutti_element *ret)
{
    const uint8_t *data;
    size_t size;
    tutti_status status = next_record(iterator, &data, &size);
    if (status == TUTTI_OK && data)
        status = parse(iterator, data, size, ret);
    return tutti__element_failed(iterator->dataset, iterator->epoch, iterator->delivered, status);
}

static tutti_status tfrecords_skip(tutti_iterator *iterator, int64_t count, int64_t *ret_skipped)
{
    int64_t done = 0;
    for (; done < count; done++) {
        const uint8_t *data;
        size_t size;
        TUTTI_TRY(tutti__iterator_check(iterator));
        TUTTI_TRY(next_record(iterator, &data, &size));
        if (!data)
            break;
    }
    *ret_skipped = done;
    return TUTTI_OK;
}

static void tfrecords_close(tutti_iterator *iterator)
{
    state *s = iterator->state;
    tutti__tfrecord_close(&s->reader);
    tutti__paths_end(&s->span);
}

static bool feature_is_good(const tutti_feature *feature)
{
    int free_sizes = 0;
    if (!feature->name || feature->rank < 0 || feature->rank > TUTTI_MAX_RANK)
        return false;
    for (int i = 0; i < feature->rank; i++) {
        free_sizes += feature->dims[i] == TUTTI_ANY;
        if (feature->dims[i] < 0 && feature->dims[i] != TUTTI_ANY)
            return false;
    }
    return free_sizes <= 1 && (feature->dtype == TUTTI_F32 || feature->dtype == TUTTI_I64 ||
                               feature->dtype == TUTTI_STRING);
}

static tutti_status set_features(tutti_dataset *dataset, int count, const tutti_feature *list)
{
    settings *s = dataset->settings;
    if (count < 0 || count > TUTTI_MAX_COMPONENTS)
        return tutti_fail(TUTTI_INVALID, "%d features: at most %d", count, TUTTI_MAX_COMPONENTS);
    s->feature_count = count;
    dataset->info.components = count > 0 ? count : 1;
    dataset->info.names[0] = "record";
    dataset->info.types[0] = tutti_type_make(TUTTI_STRING, 0, NULL);
    for (int i = 0; i < count; i++) {
        if (!feature_is_good(&list[i]))
            return tutti_fail(TUTTI_INVALID,
                              "feature %d '%s': needs a name, f32, i64 or string, and at most one "
                              "dimension TUTTI_ANY",
                              i, list[i].name ? list[i].name : "(null)");
        s->features[i] = list[i];
        s->features[i].name = tutti__dataset_name(dataset->job, list[i].name);
        dataset->info.names[i] = s->features[i].name;
        dataset->info.types[i] = tutti_type_make(list[i].dtype, list[i].rank, list[i].dims);
    }
    return TUTTI_OK;
}

extern const tutti_dataset_def tutti_dataset_def_tfrecords;

tutti_dataset *tutti_tfrecords_with(tutti_job *job, const char *path,
                                    const tutti_tfrecords_options *options)
{
    const tutti_dataset_def *def = &tutti_dataset_def_tfrecords;
    tutti_dataset *dataset = tutti__paths_dataset(def, job, path, options ? options->count : 0,
                                                  options ? options->paths : NULL);
    if (!dataset)
        return NULL;
    tutti_status status = set_features(dataset, options ? options->features.count : 0,
                                       options ? options->features.list : NULL);
    return status == TUTTI_OK ? dataset : tutti__dataset_fail(job, def, status);
}

const tutti_dataset_def tutti_dataset_def_tfrecords = {
    .name = "tfrecords",
    .doc = "records of TFRecord files",
    .settings_size = sizeof(settings),
    .state_size = sizeof(state),
    .next = tfrecords_next,
    .skip = tfrecords_skip,
    .close = tfrecords_close,
    .reads = tutti__paths_reads,
};
