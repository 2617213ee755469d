/* shard.c: every count-th element. */
#include "data/dataset.h"

typedef struct settings {
    int64_t count, index;
} settings;

/* Where the input stands after n elements of the shard: behind number index + (n - 1) count, or at
 * 0. Brings it before the next one. */
static tutti_status shard_advance(tutti_iterator *iterator, int64_t more, int64_t *ret_reached)
{
    const settings *s = iterator->dataset->settings;
    tutti_iterator *input = iterator->inputs[0];
    int64_t goal, skipped;
    if (!tutti__mul_size(iterator->delivered + more, s->count, &goal) ||
        !tutti__add_size(goal, s->index, &goal))
        goal = INT64_MAX;
    TUTTI_TRY(tutti__iterator_skip(input, goal - input->delivered, &skipped));
    *ret_reached = input->delivered;
    return TUTTI_OK;
}

static tutti_status shard_next(tutti_iterator *iterator, tutti_element *ret)
{
    int64_t reached;
    TUTTI_TRY(shard_advance(iterator, 0, &reached));
    return tutti__iterator_next(iterator->inputs[0], ret);
}

/* Elements of the shard among the first `count`. */
static int64_t among(const settings *s, int64_t count)
{
    return count <= s->index ? 0 : (count - s->index - 1) / s->count + 1;
}

/* The last of those passed over must be there, so it is passed over by itself. */
static tutti_status shard_skip(tutti_iterator *iterator, int64_t count, int64_t *ret_skipped)
{
    const settings *s = iterator->dataset->settings;
    int64_t reached, one, before = iterator->delivered;
    if (count > 0) {
        TUTTI_TRY(shard_advance(iterator, count - 1, &reached));
        TUTTI_TRY(tutti__iterator_skip(iterator->inputs[0], 1, &one));
        count = among(s, iterator->inputs[0]->delivered) - before;
    }
    *ret_skipped = count;
    return TUTTI_OK;
}

static tutti_status renumber(tutti_access *access, uint64_t epoch, int64_t count,
                             const int64_t *indices, int64_t *ret_indices)
{
    const settings *s = access->dataset->settings;
    for (int64_t i = 0; i < count; i++)
        ret_indices[i] = indices[i] * s->count + s->index;
    return TUTTI_OK;
}

extern const tutti_dataset_def tutti_dataset_def_shard;

tutti_dataset *(tutti_shard)(tutti_dataset *input, int64_t count, int64_t index)
{
    if (input && (count < 1 || index < 0 || index >= count))
        return tutti__dataset_wrong(input->job, &tutti_dataset_def_shard,
                                    "shard %lld of %lld: needs an index from 0 to count - 1",
                                    (long long)index, (long long)count);
    tutti_dataset *dataset = tutti__dataset_create(&tutti_dataset_def_shard, NULL, 1, &input);
    if (!dataset)
        return NULL;
    settings *s = dataset->settings;
    *s = (settings){count, index};
    int64_t all = input->info.cardinality;
    dataset->info.cardinality = all < 0 ? all : among(s, all);
    tutti__dataset_note(dataset, (uint64_t)count);
    tutti__dataset_note(dataset, (uint64_t)index);
    tutti__dataset_set_access(dataset, input->access);
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_shard = {
    .name = "shard",
    .doc = "every count-th element",
    .settings_size = sizeof(settings),
    .next = shard_next,
    .skip = shard_skip,
    .renumber = renumber,
};
