/* skip.c: all but the first elements. */
#include "data/dataset.h"

typedef struct settings {
    int64_t count;
} settings;
typedef struct state {
    bool begun;
} state;

static tutti_status skip_begin(tutti_iterator *iterator)
{
    state *s = iterator->state;
    const settings *given = iterator->dataset->settings;
    int64_t skipped;
    if (s->begun)
        return TUTTI_OK;
    s->begun = true;
    return tutti__iterator_skip(iterator->inputs[0], given->count, &skipped);
}

static tutti_status skip_next(tutti_iterator *iterator, tutti_element *ret)
{
    TUTTI_TRY(skip_begin(iterator));
    return tutti__iterator_next(iterator->inputs[0], ret);
}

static tutti_status skip(tutti_iterator *iterator, int64_t count, int64_t *ret_skipped)
{
    TUTTI_TRY(skip_begin(iterator));
    return tutti__iterator_skip(iterator->inputs[0], count, ret_skipped);
}

static tutti_status renumber(tutti_access *access, uint64_t epoch, int64_t count,
                             const int64_t *indices, int64_t *ret_indices)
{
    const settings *s = access->dataset->settings;
    for (int64_t i = 0; i < count; i++)
        ret_indices[i] = indices[i] + s->count;
    return TUTTI_OK;
}

extern const tutti_dataset_def tutti_dataset_def_skip;

tutti_dataset *(tutti_skip)(tutti_dataset *input, int64_t count)
{
    if (input && count < 0)
        return tutti__dataset_wrong(input->job, &tutti_dataset_def_skip,
                                    "%lld elements are to be skipped", (long long)count);
    tutti_dataset *dataset = tutti__dataset_create(&tutti_dataset_def_skip, NULL, 1, &input);
    if (!dataset)
        return NULL;
    ((settings *)dataset->settings)->count = count;
    int64_t all = input->info.cardinality;
    dataset->info.cardinality = all < 0 ? all : all > count ? all - count : 0;
    tutti__dataset_note(dataset, (uint64_t)count);
    tutti__dataset_set_access(dataset, input->access);
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_skip = {
    .name = "skip",
    .hands_on = true,
    .doc = "all but the first elements",
    .settings_size = sizeof(settings),
    .state_size = sizeof(state),
    .next = skip_next,
    .skip = skip,
    .renumber = renumber,
};
