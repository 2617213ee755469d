/* named.c: other names for the components. */
#include "data/dataset.h"

static tutti_status named_next(tutti_iterator *iterator, tutti_element *ret)
{
    return tutti__iterator_next(iterator->inputs[0], ret);
}

static tutti_status named_skip(tutti_iterator *iterator, int64_t count, int64_t *ret_skipped)
{
    return tutti__iterator_skip(iterator->inputs[0], count, ret_skipped);
}

static tutti_status at(tutti_access *access, uint64_t epoch, int64_t index, tutti_element *ret)
{
    return tutti__access_at(access->inputs[0], epoch, index, ret);
}

static tutti_status named_gather(tutti_access *access, uint64_t epoch, int64_t count,
                                 const int64_t *indices, tutti_tensor *const *rows, int64_t first)
{
    return tutti__access_gather(access->inputs[0], epoch, count, indices, rows, first);
}

extern const tutti_dataset_def tutti_dataset_def_named;

tutti_dataset *(tutti_name_components)(tutti_dataset *input, int count, const char *const *names)
{
    if (input && (count < 1 || count > TUTTI_MAX_COMPONENTS || count != input->info.components))
        return tutti__dataset_wrong(input->job, &tutti_dataset_def_named,
                                    "%d names for %d components", count, input->info.components);
    for (int i = 0; input && i < count; i++)
        if (!names[i] || !names[i][0])
            return tutti__dataset_wrong(input->job, &tutti_dataset_def_named,
                                        "the name of component %d is empty", i);
    tutti_dataset *dataset = tutti__dataset_create(&tutti_dataset_def_named, NULL, 1, &input);
    if (!dataset)
        return NULL;
    for (int i = 0; i < count; i++)
        dataset->info.names[i] = tutti__dataset_name(dataset->job, names[i]);
    dataset->info.cardinality = input->info.cardinality;
    tutti__dataset_set_access(dataset, input->access);
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_named = {
    .name = "named",
    .hands_on = true,
    .keeps_parts = true,
    .doc = "other names for the components",
    .next = named_next,
    .skip = named_skip,
    .at = at,
    .gather = named_gather,
};
