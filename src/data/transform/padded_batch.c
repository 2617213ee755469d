/* padded_batch.c: elements of different shapes as one, padded at their ends. */
#include <stdlib.h>
#include <string.h>

#include "data/transform/batch.h"
#include "tensor/tensor.h"

typedef struct settings {
    int64_t size;
    tutti_padded_batch_options options;
} settings;
typedef struct state {
    tutti_element *elements;
} state;

static tutti_status padded_batch_open(tutti_iterator *iterator)
{
    const settings *s = iterator->dataset->settings;
    state *own = iterator->state;
    own->elements = calloc((size_t)s->size, sizeof *own->elements);
    return own->elements ? TUTTI_OK
                         : tutti_fail(TUTTI_NO_MEMORY, "padded_batch: no memory for %lld elements",
                                      (long long)s->size);
}

/* dims: the longest of each axis over the batch; axis 0 is fixed where lengths say so. */
static tutti_status find_type(const settings *s, int component, int64_t count,
                              const tutti_element *elements, tutti_type *ret)
{
    tutti_type type = *tutti_tensor_type(elements[0].tensors[component]);
    int64_t length = s->options.lengths[component];
    for (int64_t i = 0; i < count; i++) {
        if (elements[i].count != elements[0].count)
            return tutti_fail(TUTTI_INVALID, "elements of one batch have %d and %d components",
                              elements[0].count, elements[i].count);
        const tutti_type *other = tutti_tensor_type(elements[i].tensors[component]);
        if (other->dtype != type.dtype || other->rank != type.rank) {
            char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
            return tutti_fail(TUTTI_INVALID, "component %d is %s and %s in one batch", component,
                              tutti_type_text(&type, a), tutti_type_text(other, b));
        }
        for (int k = 0; k < type.rank; k++)
            type.dims[k] = other->dims[k] > type.dims[k] ? other->dims[k] : type.dims[k];
    }
    if (length > 0 && type.rank > 0) {
        if (type.dims[0] > length && !s->options.truncate)
            return tutti_fail(TUTTI_INVALID,
                              "component %d has %lld along axis 0, .lengths allows %lld; "
                              ".truncate = true would cut it",
                              component, (long long)type.dims[0], (long long)length);
        type.dims[0] = length;
    }
    *ret = type;
    return TUTTI_OK;
}

static void padded_batch_fill(tutti_tensor *rows, double value)
{
    if (tutti_tensor_dtype(rows) == TUTTI_STRING)
        return;
    size_t size = tutti_dtype_size(tutti_tensor_dtype(rows));
    int64_t count = tutti_tensor_count(rows);
    char *data = tutti_tensor_data(rows);
    if (count == 0)
        return;
    tutti_tensor_set(rows, 0, value);
    for (int64_t i = 1; i < count; i++)
        memcpy(data + (size_t)i * size, data, size);
}

/* Copies an element to the beginning of its row's axes. */
static tutti_status padded_batch_put(tutti_tensor *rows, int64_t row, tutti_tensor *tensor)
{
    tutti_tensor *place, *part = tutti_tensor_retain(tensor);
    TUTTI_TRY(tutti__row_of(rows, row, &place));
    tutti_status status = TUTTI_OK;
    for (int k = 0; k < tensor->type.rank && status == TUTTI_OK; k++) {
        int64_t there = tensor->type.dims[k], room = place->type.dims[k];
        tutti_tensor *cut;
        tutti_tensor **which = there > room ? &part : &place;
        if (there == room)
            continue;
        status = tutti_tensor_slice(*which, k, 0, there < room ? there : room, 1, &cut);
        if (status == TUTTI_OK) {
            tutti_tensor_release(*which);
            *which = cut;
        }
    }
    if (status == TUTTI_OK)
        status = tutti_tensor_copy(place, part);
    tutti_tensor_release(place);
    tutti_tensor_release(part);
    return status;
}

static tutti_status stack(const settings *s, int64_t count, const tutti_element *elements,
                          tutti_element *ret)
{
    tutti_type types[TUTTI_MAX_COMPONENTS];
    tutti_element made;
    for (int c = 0; c < elements[0].count; c++)
        TUTTI_TRY(find_type(s, c, count, elements, &types[c]));
    TUTTI_TRY(tutti__element_create(elements[0].count, types, count, &made));
    tutti_status status = TUTTI_OK;
    for (int c = 0; c < made.count; c++) {
        padded_batch_fill(made.tensors[c], s->options.values[c]);
        for (int64_t i = 0; i < count && status == TUTTI_OK; i++)
            status = padded_batch_put(made.tensors[c], i, elements[i].tensors[c]);
    }
    if (status != TUTTI_OK)
        tutti_element_release(&made);
    else
        *ret = made;
    return status;
}

static tutti_status padded_batch_next(tutti_iterator *iterator, tutti_element *ret)
{
    const settings *s = iterator->dataset->settings;
    state *own = iterator->state;
    int64_t count;
    TUTTI_TRY(tutti__collect(iterator->inputs[0], s->size, own->elements, &count));
    tutti_status status = TUTTI_OK;
    if (count == s->size || (count > 0 && !s->options.drop_remainder))
        status = stack(s, count, own->elements, ret);
    tutti__release_all(count, own->elements);
    return tutti__element_failed(iterator->dataset, iterator->epoch, iterator->delivered, status);
}

static tutti_status padded_batch_skip(tutti_iterator *iterator, int64_t count, int64_t *ret_skipped)
{
    const settings *s = iterator->dataset->settings;
    return tutti__batch_skip(iterator->inputs[0], s->size, s->options.drop_remainder, count,
                             ret_skipped);
}

static void padded_batch_close(tutti_iterator *iterator)
{
    free(((state *)iterator->state)->elements);
}

extern const tutti_dataset_def tutti_dataset_def_padded_batch;

tutti_dataset *tutti_padded_batch_with(tutti_dataset *input, int64_t size,
                                       const tutti_padded_batch_options *options)
{
    if (input && (size < 1 || size > TUTTI_BATCH_LIMIT))
        return tutti__dataset_wrong(input->job, &tutti_dataset_def_padded_batch,
                                    "a batch of %lld elements: needs 1 to %lld", (long long)size,
                                    (long long)TUTTI_BATCH_LIMIT);
    tutti_dataset *dataset =
        tutti__dataset_create(&tutti_dataset_def_padded_batch, NULL, 1, &input);
    if (!dataset)
        return NULL;
    settings *s = dataset->settings;
    s->size = size;
    if (options)
        s->options = *options;
    bool drop = s->options.drop_remainder;
    for (int c = 0; c < dataset->info.components; c++)
        if (dataset->info.types[c].rank > 0 && s->options.lengths[c] > 0)
            dataset->info.types[c].dims[0] = s->options.lengths[c];
    dataset->info.cardinality = tutti__batch_count(input->info.cardinality, size, drop);
    dataset->info.batch = size;
    tutti__batch_types(dataset, drop ? size : TUTTI_ANY);
    tutti__dataset_note(dataset, (uint64_t)size);
    tutti__dataset_note(dataset, drop);
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_padded_batch = {
    .name = "padded_batch",
    .doc = "elements of different shapes as one, padded",
    .settings_size = sizeof(settings),
    .state_size = sizeof(state),
    .open = padded_batch_open,
    .next = padded_batch_next,
    .skip = padded_batch_skip,
    .close = padded_batch_close,
};
