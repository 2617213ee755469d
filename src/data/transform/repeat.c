/* repeat.c: the input several times over. Round r of epoch e is the input's epoch e * times + r, or
 * e * 2^32 + r when it is endless. */
#include "data/dataset.h"

typedef struct settings {
    int64_t times; /* 0: endless */
} settings;
typedef struct state {
    int64_t round;
} state;

static uint64_t inner_epoch(const tutti_dataset *dataset, uint64_t epoch, int64_t round)
{
    const settings *s = dataset->settings;
    return (s->times > 0 ? epoch * (uint64_t)s->times : epoch << 32) + (uint64_t)round;
}

static tutti_status repeat_open(tutti_iterator *iterator)
{
    return tutti__iterator_open_input(iterator, 0,
                                      inner_epoch(iterator->dataset, iterator->epoch, 0),
                                      iterator->cancel, &iterator->inputs[0]);
}

/* Is it a part of the files that may well have no elements, while those of other processes do? */
static bool is_part(const tutti_share *share)
{
    return share && (share->policy == TUTTI_SHARD_FILE || share->policy == TUTTI_SHARD_BYTES);
}

/* Opens the next round; *ret_more is false behind the last. */
static tutti_status next_round(tutti_iterator *iterator, bool *ret_more)
{
    const settings *given = iterator->dataset->settings;
    state *s = iterator->state;
    bool empty = iterator->inputs[0]->delivered == 0;
    if (empty && is_part(iterator->share)) {
        *ret_more = false;
        return TUTTI_OK;
    }
    if (empty && given->times == 0)
        return tutti_fail(TUTTI_INVALID, "repeat: the input has no elements, and would be asked "
                                         "for them for ever");
    *ret_more = given->times == 0 || s->round + 1 < given->times;
    if (!*ret_more)
        return TUTTI_OK;
    tutti__iterator_close(iterator->inputs[0]);
    iterator->inputs[0] = NULL;
    s->round++;
    return tutti__iterator_open_input(iterator, 0,
                                      inner_epoch(iterator->dataset, iterator->epoch, s->round),
                                      iterator->cancel, &iterator->inputs[0]);
}

static tutti_status repeat_next(tutti_iterator *iterator, tutti_element *ret)
{
    for (bool more = true; more;) {
        TUTTI_TRY(tutti__iterator_next(iterator->inputs[0], ret));
        if (ret->count > 0)
            return TUTTI_OK;
        TUTTI_TRY(next_round(iterator, &more));
    }
    return TUTTI_OK;
}

static tutti_status repeat_skip(tutti_iterator *iterator, int64_t count, int64_t *ret_skipped)
{
    int64_t done = 0;
    for (bool more = true; more;) {
        int64_t skipped;
        TUTTI_TRY(tutti__iterator_skip(iterator->inputs[0], count - done, &skipped));
        done += skipped;
        if (done == count)
            break;
        TUTTI_TRY(next_round(iterator, &more));
    }
    *ret_skipped = done;
    return TUTTI_OK;
}

static tutti_status at(tutti_access *access, uint64_t epoch, int64_t index, tutti_element *ret)
{
    int64_t all = access->dataset->inputs[0]->info.cardinality;
    return tutti__access_at(access->inputs[0], inner_epoch(access->dataset, epoch, index / all),
                            index % all, ret);
}

#define PIECE 256
/* Runs of numbers that lie in one round go down together. */
static tutti_status repeat_gather(tutti_access *access, uint64_t epoch, int64_t count,
                                  const int64_t *indices, tutti_tensor *const *rows, int64_t first)
{
    int64_t all = access->dataset->inputs[0]->info.cardinality, below[PIECE];
    for (int64_t done = 0; done < count;) {
        int64_t round = indices[done] / all, run = 0;
        for (; run < PIECE && done + run < count && indices[done + run] / all == round; run++)
            below[run] = indices[done + run] % all;
        TUTTI_TRY(tutti__access_gather(access->inputs[0],
                                       inner_epoch(access->dataset, epoch, round), run, below, rows,
                                       first + done));
        done += run;
    }
    return TUTTI_OK;
}

extern const tutti_dataset_def tutti_dataset_def_repeat;

tutti_dataset *(tutti_repeat)(tutti_dataset *input, int64_t times)
{
    int64_t all = input ? input->info.cardinality : 0;
    if (input && (times < 0 || (all == 0 && times == 0)))
        return tutti__dataset_wrong(input->job, &tutti_dataset_def_repeat,
                                    times < 0 ? "%lld times: needs 1 or more, or 0 for endless"
                                              : "an empty dataset, endlessly",
                                    (long long)times);
    tutti_dataset *dataset = tutti__dataset_create(&tutti_dataset_def_repeat, NULL, 1, &input);
    if (!dataset)
        return NULL;
    ((settings *)dataset->settings)->times = times;
    dataset->info.cardinality = times == 0 || all == TUTTI_ENDLESS ? TUTTI_ENDLESS : all;
    if (times > 0 && all >= 0 && !tutti__mul_size(all, times, &dataset->info.cardinality))
        return tutti__dataset_wrong(input->job, &tutti_dataset_def_repeat,
                                    "%lld times %lld elements do not fit into 64 bits",
                                    (long long)times, (long long)all);
    tutti__dataset_note(dataset, (uint64_t)times);
    tutti__dataset_set_access(dataset, all > 0 ? input->access : TUTTI_ACCESS_NONE);
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_repeat = {
    .name = "repeat",
    .keeps_parts = true,
    .doc = "the input several times over",
    .settings_size = sizeof(settings),
    .state_size = sizeof(state),
    .open = repeat_open,
    .next = repeat_next,
    .skip = repeat_skip,
    .opens_inputs = true,
    .at = at,
    .gather = repeat_gather,
};
