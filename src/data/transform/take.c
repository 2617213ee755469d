/* take.c: the first elements. */
#include "data/dataset.h"

typedef struct settings {
    int64_t count;
} settings;

static int64_t wanted(const tutti_iterator *iterator, int64_t count)
{
    const settings *s = iterator->dataset->settings;
    int64_t left = s->count - iterator->delivered;
    return left < count ? left : count;
}

static tutti_status take_next(tutti_iterator *iterator, tutti_element *ret)
{
    return wanted(iterator, 1) > 0 ? tutti__iterator_next(iterator->inputs[0], ret) : TUTTI_OK;
}

static tutti_status take_skip(tutti_iterator *iterator, int64_t count, int64_t *ret_skipped)
{
    return tutti__iterator_skip(iterator->inputs[0], wanted(iterator, count), ret_skipped);
}

static tutti_status renumber(tutti_access *access, uint64_t epoch, int64_t count,
                             const int64_t *indices, int64_t *ret_indices)
{
    for (int64_t i = 0; i < count; i++)
        ret_indices[i] = indices[i];
    return TUTTI_OK;
}

extern const tutti_dataset_def tutti_dataset_def_take;

tutti_dataset *(tutti_take)(tutti_dataset *input, int64_t count)
{
    if (input && count < 0)
        return tutti__dataset_wrong(input->job, &tutti_dataset_def_take, "%lld elements are wanted",
                                    (long long)count);
    tutti_dataset *dataset = tutti__dataset_create(&tutti_dataset_def_take, NULL, 1, &input);
    if (!dataset)
        return NULL;
    ((settings *)dataset->settings)->count = count;
    int64_t all = input->info.cardinality;
    dataset->info.cardinality = all == TUTTI_UNKNOWN                   ? TUTTI_UNKNOWN
                                : all == TUTTI_ENDLESS || all >= count ? count
                                                                       : all;
    tutti__dataset_note(dataset, (uint64_t)count);
    tutti__dataset_set_access(dataset, input->access);
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_take = {
    .name = "take",
    .hands_on = true,
    .doc = "the first elements",
    .settings_size = sizeof(settings),
    .next = take_next,
    .skip = take_skip,
    .renumber = renumber,
};
