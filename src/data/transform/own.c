/* own.c: elements that are this process's own rows: others have rows of theirs. */
#include "data/dataset.h"

static tutti_status own_next(tutti_iterator *iterator, tutti_element *ret)
{
    return tutti__iterator_next(iterator->inputs[0], ret);
}

static tutti_status own_skip(tutti_iterator *iterator, int64_t count, int64_t *ret_skipped)
{
    return tutti__iterator_skip(iterator->inputs[0], count, ret_skipped);
}

extern const tutti_dataset_def tutti_dataset_def_own;

/* Positions are the job's: the first process saves where all stand, and any number of them goes on
 * from there. So nothing counts that a function may make differently in each process. */
static uint64_t hash_of_all(const tutti_dataset *dataset)
{
    uint64_t hash = tutti__hash_string(1, tutti_dataset_def_own.name);
    return dataset->info.reorders ? tutti__hash_mix(hash, tutti_job_seed(dataset->job)) : hash;
}

tutti_dataset *tutti__dataset_own(tutti_dataset *input, const tutti_share *share)
{
    tutti_dataset *dataset = tutti__dataset_create(&tutti_dataset_def_own, NULL, 1, &input);
    if (!dataset)
        return NULL;
    dataset->share = share;
    dataset->hash = hash_of_all(dataset);
    /* Its length is what the longest of the processes has. */
    dataset->info.cardinality = share ? TUTTI_UNKNOWN : input->info.cardinality;
    for (int c = 0; share && c < dataset->info.components; c++)
        if (dataset->info.types[c].rank > 0)
            dataset->info.types[c].dims[0] = TUTTI_ANY;
    return dataset;
}

bool tutti__dataset_is_own(const tutti_dataset *dataset)
{
    while (dataset && dataset->def->hands_on && !dataset->def->own && dataset->input_count > 0)
        dataset = dataset->inputs[0];
    return dataset && dataset->def->own && dataset->share;
}

const tutti_dataset_def tutti_dataset_def_own = {
    .name = "own",
    .doc = "this process's own rows",
    .hands_on = true,
    .own = true,
    .next = own_next,
    .skip = own_skip,
};
