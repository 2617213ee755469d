/* unbatch.c: the rows of each element. */
#include <string.h>

#include "data/dataset.h"

typedef struct state {
    tutti_element batch;
    int64_t row, rows;
} state;

static tutti_status count_rows(const tutti_element *batch, int64_t *ret_rows)
{
    for (int c = 0; c < batch->count; c++) {
        if (tutti_tensor_rank(batch->tensors[c]) == 0)
            return tutti_fail(TUTTI_INVALID, "component %d is a scalar and has no rows", c);
        if (tutti_tensor_dims(batch->tensors[c])[0] != tutti_tensor_dims(batch->tensors[0])[0])
            return tutti_fail(TUTTI_INVALID, "component %d has %lld rows, component 0 has %lld", c,
                              (long long)tutti_tensor_dims(batch->tensors[c])[0],
                              (long long)tutti_tensor_dims(batch->tensors[0])[0]);
    }
    *ret_rows = tutti_tensor_dims(batch->tensors[0])[0];
    return TUTTI_OK;
}

/* Brings a batch with a row that was not given yet; *ret_any false at the end. */
static tutti_status refill(tutti_iterator *iterator, bool *ret_any)
{
    state *s = iterator->state;
    while (s->row == s->rows) {
        tutti_element_release(&s->batch);
        s->row = s->rows = 0;
        TUTTI_TRY(tutti__iterator_next(iterator->inputs[0], &s->batch));
        if (s->batch.count == 0)
            break;
        tutti_status status = count_rows(&s->batch, &s->rows);
        if (status != TUTTI_OK)
            return tutti__element_failed(iterator->dataset, iterator->epoch, iterator->delivered,
                                         status);
    }
    *ret_any = s->batch.count > 0;
    return TUTTI_OK;
}

static tutti_status unbatch_next(tutti_iterator *iterator, tutti_element *ret)
{
    state *s = iterator->state;
    tutti_element element = {0};
    bool any;
    TUTTI_TRY(refill(iterator, &any));
    for (int c = 0; any && c < s->batch.count; c++) {
        tutti_status status = tutti__row_of(s->batch.tensors[c], s->row, &element.tensors[c]);
        if (status != TUTTI_OK) {
            tutti_element_release(&element);
            return status;
        }
        element.count++;
    }
    s->row += any;
    *ret = element;
    return TUTTI_OK;
}

static tutti_status unbatch_skip(tutti_iterator *iterator, int64_t count, int64_t *ret_skipped)
{
    state *s = iterator->state;
    int64_t done = 0;
    for (bool any = true; done < count;) {
        TUTTI_TRY(refill(iterator, &any));
        if (!any)
            break;
        int64_t step = s->rows - s->row < count - done ? s->rows - s->row : count - done;
        s->row += step;
        done += step;
    }
    *ret_skipped = done;
    return TUTTI_OK;
}

static void unbatch_close(tutti_iterator *iterator)
{
    tutti_element_release(&((state *)iterator->state)->batch);
}

extern const tutti_dataset_def tutti_dataset_def_unbatch;

tutti_dataset *(tutti_unbatch)(tutti_dataset *input)
{
    for (int c = 0; input && c < input->info.components; c++)
        if (input->info.types[c].rank == 0)
            return tutti__dataset_wrong(input->job, &tutti_dataset_def_unbatch,
                                        "component %d is a scalar and has no rows", c);
    tutti_dataset *dataset = tutti__dataset_create(&tutti_dataset_def_unbatch, NULL, 1, &input);
    if (!dataset)
        return NULL;
    dataset->info.batch = 0;
    int64_t rows = TUTTI_ANY;
    for (int c = 0; c < dataset->info.components; c++) {
        tutti_type *type = &dataset->info.types[c];
        if (type->rank < 1)
            continue;
        rows = type->dims[0];
        type->rank--;
        memmove(type->dims, type->dims + 1, (size_t)type->rank * sizeof *type->dims);
    }
    int64_t all = input->info.cardinality, total;
    if (all == TUTTI_ENDLESS || (all >= 0 && rows >= 0 && tutti__mul_size(all, rows, &total)))
        dataset->info.cardinality = all == TUTTI_ENDLESS ? all : total;
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_unbatch = {
    .name = "unbatch",
    .keeps_parts = true,
    .doc = "the rows of each element",
    .state_size = sizeof(state),
    .next = unbatch_next,
    .skip = unbatch_skip,
    .close = unbatch_close,
};
