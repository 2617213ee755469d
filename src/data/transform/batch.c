/* batch.c: several elements as one. Over rows in random access a batch is one gather. */
#include "data/transform/batch.h"

#include <stdlib.h>
#include <string.h>

typedef struct settings {
    int64_t size;
    bool drop_remainder;
} settings;

tutti_status tutti__collect(tutti_iterator *input, int64_t size, tutti_element *elements,
                            int64_t *ret_count)
{
    int64_t count = 0;
    tutti_status status = TUTTI_OK;
    for (; count < size; count++) {
        elements[count] = (tutti_element){0};
        status = tutti__iterator_next(input, &elements[count]);
        if (status != TUTTI_OK || elements[count].count == 0)
            break;
    }
    if (status != TUTTI_OK) {
        tutti__release_all(count, elements);
        return status;
    }
    *ret_count = count;
    return TUTTI_OK;
}

void tutti__release_all(int64_t count, tutti_element *elements)
{
    for (int64_t i = 0; i < count; i++)
        tutti_element_release(&elements[i]);
}

void tutti__batch_types(tutti_dataset *dataset, int64_t rows)
{
    for (int c = 0; c < dataset->info.components; c++) {
        tutti_type *type = &dataset->info.types[c];
        if (type->rank < 0)
            continue;
        if (type->rank == TUTTI_MAX_RANK) {
            *type = tutti__type_unknown();
            continue;
        }
        memmove(type->dims + 1, type->dims, (size_t)type->rank * sizeof *type->dims);
        type->dims[0] = rows;
        type->rank++;
    }
}

tutti_status tutti__batch_skip(tutti_iterator *input, int64_t size, bool drop_remainder,
                               int64_t count, int64_t *ret_skipped)
{
    int64_t wanted, skipped;
    if (!tutti__mul_size(count, size, &wanted))
        wanted = INT64_MAX / size * size;
    TUTTI_TRY(tutti__iterator_skip(input, wanted, &skipped));
    *ret_skipped = skipped / size + (skipped % size != 0 && !drop_remainder);
    return TUTTI_OK;
}

int64_t tutti__batch_count(int64_t cardinality, int64_t size, bool drop_remainder)
{
    if (cardinality < 0)
        return cardinality;
    return cardinality / size + (cardinality % size != 0 && !drop_remainder);
}

/* ---- random access ---- */

typedef struct numbers {
    int64_t *list; /* `size` of them */
} numbers;

static tutti_status at(tutti_access *access, uint64_t epoch, int64_t index, tutti_element *ret)
{
    const tutti_dataset *dataset = access->dataset, *input = dataset->inputs[0];
    const settings *s = dataset->settings;
    numbers *n = access->state;
    int64_t first = index * s->size, all = input->info.cardinality;
    int64_t count = all >= 0 && all - first < s->size ? all - first : s->size, batch = count;
    int64_t from = 0;
    bool cuts = access->share && access->share->policy == TUTTI_SHARD_ELEMENT;
    if (cuts)
        access->share->rows(access->share->context, batch, &from, &count);
    first += from;
    if (!n->list && !(n->list = malloc((size_t)s->size * sizeof *n->list)))
        return tutti_fail(TUTTI_NO_MEMORY, "batch: no memory for the numbers of %lld elements",
                          (long long)s->size);
    for (int64_t i = 0; i < count; i++)
        n->list[i] = first + i;
    tutti_element made;
    TUTTI_TRY(tutti__element_create(input->info.components, input->info.types, count, &made));
    tutti_status status =
        tutti__access_gather(access->inputs[0], epoch, count, n->list, made.tensors, 0);
    if (status != TUTTI_OK) {
        tutti_element_release(&made);
        return status;
    }
    made.rows = cuts ? batch : 0;
    *ret = made;
    return TUTTI_OK;
}

static void leave(tutti_access *access)
{
    free(((numbers *)access->state)->list);
}

/* ---- stream ---- */

typedef struct state {
    tutti_element *elements;
    int64_t size; /* elements of a batch: of the whole one, or this process's own */
} state;

static tutti_status batch_open(tutti_iterator *iterator)
{
    const settings *s = iterator->dataset->settings;
    state *own = iterator->state;
    int64_t first;
    own->size = s->size;
    if (tutti__share_apart(iterator->share) && !iterator->below)
        iterator->share->rows(iterator->share->context, s->size, &first, &own->size);
    own->elements = calloc((size_t)s->size, sizeof *own->elements);
    return own->elements ? TUTTI_OK
                         : tutti_fail(TUTTI_NO_MEMORY, "batch: no memory for %lld elements",
                                      (long long)s->size);
}

/* Some of the rows; where there are none, tensors of no rows. */
static tutti_status stack_shared(const tutti_share *share, int64_t count,
                                 const tutti_element *elements, tutti_element *ret)
{
    int64_t first, rows;
    tutti_element made;
    share->rows(share->context, count, &first, &rows);
    TUTTI_TRY(tutti__element_stack(rows > 0 ? rows : 1, elements + (rows > 0 ? first : 0), &made));
    for (int c = 0; rows == 0 && c < made.count; c++) {
        tutti_tensor *none;
        tutti_status status = tutti_tensor_slice(made.tensors[c], 0, 0, 0, 1, &none);
        if (status != TUTTI_OK) {
            tutti_element_release(&made);
            return status;
        }
        tutti_tensor_release(made.tensors[c]);
        made.tensors[c] = none;
    }
    made.rows = count;
    *ret = made;
    return TUTTI_OK;
}

static tutti_status batch_next(tutti_iterator *iterator, tutti_element *ret)
{
    const settings *s = iterator->dataset->settings;
    state *own = iterator->state;
    int64_t count;
    bool cuts = iterator->share && iterator->share->policy == TUTTI_SHARD_ELEMENT;
    TUTTI_TRY(tutti__collect(iterator->inputs[0], own->size, own->elements, &count));
    tutti_status status = TUTTI_OK;
    if (count == own->size || (count > 0 && !s->drop_remainder))
        status = cuts ? stack_shared(iterator->share, count, own->elements, ret)
                      : tutti__element_stack(count, own->elements, ret);
    tutti__release_all(count, own->elements);
    return tutti__element_failed(iterator->dataset, iterator->epoch, iterator->delivered, status);
}

static tutti_status batch_skip(tutti_iterator *iterator, int64_t count, int64_t *ret_skipped)
{
    const settings *s = iterator->dataset->settings;
    const state *own = iterator->state;
    return tutti__batch_skip(iterator->inputs[0], own->size, s->drop_remainder, count, ret_skipped);
}

static void batch_close(tutti_iterator *iterator)
{
    free(((state *)iterator->state)->elements);
}

extern const tutti_dataset_def tutti_dataset_def_batch;

tutti_dataset *tutti_batch_with(tutti_dataset *input, int64_t size,
                                const tutti_batch_options *options)
{
    if (input && (size < 1 || size > TUTTI_BATCH_LIMIT))
        return tutti__dataset_wrong(input->job, &tutti_dataset_def_batch,
                                    "a batch of %lld elements: needs 1 to %lld", (long long)size,
                                    (long long)TUTTI_BATCH_LIMIT);
    tutti_dataset *dataset = tutti__dataset_create(&tutti_dataset_def_batch, NULL, 1, &input);
    if (!dataset)
        return NULL;
    settings *s = dataset->settings;
    *s = (settings){size, options && options->drop_remainder};
    int64_t all = input->info.cardinality;
    dataset->info.cardinality = tutti__batch_count(all, size, s->drop_remainder);
    dataset->info.batch = size;
    bool even = s->drop_remainder || all == TUTTI_ENDLESS || (all >= 0 && all % size == 0);
    tutti__batch_types(dataset, even ? size : TUTTI_ANY);
    tutti__dataset_note(dataset, (uint64_t)size);
    tutti__dataset_note(dataset, s->drop_remainder);
    tutti__dataset_set_access(dataset, input->access == TUTTI_ACCESS_ROWS ? TUTTI_ACCESS_ELEMENTS
                                                                          : TUTTI_ACCESS_NONE);
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_batch = {
    .name = "batch",
    .doc = "several elements as one, along a new axis 0",
    .shares_rows = true,
    .settings_size = sizeof(settings),
    .state_size = sizeof(state),
    .access_size = sizeof(numbers),
    .open = batch_open,
    .next = batch_next,
    .skip = batch_skip,
    .close = batch_close,
    .at = at,
    .leave = leave,
};
